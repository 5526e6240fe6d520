import type { Effect } from "effect"
import { strokesOf } from "../formats/picture/letters.ts"
import type { Line, Picture, Point, Text } from "../formats/picture/Picture.ts"
import { pngOf } from "../formats/picture/png.ts"
import { svgOf } from "../formats/picture/svg.ts"
import type { CurvePoint } from "../statistics/statistics.ts"

/** Learning curves, as `aggregateCurves` joins them, as files for people and for spreadsheets. */
export type Curve = ReadonlyArray<typeof CurvePoint.Type>

const columns = ["step", "runs", "mean", "std", "median", "iqm", "low", "high"] as const

/** A heading and a line a step. */
export const curveCsv = (curve: Curve): string =>
  [columns.join(","), ...curve.map((point) => columns.map((key) => String(point[key])).join(","))]
    .join("\n")
    .concat("\n")

const wide = 720
const high = 420
const [left, right, top, bottom] = [72, 24, 72, 54]
const margin = 24
const ink = { words: "#2b2d42", quiet: "#6b6e80", grid: "#e3e0d9", axis: "#b9b5ac", curve: "#3d5a80" }
/** With so many validations each one has a dot, without which a single one could not be seen. */
const fewEnough = 40

/** A picture of it: the IQM as a line, its interval as a band. */
export const curvePicture = (title: string, curve: Curve): Picture => {
  const steps = curve.map(({ step }) => step)
  const [first, last] = [Math.min(0, ...steps), Math.max(1, ...steps)]
  const ticks = ticksOf(Math.min(...curve.map(({ low }) => low)), Math.max(...curve.map(({ high }) => high)))
  const [floor, ceiling] = [ticks[0], ticks[ticks.length - 1]]
  const x = (step: number): number => left + ((step - first) / (last - first)) * (wide - left - right)
  const y = (value: number): number => high - bottom - ((value - floor) / (ceiling - floor)) * (high - top - bottom)
  const at = (step: number, value: number): Point => ({ x: x(step), y: y(value) })
  const band = [
    ...curve.map(({ step, high: value }) => at(step, value)),
    ...[...curve].reverse().map(({ step, low }) => at(step, low)),
  ]
  const line = curve.map(({ step, iqm }) => at(step, iqm))
  const text = (
    px: number,
    py: number,
    words: string,
    anchor: Text["anchor"],
    size = 13,
    colour = ink.quiet,
  ): Text => ({
    _tag: "Text",
    x: px,
    y: py,
    words,
    anchor,
    size,
    colour,
  })
  // Between two pixels a line of one would be two that are pale.
  const crisp = (value: number): number => Math.round(value) + 0.5
  const straight = (from: Point, to: Point, colour: string): Line => ({
    _tag: "Line",
    points: [from, to].map((point) => ({ x: crisp(point.x), y: crisp(point.y) })),
    width: 1,
    colour,
  })
  const across = ticksOf(first, last).filter((step) => step >= first && step <= last)
  const runs = Math.max(...curve.map((point) => point.runs))
  const what = runs > 1 ? `IQM of ${runs} runs, with its 95 % interval` : "mean return of the validation episodes"
  return {
    wide,
    high,
    paper: "#fbfaf7",
    shapes: [
      text(margin, 31, title, "start", fitting(title, 17), ink.words),
      text(margin, 52, what, "start"),
      ...ticks.flatMap((value, index) => [
        straight(at(first, value), at(last, value), index === 0 ? ink.axis : ink.grid),
        text(left - 10, y(value) + 5, short(value), "end"),
      ]),
      ...across.flatMap((step) => [
        straight({ x: x(step), y: high - bottom }, { x: x(step), y: high - bottom + 5 }, ink.axis),
        text(x(step), high - bottom + 22, short(step), "middle"),
      ]),
      text((left + wide - right) / 2, high - 12, "env steps", "middle"),
      { _tag: "Area", points: band, colour: ink.curve, opacity: 0.18 },
      { _tag: "Line", points: line, width: 2.5, colour: ink.curve },
      { _tag: "Dots", points: line.length > fewEnough ? [] : line, radius: 3, colour: ink.curve },
    ],
  }
}

/** The size of a text that goes from margin to margin at most. */
const fitting = (words: string, size: number): number =>
  Math.min(size, (size * (wide - 2 * margin)) / strokesOf(words, size).width)

/** The picture as text. */
export const curveSvg = (title: string, curve: Curve): string => svgOf(curvePicture(title, curve))

/** The picture as pixels, two for one of a screen's. */
export const curvePng = (title: string, curve: Curve): Effect.Effect<Uint8Array> => pngOf(curvePicture(title, curve))

/** Round numbers, four to eight of them, of which the outermost hold everything. */
export const ticksOf = (low: number, high: number): ReadonlyArray<number> => {
  const span = high - low || Math.max(1, Math.abs(high))
  const rough = span / 5
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10)
  const from = Math.floor(low / step)
  const to = Math.max(Math.ceil(high / step), from + 1)
  return Array.from({ length: to - from + 1 }, (_, index) => (from + index) * step)
}

const short = (value: number): string => {
  const size = Math.abs(value)
  const [divisor, unit, digits] = size >= 1e6 ? [1e6, "M", 3] : size >= 1e4 ? [1e3, "k", 3] : [1, "", 6]
  return `${value < 0 ? "−" : ""}${Number((size / divisor).toPrecision(digits))}${unit}`
}
