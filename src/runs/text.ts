import type { Value } from "./Value.ts"

/** Plain text for terminals: cells, tables, a curve. */

/** A value in a cell. What would move the cursor is not let through. */
export const cell = (value: Value | undefined): string => {
  if (value === undefined || value === null) return "-"
  if (typeof value === "number") return short(value)
  return String(value).replace(/[\u0000-\u001f\u007f-\u009f]/g, "�")
}

/** A number to read, not to compute with. */
export const short = (value: number): string =>
  Number.isInteger(value) || !Number.isFinite(value)
    ? String(value)
    : Math.abs(value) >= 100
      ? value.toFixed(1)
      : String(Number(value.toPrecision(4)))

/** Columns two spaces apart, numbers to the right; without headings the rows alone. */
export const table = (
  headings: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<Value | undefined>>,
): string => {
  const lines = [...(headings.length === 0 ? [] : [headings.map(cell)]), ...rows.map((row) => row.map(cell))]
  const columns = lines[0] ?? []
  const widths = columns.map((_, column) => lines.reduce((width, line) => Math.max(width, line[column].length), 0))
  const isRight = columns.map(
    (_, column) => rows.some((row) => typeof row[column] === "number") && rows.every((row) => !isText(row[column])),
  )
  return lines
    .map((line) =>
      line
        .map((text, column) => (isRight[column] ? text.padStart(widths[column]) : text.padEnd(widths[column])))
        .join("  ")
        .trimEnd(),
    )
    .join("\n")
    .concat("\n")
}

const isText = (value: Value | undefined): boolean => typeof value === "string" || typeof value === "boolean"

/** Whole cells, and then an eighth to seven of one. */
const parts = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]

/** A bar of some eighths of a cell's width; the lowest is seen too. */
export const bar = (value: number, lowest: number, highest: number, width: number): string => {
  const share = highest > lowest ? (value - lowest) / (highest - lowest) : 1
  const eighths = Math.max(1, Math.round(share * width * 8))
  return "█".repeat(Math.floor(eighths / 8)) + parts[eighths % 8]
}

/** At most so many of them, evenly spread, the first and the last among them. */
export const thinned = <A>(items: ReadonlyArray<A>, most: number): ReadonlyArray<A> =>
  items.length <= most
    ? items
    : Array.from({ length: most }, (_, index) => items[Math.round((index * (items.length - 1)) / (most - 1))])

export const bytesText = (bytes: number): string => {
  const units = ["B", "kB", "MB", "GB", "TB"]
  let [value, unit] = [bytes, 0]
  while (value >= 1000 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1]
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`
}

export const indented = (text: string): string => text.trimEnd().replace(/^(?=.)/gm, "  ")
