/**
 * A line chart on a canvas: lines in bands, linear and logarithmic axes, a cursor for the mouse and for arrow keys.
 *
 * A series is `{ label, color, x, y, low?, high?, faint?, note?, shared?, runs?, of? }`, columns of equal length. A note
 * says why it has no points. After the first `shared` points it is dashed and has no band: `runs` of its `of` runs go on.
 */
import { el, onceAFrame } from "./dom.js"
import { duration, number, tickTexts } from "./format.js"

const margin = { left: 52, right: 12, top: 10, bottom: 26 }

/** More names than this say less than the table does. */
const mostNames = 8

/** `text` writes a value, `ticks` those of the axis; `fromZero` has the axis begin there. */
export const makeChart = (title, { small = false, fromZero = false, text = number, ticks = tickTexts } = {}) => {
  const canvas = el("canvas", { tabindex: "0", role: "img" })
  const readout = el("div", { class: "readout", role: "status" })
  const over = el("span", { class: "quiet" })
  const empty = el("p", { class: "empty quiet" }, "nothing to show yet")
  const element = el(
    "figure",
    { class: small ? "chart small" : "chart" },
    el("figcaption", {}, title, over),
    el("div", { class: "plot" }, canvas, empty),
    readout,
  )
  let shown = { series: [], xName: "steps", logX: false, logY: false }
  let cursor
  let places

  const overText = () => (cursor === undefined ? ` over ${shown.xName}` : ` at ${placeText(cursor, shown.xName)}`)

  const draw = onceAFrame(() => {
    const { clientWidth: width, clientHeight: height } = canvas
    if (width === 0) return
    const ratio = window.devicePixelRatio || 1
    canvas.width = Math.round(width * ratio)
    canvas.height = Math.round(height * ratio)
    over.textContent = overText()
    const context = canvas.getContext("2d")
    context.scale(ratio, ratio)
    const series = shown.series.filter(({ x }) => x.length > 0)
    empty.hidden = series.length > 0
    const notes = [...new Set(shown.series.flatMap(({ note }) => note ?? []))]
    const nothing = notes.length === 0 ? shown.nothing : notes.join("; ")
    empty.textContent = shown.waiting === true ? "reading …" : (nothing ?? "nothing to show yet")
    canvas.dataset.lines = String(series.length)
    canvas.dataset.points = String(series.reduce((sum, { x }) => sum + x.length, 0))
    const style = getComputedStyle(canvas)
    context.font = `12px ${style.fontFamily}`
    const widthOf = (text) => context.measureText(text).width
    places = series.length === 0 ? undefined : scalesOf(series, { ...shown, fromZero, ticks, widthOf }, width, height)
    showReadout(series)
    if (places === undefined) return
    drawAxes(context, places, style)
    context.save()
    context.beginPath()
    context.rect(
      places.left,
      margin.top - 2,
      width - places.left - margin.right,
      height - margin.top - margin.bottom + 4,
    )
    context.clip()
    for (const one of series) if (one.low !== undefined) drawBand(context, one, places)
    for (const one of series.toSorted((a, b) => Number(b.faint ?? false) - Number(a.faint ?? false)))
      drawLine(context, one, places)
    context.restore()
    if (cursor !== undefined) drawCursor(context, series, style)
  })

  /** Undefined where the cursor is before a line's beginning or after its end. */
  const indexAt = ({ x }) => (cursor < x[0] || cursor > x.at(-1) ? undefined : nearest(x, cursor))

  const drawCursor = (context, series, style) => {
    const at = places.x(cursor)
    context.strokeStyle = style.getPropertyValue("--quiet")
    context.lineWidth = 1
    context.beginPath()
    context.moveTo(at, margin.top)
    context.lineTo(at, canvas.clientHeight - margin.bottom)
    context.stroke()
    for (const one of series.filter(({ faint }) => faint !== true)) {
      const index = indexAt(one)
      if (index === undefined) continue
      context.fillStyle = one.color
      context.beginPath()
      context.arc(places.x(one.x[index]), places.y(one.y[index]), 3.5, 0, 2 * Math.PI)
      context.fill()
    }
  }

  /**
   * Which line is which, with its value at the cursor, or else at its end. There are the same rows in both cases, each of
   * one line, so that what stands below the chart never moves.
   */
  const showReadout = (series) => {
    const noted = shown.series.filter(({ note }) => note !== undefined)
    const named = series.filter(({ faint }) => faint !== true).slice(0, mostNames)
    const row = (one, ...rest) =>
      el(
        "span",
        { class: "value" },
        swatchOf(one),
        el("span", { class: "label", title: one.label }, `${one.label}: `),
        ...rest,
      )
    const rows = [
      ...named.map((one) => {
        const index = cursor === undefined ? endOf(one) : indexAt(one)
        if (index === undefined) return row(one, el("span", { class: "quiet" }, "–"))
        const band = cursor === undefined || one.low === undefined ? "" : ` (${text(one.low[index])} to ${text(one.high[index])})` // prettier-ignore
        const some =
          cursor === undefined || one.runs === undefined || one.runs[index] === one.of
            ? ""
            : ` ${one.runs[index]} of ${one.of} runs`
        return row(one, el("b", {}, text(one.y[index])), el("span", { class: "quiet" }, band, some))
      }),
      ...noted.slice(0, mostNames).map((one) => row(one, el("span", { class: "quiet" }, one.note))),
    ]
    const at = cursor === undefined ? [] : [el("span", { class: "hidden" }, `${shown.xName} ${xText(cursor, shown.xName)}`)] // prettier-ignore
    readout.replaceChildren(...at, ...rows)
  }

  const allX = () => [...new Set(shown.series.flatMap(({ x }) => x))].sort((a, b) => a - b)
  canvas.addEventListener("pointermove", (event) => {
    if (places === undefined) return
    const xs = allX()
    cursor = xs[nearest(xs.map(places.x), event.offsetX)]
    draw()
  })
  const leave = () => {
    cursor = undefined
    draw()
  }
  canvas.addEventListener("pointerleave", leave)
  canvas.addEventListener("blur", leave)
  canvas.addEventListener("keydown", (event) => {
    const xs = allX()
    const now = cursor === undefined ? -1 : nearest(xs, cursor)
    const jump = event.shiftKey ? 10 : 1
    const next = { ArrowRight: now + jump, ArrowLeft: now - jump, Home: 0, End: xs.length - 1 }[event.key]
    if (next === undefined || xs.length === 0) return
    event.preventDefault()
    cursor = xs[Math.max(0, Math.min(xs.length - 1, next))]
    draw()
  })
  new ResizeObserver(draw).observe(canvas)

  return {
    element,
    show: (next) => {
      shown = next
      over.textContent = overText()
      const lasts = next.series
        .filter(({ faint, y, note }) => faint !== true && (y.length > 0 || note !== undefined))
        .map((one) => `${one.label}: ${one.note ?? text(one.y[endOf(one)])}`)
      canvas.setAttribute(
        "aria-label",
        `${title} over ${next.xName}. Last values: ${lasts.slice(0, 12).join("; ") || "none"}. Arrow keys move a cursor.`,
      )
      draw()
    },
  }
}

