/**
 * Colours of the command's output, by the rules that Effect's own help follows: `NO_COLOR` wins, `FORCE_COLOR` colours what
 * is no terminal either, and a terminal is coloured unless it is dumb.
 */
export interface Target {
  readonly isTTY?: boolean | undefined
}

type Environment = Readonly<Record<string, string | undefined>>

export const hasColors = (stream: Target, env: Environment = process.env): boolean => {
  if (env.TERM === "dumb" || isSet(env.NO_COLOR)) return false
  if (isSet(env.FORCE_COLOR)) return env.FORCE_COLOR !== "0" && env.FORCE_COLOR !== "false"
  return stream.isTTY === true
}

const isSet = (value: string | undefined): value is string => value !== undefined && value !== ""

const codes = { bold: 1, red: 31, green: 32, yellow: 33, cyan: 36 } as const
export type Color = keyof typeof codes

/** Writes a text in a colour, if the stream shows colours. */
export const colored = (color: Color, text: string, stream: Target = process.stdout, env?: Environment): string =>
  hasColors(stream, env) ? `\u001b[${codes[color]}m${text}\u001b[0m` : text

const colorOfState: Readonly<Record<string, Color>> = {
  running: "cyan",
  finished: "green",
  done: "green",
  stopped: "yellow",
  failed: "red",
}

/** Writes a state, or a text that begins with one, in its colour. */
export const coloredState = (text: string, stream?: Target, env?: Environment): string => {
  const color = colorOfState[/^\w*/.exec(text)?.[0] ?? ""]
  return color === undefined ? text : colored(color, text, stream, env)
}
