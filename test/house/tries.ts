/**
 * Returns the number of inputs with which a law is tried. `npm run test:all` tries all of them, and other ones each time;
 * `npm test`, whose inputs are always the same, tries a fifth.
 */
export const tries = (all: number): number => (process.env.PROPERTY_TRIES === "fifth" ? Math.ceil(all / 5) : all)