const swatchOf = ({ color }) => {
  const swatch = el("span", { class: "swatch" })
  swatch.style.background = color
  return swatch
}

/** The last point that half of the runs reach. */
const endOf = ({ y, shared = y.length }) => shared - 1

const nearest = (sorted, wanted) => {
  let low = 0
  let high = sorted.length - 1
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (sorted[middle] < wanted) low = middle
    else high = middle
  }
  return Math.abs(sorted[low] - wanted) <= Math.abs(sorted[high] - wanted) ? low : high
}

const placeText = (x, name) => (name === "time" ? duration(x) : `${number(x)} ${name}`)
const xText = (x, name) => (name === "time" ? duration(x) : number(x))

/** From values to places on the canvas, and where the ticks are. */
const scalesOf = (series, { logX, logY, fromZero, xName, ticks, widthOf }, width, height) => {
  const across = axisOf(
    series.flatMap(({ x }) => [x[0], x.at(-1)]),
    { log: logX, padding: 0, count: Math.max(2, Math.floor(width / 85)), steps: xName === "time" ? timeSteps : roundSteps }, // prettier-ignore
  )
  // A band may be much wider than the lines, of which one wants to see something.
  const values = series.flatMap(({ y, low, high }) => [...y, ...(low ?? []), ...(high ?? [])])
  const up = axisOf(fromZero ? [0, ...values] : values, {
    log: logY,
    padding: 0.05,
    count: Math.floor(height / 50),
    steps: roundSteps,
  })
  const yTexts = ticks(up.ticks)
  const left = Math.max(margin.left, ...yTexts.map((text) => Math.ceil(widthOf(text)) + 10))
  const place =
    ({ of, low, high }, from, to) =>
    (value) =>
      from + ((of(value) - low) / (high - low || 1)) * (to - from)
  return {
    left,
    x: place(across, left, width - margin.right),
    y: place(up, height - margin.bottom, margin.top),
    xTicks: across.ticks,
    xTexts: xName === "time" ? across.ticks.map((tick) => (tick === 0 ? "0" : duration(tick))) : tickTexts(across.ticks), // prettier-ignore
    yTicks: up.ticks,
    yTexts,
  }
}

