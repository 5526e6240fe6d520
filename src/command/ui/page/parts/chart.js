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
import { colorOf, el, onceAFrame, swatch } from "./dom.js"
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

/** The text below a chart lists at most this many series; the table of runs shows the values of all. */
const mostNames = 8

/**
 * Makes an empty chart. `text` formats a value, `ticks` the values at the y axis; `fromZero` makes the y axis include
 * 0. A chart that is not visible is rendered when the page is idle or printed, so that a page can have many.
 */
export const makeChart = (title, { small = false, fromZero = false, text = number, ticks = tickTexts } = {}) => {
  const plot = el("div.plot", { tabindex: "0", role: "img" })
  const empty = el("p.empty.quiet", "nothing to show yet")
  const readout = el("div.readout", { role: "status" })
  const over = el("span.quiet")
  const saves = el(
    "span.saves",
    ["SVG", "PNG"].map((type) =>
      el(
        "button",
        { "aria-label": `Save “${title}” as ${type}`, title: `Save as ${type}`, onclick: () => void saveAs(type) },
        type,
      ),
    ),
  )
  /** The code that draws figures is loaded when it is first needed. */
  const saveAs = async (type) => (await import("./figure.js")).saveFigure(title, shown, type)
  const reset = el("button.reset", { hidden: true, onclick: () => zoomTo(undefined) }, "show all")
  const element = el(
    "figure",
    { class: small ? "chart small" : "chart" },
    el("figcaption", title, over),
    saves,
    reset,
    el("div.frame", plot, empty),
    readout,
  )
  let shown = { series: [], xName: "steps", logX: false, logY: false }
  let chart
  /** The axis, scales and styles of `chart` as JSON. While they stay the same, uPlot only gets other values. */
  let structure
  /** The columns of uPlot's table, each with its style, and with its series if the cursor marks a point on it. */
  let drawn = []
  /** The cursor's x value. `zoom` is the range of x values that is visible; undefined for all. */
  let cursor
  let zoom
  let isVisible = false

  const lines = () => shown.series.filter(({ x }) => x.length > 0)

  const draw = onceAFrame(() => {
    showReadout()
    const series = lines()
    plot.dataset.lines = String(series.length)
    plot.dataset.points = String(series.reduce((sum, { x }) => sum + x.length, 0))
    if (isVisible) paint()
    else whenIdle(paint)
  })

  const paint = () => {
    const series = lines()
    const { clientHeight: height } = plot
    const width = Math.min(plot.clientWidth, mostPrinted())
    if (width === 0) return
    if (UPlot === undefined && series.length > 0) return void loadUPlot().then(draw)
    const table = tableOf(series)
    const next = table.columns.length === 0 ? undefined : JSON.stringify([shown.xName, ...distributions(series, shown), table.columns.map(({ style }) => style)]) // prettier-ignore
    if (next !== structure) {
      chart?.destroy()
      chart = undefined
      structure = next
    }
    drawn = table.columns
    if (next === undefined) return
    const range = zoom
    if (chart === undefined) {
      chart = new UPlot(optionsOf(table, width, height), table.data, plot)
      if (range !== undefined) chart.setScale("x", range)
    } else {
      if (chart.width !== width || chart.height !== height) chart.setSize({ width, height })
      chart.setData(table.data, range === undefined)
      if (range !== undefined) chart.setScale("x", range)
      moveCursor()
    }
  }

  /** @type {(table: any, width: number, height: number) => import("uplot").Options} */
  const optionsOf = ({ columns, bands }, width, height) => {
    const style = getComputedStyle(plot)
    const [xDistr, yDistr] = distributions(lines(), shown)
    const axis = (distribution) => ({
      stroke: () => colorOf("--quiet"),
      font: `12px ${style.fontFamily}`,
      ticks: { show: false },
      ...(distribution === linear ? {} : { splits: logTicks, filter: (_, splits) => splits }),
    })
    const xTicks = shown.xName === "time" ? (values) => values.map((value) => (value === 0 ? "0" : duration(value))) : tickTexts // prettier-ignore
    return {
      width,
      height,
      padding: [10, 20, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false, distr: xDistr, range: xRange },
        y: { distr: yDistr, range: yRange(yDistr, fromZero) },
      },
      axes: [
        { ...axis(xDistr), size: 26, gap: 8, space: 85, grid: { show: false }, values: textsBy(xTicks), ...(shown.xName === "time" ? { incrs: timeSteps } : {}) }, // prettier-ignore
        { ...axis(yDistr), size: widthOf, gap: 7, space: small ? 32 : 50, grid: { stroke: () => colorOf("--line"), width: 1 }, values: textsBy(ticks) }, // prettier-ignore
      ],
      series: [{}, ...columns.map(({ style }) => style)],
      bands,
      cursor: {
        y: false,
        drag: { x: true, y: false, dist: 5 },
        dataIdx: (_, index) => pointAt(drawn[index - 1]),
        points: { size: 7, width: 0, fill: (_, index) => drawn[index - 1].color },
      },
      hooks: { setCursor: [cursorMoved], setScale: [scaleChanged], ready: [moveCursor] },
    }
  }

  /** @type {(chart: import("uplot")) => void} */
  const cursorMoved = ({ cursor: { idx }, data }) => {
    cursor = idx === null || idx === undefined ? undefined : data[0][idx]
    showReadout()
  }

  /** @type {(chart: import("uplot"), name: string) => void} */
  const scaleChanged = ({ scales, data }, name) => {
    if (name !== "x" || data[0].length === 0) return
    const { min, max } = scales.x
    const isWhole = min <= data[0][0] && max >= data[0].at(-1)
    zoom = isWhole ? undefined : { min, max }
    reset.hidden = isWhole
    plot.dataset.zoom = isWhole ? "" : `${min} ${max}`
  }

  const zoomTo = (range) => {
    zoom = range
    if (range === undefined && document.activeElement === reset) plot.focus()
    draw()
  }

  /** Moves uPlot's cursor to the x value in `cursor`, after the keyboard or new data changed its place. */
  const moveCursor = () => {
    if (cursor !== undefined) chart?.setCursor({ left: chart.valToPos(cursor, "x"), top: 0 })
  }

  /** Returns the row of uPlot's table with the point of a series nearest to the cursor; null beyond the line's ends. */
  const pointAt = (column) => {
    const hovered = chart.cursor.idx
    if (column?.series === undefined || hovered === null || hovered === undefined) return null
    const [xs] = chart.data
    const index = indexAt(column.series, xs[hovered])
    return index === undefined ? null : nearest(xs, column.series.x[index])
  }

  /** Writes the values below the chart, in the same rows with and without a cursor, so that nothing below moves. */
  const showReadout = () => {
    over.textContent = cursor === undefined ? ` over ${shown.xName}` : ` at ${placeText(cursor, shown.xName)}`
    const named = lines().filter(({ faint }) => faint !== true)
    const noted = shown.series.filter(({ note }) => note !== undefined)
    const row = (one, ...rest) =>
      el("span.value", swatch(one.color), el("span.label", { title: one.label }, `${one.label}: `), ...rest)
    const rows = [
      ...named.slice(0, mostNames).map((one) => {
        const index = cursor === undefined ? lastShared(one) : indexAt(one, cursor)
        if (index === undefined) return row(one, el("span.quiet", "–"))
        const hasBand = cursor !== undefined && one.low !== undefined
        const isPart = cursor !== undefined && one.runs !== undefined && one.runs[index] !== one.of
        const band = hasBand ? ` (${text(one.low[index])} to ${text(one.high[index])})` : ""
        const part = isPart ? ` ${one.runs[index]} of ${one.of} runs` : ""
        return row(one, el("b", text(one.y[index])), el("span.quiet", band, part))
      }),
      ...noted.slice(0, mostNames).map((one) => row(one, el("span.quiet", one.note))),
    ]
    const at = cursor === undefined ? "" : el("span.hidden", `${shown.xName} ${xText(cursor, shown.xName)}`)
    readout.replaceChildren(at, ...rows)
  }

  plot.addEventListener("keydown", (event) => {
    if (chart === undefined) return
    const { min, max } = chart.scales.x
    const xs = chart.data[0].filter((x) => x >= min && x <= max)
    if (xs.length === 0) return
    const now = cursor === undefined ? -1 : nearest(xs, cursor)
    const jump = event.shiftKey ? 10 : 1
    const next = { ArrowRight: now + jump, ArrowLeft: now - jump, Home: 0, End: xs.length - 1 }[event.key]
    const factor = { "+": 0.5, "=": 0.5, "-": 2 }[event.key]
    if (next !== undefined) {
      cursor = xs[Math.max(0, Math.min(xs.length - 1, next))]
      moveCursor()
    } else if (factor !== undefined) zoomTo(zoomed(chart, factor, cursor))
    else if (event.key === "0" && zoom !== undefined) zoomTo(undefined)
    else return
    event.preventDefault()
  })
  plot.addEventListener("blur", () => chart?.setCursor({ left: -10, top: -10 }))
  new ResizeObserver(draw).observe(plot)
  plot.addEventListener("paint", paint)
  new IntersectionObserver((entries, observer) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return
    observer.disconnect()
    isVisible = true
    draw()
  }).observe(plot)

  return {
    element,
    show: (next) => {
      // If the axis changes, the old places of cursor and zoom are meaningless.
      if (next.xName !== shown.xName) cursor = zoom = undefined
      shown = next
      const series = lines()
      const notes = [...new Set(next.series.flatMap(({ note }) => note ?? []))]
      empty.hidden = series.length > 0
      saves.hidden = series.length === 0
      empty.textContent =
        next.waiting === true ? "reading …" : notes.join("; ") || (next.nothing ?? "nothing to show yet")
      const lasts = next.series
        .filter(({ faint, y, note }) => faint !== true && (y.length > 0 || note !== undefined))
        .map((one) => `${one.label}: ${one.note ?? text(one.y[lastShared(one)])}`)
      plot.setAttribute(
        "aria-label",
        `${title} over ${next.xName}. Last values: ${lasts.slice(0, 12).join("; ") || "none"}. ` +
          "Arrow keys move a cursor, plus and minus zoom, 0 shows all.",
      )
      draw()
    },
  }
}

