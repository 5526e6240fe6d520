/** Says which values of a scorer are better, and writes comparisons by it. Pure functions, which the page loads, too. */

/**
 * Which values of a scorer are better: higher ones, lower ones (as for tokens and time), or neither: it only describes an
 * episode, as the number of its steps does.
 */
export const directions = ["higher", "lower", "none"] as const
export type ScoreDirection = (typeof directions)[number]

/** The directions of values by their usual names. */
const usual: ReadonlyMap<string, ScoreDirection> = new Map([
  ["tokens", "lower"],
  ["cost", "lower"],
  ["calls", "lower"],
  ["latency", "lower"],
  ["steps", "none"],
])

/** Returns the direction of a scorer by its name, if nothing else says it: `lower` for `tokens`, and for most `higher`. */
export const usualDirection = (name: string): ScoreDirection => usual.get(name) ?? "higher"

interface Compared {
  readonly scorer: string
  readonly direction: ScoreDirection
  readonly better: number
  readonly worse: number
}

/** Names a scorer in a table of comparisons, with its direction if that isn't the usual one. */
export const scorerText = ({ scorer, direction }: Pick<Compared, "scorer" | "direction">): string =>
  direction === "lower" ? `${scorer} (lower is better)` : scorer

/**
 * Writes the two cells of a table with the numbers of tasks that are better and worse. By a scorer without a direction, these
 * are the tasks whose value is higher and lower.
 */
export const changeTexts = ({ better, worse, direction }: Omit<Compared, "scorer">): readonly [string, string] =>
  direction === "none" ? [`${better} higher`, `${worse} lower`] : [String(better), String(worse)]
