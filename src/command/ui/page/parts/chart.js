/**
 * Makes line charts with the library uPlot: lines, bands around them, linear and logarithmic axes, a cursor, and zoom.
 *
 * A series is `{ label, color, x, y, low?, high?, faint?, note?, shared?, runs?, of? }`, where the columns have equal
 * lengths. `low` and `high` are the edges of a band. A `faint` line is thin and pale. A `note` says why there are no
 * points. A group's series has `of` runs, and `runs` is the number of them that have a value at each point. After the
 * first `shared` points, fewer than half of the runs have a value, so the line is dashed and has no band.
 *
 * Dragging across the plot zooms in, a double click shows everything again. With the keyboard, arrow keys move the
 * cursor, + and - zoom around it and 0 shows everything. Buttons save the chart as a figure.
 */
import { axesOf, distributions } from "./axes.js"
import { el, onceAFrame, swatch } from "./dom.js"
import { mostPrinted, whenIdle } from "./idle.js"
import { duration, number, tickTexts } from "./format.js"

/** @type {typeof import("uplot") | undefined} */
let UPlot
let loading

/** Loads uPlot when the first line is rendered, so that the table of runs need not wait for it. */
const loadUPlot = () => {
  // The address is computed because the file is not in this folder: the server takes it from the installed package.
  loading ??= import(new URL("../lib/uplot.js", import.meta.url).href).then((loaded) => (UPlot = loaded.default))
  return loading
}

/** The largest number of series in the text below a chart; the table of runs shows the values of all. */
const mostNames = 8

/**
 * Makes an empty chart. `text` formats a value, `ticks` formats the values on the y axis, and `fromZero` makes the y axis
 * include 0. A chart that is not visible is rendered only when the page is idle or printed, so that a page can have many
 * charts.
 */
export const makeChart = (title, { small = false, fromZero = false, text = number, ticks = tickTexts } = {}) => {
  const chart = makeState(title, { small, fromZero, text, ticks })
  listen(chart)
  return { element: chart.element, show: (next) => show(chart, next) }
}

/**
 * Makes the state of a chart: its elements, what it shows, and the cursor and zoom. All functions below work on this state.
 */
const makeState = (title, look) => {
  const chart = {
    title,
    look,
    plot: el("div.plot", { tabindex: "0", role: "img" }),
    empty: el("p.empty.quiet", "nothing to show yet"),
    readout: el("div.readout", { role: "status" }),
    over: el("span.quiet"),
    saves: el(
      "span.saves",
      ["SVG", "PNG"].map((type) => saveButton(title, type, () => chart.shown)),
    ),
    reset: el("button.reset", { hidden: true, onclick: () => zoomTo(chart, undefined) }, "show all"),
    shown: { series: [], xName: "steps", logX: false, logY: false },
    /** uPlot's chart; undefined while there is nothing to show. */
    drawing: undefined,
    /** The axis, scales and styles of `drawing` as JSON. While they stay the same, uPlot only receives other values. */
    structure: undefined,
    /** The columns of uPlot's table. Each has its style, and its series if the cursor marks a point on it. */
    columns: [],
    /** The cursor's x value; undefined without a cursor. */
    cursor: undefined,
    /** The range of x values that is visible; undefined for all. */
    zoom: undefined,
    isVisible: false,
    /** Draws the chart in the next frame. */
    draw: onceAFrame(() => draw(chart)),
    /** Draws the chart now. It is always the same function object, so that `whenIdle` never has it twice. */
    paint: () => paint(chart),
    element: undefined,
  }
  const { over, saves, reset, plot, empty, readout } = chart
  const caption = el("figcaption", title, over)
  const frame = el("div.frame", plot, empty)
  chart.element = el("figure", { class: look.small ? "chart small" : "chart" }, caption, saves, reset, frame, readout)
  return chart
}