/** The numbers of uPlot's linear, logarithmic and inverse hyperbolic sine scales; the last one includes zero. */
const [linear, logarithmic, arsinh] = [1, 3, 4]

/** Chooses the scales of both axes. If the user wants a logarithmic one but a value is not positive, it is `arsinh`. */
const distributions = (series, { logX, logY }) => {
  const isPositive = (values) => values.every((value) => value > 0)
  const of = (isLog, columns) => (!isLog ? linear : columns.every(isPositive) ? logarithmic : arsinh)
  return [of(logX, series.map(({ x }) => x.slice(0, 1))), of(logY, series.flatMap(({ y, low }) => [y, low ?? []]))] // prettier-ignore
}

/** Adds an opacity to a colour of the form #rrggbb. */
const faded = (color, opacity) => color + Math.round(opacity * 255).toString(16).padStart(2, "0") // prettier-ignore

/**
 * Puts all series into one table, as uPlot requires: a row for each place on the x axis. Lines that must not hide
 * others come first. A column has a `series` only if the cursor marks a point on it.
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

/** @type {(chart: unknown, low: number | null, high: number | null) => [number | null, number | null]} */
const xRange = (_, low, high) => {
  if (low === null || low < high) return [low, high]
  const room = Math.abs(low) * 0.1 || 1
  return [low - room, low + room]
}

