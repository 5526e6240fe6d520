/**
 * Renders the learning curves of the selected rows: a line for each run, and for each group its mean with a band. Each env
 * has its own charts, because returns of different envs have no common scale.
 */
import { measures } from "../../curves/Curve.ts"
import { envOf } from "../../grouping.ts"
import { fetchBand, fetchCurves } from "../data.js"
import { makeChart } from "../parts/chart.js"
import { el } from "../parts/dom.js"
import { lineOf } from "../parts/lines.js"
import { makeSource } from "../parts/source.js"
import { bandLabel } from "./groups.js"

const titles = { validation: "Validation return", train: "Training return" }

/** The largest number of lines of single runs that are shown with a band, because more can't be distinguished. */
const mostSingles = 20

const isGroup = ({ runs }) => runs.length > 1

/** Makes charts with the axes of `state.view`, for items `{ key, label, color, kind, runs }`; `runs` are paths. */
export const makeCurves = (state) => {
  const shown = makeState(state)
  return {
    element: el("section.curves", { "aria-label": "Learning curves" }, shown.place, shown.note),
    /** Shows items; `empty` is the text of a chart without curves. */
    show: (items, empty) => show(shown, items, empty),
    /** Reads the curves of these runs again. The old curves stay visible until the new ones have been read. */
    stale: (paths) => {
      const isStale = ({ runs }) => runs.some((path) => paths.has(path))
      shown.curves.stale(paths)
      shown.bands.stale(new Set(partsOf(shown).flatMap((part) => (isStale(part) ? [part.key] : []))))
    },
  }
}

/**
 * Makes the state: the charts, the items that they show, and the curves that have been read. All functions below work on this
 * state.
 */
const makeState = (state) => {
  const failed = (error) => {
    draw(shown)
    shown.note.textContent = error.message
  }
  const shown = {
    state,
    /** The charts of each env, by its name. If the name is empty, the titles of the charts name no env. */
    charts: new Map(),
    place: el("div.charts"),
    note: el("p.quiet", { role: "status" }),
    items: [],
    /** The text of a chart without curves. */
    nothing: "",
    curves: makeSource(fetchCurves, () => draw(shown), failed),
    bands: makeSource(
      (wanted) => fetchBands(state, wanted),
      () => draw(shown),
      failed,
    ),
  }
  return shown
}

/** Reads the bands of a group. A band is computed for one axis, while a run's curve contains all axes. */
const fetchBands = async (state, { runs, axis }) => {
  const read = await Promise.all(measures.map((measure) => fetchBand(runs, measure, axis, state.live, state.order)))
  return { axis, ...Object.fromEntries(measures.map((measure, index) => [measure, read[index]])) }
}

const show = (shown, items, empty) => {
  const { curves, bands, state } = shown
  shown.nothing = items.length === 0 ? empty : "nothing measured so far"
  shown.items = items
  const trained = partsOf(shown).filter(({ kind }) => kind === "run")
  curves.want(trained.flatMap((item) => singlesOf(state, item)))
  const groups = new Map(trained.filter(isGroup).map((item) => [item.key, item]))
  bands.want(groups.keys(), (key) => ({ runs: groups.get(key).runs, axis: state.view.axis }))
  draw(shown)
}

const draw = (shown) => {
  const { place, note, curves, bands, nothing } = shown
  const { axis: xName, logX, logY, centre } = shown.state.view
  const waiting = curves.isWaiting() || bands.isWaiting()
  note.textContent = waiting ? "reading …" : ""
  const elements = envsIn(shown).flatMap((env) =>
    chartsOf(shown, env).map(({ measure, chart }) => {
      const series = itemsIn(shown, env).flatMap((item) => seriesOf(shown, item, measure))
      chart.show({ series, xName, logX, logY, centre, waiting, nothing })
      return chart.element
    }),
  )
  const isSame = elements.length === place.children.length && elements.every((one, at) => one === place.children[at])
  // A chart that stays in the page keeps its element, so that the user's cursor in it stays, too.
  if (!isSame) place.replaceChildren(...elements)
}

/**
 * Returns the envs of the trained runs, each of which has its own charts. If all runs share their charts, returns one env
 * without a name.
 */
const envsIn = ({ state, items }) => {
  const all = items.flatMap(({ kind, runs }) => (kind === "run" ? runs.map((path) => envAt(state, path)) : []))
  const names = [...new Set(all)].sort((a, b) => a.localeCompare(b, "en", { numeric: true }))
  return names.length > 1 ? names : [undefined]
}

const envAt = ({ runs, view }, path) => {
  const run = runs.get(path)
  return view.together || run === undefined ? "" : envOf(run)
}

const chartsOf = ({ charts }, env = "") => {
  if (!charts.has(env)) {
    charts.set(env, measures.map((measure) => ({ measure, chart: makeChart([titles[measure], env].filter(Boolean).join(" · ")) }))) // prettier-ignore
  }
  return charts.get(env)
}

/**
 * Returns, for each trained item, the part whose runs have the env. Other items, which have no curves, are returned
 * unchanged.
 */
const itemsIn = ({ state, items }, env) =>
  items.flatMap((item) => {
    if (item.kind !== "run") return [item]
    const runs = env === undefined ? item.runs : item.runs.filter((path) => envAt(state, path) === env)
    return runs.length === 0 ? [] : [{ ...item, key: `${item.key}\n${env ?? ""}`, runs }]
  })

const partsOf = (shown) => envsIn(shown).flatMap((env) => itemsIn(shown, env))

/**
 * Returns the runs of an item whose own curves are shown: a single run, or some runs of a group if the user has chosen that.
 */
const singlesOf = ({ view }, item) => (isGroup(item) && !view.singles ? [] : item.runs.slice(0, mostSingles))

/** Returns the lines of an item: the lines of single runs, and a group's mean with its band. */
const seriesOf = ({ state, curves, bands }, item, measure) => {
  const { view } = state
  const { key, label, color, kind, runs } = item
  if (kind !== "run") return noLine(item, kind)
  const singles = singlesOf(state, item).flatMap((path) => {
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

/** The texts that explain why a selected row has no line. */
const notes = {
  evaluation: "an evaluation has no curve",
  rollouts: "rollouts alone have no curve",
  steps: "its runs share no steps",
  time: "its runs share no time",
  episodes: "its runs share no episodes",
}
const noLine = ({ label, color }, note) => [{ label, color, x: [], y: [], note: notes[note] }]
