/**
 * Shows every metric of one or more runs as a small chart. Metrics are grouped by the part of their names before the slash.
 */
import { fetchMetrics } from "../data.js"
import { makeChart } from "./chart.js"
import { el } from "./dom.js"
import { counted, number } from "./format.js"
import { lineOf, meanLine } from "./lines.js"
import { makeSource } from "./source.js"

/**
 * Makes the section. `view` contains the axis, smoothing and scales of all charts, and as `metric` the text for which metrics
 * are searched. The section calls `changed` after the user has changed that text, and `failed` with the error if metrics
 * can't be read.
 */
export const makeMetrics = (view, changed, failed) => {
  const charts = new Map()
  const source = makeSource(fetchMetrics, () => draw(), failed)
  const search = el("input.findMetric", {
    type: "search",
    placeholder: "entropy, losses/, value_loss …",
    spellcheck: "false",
    oninput: () => {
      view.metric = search.value
      draw()
      changed("metric")
    },
  })
  const count = el("p.quiet.metricCount", { role: "status" })
  const groups = el("div.metricGroups")
  const controls = el("div.controls", { role: "search" }, el("label.field.grow", el("span", "find a metric"), search), count) // prettier-ignore
  const element = el("div.metrics", controls, groups)
  /** The items that are shown; undefined until the first ones are known. */
  let shown
  let layout = ""

  const draw = () => {
    if (search.value !== view.metric) search.value = view.metric
    const items = (shown ?? []).map((item) => ({ ...item, runs: item.runs.map(source.of) }))
    const runs = items.flatMap((item) => item.runs)
    const names = [...new Set(runs.flatMap((run) => run?.metrics.map(({ name }) => name) ?? []))].sort()
    const words = view.metric.toLowerCase().split(/\s+/)
    const matching = names.filter((name) => words.every((word) => name.toLowerCase().includes(word)))
    const waiting = shown === undefined || runs.includes(undefined)
    const leftOut = Math.max(0, ...runs.map((run) => run?.leftOut ?? 0))
    count.textContent = countText(names.length, matching.length, waiting, leftOut)
    arrange(matching)
    for (const name of matching) {
      const series = items.flatMap((item) => seriesOf(item, name, view))
      charts.get(name).show({ series, xName: axisOf(view), logX: view.logX, logY: view.logY, waiting })
    }
  }

  /** Puts the charts of these metrics into the page. A chart that is already in the page keeps its element. */
  const arrange = (names) => {
    for (const name of names) if (!charts.has(name)) charts.set(name, makeChart(name, { small: true }))
    if (layout === names.join("\n")) return
    layout = names.join("\n")
    const closed = new Set([...groups.querySelectorAll("details:not([open])")].map(({ id }) => id))
    const byPrefix = Map.groupBy(names, prefixOf)
    groups.replaceChildren(
      ...[...byPrefix].map(([prefix, members]) => {
        const id = `metrics-${prefix}`
        return el(
          "details",
          { id, open: !closed.has(id) },
          el("summary", prefix, el("span.quiet", ` ${counted(members.length, "metric")}`)),
          el("div.charts.small", members.map((name) => charts.get(name).element)), // prettier-ignore
        )
      }),
    )
  }

  draw()
  return {
    element,
    /**
     * Shows items `{ label, color, runs }`, where `runs` are paths. An item with several runs has a thin line for each run,
     * and their mean.
     */
    show: (items) => {
      shown = items
      source.want(items.flatMap(({ runs }) => runs))
      draw()
    },
    /** Reads the metrics of these runs again, if they are shown. */
    stale: source.stale,
  }
}

const prefixOf = (name) => (name.includes("/") ? name.slice(0, name.indexOf("/")) : "other")

/** Returns the axis of the charts. Event files don't contain the number of episodes, so that axis is replaced by steps. */
const axisOf = ({ axis }) => (axis === "episodes" ? "steps" : axis)

const countText = (all, matching, waiting, leftOut) => {
  if (all === 0) return waiting ? "reading …" : "no metrics were recorded"
  const some = matching === all ? counted(all, "metric") : `${number(matching)} of ${counted(all, "metric")}`
  return some + (leftOut === 0 ? "" : `, ${number(leftOut)} more are left out`)
}

/** Returns the lines of a metric for an item `{ label, color, runs }`, where `runs` are metrics that have been read. */
export const seriesOf = ({ label, color, runs }, name, view) => {
  const lines = runs.flatMap((run) => {
    const metric = run?.metrics.find((one) => one.name === name)
    if (metric === undefined) return []
    const { at, mean, low, high } = metric
    return [{ x: run.places[at][axisOf(view)], columns: { y: mean, ...(low === undefined ? {} : { low, high }) } }]
  })
  if (lines.length === 0) return []
  const lineWith = (x, columns, faint) => ({ ...lineOf(x, columns, view.smoothing), label, color, faint })
  if (lines.length === 1) return [lineWith(lines[0].x, lines[0].columns, false)]
  const singles = lines.map(({ x, columns: { y } }) => lineWith(x, { y }, true))
  const { x, y } = meanLine(lines.map(({ x, columns }) => ({ x, y: columns.y })))
  return [...singles, lineWith(x, { y }, false)]
}
