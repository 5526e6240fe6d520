/** Formats tables, bars and sizes as plain text for the terminal. These are pure functions for the commands. */

/** The value of a table cell; a missing value (undefined) is shown as a dash. */
export type Cell = string | number | boolean | null

/** Formats a value as text, and replaces control characters, which could move the cursor, by `�`. */
export const cell = (value: Cell | undefined): string => {
  if (value === undefined || value === null) return "-"
  if (typeof value === "number") return short(value)
  return String(value).replace(/[\u0000-\u001f\u007f-\u009f]/g, "�")
}

/** Rounds a number to a few digits for display. */
export const short = (value: number): string =>
  Number.isInteger(value) || !Number.isFinite(value)
    ? String(value)
    : Math.abs(value) >= 100
      ? value.toFixed(1)
      : String(Number(value.toPrecision(4)))

/**
 * Adds colour to the padded text of a cell. `heading` is the name of the column; `row` is undefined for the heading itself.
 */
export type Paint = (text: string, heading: string, row: number | undefined) => string

/**
 * Formats a table with two spaces between columns. Columns of numbers are aligned to the right. If `headings` is empty,
 * the table has only rows.
 */
export const table = (
  headings: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<Cell | undefined>>,
  paint: Paint = (text) => text,
): string => {
  const lines = [...(headings.length === 0 ? [] : [headings.map(cell)]), ...rows.map((row) => row.map(cell))]
  const columns = lines[0] ?? []
  const widths = columns.map((_, column) => lines.reduce((width, line) => Math.max(width, line[column].length), 0))
  const isRight = columns.map(
    (_, column) => rows.some((row) => typeof row[column] === "number") && rows.every((row) => !isText(row[column])),
  )
  const firstRow = headings.length === 0 ? 0 : 1
  const padded = (text: string, column: number, isLast: boolean): string =>
    isRight[column] ? text.padStart(widths[column]) : isLast ? text : text.padEnd(widths[column])
  return lines
    .map((line, index) => {
      const row = index < firstRow ? undefined : index - firstRow
      // Removes spaces at the end of the line.
      const end = line.findLastIndex((text) => text !== "")
      const cells = line.slice(0, end + 1)
      return cells
        .map((text, column) => paint(padded(text, column, column === end), headings[column] ?? "", row))
        .join("  ")
        .trimEnd()
    })
    .join("\n")
    .concat("\n")
}

const isText = (value: Cell | undefined): boolean => typeof value === "string" || typeof value === "boolean"

/** The characters that fill zero to seven eighths of a character's width, by the number of eighths. */
const parts = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]

/**
 * Renders a horizontal bar, precise to an eighth of a character. Even the lowest value has a visible bar. If all values are
 * the same, the bars are full, or as short as can be if that value is not above zero.
 */
export const bar = (value: number, lowest: number, highest: number, width: number): string => {
  const share = highest > lowest ? (value - lowest) / (highest - lowest) : value > 0 ? 1 : 0
  const eighths = Math.max(1, Math.round(share * width * 8))
  return "█".repeat(Math.floor(eighths / 8)) + parts[eighths % 8]
}

export const bytesText = (bytes: number): string => {
  const units = ["B", "kB", "MB", "GB", "TB"]
  let [value, unit] = [bytes, 0]
  while (value >= 1000 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1]
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`
}

export const indented = (text: string): string => text.trimEnd().replace(/^(?=.)/gm, "  ")
