/**
 * Reads the data that the page shows. The server of `effect ui` answers these requests, and an exported site has files at the
 * same addresses. There is one difference: the server computes the band (a mean curve with its interval) of any group, but an
 * export has only the bands of groups without a filter.
 */
import { thinned } from "../../../base/statistics/resampling.ts"
import { bandOf, mostRunsInABand } from "../curves/bands.ts"
import { chosen, pageOf, says } from "../transcripts/Episode.ts"
import { segments } from "./parts/format.js"

/** The name under which this browser keeps the token for changes, for this server only. */
const tokenName = "effect-ui-changes"

const storedToken = () => {
  try {
    return localStorage.getItem(tokenName)
  } catch {
    // The user may forbid the page to store anything.
    return null
  }
}

/** The token with which the server permits changes; null if the page was opened without it. */
let changeToken = storedToken()

/**
 * Takes the token for changes out of the page's address, so that neither the address bar nor the history shows it. It is not a
 * cookie, which the browser would attach to requests of other pages.
 */
export const takeChangeToken = () => {
  const query = new URLSearchParams(location.search)
  const token = query.get("changes")
  if (token === null) return
  changeToken = token
  try {
    localStorage.setItem(tokenName, token)
  } catch {
    // Then the token is known until the page is closed.
  }
  history.replaceState(null, "", location.pathname + location.hash)
}

const changeHeaders = () => (changeToken === null ? {} : { "x-effect-changes": changeToken })

/** Changes the labels of a run, or deletes it: `{ labels }` or `{ delete: true }`. */
export const changeRun = async (run, change) => {
  const response = await fetch("data/change", {
    method: "POST",
    headers: { "content-type": "application/json", ...changeHeaders() },
    body: JSON.stringify({ run, ...change }),
  })
  if (!response.ok) throw new Error((await response.text()).trim())
}

const get = async (address, headers = {}) => {
  const response = await fetch(address, { headers })
  if (response.ok) return response.json()
  const message =
    response.status === 401 ? await response.text() : `${address}: ${response.status} ${response.statusText}`
  throw Object.assign(new Error(message), { status: response.status })
}

export const fetchRuns = () => get("data/runs.json", changeHeaders())
export const fetchRun = (path) => get(`data/run/${segments(path)}/run.json`)
export const fetchCurves = (path) => get(`data/run/${segments(path)}/curves.json`)
export const fetchStudy = (path) => get(`data/study${path === "" ? "" : `/${segments(path)}`}/study.json`)
export const fetchCluster = () => get("data/cluster.json")
export const fetchSettings = () => get("data/settings.json")
export const fetchMetrics = (path) => get(`data/run/${segments(path)}/metrics.json`)
export const fetchTranscript = (path, key) => get(`data/run/${segments(path)}/episodes/${encodeURIComponent(key)}.json`)
/**
 * Returns the address of a file of a run. In an export, `copy` is the path of the file's copy, if that is not the file's own
 * path.
 */
export const fileAddress = (run, { path, copy = path }) => `files/${segments(run)}/${segments(copy)}`

/** Returns the runs from which a group's band is computed: all its runs, or a sample of a large group. */
const sampleOf = (paths) => thinned(paths.toSorted(), mostRunsInABand)

/** The contents of `bands.json` in an export. */
let exported

/** Reads the band of the runs with these paths. For an export, `order` maps a path to its index in the list of runs. */
export const fetchBand = async (paths, measure, axis, live, order) => {
  if (live) {
    const response = await fetch("data/bands", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ runs: paths.length > 1000 ? sampleOf(paths) : paths, measure, axis }),
    })
    if (!response.ok) throw new Error(`bands: ${response.status}`)
    return response.json()
  }
  exported ??= get("data/bands.json")
  const places = paths.map((path) => order.get(path)).sort((a, b) => a - b)
  const file = (await exported)[places.join(",")]
  if (file !== undefined) return get(`data/bands/${file}-${measure}-${axis}.json`)
  // The export has no band of a filtered group, so compute it here.
  const curves = await Promise.all(sampleOf(paths).map(async (path) => (await fetchCurves(path))[measure]))
  return bandOf(curves, axis)
}

/**
 * Reads the part of a run's list of episodes that `asked` selects. In an export, the page reads the whole list and selects
 * that part itself.
 */
export const fetchEpisodes = async (path, asked, live) => {
  const address = `data/run/${segments(path)}/episodes.json`
  const parts = Object.entries(asked).flatMap(([name, value]) =>
    value === "" || value === false || value === undefined ? [] : [[name, value === true ? "1" : String(value)]],
  )
  if (live) return get(`${address}?${new URLSearchParams(parts)}`)
  const list = await get(address)
  const bound = (text) => (text === "" ? null : Number(text))
  const bounds = ["least", "most", "leastAdvantage", "mostAdvantage"].map((name) => [name, bound(asked[name])])
  let matching = chosen(list.episodes, { ...asked, ...Object.fromEntries(bounds) })
  if (asked.text !== "") {
    const wanted = asked.text.toLowerCase()
    const holds = new Map()
    const rest = matching.values()
    const reader = async () => {
      for (const { key } of rest) holds.set(key, says(await fetchTranscript(path, key), wanted))
    }
    // Eight transcripts are requested at a time.
    await Promise.all(Array.from({ length: 8 }, reader))
    matching = matching.filter(({ key }) => holds.get(key))
  }
  return { ...list, ...pageOf(matching, asked) }
}

/** Listens to the server. It calls `changed` with each change, and `opened` and `status(true)` after every connection. */
export const follow = ({ opened, changed, status }) => {
  let events
  const connect = () => {
    events = new EventSource("data/events")
    events.addEventListener("open", () => {
      status(true)
      opened()
    })
    events.addEventListener("change", (event) => changed(JSON.parse(event.data)))
    events.addEventListener("error", () => status(false))
  }
  connect()
  // Browsers keep pages in memory for the back button. Their connections must be closed, because six open connections to a
  // server block all others.
  addEventListener("pagehide", () => events.close())
  addEventListener("pageshow", ({ persisted }) => void (persisted && connect()))
}
