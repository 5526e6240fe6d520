/**
 * Defines which values of a scorer are better and which reach a limit, and formats comparisons accordingly. These are pure
 * functions, which the page loads, too.
 */

/**
 * Which values of a scorer are better: higher ones, lower ones (as for tokens and time), or none, if the scorer only
 * describes an episode (as the number of steps does).
 */
export const directions = ["higher", "lower", "none"] as const
export type ScoreDirection = (typeof directions)[number]

/** The default directions of scorers by name. */
const usual: ReadonlyMap<string, ScoreDirection> = new Map([
  ["tokens", "lower"],
  ["cost", "lower"],
  ["calls", "lower"],
  ["latency", "lower"],
  ["steps", "none"],
])

/** Returns the default direction of a scorer by its name: `higher` for most names, `lower` for costs such as `tokens`. */
export const usualDirection = (name: string): ScoreDirection => usual.get(name) ?? "higher"

/** Tells whether a value is at least a limit, apart from the rounding of a sum. */
export const reaches = (value: number, limit: number): boolean => value >= limit - 1e-9 * Math.max(1, Math.abs(limit))

interface Compared {
  readonly scorer: string
  readonly direction: ScoreDirection
  readonly better: number
  readonly worse: number
}

/** Returns the text of a scorer in a table of comparisons: its name, with its direction if that is not the default. */
export const scorerText = ({ scorer, direction }: Pick<Compared, "scorer" | "direction">): string =>
  direction === "lower" ? `${scorer} (lower is better)` : scorer

/**
 * Formats the two cells of a table with the numbers of tasks that are better and worse. For a scorer without a direction,
 * these are the tasks whose value is higher and lower.
 */
export const changeTexts = ({ better, worse, direction }: Omit<Compared, "scorer">): readonly [string, string] =>
  direction === "none" ? [`${better} higher`, `${worse} lower`] : [String(better), String(worse)]
