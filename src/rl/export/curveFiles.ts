/**
 * Writes learning curves of runs as CSV, and draws them as figures, which `effect export` saves as SVG, PDF or PNG. The
 * page of `effect ui` loads this file in the browser, so it may import only files without Node or Effect.
 */
import { fieldOf } from "../../base/formats/csv.ts"
import { thinned } from "../../base/statistics/resampling.ts"
import type { CurvePoint } from "../../base/statistics/statistics.ts"
import { type PlotDrawing, type PlotPoint, type PlotShape, svgOf } from "./drawing.ts"

type CurvePoints = ReadonlyArray<typeof CurvePoint.Type>

const columns = ["step", "runs", "mean", "std", "median", "iqm", "low", "high"] as const

/** Returns a curve as CSV: a header, then one line per step. */
const curveCsv = (curve: CurvePoints): string =>
  [columns.join(","), ...curve.map((point) => columns.map((key) => String(point[key])).join(","))]
    .join("\n")
    .concat("\n")

/** A curve of one group of runs, with its name in the legend. */
export interface NamedCurve {
  readonly name: string
  readonly curve: CurvePoints
}

/** Returns curves as one CSV table. If there are several curves, the first column has their names. */
export const curvesCsv = (curves: ReadonlyArray<NamedCurve>): string => {
  if (curves.length === 1) return curveCsv(curves[0].curve)
  const rows = curves.flatMap(({ name, curve }) =>
    curve.map((point) => [fieldOf(name), ...columns.map((key) => String(point[key]))]),
  )
  return [["curve", ...columns], ...rows].map((row) => `${row.join(",")}\n`).join("")
}

const width = 720
/** The height of a figure without a legend. */
const height = 420
const margin = 24
const legendRow = 20
const text = "#6b6e80"
const colours = { paper: "#fbfaf7", title: "#2b2d42", grid: "#e3e0d9", axis: "#b9b5ac" }
/**
 * The colours of curves, which are distinct for people with colour blindness: those of Okabe and Ito, except the first.
 */
