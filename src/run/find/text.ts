export { thinned } from "../../statistics/resampling.ts"
export { type Cell, cell, short, table } from "./table.ts"

/** Draws bars as plain text for terminals. */

/** The characters for bars that fill zero to seven eighths of a cell. */
const parts = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]

/** Draws a horizontal bar, precise to an eighth of a character. Even the lowest value has a visible bar. */
export const bar = (value: number, lowest: number, highest: number, width: number): string => {
  const share = highest > lowest ? (value - lowest) / (highest - lowest) : 1
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
