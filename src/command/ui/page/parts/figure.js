/** Makes a figure of a chart in the style of `effect export`, and saves it as SVG, or as PNG in twice its size. */
import { curvesFigure } from "../../../../rl/export/curveFiles.ts"
import { svgOf } from "../../../../rl/export/drawing.ts"
import { colorOf, el } from "./dom.js"
import { fileName, save } from "./save.js"

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

/** Renders the text of an SVG of this size as a PNG. */
const pngOf = async (svg, width, height) => {
  const image = new Image()
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`
  await image.decode()
  const canvas = el("canvas", { width: String(width), height: String(height) })
  canvas.getContext("2d").drawImage(image, 0, 0, width, height)
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"))
}

const svgBlob = (text) => new Blob([text], { type: "image/svg+xml" })

/**
 * Saves the figure of a chart as a file. `title` is the title of the chart, `shown` is what it shows, and `type` is `SVG` or
 * `PNG`.
 */
export const saveFigure = async (title, shown, type) => {
  const drawing = figureOf(title, shown)
  const { width, height } = drawing
  const blob = type === "PNG" ? await pngOf(svgOf(drawing, 2), width * 2, height * 2) : svgBlob(svgOf(drawing))
  save(blob, fileName(title, type.toLowerCase()))
}

/** The properties of the style sheet that a saved picture keeps. */
const kept = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "opacity", "font-family", "font-size"]

/** Saves an SVG element of the page as a file, with the colours that it has in the page, on a background. */
export const savePicture = async (title, picture, type) => {
  const copy = picture.cloneNode(true)
  const [originals, copies] = [picture, copy].map((one) => [...one.querySelectorAll("*")])
  for (const [index, original] of originals.entries()) {
    const style = getComputedStyle(original)
    for (const name of kept) copies[index].setAttribute(name, style.getPropertyValue(name))
  }
  const { width, height } = picture.viewBox.baseVal
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg")
  copy.setAttribute("width", String(width))
  copy.setAttribute("height", String(height))
  // The page's policy forbids a style for the background, so it is a shape.
  const background = document.createElementNS("http://www.w3.org/2000/svg", "rect")
  for (const [name, value] of Object.entries({ width, height, fill: colorOf("--card") }))
    background.setAttribute(name, String(value))
  copy.prepend(background)
  const text = new XMLSerializer().serializeToString(copy)
  // A picture of the page is small, so it is rendered in four times its size.
  const blob = type === "PNG" ? await pngOf(text, width * 4, height * 4) : svgBlob(text)
  save(blob, fileName(title, type.toLowerCase()))
}