/** Makes a button that saves the chart. The code that draws figures is loaded when it is first needed. */
const saveButton = (title, type, shownNow) =>
  el(
    "button",
    {
      "aria-label": `Save “${title}” as ${type}`,
      title: `Save as ${type}`,
      onclick: async () => (await import("./figure.js")).saveFigure(title, shownNow(), type),
    },
    type,
  )

const linesOf = ({ shown }) => shown.series.filter(({ x }) => x.length > 0)

/** Shows other series, or the same series on other axes. */
const show = (chart, next) => {
  const { title, plot, empty, saves, look } = chart
  // If the axis changes, the old positions of the cursor and the zoom are meaningless.
  if (next.xName !== chart.shown.xName) chart.cursor = chart.zoom = undefined
  chart.shown = next
  const series = linesOf(chart)
  const notes = [...new Set(next.series.flatMap(({ note }) => note ?? []))]
  empty.hidden = series.length > 0
  saves.hidden = series.length === 0
  empty.textContent = next.waiting === true ? "reading …" : notes.join("; ") || (next.nothing ?? "nothing to show yet")
  const lasts = next.series
    .filter(({ faint, y, note }) => faint !== true && (y.length > 0 || note !== undefined))
    .map((one) => `${one.label}: ${one.note ?? look.text(one.y[lastShared(one)])}`)
  plot.setAttribute(
    "aria-label",
    `${title} over ${next.xName}. Last values: ${lasts.slice(0, 12).join("; ") || "none"}. ` +
      "Arrow keys move a cursor, plus and minus zoom, 0 shows all.",
  )
  chart.draw()
}

// --- Drawing ---

const draw = (chart) => {
  const { plot } = chart
  showReadout(chart)
  const series = linesOf(chart)
  plot.dataset.lines = String(series.length)
  plot.dataset.points = String(series.reduce((sum, { x }) => sum + x.length, 0))
  if (chart.isVisible) paint(chart)
  else whenIdle(chart.paint)
}

/** Renders the lines with uPlot. */
const paint = (chart) => {
  const { plot, shown } = chart
  const series = linesOf(chart)
  const { clientHeight: height } = plot
  const width = Math.min(plot.clientWidth, mostPrinted())
  if (width === 0) return
  if (UPlot === undefined && series.length > 0) return void loadUPlot().then(chart.draw)
  const table = tableOf(series)
  const next = table.columns.length === 0 ? undefined : JSON.stringify([shown.xName, ...distributions(series, shown), table.columns.map(({ style }) => style)]) // prettier-ignore
  if (next !== chart.structure) {
    chart.drawing?.destroy()
    chart.drawing = undefined
    chart.structure = next
  }
  chart.columns = table.columns
  if (next === undefined) return
  const range = chart.zoom
  if (chart.drawing === undefined) {
    chart.drawing = new UPlot(optionsOf(chart, table, width, height), table.data, plot)
    if (range !== undefined) chart.drawing.setScale("x", range)
    return
  }
  const { drawing } = chart
  if (drawing.width !== width || drawing.height !== height) drawing.setSize({ width, height })
  drawing.setData(table.data, range === undefined)
  if (range !== undefined) drawing.setScale("x", range)
  moveCursor(chart)
}

/** @type {(chart: any, table: any, width: number, height: number) => import("uplot").Options} */
const optionsOf = (chart, { columns, bands }, width, height) => ({
  width,
  height,
  padding: [10, 20, 0, 0],
  legend: { show: false },
  ...axesOf(linesOf(chart), chart.shown, { ...chart.look, font: getComputedStyle(chart.plot).fontFamily }),
  series: [{}, ...columns.map(({ style }) => style)],
  bands,
  cursor: {
    y: false,
    drag: { x: true, y: false, dist: 5 },
    dataIdx: (_, index) => pointAt(chart, chart.columns[index - 1]),
    points: { size: 7, width: 0, fill: (_, index) => chart.columns[index - 1].color },
  },
  hooks: {
    setCursor: [(drawing) => cursorMoved(chart, drawing)],
    setScale: [(drawing, name) => scaleChanged(chart, drawing, name)],
    ready: [() => moveCursor(chart)],
  },
})

