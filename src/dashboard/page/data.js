/**
 * Where the data comes from: `effect ui` answers these addresses, and a static export has files at them. The one thing
 * that differs are bands, which the server computes for any runs and an export holds for whole groups.
 */
const segments = (path) => path.split("/").map(encodeURIComponent).join("/")

const get = async (address) => {
  const response = await fetch(address)
  if (response.ok) return response.json()
  throw new Error(
    response.status === 401 ? await response.text() : `${address}: ${response.status} ${response.statusText}`,
  )
}

export const fetchRuns = () => get("data/runs.json")
export const fetchRun = (path) => get(`data/run/${segments(path)}/run.json`)
export const fetchCurves = (path) => get(`data/run/${segments(path)}/curves.json`)
export const fileAddress = (run, file) => `files/${segments(run)}/${segments(file)}`

let exported

/** The bands of a measure over each axis; undefined where an export hasn't got them. */
export const fetchBands = async (paths, measure, live, order) => {
  if (live) {
    const response = await fetch("data/bands", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ runs: paths, measure }),
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
  return file === undefined ? undefined : get(`data/bands/${file}-${measure}.json`)
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
