/**
 * Draws the learning curves of the selected rows: a line for each run, and for each group its mean with an interval as
 * a band.
 */
import { makeChart } from "../parts/chart.js"
import { el, together } from "../parts/dom.js"
import { fetchBand, fetchCurves } from "../data.js"
import { lineOf } from "../parts/lines.js"
import { bandLabel } from "./groups.js"

const measures = [
  ["validation", "Validation return"],
  ["train", "Training return"],
]

/** At most this many single runs are drawn with a band, because more can't be distinguished. */
const mostSingles = 20

/** Makes the charts. They show items `{ key, label, color, kind, runs }`, where `runs` are paths. */
export const makeCurves = (view) => {
  const charts = measures.map(([measure, title]) => ({ measure, chart: makeChart(title) }))
  const note = el("p", { class: "quiet", role: "status" })
  let items = []
  let source = { live: false, order: new Map() }
  let nothing = ""
  let failed = false
  const loaded = new Map()

  /**
   * Returns the axis for which an item's curve is read. A band is computed for one axis; a run's curve contains all
   * axes.
   */
  const axisOf = (item) => (item.runs.length > 1 ? view.axis : "any")
  const dataOf = (item) => {
    const entry = loaded.get(item.key)
    return entry?.axis === axisOf(item) ? entry.data : undefined
  }

  const isWaiting = () => items.some((item) => loaded.get(item.key)?.awaited ?? true)

  const draw = () => {
    const waiting = isWaiting()
    if (!failed) note.textContent = waiting ? "reading …" : ""
    for (const { measure, chart } of charts) {
      const series = items.flatMap((item) => seriesOf(item, dataOf(item), measure, view))
      chart.show({ series, xName: view.axis, logX: view.logX, logY: view.logY, waiting, nothing })
    }
  }

  const drawTogether = together(draw)

  const load = async (item) => {
    const known = loaded.get(item.key)
    const runs = item.runs.join("\n")
    const wantsSingles = view.singles && item.runs.length > 1
    const axis = axisOf(item)
    const same = known !== undefined && known.runs === runs && known.axis === axis
    if (same && !known.stale && (known.singles || !wantsSingles)) return
    // The old curves stay visible until the new ones have been read.
    const data = known?.axis === axis ? known.data : undefined
    const entry = { runs, axis, stale: false, singles: wantsSingles, data, awaited: !same || data === undefined }
    loaded.set(item.key, entry)
    try {
      const fetched = await fetchItem(item, axis, source, wantsSingles)
      if (loaded.get(item.key) !== entry) return
      entry.data = fetched
      entry.awaited = false
      failed = false
    } catch (error) {
      entry.stale = true
      entry.awaited = false
      failed = true
      note.textContent = error.message
    }
    drawTogether(!isWaiting())
  }

  return {
    element: el(
      "section",
      { class: "curves", "aria-label": "Learning curves" },
      el("div", { class: "charts" }, charts.map(({ chart }) => chart.element)), // prettier-ignore
      note,
    ),
    draw,
    /** Shows items; `empty` is the text for a chart without curves. */
    show: (next, from, empty) => {
      nothing = next.length === 0 ? empty : "nothing measured so far"
      items = next
      source = from
      for (const key of loaded.keys()) if (!items.some((item) => item.key === key)) loaded.delete(key)
      for (const item of items) void load(item)
      draw()
    },
    /** Reads the curves of these runs again. The old curves stay visible until the new ones have been read. */
    stale: (paths) => {
      for (const item of items) {
        const entry = loaded.get(item.key)
        if (entry !== undefined && item.runs.some((path) => paths.has(path))) entry.stale = true
        void load(item)
      }
    },
  }
}

const fetchItem = async ({ runs }, axis, { live, order }, wantsSingles) => {
  if (runs.length === 1) return { curves: [await fetchCurves(runs[0])] }
  const [validation, train] = await Promise.all(
    measures.map(([measure]) => fetchBand(runs, measure, axis, live, order)),
  )
  const curves = wantsSingles ? await Promise.all(runs.slice(0, mostSingles).map(fetchCurves)) : []
  return { bands: { validation, train }, curves }
}

/** Says why a drawn row has no line. */
const notes = {
  evaluation: "an evaluation has no curve",
  rollouts: "rollouts alone have no curve",
  steps: "its runs share no steps",
  time: "its runs share no time",
  episodes: "its runs share no episodes",
}
const noLine = ({ label, color }, note) => [{ label, color, x: [], y: [], note: notes[note] }]

const seriesOf = (item, data, measure, view) => {
  const { label, color, kind } = item
  if (kind !== "run") return noLine(item, kind)
  if (data === undefined) return []
  const band = data.bands?.[measure]
  const singles = data.curves.map((curves) => ({
    ...lineOf(curves[measure][view.axis], { y: curves[measure].mean }, view.smoothing),
    label,
    color,
    faint: data.bands !== undefined,
  }))
  if (band === undefined) return singles
  const { centre } = view
  const columns = { y: band[centre], low: band[`${centre}Low`], high: band[`${centre}High`] }
  const { runs, of, shared } = band
  const banded = bandLabel(label, item.runs.length)
  const line = { ...lineOf(band.x, columns, view.smoothing), label: banded, color, runs, of, shared }
  const lines = line.x.length === 0 && band.of > 0 ? noLine(item, view.axis) : [line]
  return view.singles ? [...singles, ...lines] : lines
}
