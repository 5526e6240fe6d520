/** Renders the learning curve of one or several runs as the text of a CSV or SVG file, which `effect export` writes. */
import type { CurvePoint } from "../statistics/statistics.ts"

export type Curve = ReadonlyArray<typeof CurvePoint.Type>

const columns = ["step", "runs", "mean", "std", "median", "iqm", "low", "high"] as const

/** Returns a curve as CSV: a header, then one line per step. */
export const curveCsv = (curve: Curve): string =>
  [columns.join(","), ...curve.map((point) => columns.map((key) => String(point[key])).join(","))]
    .join("\n")
    .concat("\n")

interface Point {
  readonly x: number
  readonly y: number
}

const width = 720
const height = 420
const plot = { left: 72, right: width - 24, top: 72, bottom: height - 54 }
const margin = 24
const colours = {
  paper: "#fbfaf7",
  title: "#2b2d42",
  text: "#6b6e80",
  grid: "#e3e0d9",
  axis: "#b9b5ac",
  curve: "#3d5a80",
}
/** A curve with at most this many points gets a dot at each point, because a line with only one point is invisible. */
const mostDots = 40

/** Renders a curve as SVG: the interquartile mean (IQM) as a line, and its 95 % interval as a band. */
export const curveSvg = (title: string, curve: Curve): string => {
  const steps = curve.map(({ step }) => step)
  const [first, last] = [Math.min(0, ...steps), Math.max(1, ...steps)]
  const ticks = ticksOf(Math.min(...curve.map(({ low }) => low)), Math.max(...curve.map(({ high }) => high)))
  const [lowest, highest] = [ticks[0], ticks[ticks.length - 1]]
  const at = (step: number, value: number): Point => ({
    x: plot.left + ((step - first) / (last - first)) * (plot.right - plot.left),
    y: plot.bottom - ((value - lowest) / (highest - lowest)) * (plot.bottom - plot.top),
  })
  const upper = curve.map(({ step, high }) => at(step, high))
  const lower = curve.map(({ step, low }) => at(step, low))
  const line = curve.map(({ step, iqm }) => at(step, iqm))
  const runs = Math.max(...curve.map((point) => point.runs))
  const caption = runs > 1 ? `IQM of ${runs} runs, with its 95 % interval` : "mean return of the validation episodes"
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="13" fill="${colours.text}">`,
    `<rect width="${width}" height="${height}" fill="${colours.paper}"/>`,
    text({ x: margin, y: 31 }, title, "start", ` font-size="${titleSize(title)}" fill="${colours.title}"`),
    text({ x: margin, y: 52 }, caption, "start"),
    ...ticks.flatMap((value, index) => {
      const from = at(first, value)
      return [
        thinLine(from, at(last, value), index === 0 ? colours.axis : colours.grid),
        text({ x: plot.left - 10, y: from.y + 5 }, short(value), "end"),
      ]
    }),
    ...ticksOf(first, last)
      .filter((step) => step >= first && step <= last)
      .flatMap((step) => {
        const { x } = at(step, lowest)
        return [
          thinLine({ x, y: plot.bottom }, { x, y: plot.bottom + 5 }, colours.axis),
          text({ x, y: plot.bottom + 22 }, short(step), "middle"),
        ]
      }),
    text({ x: (plot.left + plot.right) / 2, y: height - 12 }, "steps", "middle"),
    `<polygon points="${list([...upper, ...lower.reverse()])}" fill="${colours.curve}" opacity="0.18"/>`,
    polyline(line, 2.5, colours.curve),
    ...(line.length > mostDots
      ? []
      : [
          `<g fill="${colours.curve}">${line.map(({ x, y }) => `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="3"/>`).join("")}</g>`,
        ]),
    "</svg>",
    "",
  ].join("\n")
}

const text = ({ x, y }: Point, content: string, anchor: "start" | "middle" | "end", attributes = ""): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}"${attributes}>${escape(content)}</text>`

/** Returns the font size of a title: a letter is about 0.6 of the font size wide, so a long title gets a smaller font. */
const titleSize = (title: string): string =>
  Math.min(17, (width - 2 * margin) / (0.6 * Math.max(1, title.length))).toFixed(1)

/** Renders a line one pixel wide, through the middle of pixels: on their edge it would look like two pale lines. */
const thinLine = (from: Point, to: Point, colour: string): string =>
  polyline(
    [from, to].map(({ x, y }) => ({ x: Math.round(x) + 0.5, y: Math.round(y) + 0.5 })),
    1,
    colour,
  )

const polyline = (points: ReadonlyArray<Point>, strokeWidth: number, colour: string): string =>
  `<polyline points="${list(points)}" fill="none" stroke="${colour}" stroke-width="${strokeWidth}" stroke-linejoin="round"/>`

const list = (points: ReadonlyArray<Point>): string =>
  points.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ")

const escape = (content: string): string => content.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)

/** Returns four to eight round numbers at equal distances, the first at most `low` and the last at least `high`. */
export const ticksOf = (low: number, high: number): ReadonlyArray<number> => {
  const span = high - low || Math.max(1, Math.abs(high))
  const rough = span / 5
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10)
  const from = Math.floor(low / step)
  const to = Math.max(Math.ceil(high / step), from + 1)
  return Array.from({ length: to - from + 1 }, (_, index) => (from + index) * step)
}

/** Returns a number as a short text for an axis, such as 25k or 1.5M. */
const short = (value: number): string => {
  const size = Math.abs(value)
  const [divisor, unit, digits] = size >= 1e6 ? [1e6, "M", 3] : size >= 1e4 ? [1e3, "k", 3] : [1, "", 6]
  return `${value < 0 ? "−" : ""}${Number((size / divisor).toPrecision(digits))}${unit}`
}
