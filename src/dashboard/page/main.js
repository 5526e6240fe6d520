/** Starts the web app: shows the page of the current address, and updates it when the server sends an event. */
import {
  compareAddress,
  firstSight,
  firstTranscripts,
  firstView,
  moved,
  overviewAddress,
  readAddress,
  remember,
  runAddress,
} from "./address.js"
import { fetchRuns, follow } from "./data.js"
import { el } from "./parts/dom.js"
import { makeOverview } from "./runs/overview.js"

const state = {
  runs: new Map(),
  /** Maps the path of a run to its index in the list of runs. These indices name the bands of groups in an export. */
  order: new Map(),
  live: false,
  title: "",
  ...firstSight(),
  view: { ...firstView },
  transcripts: firstTranscripts(),
}

const main = document.getElementById("main")
const live = document.getElementById("live")
/** The object that `makePage` made last: `{ element, update, restore, draw, changed, close? }`. */
let page
/** The page that is shown: the path of a run, the paths of two runs, or undefined for the overview. */
let shown

/** Writes the state into the address after the user has changed it; `control` names the slider or field they used. */
const seen = (control) => {
  if (shown === undefined) remember(overviewAddress(state), control)
  else if (Array.isArray(shown)) remember(compareAddress(shown, state.view), control)
  else remember(runAddress(shown, state.view, state.transcripts), control)
}

/** Makes the page of an address. Modules that the overview doesn't need are loaded when another page is first shown. */
const makePage = async (run, compare) => {
  if (compare !== undefined) return (await import("./compare/comparePage.js")).makeComparePage(state, seen, compare)
  if (run !== undefined) return (await import("./run/runPage.js")).makeRunPage(state, seen, run)
  return makeOverview(state, seen)
}

/** Shows the page of the current address. */
const route = async () => {
  const { run, compare, view, sight, transcripts } = readAddress(location.hash)
  moved()
  Object.assign(state.view, view)
  Object.assign(state, sight)
  if (transcripts !== undefined) state.transcripts = transcripts
  if (run !== undefined) history.replaceState(null, "", runAddress(run, state.view, state.transcripts))
  const next = compare ?? run
  // If only the view of the page changes, the page itself is kept.
  if (page !== undefined && String(next) === String(shown)) return page.restore()
  shown = next
  const made = await makePage(run, compare)
  // The address may have changed while modules were loaded.
  if (String(shown) !== String(next)) return made.close?.()
  page?.close?.()
  page = made
  const nameOf = (path) => state.runs.get(path)?.name ?? path
  document.title = `${compare?.map(nameOf).join(" and ") ?? (run === undefined ? state.title : nameOf(run))} · effect-rl`
  main.replaceChildren(page.element)
  page.update()
  scrollTo(0, 0)
}

const load = async () => {
  const { runs, live, title } = await fetchRuns()
  state.runs = new Map(runs.map((run) => [run.path, run]))
  state.order = new Map(runs.map((run, index) => [run.path, index]))
  state.live = live
  state.title = title
  document.getElementById("title").textContent = title
}

const failed = (error) =>
  main.replaceChildren(
    el(
      "div.card.failure",
      { role: "alert" },
      el("h1", "The runs can't be read"),
      el("p.problem", error.message),
      el("button.button", { onclick: () => location.reload() }, "Try again"),
    ),
  )

document.querySelector(".skip").addEventListener("click", (event) => {
  // Following this link would replace the part of the address after the #, which names the page: only move the focus.
  event.preventDefault()
  main.focus()
})

try {
  await load()
  await route()
  addEventListener("hashchange", async () => {
    const before = shown
    await route().catch(failed)
    if (String(before) !== String(shown)) main.focus()
  })
  // The charts have the colours of the theme, light or dark, so render them again.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page?.draw())
  if (state.live) {
    let first = true
    follow({
      // Events were missed while the connection was down, so everything is read again.
      opened: () => {
        if (first) first = false
        else load().then(() => page.changed(new Set(state.runs.keys())), failed)
      },
      changed: ({ changed, gone }) => {
        for (const run of changed) state.runs.set(run.path, run)
        for (const path of gone) state.runs.delete(path)
        page.changed(new Set([...changed.map(({ path }) => path), ...gone]))
      },
      status: (connected) => {
        live.textContent = connected ? "live" : "not connected, trying again"
        live.className = connected ? "on" : "off"
      },
    })
  } else {
    live.textContent = "exported"
  }
} catch (error) {
  failed(error)
}
