/** Saves files from the page, with names made of titles. */
import { csvOf } from "./csv.js"
import { el } from "./dom.js"

export const save = (blob, name) => {
  const href = URL.createObjectURL(blob)
  el("a", { href, download: name }).click()
  // The browser reads the address only after the click has been handled.
  setTimeout(() => URL.revokeObjectURL(href), 60_000)
}

/** Returns the name of a file from the title of what it contains: `Training return` becomes `training-return.svg`. */
export const fileName = (title, extension) => {
  const name = title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "") || "chart" // prettier-ignore
  return `${name}.${extension}`
}

/** Saves rows of cells as a file of comma-separated values. */
export const saveCsv = (title, rows) =>
  save(new Blob([csvOf(rows)], { type: "text/csv;charset=utf-8" }), fileName(title, "csv"))
