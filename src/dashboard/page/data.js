/**
 * Where the data comes from: `effect ui` answers these addresses, and a static export has files at them. The one thing
 * that differs are bands: the server computes them, an export holds those of whole groups.
 */
const segments = (path) => path.split("/").map(encodeURIComponent).join("/")

const get = async (address) => {
  const response = await fetch(address)
  if (response.ok) return response.json()
  const said = response.status === 401 ? await response.text() : `${address}: ${response.status} ${response.statusText}`
  throw Object.assign(new Error(said), { status: response.status })
}

export const fetchRuns = () => get("data/runs.json")
export const fetchRun = (path) => get(`data/run/${segments(path)}/run.json`)
export const fetchCurves = (path) => get(`data/run/${segments(path)}/curves.json`)
export const fileAddress = (run, file) => `files/${segments(run)}/${segments(file)}`

let exported

/** The band of a measure over an axis: the server's, the export's, or else computed here as the server would. */
export const fetchBand = async (paths, measure, axis, live, order) => {
  if (live) {
    const response = await fetch("data/bands", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ runs: paths, measure, axis }),
    })
    if (!response.ok) throw new Error(`bands: ${response.status}`)
    return response.json()
  }
  exported ??= get("data/bands.json")
  const key = paths
    .map((path) => order.get(path))
    .sort((a, b) => a - b)
    .join(",")
  const file = (await exported)[key]
  if (file !== undefined) return get(`data/bands/${file}-${measure}-${axis}.json`)
  // Of a filtered group. It lies elsewhere in the sources, so its address is put together.
  const [{ bandOf }, ...curves] = await Promise.all([
    import(new URL("lib/dashboard/bands.js", import.meta.url).href),
    ...paths.toSorted().map(fetchCurves),
  ])
  return bandOf(
    curves.map((one) => one[measure]),
    axis,
  )
}

/** Follows what changes; `status` hears whether it does. */
export const follow = ({ opened, changed, status }) => {
  const events = new EventSource("data/events")
  events.addEventListener("open", () => {
    status(true)
    opened()
  })
  events.addEventListener("change", (event) => changed(JSON.parse(event.data)))
  events.addEventListener("error", () => status(false))
}
