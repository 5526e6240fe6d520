import type { CurvePoint } from "./statistics.ts"

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
const [left, right, top, bottom] = [72, 20, 44, 52]

/** A picture of it: the IQM as a line, its interval as a band. */
export const curveSvg = (title: string, curve: Curve): string => {
  const steps = curve.map(({ step }) => step)
  const [first, last] = [Math.min(0, ...steps), Math.max(1, ...steps)]
  const ticks = ticksOf(Math.min(...curve.map(({ low }) => low)), Math.max(...curve.map(({ high }) => high)))
  const [floor, ceiling] = [ticks[0], ticks[ticks.length - 1]]
  const x = (step: number): number => left + ((step - first) / (last - first)) * (wide - left - right)
  const y = (value: number): number => high - bottom - ((value - floor) / (ceiling - floor)) * (high - top - bottom)
  const at = (step: number, value: number): string => `${x(step).toFixed(1)},${y(value).toFixed(1)}`
  const band = [
    ...curve.map(({ step, high: value }) => at(step, value)),
    ...[...curve].reverse().map(({ step, low }) => at(step, low)),
  ]
  const text = (px: number, py: number, words: string, anchor: string, size = 13): string =>
    `<text x="${px.toFixed(1)}" y="${py.toFixed(1)}" text-anchor="${anchor}" font-size="${size}">${escape(words)}</text>`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${wide} ${high}" width="${wide}" height="${high}" font-family="system-ui, sans-serif" fill="#2b2d42">`,
    `<rect width="${wide}" height="${high}" fill="#fbfaf7"/>`,
    text(left, 26, title, "start", 16),
    ...ticks.flatMap((value) => [
      `<line x1="${left}" x2="${wide - right}" y1="${y(value).toFixed(1)}" y2="${y(value).toFixed(1)}" stroke="#d9d6cf"/>`,
      text(left - 8, y(value) + 4, short(value), "end"),
    ]),
    ...ticksOf(first, last)
      .filter((step) => step >= first && step <= last)
      .map((step) => text(x(step), high - bottom + 22, short(step), "middle")),
    text((left + wide - right) / 2, high - 10, "env steps", "middle"),
    `<polygon points="${band.join(" ")}" fill="#3d5a80" opacity="0.18"/>`,
    `<polyline points="${curve.map(({ step, iqm }) => at(step, iqm)).join(" ")}" fill="none" stroke="#3d5a80" stroke-width="2.5" stroke-linejoin="round"/>`,
    "</svg>",
    "",
  ].join("\n")
}

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

const short = (value: number): string =>
  Math.abs(value) >= 1e6
    ? `${Number((value / 1e6).toPrecision(3))}M`
    : Math.abs(value) >= 1e4
      ? `${Number((value / 1e3).toPrecision(3))}k`
      : String(Number(value.toPrecision(6)))

const escape = (text: string): string => text.replace(/[&<>"]/g, (found) => `&#${found.charCodeAt(0)};`)
