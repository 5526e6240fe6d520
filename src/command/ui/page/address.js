/**
 * Writes the state of the page into its address and reads it from there, so that a shared link or a reload shows the same
 * state: `#/?filter=ppo&by=env&sort=-score&draw=0,env:CartPole-v1&x=time&smooth=0.6&log=xy&middle=mean`,
 * `#/run/{PATH}?x=steps&episode=train-12&turn=3`, `#/trainer/{PATH}?draw=0,run_letters`, `#/study/{PATH}` and
 * `#/compare?run={PATH}&run={PATH}`. The address leaves out defaults.
 */
import { axes } from "../curves/Curve.ts"
import { orders } from "../transcripts/Episode.ts"
import { segments } from "./parts/format.js"
import { firstColumns, isSetting } from "./runs/columns.js"

/**
 * The defaults of the view (how charts are drawn). `together` tells whether all envs share charts, `tests` whether the rows
 * are compared, and `metrics` whether metrics are shown; `metric` is a search text.
 */
export const firstView = {
  centre: "iqm",
  axis: "steps",
  smoothing: 0,
  logX: false,
  logY: false,
  singles: false,
  together: false,
  tests: false,
  metrics: false,
  metric: "",
}

/** Returns the defaults of the overview. Once the user has ticked a row, `chosen` maps ticked rows to colours, 0 to 7. */
export const firstSight = () => ({
  filter: "",
  by: "config",
  sort: { by: "time", descending: true },
  chosen: undefined,
  open: new Set(),
  columns: firstColumns,
  archived: false,
})

/** Returns the defaults of a run's transcripts: the open episode, its turn, and the filter and order of the list. */
export const firstTranscripts = () => ({
  episode: undefined,
  turn: undefined,
  text: "",
  phase: "",
  least: "",
  most: "",
  leastAdvantage: "",
  mostAdvantage: "",
  failed: false,
  order: "oldest",
})

/** Returns the parameters of an address for the values that differ from the defaults. */
const parametersOf = (values, defaults) =>
  Object.entries(values).flatMap(([name, value]) =>
    value === defaults[name] ? [] : [[name, value === true ? "1" : String(value)]],
  )

const viewValues = ({ centre, axis, smoothing, logX, logY, singles, together, tests, metrics, metric }) => {
  const log = (logX ? "x" : "") + (logY ? "y" : "")
  return { x: axis, smooth: smoothing, log, middle: centre, singles, together, tests, metrics, metric }
}
const viewParameters = (view) => parametersOf(viewValues(view), viewValues(firstView))

const sightValues = ({ filter, by, sort, columns, archived }) => {
  return { filter, by, sort: (sort.descending ? "-" : "") + sort.by, columns: columns.join(), archived }
}

/** Returns the parameters for the rows that the user has ticked; `chosen` maps their keys to their colours. */
const drawParameters = (chosen) =>
  chosen?.size === 0 ? [["draw", ""]] : [...(chosen ?? [])].map(([key, place]) => ["draw", `${place},${key}`])

export const overviewAddress = (state) => {
  const { chosen, open, view } = state
  const parameters = [
    ...parametersOf(sightValues(state), sightValues(firstSight())),
    ...drawParameters(chosen),
    ...[...open].map((key) => ["open", key]),
    ...viewParameters(view),
  ]
  return parameters.length === 0 ? "#/" : `#/?${new URLSearchParams(parameters)}`
}

/** Returns the address of a run's page. Without a view, it has no parameters, and the page keeps its current view. */
export const runAddress = (path, view, transcripts = firstTranscripts()) => {
  if (view === undefined) return `#/run/${segments(path)}`
  const parameters = [...viewParameters(view), ...parametersOf(transcripts, firstTranscripts())]
  return `#/run/${segments(path)}?${new URLSearchParams(parameters.length === 0 ? [["x", view.axis]] : parameters)}`
}

/** The largest number of runs side by side. */
export const mostCompared = 50

/** Returns the address of the page that compares some runs. */
export const compareAddress = (paths, view) =>
  `#/compare?${new URLSearchParams([...paths.map((path) => ["run", path]), ...viewParameters(view)])}`

/** Returns the address of the page of a multi-run trainer; `drawn` maps the ids of its drawn runs to colours. */
export const trainerAddress = (path, view, drawn) => {
  if (view === undefined) return `#/trainer/${segments(path)}`
  const parameters = [...drawParameters(drawn), ...viewParameters(view)]
  return `#/trainer/${segments(path)}${parameters.length === 0 ? "" : `?${new URLSearchParams(parameters)}`}`
}

/** Returns the address of the page of a study. The study's folder may be the results folder itself. */
export const studyAddress = (path) => `#/study/${segments(path)}`

/** The address of the page that trains in the browser. */
export const playAddress = "#/play"

/** The address of the page that shows a cluster. */
export const clusterAddress = "#/cluster"

