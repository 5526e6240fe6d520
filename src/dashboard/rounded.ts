/** Rounds to seven digits: more would be sent, but not seen. */
export const rounded = (value: number): number => Number(value.toPrecision(7))
