/** The content of the file `token` in a run's folder. It identifies the folder, and orders the runs of a trainer. */
export interface Token {
  readonly id: string
  /** The number of the run: it grows with each run that the trainer finds. Runs begin in this order. */
  readonly generation: number
  /** The time at which the trainer started, in milliseconds since 1970. */
  readonly startedAtMillis: number
}

/** Formats a token as a line of text. */
export const tokenText = ({ id, generation, startedAtMillis }: Token): string =>
  `${id} ${generation} ${startedAtMillis}\n`

/**
 * Parses the text of a token; undefined for other texts.
 *
 * @example
 * ```ts
 * tokenOf("run_a 3 1767225600000\n") // { id: "run_a", generation: 3, startedAtMillis: 1767225600000 }
 * ```
 */
export const tokenOf = (text: string): Token | undefined => {
  const [, id, generation, startedAtMillis] = /^(.+) (\d+) (\d+)\n$/s.exec(text) ?? []
  return id === undefined ? undefined : { id, generation: Number(generation), startedAtMillis: Number(startedAtMillis) }
}
