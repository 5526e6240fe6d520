/** Which page is shown, and what it is kept up to date with. */
import { fetchRuns, follow } from "./data.js"
import { el } from "./dom.js"
import { makeOverview } from "./overview.js"
import { makeRunPage } from "./runPage.js"

const state = {
  runs: new Map(),
  /** Path → place in an export's list, by which it names groups. */
  order: new Map(),
  live: false,
  filter: "",
  by: "config",
  sort: { by: "time", descending: true },
  view: { centre: "iqm", axis: "steps", smoothing: 0, logX: false, logY: false, singles: false },
}

const main = document.getElementById("main")
const live = document.getElementById("live")
let page

const route = () => {
  const [, run] = /^#\/run\/(.+)$/.exec(location.hash) ?? []
  page?.close()
  page = run === undefined ? makeOverview(state) : makeRunPage(state, decodeURIComponent(run))
  main.replaceChildren(page.element)
  page.update()
  scrollTo(0, 0)
}

const load = async () => {
  const { runs, live, title } = await fetchRuns()
  state.runs = new Map(runs.map((run) => [run.path, run]))
  state.order = new Map(runs.map((run, index) => [run.path, index]))
  state.live = live
  document.getElementById("title").textContent = title
  document.title = `${title} · effect-rl`
}

const failed = (error) => main.replaceChildren(el("p", { class: "problem", role: "alert" }, error.message))

try {
  await load()
  route()
  addEventListener("hashchange", () => {
    route()
    main.focus()
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
        page.changed(new Set(changed.map(({ path }) => path)))
      },
      status: (connected) => {
        live.textContent = connected ? "live" : "not connected"
        live.className = connected ? "on" : "off"
      },
    })
  } else {
    live.textContent = "exported"
  }
} catch (error) {
  failed(error)
}
