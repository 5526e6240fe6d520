/** Which page is shown, and what it is kept up to date with. */
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
import { makeComparePage } from "./compare/comparePage.js"
import { fetchRuns, follow } from "./data.js"
import { el } from "./parts/dom.js"
import { makeOverview } from "./runs/overview.js"
import { makeRunPage } from "./run/runPage.js"

const state = {
  runs: new Map(),
  /** Path → place in an export's list, by which it names groups. */
  order: new Map(),
  live: false,
  title: "",
  ...firstSight(),
  view: { ...firstView },
  transcripts: firstTranscripts(),
}

const main = document.getElementById("main")
const live = document.getElementById("live")
let page
/** The page that is shown: the path of a run, the paths of two, or undefined for the overview. */
let shown

/** What is seen has changed by hand; `control` is what is moved or typed into. */
const seen = (control) =>
  remember(
    shown === undefined
      ? overviewAddress(state)
      : Array.isArray(shown)
        ? compareAddress(shown, state.view)
        : runAddress(shown, state.view, state.transcripts),
    control,
  )

const route = () => {
  const { run, compare, view, sight, transcripts } = readAddress(location.hash)
  moved()
  Object.assign(state.view, view)
  Object.assign(state, sight)
  if (transcripts !== undefined) state.transcripts = transcripts
  if (run !== undefined) history.replaceState(null, "", runAddress(run, state.view, state.transcripts))
  // To and fro between views of one page it stays where it is.
  const next = compare ?? run
  if (page !== undefined && String(next) === String(shown)) return page.restore()
  shown = next
  page?.close()
  page =
    compare !== undefined
      ? makeComparePage(state, seen, compare)
      : run === undefined
        ? makeOverview(state, seen)
        : makeRunPage(state, seen, run)
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
      "div",
      { class: "card failure", role: "alert" },
      el("h1", {}, "The runs can't be read"),
      el("p", { class: "problem" }, error.message),
      el("button", { class: "button", onclick: () => location.reload() }, "Try again"),
    ),
  )

document.querySelector(".skip").addEventListener("click", (event) => {
  // The place after the # is the page's address.
  event.preventDefault()
  main.focus()
})

try {
  await load()
  route()
  addEventListener("hashchange", () => {
    const before = shown
    route()
    if (before !== shown) main.focus()
  })
  if (state.live) {
    let first = true
    follow({
      // Events that were missed while the line was down are made up for by reading all again.
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
