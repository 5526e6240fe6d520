/** More digits than a screen shows are only more to send. */
export const rounded = (value: number): number => Number(value.toPrecision(7))