// --- Cursor and zoom ---

/** @type {(chart: any, drawing: import("uplot")) => void} */
const cursorMoved = (chart, { cursor: { idx }, data }) => {
  chart.cursor = idx === null || idx === undefined ? undefined : data[0][idx]
  showReadout(chart)
}

/** @type {(chart: any, drawing: import("uplot"), name: string) => void} */
const scaleChanged = (chart, { scales, data }, name) => {
  if (name !== "x" || data[0].length === 0) return
  const { min, max } = scales.x
  const isWhole = min <= data[0][0] && max >= data[0].at(-1)
  chart.zoom = isWhole ? undefined : { min, max }
  chart.reset.hidden = isWhole
  chart.plot.dataset.zoom = isWhole ? "" : `${min} ${max}`
}

const zoomTo = (chart, range) => {
  chart.zoom = range
  if (range === undefined && document.activeElement === chart.reset) chart.plot.focus()
  chart.draw()
}

/** Moves uPlot's cursor to the x value in `cursor`, after the keyboard or new data has changed its position. */
const moveCursor = ({ drawing, cursor }) => {
  if (cursor !== undefined) drawing?.setCursor({ left: drawing.valToPos(cursor, "x"), top: 0 })
}

/**
 * Returns the row of uPlot's table with the series' point nearest to the cursor; null if the cursor is beyond the line's
 * ends.
 */
const pointAt = ({ drawing }, column) => {
  const hovered = drawing.cursor.idx
  if (column?.series === undefined || hovered === null || hovered === undefined) return null
  const [xs] = drawing.data
  const index = indexAt(column.series, xs[hovered])
  return index === undefined ? null : nearest(xs, column.series.x[index])
}

/** Writes the values below the chart. They use the same rows with and without a cursor, so that nothing below them moves. */
const showReadout = (chart) => {
  const { shown, cursor, readout, over } = chart
  over.textContent = cursor === undefined ? ` over ${shown.xName}` : ` at ${placeText(cursor, shown.xName)}`
  const named = linesOf(chart).filter(({ faint }) => faint !== true)
  const noted = shown.series.filter(({ note }) => note !== undefined)
  const rows = [
    ...named.slice(0, mostNames).map((one) => valueOf(one, cursor, chart.look.text)),
    ...noted.slice(0, mostNames).map((one) => readoutOf(one, el("span.quiet", one.note))),
  ]
  const at = cursor === undefined ? "" : el("span.hidden", `${shown.xName} ${xText(cursor, shown.xName)}`)
  readout.replaceChildren(at, ...rows)
}

const readoutOf = ({ color, label }, ...rest) =>
  el("span.value", swatch(color), el("span.label", { title: label }, `${label}: `), ...rest)

/** Makes the text of a series' value at the cursor, or of its last value. */
const valueOf = (one, cursor, text) => {
  const index = cursor === undefined ? lastShared(one) : indexAt(one, cursor)
  if (index === undefined) return readoutOf(one, el("span.quiet", "–"))
  const hasBand = cursor !== undefined && one.low !== undefined
  const isPart = cursor !== undefined && one.runs !== undefined && one.runs[index] !== one.of
  const band = hasBand ? ` (${text(one.low[index])} to ${text(one.high[index])})` : ""
  const part = isPart ? ` ${one.runs[index]} of ${one.of} runs` : ""
  return readoutOf(one, el("b", text(one.y[index])), el("span.quiet", band, part))
}

