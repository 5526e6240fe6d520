/**
 * Splits a record of comma-separated values (RFC 4180) into its fields, and writes fields: a quoted field can hold
 * separators, line ends and doubled quotes. It only computes: `agents/task/data/Records.ts` reads the file, splits it
 * into records, and calls this. We use no library: it would need the whole file instead of one record, and its errors
 * would not name the line.
 *
 * @example
 * ```ts
 * fieldsOf('1,"a ""b"", c"', ",", 1) // ["1", 'a "b", c']
 * ```
 */
const quote = '"'

/** Writes a field. Texts with a separator, a quote or a line end are quoted; null and undefined are empty. */
export const fieldOf = (value: unknown): string => {
  if (value === undefined || value === null) return ""
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "")
  return /[",\r\n]/.test(text) ? `${quote}${text.replaceAll(quote, quote + quote)}${quote}` : text
}

/**
 * Returns the fields of one record, or the problem with the record and the line where it is. `text` is the record
 * without its line end, and `line` the number in the file of the record's first line.
 */
export const fieldsOf = (
  text: string,
  separator: string,
  line: number,
): ReadonlyArray<string> | { readonly line: number; readonly problem: string } => {
  const fields: Array<string> = []
  let at = 0
  const wrongAt = (place: number, problem: string) => ({ line: line + linesIn(text.slice(0, place)), problem })
  for (;;) {
    if (text[at] === quote) {
      const opened = at
      let field = ""
      for (;;) {
        const close = text.indexOf(quote, at + 1)
        if (close < 0) return wrongAt(opened, "expected the quote opened here to be closed")
        field += text.slice(at + 1, close)
        at = close + 1
        if (text[at] !== quote) break
        field += quote
      }
      fields.push(field)
      if (at < text.length && text[at] !== separator) {
        const rest = JSON.stringify(text.slice(at, at + 10))
        return wrongAt(
          at,
          `expected ${JSON.stringify(separator)} or the line's end after a quoted field, found ${rest}`,
        )
      }
    } else {
      const end = text.indexOf(separator, at)
      const field = text.slice(at, end < 0 ? text.length : end)
      if (field.includes(quote)) {
        const start = JSON.stringify(field.slice(0, 40))
        return wrongAt(at, `expected a field with a quote in it to be quoted and the quote doubled, found ${start}`)
      }
      fields.push(field)
      at += field.length
    }
    if (at >= text.length) return fields
    at++
  }
}

const linesIn = (text: string): number => text.split("\n").length - 1