export const curveColours = ["#3d5a80", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"] as const
/**
 * The marks of curves. When all colours are used up, the next curves get the same colours with another mark. A mark is
 * a circle, or a polygon with these corners.
 */
const marks: ReadonlyArray<ReadonlyArray<PlotPoint> | "circle"> = [
  "circle",
  [{ x: -3, y: -3 }, { x: 3, y: -3 }, { x: 3, y: 3 }, { x: -3, y: 3 }], // prettier-ignore
  [{ x: 0, y: -4 }, { x: 4, y: 3 }, { x: -4, y: 3 }], // prettier-ignore
  [{ x: 0, y: -5 }, { x: 4, y: 0 }, { x: 0, y: 5 }, { x: -4, y: 0 }], // prettier-ignore
]
/** A curve with at most this many points gets a mark at each point, because a line with only one point is invisible. */
const mostMarks = 40
/** The number of marks on a longer curve, if another curve has the same colour. */
const fewMarks = 12

/** Renders a curve as SVG: the interquartile mean (IQM) as a line, and its 95 % interval as a band. */
export const curveSvg = (title: string, curve: CurvePoints): string => svgOf(curvesFigure(title, [{ name: "", curve }]))

/**
 * Draws curves over one axis, each as a line (IQM) with a band (its 95 % interval), and a legend if there are several.
 * `axis` is the label of the horizontal axis, and the caption explains lines and bands.
 */
export const curvesFigure = (
  title: string,
  curves: ReadonlyArray<NamedCurve>,
  axis = "steps",
  caption = captionOf(curves),
): PlotDrawing => {
  const legend = legendOf(curves)
  const plot = { left: 72, right: width - margin, top: 72 + legend.height, bottom: height - 54 + legend.height }
  const points = curves.flatMap(({ curve }) => curve)
  const steps = points.map(({ step }) => step)
  const [first, last] = [least([0, ...steps]), most([1, ...steps])]
  const ticks = ticksOf(least(points.map(({ low }) => low)), most(points.map(({ high }) => high)))
  const [lowest, highest] = [ticks[0], ticks[ticks.length - 1]]
  const at = (step: number, value: number): PlotPoint => ({
    x: plot.left + ((step - first) / (last - first)) * (plot.right - plot.left),
    y: plot.bottom - ((value - lowest) / (highest - lowest)) * (plot.bottom - plot.top),
  })
  return {
    width,
    height: height + legend.height,
    paper: colours.paper,
    shapes: [
      label({ x: margin, y: 31 }, title, "start", { size: fittingSize(title), colour: colours.title }),
      label({ x: margin, y: 52 }, caption, "start"),
      ...legend.shapes,
      ...ticks.flatMap((value, index) => {
        const from = at(first, value)
        return [
          thinLine(from, at(last, value), index === 0 ? colours.axis : colours.grid),
          label({ x: plot.left - 10, y: from.y + 5 }, short(value), "end"),
        ]
      }),
      ...ticksOf(first, last)
        .filter((step) => step >= first && step <= last)
        .flatMap((step) => {
          const { x } = at(step, lowest)
          return [
            thinLine({ x, y: plot.bottom }, { x, y: plot.bottom + 5 }, colours.axis),
            label({ x, y: plot.bottom + 22 }, short(step), "middle"),
          ]
        }),
      label({ x: (plot.left + plot.right) / 2, y: plot.bottom + 42 }, axis, "middle"),
      // Draw all bands first, so that no band covers a line.
      ...curves.map(({ curve }, index): PlotShape => {
        const upper = curve.map(({ step, high }) => at(step, high))
        const lower = curve.map(({ step, low }) => at(step, low))
        return { kind: "area", points: [...upper, ...lower.reverse()], colour: colourOf(index), opacity: 0.18 }
      }),
      ...curves.flatMap(({ curve }, index) => {
        const line = curve.map(({ step, iqm }) => at(step, iqm))
        const isMarked = line.length <= mostMarks
        const marked = isMarked ? line : index < curveColours.length ? [] : thinned(line, fewMarks)
        return [lineOf(line, colourOf(index)), ...marksAt(marked, index)]
      }),
    ],
  }
}

const colourOf = (index: number): string => curveColours[index % curveColours.length]

/** Returns the legend of several curves, with the names in as many rows as they need. */
const legendOf = (
  curves: ReadonlyArray<NamedCurve>,
): { readonly height: number; readonly shapes: ReadonlyArray<PlotShape> } => {
  if (curves.length < 2) return { height: 0, shapes: [] }
  const counts = new Set(curves.map(({ curve }) => runsOf(curve)))
  let [x, row] = [margin, 1]
  const shapes = curves.flatMap(({ name, curve }, index): ReadonlyArray<PlotShape> => {
    const content = counts.size > 1 ? `${shortened(name)} (${runsOf(curve)})` : shortened(name)
    const length = 44 + widthOf(content, 13)
    if (x > margin && x + length > width - margin) [x, row] = [margin, row + 1]
    const left = { x, y: 52 + row * legendRow }
    x += length
    const middle = { x: left.x + 11, y: left.y - 4.5 }
    return [
      lineOf([{ x: left.x, y: middle.y }, { x: left.x + 22, y: middle.y }], colourOf(index)), // prettier-ignore
      ...marksAt([middle], index),
      label({ x: left.x + 28, y: left.y }, content, "start"),
    ]
  })
  return { height: row * legendRow, shapes }
}

/** Shortens a long name in the legend: replaces its middle by an ellipsis. */
const shortened = (name: string): string => (name.length <= 80 ? name : `${name.slice(0, 39)}…${name.slice(-40)}`)

const runsOf = (curve: CurvePoints): number => most(curve.map(({ runs }) => runs))

const captionOf = (curves: ReadonlyArray<NamedCurve>): string => {
  const counts = [...new Set(curves.map(({ curve }) => runsOf(curve)))]
  if (counts.length > 1) return "IQM of the runs, whose number is in brackets, with its 95 % interval"
  if (counts[0] > 1) return `IQM of ${counts[0]} runs${curves.length > 1 ? " each" : ""}, with its 95 % interval`
  return "mean return of the validation episodes"
}

const marksAt = (points: ReadonlyArray<PlotPoint>, index: number): ReadonlyArray<PlotShape> => {
  const colour = colourOf(index)
  const mark = marks[Math.floor(index / curveColours.length) % marks.length]
  if (points.length === 0) return []
  if (mark === "circle") return [{ kind: "dots", points, radius: 3, colour }]
  return points.map(({ x, y }) => ({
    kind: "area",
    points: mark.map((corner) => ({ x: x + corner.x, y: y + corner.y })),
    opacity: 1,
    colour,
  }))
}

const label = (
  at: PlotPoint,
  content: string,
  anchor: "start" | "middle" | "end",
  { size = 13, colour = text }: { readonly size?: number; readonly colour?: string } = {},
): PlotShape => ({ kind: "text", at, content, anchor, size, colour })

/** Estimates the width of a text: a letter is about 0.6 of the font size wide. */
const widthOf = (content: string, size: number): number => 0.6 * size * content.length

/** Returns the font size of a title: a long title gets a smaller font. */
const fittingSize = (title: string): number =>
  Number(Math.min(17, (width - 2 * margin) / widthOf(title || " ", 1)).toFixed(1))

/** Draws a line one pixel wide, through the middle of pixels: on their edge it would look like two pale lines. */
const thinLine = (from: PlotPoint, to: PlotPoint, colour: string): PlotShape => ({
  kind: "line",
  points: [from, to].map(({ x, y }) => ({ x: Math.round(x) + 0.5, y: Math.round(y) + 0.5 })),
  width: 1,
  colour,
})

const lineOf = (points: ReadonlyArray<PlotPoint>, colour: string): PlotShape => ({
  kind: "line",
  points,
  width: 2.5,
  colour,
})

const least = (values: ReadonlyArray<number>): number => values.reduce((a, b) => Math.min(a, b))
const most = (values: ReadonlyArray<number>): number => values.reduce((a, b) => Math.max(a, b))

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
