/** Normalises answers (case, spaces, quotes, full stops) and reads `\boxed{…}`, so that scorers can compare them. */

/** Returns a text in lower case, with single spaces, without quotes around it and without a final `.` or `!`. */
export const normalise = (text: string): string => {
  const plain = text
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[\u2018\u2019]/g, "'")
    .replace(/[\u201c\u201d]/g, '"')
  let bare = plain.replace(/\s+/g, " ").trim()
  for (;;) {
    const before = bare
    // An ellipsis is not a full stop, and a text that is only a punctuation mark is not changed.
    bare = bare.replace(/([^.])[.!]$/, "$1").trim()
    const wrapped = /^(["'`*_]{1,3})(.+)\1$/s.exec(bare)
    if (wrapped !== null) bare = wrapped[2].trim()
    if (bare === before) return bare
  }
}

/** Maps the position of each opening brace to the position of its closing brace. Braces after a backslash don't count. */
const braces = (text: string): ReadonlyMap<number, number> => {
  const closed = new Map<number, number>()
  const open: Array<number> = []
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "\\") at++
    else if (text[at] === "{") open.push(at)
    else if (text[at] === "}") {
      const from = open.pop()
      if (from !== undefined) closed.set(from, at)
    }
  }
  return closed
}

/** Returns the contents of the last closed `\boxed{…}`; undefined if there is none. */
export const boxed = (text: string): string | undefined => {
  const starts = [...text.matchAll(/\\?\bf?boxed\s*\{/g)]
  if (starts.length === 0) return undefined
  const closed = braces(text)
  for (const start of starts.toReversed()) {
    const from = start.index + start[0].length
    const end = closed.get(from - 1)
    if (end !== undefined) return text.slice(from, end).trim()
  }
  return undefined
}

/** Returns the boxed part of an answer, or all of it. */
export const unboxed = (text: string): string => boxed(text) ?? text.trim()

/** Shortens a text to at most `most` characters, for messages. */
export const short = (text: string, most = 200): string => {
  const line = text.trim().replace(/\s+/g, " ")
  return line.length > most ? `${line.slice(0, most - 1)}…` : line
}