const same = (value) => value
/** For each scale, the function from a value to its position on the axis, and the inverse function. */
const scales = {
  [linear]: [same, same],
  [logarithmic]: [Math.log10, (value) => 10 ** value],
  [arsinh]: [Math.asinh, Math.sinh],
}

/**
 * Makes the function for the range of the y axis: the range of the lines and 5 % more at each end, on the axis's scale.
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

/** The distances between ticks of a time axis, in seconds, that are round in seconds, minutes, hours or days. */
const timeSteps = [
  ...[1e-3, 1e-2, 0.1].map((unit) => [unit, 1, 2, 2.5, 5]),
  [1, 1, 2, 2.5, 5, 10, 15, 30],
  [60, 1, 2, 5, 10, 15, 30],
  [3600, 1, 2, 3, 6, 12],
  [86_400, 1, 2, 5, 10, 20, 50, 100],
].flatMap(([unit, ...counts]) => counts.map((count) => count * unit))

/** Returns the ticks of a logarithmic axis. uPlot's own ticks are only round on an axis of whole powers of ten. */
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

/** Makes a function that formats the ticks. uPlot passes null for each tick that has no room for its text. */
const textsBy = (format) => (_, splits) => {
  const texts = format(splits.filter((value) => value !== null))
  return splits.map((value) => (value === null ? "" : texts.shift()))
}

/** Returns the width of the y axis for its widest text, at least 52 pixels, so that most charts align. */
const widthOf = ({ ctx, axes }, values) => {
  ctx.font = axes[1].font[0]
  const widest = Math.max(0, ...(values ?? []).map((text) => ctx.measureText(text).width))
  return Math.max(52, Math.ceil(widest / devicePixelRatio) + 12)
}

/** Returns a range of x values, `factor` times as long as now, around the cursor or the middle; undefined for all. */
const zoomed = (chart, factor, cursor) => {
  const [low, high] = [0, chart.over.clientWidth]
  const centre = cursor === undefined ? (low + high) / 2 : chart.valToPos(cursor, "x")
  const xs = chart.data[0]
  const min = Math.max(xs[0], chart.posToVal(centre + (low - centre) * factor, "x"))
  const max = Math.min(xs.at(-1), chart.posToVal(centre + (high - centre) * factor, "x"))
  return (min <= xs[0] && max >= xs.at(-1)) || !(min < max) ? undefined : { min, max }
}

/** Returns the index of a series' point nearest to an x value; undefined beyond the ends of the line. */
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
