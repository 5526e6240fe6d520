/** Formats texts, errors and values for messages, and handles JSON. It has only pure functions; all modules use it. */

/** Joins the lines of a text by `; ` into one line, for messages. */
export const oneLine = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join("; ")

/**
 * Replaces invisible characters, and those that change how other characters are shown, by their codes, such as
 * `\\u{1b}`.
 */
export const visible = (text: string): string =>
  text.replace(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, (one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`)

/**
 * Replaces characters that could control the terminal or change the direction of text by `�`, in a name or a message
 * from somebody else's files. Line ends, tabs and the colours of `command/cli/output/colors.ts` stay.
 */
export const harmless = (text: string): string =>
  text.replace(
    /\u001b\[(?:0|1|3[1236])m|\r\n|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (one) => (one.length > 1 ? one : "�"),
  )

/** Returns the message of a thrown value, which may be anything, in one line. */
export const messageOf = (error: unknown): string => {
  try {
    return oneLine(String(error instanceof Error ? error.message : error))
  } catch {
    return "what was thrown cannot be read"
  }
}

/** Returns the code or message of the innermost cause of an error, such as `ECONNREFUSED`; empty if it has none. */
export const innermostCause = (error: unknown): string => {
  let innermost = ""
  for (let cause = error; cause instanceof Error && innermost.length < 300; cause = cause.cause) {
    const inner: unknown = cause instanceof AggregateError ? cause.errors[0] : cause
    const { code } = Object(inner)
    innermost = typeof code === "string" ? code : inner instanceof Error ? inner.message : innermost
  }
  return innermost
}

/** Cuts a text that is longer than `most` characters, and marks the cut by `…`. */
export const shortened = (text: string, most = 60): string =>
  text.length > most ? `${text.slice(0, most - 3)}…` : text

/**
 * Returns a function that formats numbers with as many digits after the point as suit this mean score or return: for
 * the mean itself and related numbers, such as its deviation. Scores of at most 1, such as shares of right answers, get
 * more digits.
 */
export const shownLike =
  (score: number) =>
  (value: number): string =>
    value.toFixed(Math.abs(score) <= 1 ? 3 : 1)

/** Formats a mean score or return for people. */
export const shownScore = (score: number): string => shownLike(score)(score)

/** Formats a mean and its standard deviation for people. */
export const shownSpread = (mean: number, deviation: number): string =>
  `${shownScore(mean)} ± ${shownLike(mean)(deviation)}`

/** Shortens a digest to the digits that all commands print. */
export const shownDigest = (digest: string): string => digest.slice(0, 16)

/** Rounds a number of steps per second for people. Slow runs keep a digit after the point. */
export const roundedSpeed = (speed: number): number => (speed < 10 ? Math.round(speed * 10) / 10 : Math.round(speed))

/** Formats an error for a message: its name and its message in one line, cut to 1000 characters. */
export const shownError = (error: Error): string => shortened(`${error.name}: ${oneLine(error.message)}`, 1000)

/** Converts a value to JSON, for messages; undefined for values without JSON, such as a function or a cycle. */
export const jsonOf = (value: unknown, replace?: (key: string, item: unknown) => unknown): string | undefined => {
  try {
    return JSON.stringify(value, replace)
  } catch {
    return undefined
  }
}

/**
 * The largest depth of nested lists and objects in JSON; no program writes more. Recursive functions that walk over a
 * deeper value would overflow the stack.
 */
const deepestJson = 256

const isNested = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/** Tells whether a value has more than `levels` levels of nesting. */
export const isDeeper = (value: Readonly<Record<string, unknown>>, levels: number): boolean => {
  if (levels === 0) return true
  if (Array.isArray(value)) {
    for (const item of value) if (isNested(item) && isDeeper(item, levels - 1)) return true
    return false
  }
  for (const key in value) {
    const item = value[key]
    if (isNested(item) && isDeeper(item, levels - 1)) return true
  }
  return false
}

/** Returns the index of the quote that ends a string of JSON; the length of the text if there is none. */
const endOfString = (text: string, start: number): number => {
  for (let at = text.indexOf('"', start); at >= 0; at = text.indexOf('"', at + 1)) {
    let first = at
    while (text.charCodeAt(first - 1) === 92) first--
    // An even number of backslashes before a quote are pairs, which stand for themselves.
    if ((at - first) % 2 === 0) return at
  }
  return text.length
}

/** The problem of a text of JSON that would take far more memory than the text; undefined if it would not. */
const nestingProblem = (text: string, mostLists: number): string | undefined => {
  let depth = 0
  let lists = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 34) at = endOfString(text, at + 1)
    else if (code === 93 || code === 125) depth--
    else if (code === 91 || code === 123) {
      if (++depth > deepestJson)
        return `expected at most ${deepestJson} lists and objects inside each other, found more`
      if (++lists > mostLists) return `expected at most ${mostLists} lists and objects, found more`
    }
  }
  return undefined
}

/**
 * Parses JSON that others may have written. Throws a SyntaxError for a text that is not JSON, and, before it parses it, a
 * RangeError for a text that is nested too deep, or has more than `mostLists` lists and objects.
 */
export const jsonValue = (text: string, mostLists = Infinity): unknown => {
  // Each list needs a bracket, so a shorter text cannot have too many or be too deep.
  const problem = text.length > Math.min(deepestJson, mostLists) ? nestingProblem(text, mostLists) : undefined
  if (problem !== undefined) throw new RangeError(problem)
  return JSON.parse(text)
}

/** Parses JSON; returns undefined for a text that is not JSON, or that is nested too deep. */
export const parsedJson = (text: string): unknown => {
  try {
    return jsonValue(text)
  } catch {
    return undefined
  }
}

/** Converts a value to JSON for files that people read: indented, with a line feed at the end. */
export const prettyJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/** The longest text that `markdownText` returns, in characters. */
const longestMarkdown = 300

/**
 * Escapes characters of Markdown. An `@`, a `#`, a `GH-` and a `www` are also followed by a space without width: GitHub makes
 * mentions, references and links of them even after a backslash.
 */
const escapedMarkdown = (text: string): string => {
  if (text === "<") return "&lt;"
  if (text === "&") return "&amp;"
  return `${text.length > 1 ? text : `\\${text}`}${/^(?:[@#]|gh-|www)$/i.test(text) ? "&#8203;" : ""}`
}

/**
 * Escapes a text of somebody else such that Markdown shows it as it is, on one line, without links, and without mentions of users
 * and references to issues on GitHub.
 */
export const markdownText = (text: string): string =>
  shortened(text.replace(/[\s\u0000-\u001f\u007f-\u009f]+/g, " ").trim(), longestMarkdown).replace(
    /[\\`*_{}[\]<>()#!|~@&$^]|:(?=\/\/)|\bgh-(?=\d)|www(?=\.)/gi,
    escapedMarkdown,
  )

/** Returns a text of somebody else as code within a line of Markdown. */
export const markdownCode = (text: string): string => `\`${visible(text).replaceAll("`", "'")}\``

/** Returns a fenced block of Markdown. The fence is longer than any in the text itself. */
export const fenced = (text: string, language: string): string => {
  const fence = "`".repeat(Math.max(3, ...Array.from(text.matchAll(/`+/g), ([ticks]) => ticks.length + 1)))
  return `${fence}${language}\n${text.trimEnd()}\n${fence}\n`
}

/** Converts a value to a text like JSON that also distinguishes undefined, the infinities, NaN and negative zero. */
export const exactText = (value: unknown): string => {
  if (typeof value === "string") return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(exactText).join()}]`
  if (typeof value === "object" && value !== null)
    return `{${Object.entries(value)
      .map(([key, inner]) => `${JSON.stringify(key)}:${exactText(inner)}`)
      .join()}}`
  return Object.is(value, -0) ? "-0" : String(value)
}
