/**
 * A line chart on a canvas: lines in bands, linear and logarithmic axes, a cursor for the mouse and for arrow keys.
 *
 * A series is `{ label, color, x, y, low?, high?, faint?, note? }`, columns of equal length; a note says why it has no
 * points.
 */
import { duration, el, number, onceAFrame, short } from "./dom.js"

const margin = { left: 52, right: 12, top: 10, bottom: 26 }

/** More names than this say less than the table does. */
const mostNames = 8

/** `text` writes a value; `fromZero` has the axis begin there. */
export const makeChart = (title, { small = false, fromZero = false, text = number } = {}) => {
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

  const draw = onceAFrame(() => {
    const { clientWidth: width, clientHeight: height } = canvas
    if (width === 0) return
    const ratio = window.devicePixelRatio || 1
    canvas.width = Math.round(width * ratio)
    canvas.height = Math.round(height * ratio)
    const context = canvas.getContext("2d")
    context.scale(ratio, ratio)
    const series = shown.series.filter(({ x }) => x.length > 0)
    empty.hidden = series.length > 0
    const notes = [...new Set(shown.series.flatMap(({ note }) => note ?? []))]
    const nothing = notes.length === 0 ? shown.nothing : notes.join("; ")
    empty.textContent = shown.waiting === true ? "reading …" : (nothing ?? "nothing to show yet")
    canvas.dataset.lines = String(series.length)
    canvas.dataset.points = String(series.reduce((sum, { x }) => sum + x.length, 0))
    places = series.length === 0 ? undefined : scalesOf(series, { ...shown, fromZero }, width, height)
    if (places === undefined) return showNames(series)
    const style = getComputedStyle(canvas)
    drawAxes(context, places, style, shown)
    context.save()
    context.beginPath()
    context.rect(
      margin.left,
      margin.top - 2,
      width - margin.left - margin.right,
      height - margin.top - margin.bottom + 4,
    )
    context.clip()
    for (const one of series) if (one.low !== undefined) drawBand(context, one, places)
    for (const one of series.toSorted((a, b) => Number(b.faint ?? false) - Number(a.faint ?? false)))
      drawLine(context, one, places)
    context.restore()
    showCursor(context, series, style)
  })

  const showCursor = (context, series, style) => {
    if (cursor === undefined) return showNames(series)
    const at = places.x(cursor)
    context.strokeStyle = style.getPropertyValue("--quiet")
    context.lineWidth = 1
    context.beginPath()
    context.moveTo(at, margin.top)
    context.lineTo(at, canvas.clientHeight - margin.bottom)
    context.stroke()
    const lines = series
      .filter(({ faint }) => faint !== true)
      .flatMap((one) => {
        const index = nearest(one.x, cursor)
        const y = one.y[index]
        context.fillStyle = one.color
        context.beginPath()
        context.arc(places.x(one.x[index]), places.y(y), 3.5, 0, 2 * Math.PI)
        context.fill()
        const band = one.low === undefined ? "" : ` (${text(one.low[index])} to ${text(one.high[index])})`
        return [el("span", { class: "value" }, swatchOf(one), `${one.label}: `, el("b", {}, text(y)), band)]
      })
    readout.replaceChildren(el("span", { class: "quiet" }, `${shown.xName} ${xText(cursor, shown.xName)}`), ...lines)
  }

  /** Without a cursor: which line is which, and where it ends. */
  const showNames = (series) => {
    const noted = shown.series.filter(({ note }) => note !== undefined)
    const named = series.filter(({ faint }) => faint !== true).slice(0, mostNames)
    readout.replaceChildren(
      ...named.map((one) => el("span", { class: "value" }, swatchOf(one), `${one.label} `, el("b", {}, text(one.y.at(-1))))), // prettier-ignore
      ...noted.slice(0, mostNames).map((one) => el("span", { class: "value quiet" }, swatchOf(one), `${one.label}: ${one.note}`)), // prettier-ignore
    )
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
      over.textContent = ` over ${next.xName}`
      const lasts = next.series
        .filter(({ faint, y, note }) => faint !== true && (y.length > 0 || note !== undefined))
        .map(({ label, y, note }) => `${label}: ${note ?? text(y.at(-1))}`)
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

const xText = (x, name) => (name === "time" ? duration(x) : short(x))

/** From values to places on the canvas, and where the ticks are. */
const scalesOf = (series, { logX, logY, fromZero }, width, height) => {
  const across = axisOf(
    series.flatMap(({ x }) => [x[0], x.at(-1)]),
    logX,
    0,
    Math.max(2, Math.floor(width / 85)),
  )
  // A band may be much wider than the lines, of which one wants to see something.
  const values = series.flatMap(({ y, low, high }) => [...y, ...(low ?? []), ...(high ?? [])])
  const up = axisOf(fromZero ? [0, ...values] : values, logY, 0.05, Math.floor(height / 50))
  const place =
    ({ of, low, high }, from, to) =>
    (value) =>
      from + ((of(value) - low) / (high - low || 1)) * (to - from)
  return {
    x: place(across, margin.left, width - margin.right),
    y: place(up, height - margin.bottom, margin.top),
    xTicks: across.ticks,
    yTicks: up.ticks,
  }
}

/** Logarithms of what goes below zero are taken of the size, with the sign, and one added so that zero has a place. */
const axisOf = (values, log, padding, count) => {
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
    ticks: log ? powers(least, most) : evenTicks(least, most, count),
  }
}

const evenTicks = (least, most, count) => {
  if (least === most) return [least]
  const rough = (most - least) / count
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough)
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

const drawAxes = (context, { x, y, xTicks, yTicks }, style, { xName }) => {
  context.font = `12px ${style.fontFamily}`
  context.fillStyle = style.getPropertyValue("--quiet")
  context.strokeStyle = style.getPropertyValue("--line")
  context.lineWidth = 1
  const { clientWidth: width, clientHeight: height } = context.canvas
  context.textAlign = "right"
  context.textBaseline = "middle"
  for (const tick of yTicks) {
    const at = Math.round(y(tick)) + 0.5
    context.beginPath()
    context.moveTo(margin.left, at)
    context.lineTo(width - margin.right, at)
    context.stroke()
    context.fillText(short(tick), margin.left - 7, at)
  }
  context.textBaseline = "top"
  for (const tick of xTicks) {
    const at = x(tick)
    const text = tick === 0 ? "0" : xText(tick, xName)
    const half = context.measureText(text).width / 2
    context.textAlign = "center"
    context.fillText(text, Math.max(half, Math.min(width - half - 1, at)), height - margin.bottom + 8)
  }
}

const drawBand = (context, { x, low, high, color }, places) => {
  context.globalAlpha = 0.18
  context.fillStyle = color
  context.beginPath()
  for (let index = 0; index < x.length; index++) context.lineTo(places.x(x[index]), places.y(high[index]))
  for (let index = x.length - 1; index >= 0; index--) context.lineTo(places.x(x[index]), places.y(low[index]))
  context.fill()
  context.globalAlpha = 1
}

const drawLine = (context, { x, y, color, faint }, places) => {
  context.globalAlpha = faint === true ? 0.35 : 1
  context.strokeStyle = color
  context.lineWidth = faint === true ? 1 : 2
  context.lineJoin = "round"
  context.beginPath()
  for (let index = 0; index < x.length; index++) context.lineTo(places.x(x[index]), places.y(y[index]))
  context.stroke()
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
