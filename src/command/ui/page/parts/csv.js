/** Writes tables as comma-separated values. These functions need no browser. */
import { fieldOf } from "../../../../base/formats/csv.ts"

/** Matches a number as `number` of `format.js` writes it, with commas between thousands. */
const grouped = /^[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?$/

/**
 * Converts the text of a cell: a dash that stands for nothing becomes empty, and numbers lose their commas. Spreadsheets compute
 * texts that begin with `=`, `+`, `-` or `@`. A run of somebody else may contain such a text, so it gets an apostrophe.
 */
const valueOf = (value) => {
  if (typeof value !== "string") return value
  const text = value.replaceAll(/\s+/g, " ").trim()
  if (text === "–" || text === "-") return ""
  if (grouped.test(text)) return text.replaceAll(",", "")
  return /^[=+\-@]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text
}

/** Returns the text of a table, which is a list of rows of cells. */
export const csvOf = (rows) => rows.map((row) => `${row.map((cell) => fieldOf(valueOf(cell))).join(",")}\r\n`).join("")

/** Reads the rows of a table of the page. A cell that spans several rows or columns is repeated in each. */
export const rowsOf = (table) => {
  const rows = []
  for (const [index, line] of [...table.rows].entries()) {
    const row = (rows[index] ??= [])
    let column = 0
    for (const cell of line.cells) {
      while (row[column] !== undefined) column++
      for (let down = 0; down < cell.rowSpan; down++)
        for (let right = 0; right < cell.colSpan; right++)
          (rows[index + down] ??= [])[column + right] = cell.dataset.value ?? cell.textContent
      column += cell.colSpan
    }
  }
  return rows.map((row) => Array.from(row, (cell) => cell ?? ""))
}