/**
 * Reads from an address what to show: a run, runs side by side, a trainer, a study, the page "Play", the cluster, or the overview
 * (`sight`). Invalid values are replaced by defaults.
 */
export const readAddress = (hash) => {
  const [, place, query] = /^#?([^?]*)\??(.*)$/s.exec(hash) ?? []
  const parameters = new URLSearchParams(query)
  const view = viewIn(parameters)
  const compare = parameters.getAll("run")
  if (place === "/play") return { play: true, view }
  if (place === "/cluster") return { cluster: true, view }
  if (place === "/compare" && compare.length >= 2) {
    return { compare: [...new Set(compare)].slice(0, mostCompared), view }
  }
  const trainer = /^\/trainer\/(.+)$/.exec(place)?.[1]
  if (trainer !== undefined) {
    return { trainer: decoded(trainer), view: query === "" ? undefined : view, drawn: drawnIn(parameters) }
  }
  const study = /^\/study\/(.*)$/.exec(place)?.[1]
  if (study !== undefined) return { study: decoded(study), view: query === "" ? undefined : view }
  const run = /^\/run\/(.+)$/.exec(place)?.[1]
  if (run === undefined) return { view, sight: sightIn(parameters) }
  return { run: decoded(run), view: query === "" ? undefined : view, transcripts: transcriptsIn(parameters) }
}

const viewIn = (parameters) => {
  const log = parameters.get("log") ?? ""
  const smoothing = Number(parameters.get("smooth"))
  return {
    centre: oneOf(["iqm", "mean"], parameters.get("middle")),
    axis: oneOf(axes, parameters.get("x")),
    smoothing: smoothing > 0 && smoothing <= 0.98 ? smoothing : 0,
    logX: log.includes("x"),
    logY: log.includes("y"),
    singles: parameters.has("singles"),
    together: parameters.has("together"),
    tests: parameters.has("tests"),
    metrics: parameters.has("metrics"),
    metric: parameters.get("metric") ?? "",
  }
}

/** Reads which rows are drawn, and their colours; undefined if the user has not chosen any. */
const drawnIn = (parameters) => {
  if (!parameters.has("draw")) return undefined
  const drawn = parameters.getAll("draw").flatMap((text) => {
    const [, place, key] = /^([0-7]),(.+)$/s.exec(text) ?? []
    return key === undefined ? [] : [[key, Number(place)]]
  })
  return new Map(drawn)
}

const sightIn = (parameters) => {
  const first = firstSight()
  const [, minus, column] = /^(-?)(.*)$/s.exec(parameters.get("sort") ?? "") ?? []
  const columns = parameters.get("columns")?.split(",").filter(Boolean) ?? firstColumns
  return {
    filter: parameters.get("filter") ?? "",
    by: parameters.get("by") ?? first.by,
    sort: !isSetting(column) || columns.includes(column) ? { by: column, descending: minus === "-" } : first.sort,
    columns: [...new Set(columns)],
    archived: parameters.has("archived"),
    chosen: drawnIn(parameters),
    open: new Set(parameters.getAll("open")),
  }
}

const transcriptsIn = (parameters) => {
  const turn = Number(parameters.get("turn"))
  const bound = (name) => (Number.isFinite(Number(parameters.get(name))) ? (parameters.get(name) ?? "").trim() : "")
  return {
    episode: parameters.get("episode") ?? undefined,
    turn: Number.isInteger(turn) && turn > 0 ? turn : undefined,
    text: parameters.get("text") ?? "",
    phase: parameters.get("phase") ?? "",
    least: bound("least"),
    most: bound("most"),
    leastAdvantage: bound("leastAdvantage"),
    mostAdvantage: bound("mostAdvantage"),
    failed: parameters.has("failed"),
    order: oneOf(orders, parameters.get("order")),
  }
}

/** Returns the value if it is one of the options, otherwise the first option, which is the default. */
const oneOf = (options, value) => (options.includes(value) ? value : options[0])

const decoded = (path) => {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/**
 * The smallest number of milliseconds between two changes of the history, because browsers refuse more than about three
 * changes a second.
 */
const pause = 350
let written = -Infinity
let waiting
let lastControl

/** Adds an address to the browser's history. All changes by the slider or field `control` share one entry. */
export const remember = (address, control) => {
  clearTimeout(waiting)
  const wait = control === undefined ? 0 : written + pause - performance.now()
  if (wait > 0) return void (waiting = setTimeout(() => remember(address, control), wait))
  if (new URL(address, location.href).hash === (location.hash || "#/")) return
  if (control !== undefined && control === lastControl) history.replaceState(null, "", address)
  else history.pushState(null, "", address)
  written = performance.now()
  lastControl = control
}

/** Records that the user has navigated, so that the next change gets an entry of its own. */
export const moved = () => {
  clearTimeout(waiting)
  lastControl = undefined
}
