/** Renders the learning curves of the selected rows: a line for each run, and for each group its mean with a band. */
import { measures } from "../../curves/Curve.ts"
import { fetchBand, fetchCurves } from "../data.js"
import { makeChart } from "../parts/chart.js"
import { el } from "../parts/dom.js"
import { lineOf } from "../parts/lines.js"
import { makeSource } from "../parts/source.js"
import { bandLabel } from "./groups.js"

const titles = { validation: "Validation return", train: "Training return" }

/** At most this many lines of single runs are shown with a band, because more can't be distinguished. */
const mostSingles = 20

const isGroup = ({ runs }) => runs.length > 1

/** Makes charts with the axes of `state.view`, for items `{ key, label, color, kind, runs }`; `runs` are paths. */
export const makeCurves = (state) => {
  const { view } = state
  const charts = measures.map((measure) => ({ measure, chart: makeChart(titles[measure]) }))
  const note = el("p.quiet", { role: "status" })
  let items = []
  let nothing = ""

  const draw = () => {
    const waiting = curves.isWaiting() || bands.isWaiting()
    note.textContent = waiting ? "reading …" : ""
    for (const { measure, chart } of charts) {
      const series = items.flatMap((item) => seriesOf(item, measure))
      chart.show({ series, xName: view.axis, logX: view.logX, logY: view.logY, waiting, nothing })
    }
  }
  const failed = (error) => {
    draw()
    note.textContent = error.message
  }
  const curves = makeSource(fetchCurves, draw, failed)
  /** A band is computed for one axis, while a run's curve contains all axes. */
  const fetchBands = async ({ runs, axis }) => {
    const read = await Promise.all(measures.map((measure) => fetchBand(runs, measure, axis, state.live, state.order)))
    return { axis, ...Object.fromEntries(measures.map((measure, index) => [measure, read[index]])) }
  }
  const bands = makeSource(fetchBands, draw, failed)

  /** Returns the runs of an item whose own curves are shown: a single run, or some of a group if the user wants it. */
  const singlesOf = (item) => (isGroup(item) && !view.singles ? [] : item.runs.slice(0, mostSingles))

  const seriesOf = (item, measure) => {
    const { key, label, color, kind, runs } = item
    if (kind !== "run") return noLine(item, kind)
    const singles = singlesOf(item).flatMap((path) => {
      const curve = curves.of(path)?.[measure]
      if (curve === undefined) return []
      return [{ ...lineOf(curve[view.axis], { y: curve.mean }, view.smoothing), label, color, faint: isGroup(item) }]
    })
    if (!isGroup(item)) return singles
    const read = bands.of(key)
    if (read?.axis !== view.axis) return []
    const band = read[measure]
    const columns = { y: band[view.centre], low: band[`${view.centre}Low`], high: band[`${view.centre}High`] }
    const line = lineOf(band.x, columns, view.smoothing)
    if (line.x.length === 0 && band.of > 0) return [...singles, ...noLine(item, view.axis)]
    const { runs: counts, of, shared } = band
    return [...singles, { ...line, label: bandLabel(label, runs.length), color, runs: counts, of, shared }]
  }

  return {
    element: el(
      "section.curves",
      { "aria-label": "Learning curves" },
      el("div.charts", charts.map(({ chart }) => chart.element)), // prettier-ignore
      note,
    ),
    /** Shows items; `empty` is the text for a chart without curves. */
    show: (next, empty) => {
      nothing = next.length === 0 ? empty : "nothing measured so far"
      items = next
      const trained = items.filter(({ kind }) => kind === "run")
      curves.want(trained.flatMap(singlesOf))
      const groups = new Map(trained.filter(isGroup).map((item) => [item.key, item]))
      bands.want(groups.keys(), (key) => ({ runs: groups.get(key).runs, axis: view.axis }))
      draw()
    },
    /** Reads the curves of these runs again. The old curves stay visible until the new ones have been read. */
    stale: (paths) => {
      curves.stale(paths)
      bands.stale(new Set(items.flatMap(({ key, runs }) => (runs.some((path) => paths.has(path)) ? [key] : []))))
    },
  }
}

/** Says why a selected row has no line. */
const notes = {
  evaluation: "an evaluation has no curve",
  rollouts: "rollouts alone have no curve",
  steps: "its runs share no steps",
  time: "its runs share no time",
  episodes: "its runs share no episodes",
}
const noLine = ({ label, color }, note) => [{ label, color, x: [], y: [], note: notes[note] }]
