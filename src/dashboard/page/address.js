/**
 * Writes the state of the page into its address and reads it from there, so that a shared link or a reload shows the
 * same: `#/?filter=ppo&by=env&sort=-score&draw=0,env:CartPole-v1&x=time&smooth=0.6&log=xy&middle=mean`,
 * `#/run/{PATH}?x=steps&episode=train-12&turn=3` and `#/compare?run={PATH}&run={PATH}`. The address leaves out
 * defaults.
 */
import { firstColumns, isSetting } from "./runs/columns.js"

const axes = ["steps", "time", "episodes"]
const middles = ["iqm", "mean"]
const orders = ["oldest", "newest", "highest", "lowest"]

/**
 * The defaults of the charts. `metrics` tells whether the overview shows all metrics; `metric` is the text by which
 * they are searched.
 */
export const firstView = {
  centre: "iqm",
  axis: "steps",
  smoothing: 0,
  logX: false,
  logY: false,
  singles: false,
  metrics: false,
  metric: "",
}

/**
 * The defaults of the overview. `chosen` maps the key of each drawn row to its colour's index; it is undefined until the
 * user ticks a row.
 */
export const firstSight = () => ({
  filter: "",
  by: "config",
  sort: { by: "time", descending: true },
  chosen: undefined,
  open: new Set(),
  columns: firstColumns,
})

/**
 * Returns the defaults of a run's transcripts: the list's conditions and order, the open episode, and its selected
 * turn.
 */
export const firstTranscripts = () => ({
  episode: undefined,
  turn: undefined,
  text: "",
  phase: "",
  least: "",
  most: "",
  failed: false,
  order: "oldest",
})

/** Writes a path as a part of an address. */
export const segments = (path) => path.split("/").map(encodeURIComponent).join("/")

const viewParts = ({ centre, axis, smoothing, logX, logY, singles, metrics, metric }) => [
  ...(axis === firstView.axis ? [] : [["x", axis]]),
  ...(smoothing === 0 ? [] : [["smooth", String(smoothing)]]),
  ...(logX || logY ? [["log", (logX ? "x" : "") + (logY ? "y" : "")]] : []),
  ...(centre === firstView.centre ? [] : [["middle", centre]]),
  ...(singles ? [["singles", "1"]] : []),
  ...(metrics ? [["metrics", "1"]] : []),
  ...(metric === "" ? [] : [["metric", metric]]),
]

export const overviewAddress = ({ filter, by, sort, chosen, open, columns, view }) => {
  const first = firstSight()
  const drawn =
    chosen?.size === 0 ? [["draw", ""]] : [...(chosen ?? [])].map(([key, place]) => ["draw", `${place},${key}`])
  const parts = [
    ...(filter === "" ? [] : [["filter", filter]]),
    ...(by === first.by ? [] : [["by", by]]),
    ...(sort.by === first.sort.by && sort.descending === first.sort.descending
      ? []
      : [["sort", (sort.descending ? "-" : "") + sort.by]]),
    ...(columns.join() === firstColumns.join() ? [] : [["columns", columns.join()]]),
    ...drawn,
    ...[...open].map((key) => ["open", key]),
    ...viewParts(view),
  ]
  return parts.length === 0 ? "#/" : `#/?${new URLSearchParams(parts)}`
}

const transcriptParts = (transcripts) => {
  const first = firstTranscripts()
  return Object.entries(transcripts).flatMap(([name, value]) =>
    value === first[name] || value === undefined ? [] : [[name, value === true ? "1" : String(value)]],
  )
}

/** Returns the address of a run's page. If a link names no view, the page keeps its current view. */
export const runAddress = (path, view, transcripts = firstTranscripts()) => {
  if (view === undefined) return `#/run/${segments(path)}`
  const parts = [...viewParts(view), ...transcriptParts(transcripts)]
  return `#/run/${segments(path)}?${new URLSearchParams(parts.length === 0 ? [["x", view.axis]] : parts)}`
}

/** Returns the address of the page that compares two runs. */
export const compareAddress = (paths, view) =>
  `#/compare?${new URLSearchParams([...paths.map((path) => ["run", path]), ...viewParts(view)])}`

/** Reads an address. Values that no control of the page could have written are replaced by the defaults. */
export const readAddress = (hash) => {
  const [, place, query] = /^#?([^?]*)\??(.*)$/s.exec(hash) ?? []
  const said = new URLSearchParams(query)
  const run = /^\/run\/(.+)$/.exec(place)?.[1]
  const log = said.get("log") ?? ""
  const smoothing = Number(said.get("smooth"))
  const view = {
    centre: oneOf(middles, said.get("middle"), firstView.centre),
    axis: oneOf(axes, said.get("x"), firstView.axis),
    smoothing: smoothing > 0 && smoothing <= 0.98 ? smoothing : 0,
    logX: log.includes("x"),
    logY: log.includes("y"),
    singles: said.has("singles"),
    metrics: said.has("metrics"),
    metric: said.get("metric") ?? "",
  }
  if (place === "/compare" && said.getAll("run").length === 2) return { compare: said.getAll("run"), view }
  if (run !== undefined) {
    return { run: decoded(run), view: query === "" ? undefined : view, transcripts: transcriptsOf(said) }
  }
  const first = firstSight()
  const [, minus, column] = /^(-?)(.*)$/s.exec(said.get("sort") ?? "") ?? []
  const drawn = new Map()
  for (const text of said.getAll("draw")) {
    const [, place, key] = /^([0-7]),(.+)$/s.exec(text) ?? []
    if (key !== undefined) drawn.set(key, Number(place))
  }
  const columns = said.has("columns") ? [...new Set((said.get("columns") ?? "").split(",").filter(Boolean))] : firstColumns // prettier-ignore
  return {
    view,
    sight: {
      filter: said.get("filter") ?? "",
      by: said.get("by") ?? first.by,
      sort: !isSetting(column) || columns.includes(column) ? { by: column, descending: minus === "-" } : first.sort,
      columns,
      chosen: said.has("draw") ? drawn : undefined,
      open: new Set(said.getAll("open")),
    },
  }
}

const transcriptsOf = (said) => {
  const turn = Number(said.get("turn"))
  const bound = (name) => (Number.isFinite(Number(said.get(name))) ? (said.get(name) ?? "").trim() : "")
  return {
    episode: said.get("episode") ?? undefined,
    turn: Number.isInteger(turn) && turn > 0 ? turn : undefined,
    text: said.get("text") ?? "",
    phase: said.get("phase") ?? "",
    least: bound("least"),
    most: bound("most"),
    failed: said.has("failed"),
    order: oneOf(orders, said.get("order"), "oldest"),
  }
}

const oneOf = (known, given, otherwise) => (known.includes(given) ? given : otherwise)

const decoded = (path) => {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** The time between two changes of the history, in milliseconds: browsers refuse more than about three changes a second. */
const rest = 350
let written = -Infinity
let waiting
let lastControl

/**
 * Adds an address to the browser's history. All changes by one slider or field, which `control` names, share one entry.
 */
export const remember = (address, control) => {
  clearTimeout(waiting)
  const wait = control === undefined ? 0 : written + rest - performance.now()
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
