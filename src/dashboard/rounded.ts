/** Rounds to seven significant digits; more digits would make answers larger without a visible difference. */
export const rounded = (value: number): number => Number(value.toPrecision(7))
