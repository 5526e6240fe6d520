/** Starts the web app: shows the page of the current address, and updates it when the server sends an event. */
import {
  clusterAddress,
  compareAddress,
  firstSight,
  firstTranscripts,
  firstView,
  moved,
  overviewAddress,
  playAddress,
  readAddress,
  remember,
  runAddress,
  studyAddress,
  trainerAddress,
} from "./address.js"
import { fetchRuns, follow, takeChangeToken } from "./data.js"
import { el } from "./parts/dom.js"
import { makeOverview } from "./runs/overview.js"

const state = {
  runs: new Map(),
  /** The multi-run trainers by their paths. Their runs are in `runs`; `drawn` maps the ids of drawn runs to colours. */
  trainers: new Map(),
  drawn: undefined,
  /** Maps the path of a run to its index in the list of runs. These indices name the bands of groups in an export. */
  order: new Map(),
  live: false,
  /** Whether the user may label, archive and delete runs. */
  canChange: false,
  title: "",
  ...firstSight(),
  view: { ...firstView },
  transcripts: firstTranscripts(),
}

const main = document.getElementById("main")
const live = document.getElementById("live")
/** The page object that is shown, made by `makePage`: `{ element, update, restore, draw, changed, close? }`. */
let page
/** The location that is shown, in the form that `placeOf` returns. */
let shown

/** Writes the state into the address after the user has changed it; `control` names the slider or field they used. */
const seen = (control) => remember(shown.address(), control)

const nameOf = (path) => (state.runs.get(path) ?? state.trainers.get(path))?.name ?? path

/**
 * Returns the location that an address names: a key that identifies it, its title, its address with the current state, and a
 * function that makes its page. Modules that the overview doesn't need are loaded when another page is first shown.
 */
const placeOf = ({ run, compare, trainer, study, play, cluster }) => {
  if (cluster === true) {
    return {
      key: "cluster",
      title: "Cluster",
      address: () => clusterAddress,
      make: async () => (await import("./cluster/clusterPage.js")).makeClusterPage(),
    }
  }
  if (play === true) {
    return {
      key: "play",
      title: "Play",
      address: () => playAddress,
      make: async () => (await import("./play/playPage.js")).makePlayPage(),
    }
  }
  if (compare !== undefined) {
    return {
      key: `compare ${compare}`,
      title: compare.length > 3 ? `${compare.length} runs` : compare.map(nameOf).join(" and "),
      address: () => compareAddress(compare, state.view),
      make: async () => (await import("./compare/comparePage.js")).makeComparePage(state, seen, compare),
    }
  }
  if (trainer !== undefined) {
    return {
      key: `trainer ${trainer}`,
      title: nameOf(trainer),
      address: () => trainerAddress(trainer, state.view, state.drawn),
      make: async () => (await import("./trainer/trainerPage.js")).makeTrainerPage(state, seen, trainer),
    }
  }
  if (study !== undefined) {
    return {
      key: `study ${study}`,
      title: "Study",
      address: () => studyAddress(study),
      make: async () => (await import("./study/studyPage.js")).makeStudyPage(state, study),
    }
  }
  if (run !== undefined) {
    return {
      key: `run ${run}`,
      title: nameOf(run),
      address: () => runAddress(run, state.view, state.transcripts),
      make: async () => (await import("./run/runPage.js")).makeRunPage(state, seen, run),
    }
  }
  return { key: "", title: state.title, address: () => overviewAddress(state), make: async () => makeOverview(state, seen) } // prettier-ignore
}

/** Shows the page of the current address. */
const route = async () => {
  const { run, compare, trainer, study, play, cluster, view, sight, transcripts, drawn } = readAddress(location.hash)
  moved()
  Object.assign(state.view, view)
  Object.assign(state, sight)
  if (transcripts !== undefined) state.transcripts = transcripts
  state.drawn = drawn
  const next = placeOf({ run, compare, trainer, study, play, cluster })
  if (run !== undefined) history.replaceState(null, "", next.address())
  // If only the view of the page changes, the page itself is kept.
  if (page !== undefined && next.key === shown.key) return page.restore()
  shown = next
  const made = await next.make()
  // The address may have changed while modules were loaded.
  if (shown.key !== next.key) return made.close?.()
  page?.close?.()
  page = made
  document.title = `${next.title} · effect-rl`
  main.replaceChildren(page.element)
  page.update()
  scrollTo(0, 0)
}

const load = async () => {
  const { runs, trainers = [], live, hasCluster = false, canChange = false, title } = await fetchRuns()
  state.runs = new Map(runs.map((run) => [run.path, run]))
  state.trainers = new Map(trainers.map((trainer) => [trainer.path, trainer]))
  state.order = new Map(runs.map((run, index) => [run.path, index]))
  state.live = live
  state.canChange = canChange
  state.title = title
  document.getElementById("title").textContent = title
  document.getElementById("toCluster").hidden = !hasCluster
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
  // This link would replace the part of the address after the #, which names the page, so only move the focus.
  event.preventDefault()
  main.focus()
})

try {
  takeChangeToken()
  await load()
  await route()
  addEventListener("hashchange", async () => {
    const before = shown?.key
    await route().catch(failed)
    if (before !== shown?.key) main.focus()
  })
  // The charts use the colours of the theme, light or dark, so they are rendered again when it changes.
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
        for (const run of changed) {
          state.runs.set(run.path, run)
          if (run.runs !== undefined) state.trainers.set(run.path, run)
        }
        for (const path of gone) {
          state.runs.delete(path)
          state.trainers.delete(path)
        }
        // A trainer is replaced in the list by those of its runs that have begun.
        for (const { trainer } of state.runs.values()) state.runs.delete(trainer)
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
