/** Makes a figure of a chart in the style of `effect export`, and saves it as SVG, or as PNG in twice its size. */
import { curvesFigure } from "../../../../rl/export/curveFiles.ts"
import { svgOf } from "../../../../rl/export/drawing.ts"
import { el } from "./dom.js"

/**
 * Returns a figure of those series of a chart (see `chart.js`) that have points. Series of single runs within groups are left
 * out.
 */
const figureOf = (title, { series, xName, centre }) => {
  const curves = series
    .filter(({ x, faint }) => x.length > 0 && faint !== true)
    .map(({ label, x, y, low = y, high = y, runs }) => ({
      name: label,
      curve: x.map((step, at) => ({ step, iqm: y[at], low: low[at], high: high[at], runs: runs?.[at] ?? 1 })),
    }))
  const middle = centre === "mean" ? "mean" : "IQM"
  const caption = series.some(({ of }) => of > 1) ? `${middle} of the runs, with its 95 % interval` : ""
  return curvesFigure(title, curves, xName === "time" ? "seconds" : xName, caption)
}

const save = (blob, name) => {
  const href = URL.createObjectURL(blob)
  el("a", { href, download: name }).click()
  // The browser reads the address only after the click has been handled.
  setTimeout(() => URL.revokeObjectURL(href), 60_000)
}

/** Renders an SVG as a PNG, in twice its size. */
const pngOf = async (drawing) => {
  const image = new Image()
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgOf(drawing, 2))}`
  await image.decode()
  const canvas = el("canvas", { width: String(drawing.width * 2), height: String(drawing.height * 2) })
  canvas.getContext("2d").drawImage(image, 0, 0)
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"))
}

/**
 * Saves the figure of a chart as a file. `title` is the title of the chart, `shown` is what it shows, and `type` is `SVG` or
 * `PNG`.
 */
export const saveFigure = async (title, shown, type) => {
  const drawing = figureOf(title, shown)
  const blob = type === "PNG" ? await pngOf(drawing) : new Blob([svgOf(drawing)], { type: "image/svg+xml" })
  const name = title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "") || "chart" // prettier-ignore
  save(blob, `${name}.${type.toLowerCase()}`)
}
