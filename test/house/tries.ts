/**
 * Returns the number of inputs with which a law is tried. `npm run test:all` tries all of them, and other ones each time;
 * `npm test`, whose inputs are always the same, tries a tenth. A number in the variable `PROPERTY_TRIES` multiplies them.
 */
export const tries = (all: number): number => {
  const { PROPERTY_TRIES: factor = "1" } = process.env
  return Math.ceil(factor === "tenth" ? all / 10 : all * Number(factor))
}
