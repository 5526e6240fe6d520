/** Colours texts for the terminal. These are pure functions; the commands write the texts. */

/** The property of a stream that tells whether it is a terminal. */
interface TerminalStream {
  readonly isTTY?: boolean | undefined
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Tells whether to write colours to a stream. `NO_COLOR`, or the value `dumb` of `TERM`, forbids them. Otherwise
 * `FORCE_COLOR` decides, and if that isn't set, only a terminal gets colours. Effect's help has the same rules.
 */
export const hasColors = (stream: TerminalStream, env: Environment = process.env): boolean => {
  if (env.TERM === "dumb" || isSet(env.NO_COLOR)) return false
  if (isSet(env.FORCE_COLOR)) return env.FORCE_COLOR !== "0" && env.FORCE_COLOR !== "false"
  return stream.isTTY === true
}

const isSet = (value: string | undefined): value is string => value !== undefined && value !== ""

const codes = { bold: 1, red: 31, green: 32, yellow: 33, cyan: 36 } as const
type Color = keyof typeof codes

/** Colours a text if the stream shows colours. */
export const colored = (
  color: Color,
  text: string,
  stream: TerminalStream = process.stdout,
  env?: Environment,
): string => (hasColors(stream, env) ? `\u001b[${codes[color]}m${text}\u001b[0m` : text)

/** The word `warning:` for stderr, in yellow where stderr shows colours. */
export const warningLabel = (): string => colored("yellow", "warning:", process.stderr)

const colorOfState: Readonly<Record<string, Color>> = {
  running: "cyan",
  finished: "green",
  done: "green",
  stopped: "yellow",
  failed: "red",
}

/** Colours a text that begins with the state of a run, such as `done`; returns any other text unchanged. */
export const coloredState = (text: string, stream?: TerminalStream, env?: Environment): string => {
  const color = colorOfState[/^\w*/.exec(text)?.[0] ?? ""]
  return color === undefined ? text : colored(color, text, stream, env)
}
