/** Makes the axes of charts: linear and logarithmic scales, their ranges, and the ticks with their texts. */
import { colorOf } from "./dom.js"
import { duration, tickTexts } from "./format.js"

/** The numbers of uPlot's linear, logarithmic and inverse hyperbolic sine scales; the last one includes zero. */
const [linear, logarithmic, arsinh] = [1, 3, 4]

/**
 * Chooses the scales of both axes. If the user wants a logarithmic scale but a value is not positive, the scale is `arsinh`.
 */
export const distributions = (series, { logX, logY }) => {
  const isPositive = (values) => values.every((value) => value > 0)
  const of = (isLog, columns) => (!isLog ? linear : columns.every(isPositive) ? logarithmic : arsinh)
  return [of(logX, series.map(({ x }) => x.slice(0, 1))), of(logY, series.flatMap(({ y, low }) => [y, low ?? []]))] // prettier-ignore
}

/**
 * Makes uPlot's options for the axes and their scales. `ticks` formats the values on the y axis; `font` is a font family.
 *
 * @type {(series: any[], shown: any, look: { small: boolean, fromZero: boolean, ticks: any, font: string }) => Pick<import("uplot").Options, "scales" | "axes">}
 */
export const axesOf = (series, shown, { small, fromZero, ticks, font }) => {
  const [xDistr, yDistr] = distributions(series, shown)
  const axis = (distribution) => ({
    stroke: () => colorOf("--quiet"),
    font: `12px ${font}`,
    ticks: { show: false },
    ...(distribution === linear ? {} : { splits: logTicks, filter: (_, splits) => splits }),
  })
  const xTicks = shown.xName === "time" ? (values) => values.map((value) => (value === 0 ? "0" : duration(value))) : tickTexts // prettier-ignore
  return {
    scales: {
      x: { time: false, distr: xDistr, range: xRange },
      y: { distr: yDistr, range: yRange(yDistr, fromZero) },
    },
    axes: [
      { ...axis(xDistr), size: 26, gap: 8, space: 85, grid: { show: false }, values: textsBy(xTicks), ...(shown.xName === "time" ? { incrs: timeSteps } : {}) }, // prettier-ignore
      { ...axis(yDistr), size: widthOf, gap: 7, space: small ? 32 : 50, grid: { stroke: () => colorOf("--line"), width: 1 }, values: textsBy(ticks) }, // prettier-ignore
    ],
  }
}

/** @type {(chart: unknown, low: number | null, high: number | null) => [number | null, number | null]} */
const xRange = (_, low, high) => {
  if (low === null || low < high) return [low, high]
  const room = Math.abs(low) * 0.1 || 1
  return [low - room, low + room]
}

const same = (value) => value
/** The function from a value to its position on the axis, and the inverse function, for each scale. */
const scales = {
  [linear]: [same, same],
  [logarithmic]: [Math.log10, (value) => 10 ** value],
  [arsinh]: [Math.asinh, Math.sinh],
}

/**
 * Makes the function that computes the range of the y axis: the range of the lines, and 5 % more at each end on the axis's
 * scale.
 *
 * @type {(distribution: number, fromZero: boolean) => typeof xRange}
 */
const yRange = (distribution, fromZero) => (_, least, most) => {
  if (least === null) return [null, null]
  const low = fromZero ? Math.min(0, least) : least
  const high = fromZero ? Math.max(0, most) : most
  const [to, from] = scales[distribution]
  const room = (to(high) - to(low)) * 0.05 || Math.abs(to(high)) * 0.1 || 1
  return [from(to(low) - room), from(to(high) + room)]
}

/**
 * The possible distances between ticks of a time axis, in seconds, which are round numbers of seconds, minutes, hours or
 * days.
 */
const timeSteps = [
  ...[1e-3, 1e-2, 0.1].map((unit) => [unit, 1, 2, 2.5, 5]),
  [1, 1, 2, 2.5, 5, 10, 15, 30],
  [60, 1, 2, 5, 10, 15, 30],
  [3600, 1, 2, 3, 6, 12],
  [86_400, 1, 2, 5, 10, 20, 50, 100],
].flatMap(([unit, ...counts]) => counts.map((count) => count * unit))

/** Returns the ticks of a logarithmic axis. uPlot's own ticks are round only if the axis consists of whole powers of ten. */
const logTicks = ({ height, width }, axis, least, most) => {
  const room = axis === 0 ? width / 85 : height / 50
  const sizes = Array.from({ length: 40 }, (_, index) => 10 ** (index - 20))
  const isPositive = least > 0
  const ticksWith = (digits) => {
    const positive = sizes.filter((size) => isPositive || size >= 1).flatMap((size) => digits.map((digit) => Number((digit * size).toPrecision(1)))) // prettier-ignore
    const all = isPositive ? positive : [...positive.map((tick) => -tick).reverse(), 0, ...positive]
    return all.filter((tick) => tick >= least && tick <= most)
  }
  const ticks = [[1], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]].map(ticksWith).find(({ length }) => length > 2)
  if (ticks === undefined) return evenTicks(least, most, room)
  const every = Math.ceil(ticks.length / room)
  return ticks.filter((_, index) => index % every === 0)
}

const evenTicks = (least, most, room) => {
  const rough = (most - least) / Math.max(2, room)
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough)
  const first = Math.ceil(least / step)
  const count = Math.floor(most / step) - first + 1
  return Array.from({ length: count }, (_, index) => Number(((first + index) * step).toPrecision(12)))
}

/** Makes a function that formats the ticks. uPlot passes null for each tick whose text does not fit. */
const textsBy = (format) => (_, splits) => {
  const texts = format(splits.filter((value) => value !== null))
  return splits.map((value) => (value === null ? "" : texts.shift()))
}

/** Returns the width of the y axis for its widest text. It is at least 52 pixels, so that most charts are aligned. */
const widthOf = ({ ctx, axes }, values) => {
  ctx.font = axes[1].font[0]
  const widest = Math.max(0, ...(values ?? []).map((text) => ctx.measureText(text).width))
  return Math.max(52, Math.ceil(widest / devicePixelRatio) + 12)
}