/** Moves the cursor or zooms with the keyboard. */
const pressed = (chart, event) => {
  const { drawing, cursor, zoom } = chart
  if (drawing === undefined) return
  const { min, max } = drawing.scales.x
  const xs = drawing.data[0].filter((x) => x >= min && x <= max)
  if (xs.length === 0) return
  const now = cursor === undefined ? -1 : nearest(xs, cursor)
  const jump = event.shiftKey ? 10 : 1
  const next = { ArrowRight: now + jump, ArrowLeft: now - jump, Home: 0, End: xs.length - 1 }[event.key]
  const factor = { "+": 0.5, "=": 0.5, "-": 2 }[event.key]
  if (next !== undefined) {
    chart.cursor = xs[Math.max(0, Math.min(xs.length - 1, next))]
    moveCursor(chart)
  } else if (factor !== undefined) zoomTo(chart, zoomed(drawing, factor, cursor))
  else if (event.key === "0" && zoom !== undefined) zoomTo(chart, undefined)
  else return
  event.preventDefault()
}

/** Listens to the keyboard, and to events that make the chart visible or change its size. */
const listen = (chart) => {
  const { plot } = chart
  plot.addEventListener("keydown", (event) => pressed(chart, event))
  plot.addEventListener("blur", () => chart.drawing?.setCursor({ left: -10, top: -10 }))
  new ResizeObserver(chart.draw).observe(plot)
  plot.addEventListener("paint", chart.paint)
  new IntersectionObserver((entries, observer) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return
    observer.disconnect()
    chart.isVisible = true
    chart.draw()
  }).observe(plot)
}

/** Adds an opacity to a colour of the form #rrggbb. */
const faded = (color, opacity) => color + Math.round(opacity * 255).toString(16).padStart(2, "0") // prettier-ignore

/**
 * Puts all series into one table, as uPlot requires, with a row for each x value. Lines that must not cover others are drawn
 * first. A column has a `series` only if the cursor marks a point on it.
 */
const tableOf = (series) => {
  const columns = []
  const bands = []
  const tables = []
  const add = (style, more = {}) => columns.push({ style: { points: { show: false }, ...style }, ...more })
  for (const one of series.toSorted((a, b) => Number(b.faint ?? false) - Number(a.faint ?? false))) {
    const { x, y, low, high, color, faint = false, shared = x.length } = one
    const first = (values) => values.slice(0, shared)
    if (low !== undefined) {
      tables.push([first(x), first(high), first(low)])
      bands.push({ series: [columns.length + 1, columns.length + 2], fill: faded(color, 0.18) })
      add({ width: 0 })
      add({ width: 0 })
    }
    tables.push([first(x), first(y)])
    const stroke = faint ? faded(color, 0.35) : color
    const isDot = x.length < 3 && !faint
    add({ stroke, width: faint ? 1 : 2, points: { show: isDot, size: 6, fill: color } }, faint ? {} : { series: one, color }) // prettier-ignore
    if (shared < x.length) {
      const from = Math.max(0, shared - 1)
      tables.push([x.slice(from), y.slice(from)])
      add({ stroke, width: 2, dash: [3, 4] }, { series: one, color })
    }
  }
  /** @type {import("uplot").AlignedData} */
  const data = tables.length === 0 ? [[]] : UPlot.join(tables)
  return { columns, bands, data }
}

/**
 * Returns a range of x values around the cursor or the middle, `factor` times as long as the current range; undefined for the
 * whole range.
 */
const zoomed = (chart, factor, cursor) => {
  const [low, high] = [0, chart.over.clientWidth]
  const centre = cursor === undefined ? (low + high) / 2 : chart.valToPos(cursor, "x")
  const xs = chart.data[0]
  const min = Math.max(xs[0], chart.posToVal(centre + (low - centre) * factor, "x"))
  const max = Math.min(xs.at(-1), chart.posToVal(centre + (high - centre) * factor, "x"))
  return (min <= xs[0] && max >= xs.at(-1)) || !(min < max) ? undefined : { min, max }
}

/** Returns the index of a series' point nearest to an x value; undefined if the value is beyond the ends of the line. */
const indexAt = ({ x }, place) => (place < x[0] || place > x.at(-1) ? undefined : nearest(x, place))

/** Returns the index of the last point that at least half of the runs reach. */
const lastShared = ({ y, shared = y.length }) => shared - 1

/** Returns the index of the value nearest to `wanted`, by binary search. */
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