/** Logarithms of what goes below zero are taken of the size, with the sign, and one added so that zero has a place. */
const axisOf = (values, { log, padding, count, steps }) => {
  const [least, most] = values.reduce(
    ([a, b], value) => [Math.min(a, value), Math.max(b, value)],
    [Infinity, -Infinity],
  )
  const of = !log
    ? (value) => value
    : least > 0
      ? Math.log10
      : (value) => Math.sign(value) * Math.log10(1 + Math.abs(value))
  const room = (of(most) - of(least)) * padding || (most === least ? Math.abs(of(most)) * 0.1 || 1 : 0)
  return {
    of,
    low: of(least) - room,
    high: of(most) + room,
    ticks: log ? powers(least, most) : evenTicks(least, most, count, steps),
  }
}

const roundSteps = (rough) => {
  const power = 10 ** Math.floor(Math.log10(rough))
  return [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough)
}

const [minute, hour, day] = [60, 3600, 86_400]
const clockSteps = [10, 15, 30, minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour] // prettier-ignore

/** Of seconds: in minutes and hours they are round otherwise. */
const timeSteps = (rough) =>
  rough <= 5 ? roundSteps(rough) : (clockSteps.find((one) => one >= rough) ?? day * Math.ceil(rough / day))

const evenTicks = (least, most, count, steps = roundSteps) => {
  if (least === most) return [least]
  const step = steps((most - least) / count)
  const first = Math.ceil(least / step - 1e-9)
  return Array.from({ length: Math.floor(most / step + 1e-9) - first + 1 }, (_, index) => (first + index) * step)
}

const powers = (least, most) => {
  const sizes = Array.from({ length: 12 }, (_, index) => 10 ** (index - 2))
  const all =
    least > 0
      ? sizes
      : [...sizes.filter((size) => size >= 1).map((size) => -size), 0, ...sizes.filter((size) => size >= 1)]
  const found = all.filter((value) => value >= least && value <= most)
  if (found.length > 1) return found.length > 7 ? found.filter((_, index) => index % 2 === 0) : found
  return evenTicks(least, most, 4)
}

const drawAxes = (context, { left, x, y, xTicks, xTexts, yTicks, yTexts }, style) => {
  context.fillStyle = style.getPropertyValue("--quiet")
  context.strokeStyle = style.getPropertyValue("--line")
  context.lineWidth = 1
  const { clientWidth: width, clientHeight: height } = context.canvas
  context.textAlign = "right"
  context.textBaseline = "middle"
  for (const [index, tick] of yTicks.entries()) {
    const at = Math.round(y(tick)) + 0.5
    context.beginPath()
    context.moveTo(left, at)
    context.lineTo(width - margin.right, at)
    context.stroke()
    context.fillText(yTexts[index], left - 7, at)
  }
  context.textBaseline = "top"
  for (const [index, tick] of xTicks.entries()) {
    const at = x(tick)
    const text = xTexts[index]
    const half = context.measureText(text).width / 2
    context.textAlign = "center"
    context.fillText(text, Math.max(half, Math.min(width - half - 1, at)), height - margin.bottom + 8)
  }
}

const drawBand = (context, { x, low, high, color, shared = x.length }, places) => {
  context.globalAlpha = 0.18
  context.fillStyle = color
  context.beginPath()
  for (let index = 0; index < shared; index++) context.lineTo(places.x(x[index]), places.y(high[index]))
  for (let index = shared - 1; index >= 0; index--) context.lineTo(places.x(x[index]), places.y(low[index]))
  context.fill()
  context.globalAlpha = 1
}

const drawLine = (context, { x, y, color, faint, shared = x.length }, places) => {
  context.globalAlpha = faint === true ? 0.35 : 1
  context.strokeStyle = color
  context.lineWidth = faint === true ? 1 : 2
  context.lineJoin = "round"
  const stretch = (from, to) => {
    context.beginPath()
    for (let index = from; index < to; index++) context.lineTo(places.x(x[index]), places.y(y[index]))
    context.stroke()
  }
  stretch(0, shared)
  if (shared < x.length) {
    context.setLineDash([3, 4])
    stretch(Math.max(0, shared - 1), x.length)
    context.setLineDash([])
  }
  if (x.length < 3 && faint !== true) {
    context.fillStyle = color
    for (let index = 0; index < x.length; index++) {
      context.beginPath()
      context.arc(places.x(x[index]), places.y(y[index]), 3, 0, 2 * Math.PI)
      context.fill()
    }
  }
  context.globalAlpha = 1
}
