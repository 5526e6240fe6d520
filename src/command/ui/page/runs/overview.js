/** Makes the overview, the first page: the controls, learning curves, all metrics, the filter and the table of runs. */
import { compareAddress, studyAddress, trainerAddress } from "../address.js"
import { makeMetrics } from "../parts/metrics.js"
import { makeComparison } from "./comparison.js"
import { makeCurves } from "./curves.js"
import { viewControls } from "../parts/viewControls.js"
import { choice, el, seriesColor } from "../parts/dom.js"
import { counted, number, time as formatTime } from "../parts/format.js"
import { shortLabels } from "../parts/runTexts.js"
import { isSetting, makeColumnChooser } from "./columns.js"
import { filtered } from "./filter.js"
import { studyOf, variablesOf } from "../../grouping.ts"
import { groupRuns, plainGroupings, sortRuns } from "./groups.js"
import { changeSettings, hasSettings, readSettings, settingsAreStale } from "./settings.js"
import { makeTable } from "./table.js"

/** At most this many rows are shown in the charts, one for each colour. */
const mostDrawn = 8

/** The metrics of a group are computed from at most this many of its runs, because each run's file must be read. */
const mostMembers = 10

/** Links to at most this many multi-run trainers, and to as many studies, stand above the table. */
const mostTrainers = 5

/** Makes the page. It calls `seen` after the user has changed what is shown. */
export const makeOverview = (state, seen) => {
  const curves = makeCurves(state)
  let items = []
  /** Whether the user has just ticked one row too many. */
  let refused = false

  const filter = el("input", {
    type: "search",
    id: "filter",
    placeholder: "ppo cartpole state=running validation>400 algorithm.learning_rate<1e-3",
    "aria-describedby": "filter-problem",
    spellcheck: "false",
    oninput: () => {
      state.filter = filter.value
      changed("filter")
    },
  })
  const grouping = el("div.slot")
  const controls = el("div")
  const metricsNote = el("p.problem", { role: "alert" })
  const metrics = makeMetrics(state.view, seen, (error) => (metricsNote.textContent = error.message))
  const allMetrics = el(
    "details.card.allMetrics",
    {
      ontoggle: () => {
        if (state.view.metrics === allMetrics.open) return
        state.view.metrics = allMetrics.open
        changed()
      },
    },
    el("summary", "All metrics of the runs that are drawn"),
    metricsNote,
    metrics.element,
  )
  const comparison = makeComparison(() => {
    if (state.view.tests === comparison.element.open) return
    state.view.tests = comparison.element.open
    changed()
  })
  let selection = []
  const trainers = el("p.quiet.trainers", { hidden: true })
  const studies = el("p.quiet.trainers.studies", { hidden: true })
  const problem = el("p.problem", { id: "filter-problem", role: "alert", hidden: true })
  const count = el("p.quiet.count", { role: "status" })
  const compare = el("a.button.compareLink", { hidden: true }, "compare the two")
  const full = el("p.quiet", { role: "status" })

  const table = makeTable({
    sortBy: (column) => {
      const same = state.sort.by === column
      state.sort = {
        by: column,
        descending: same ? !state.sort.descending : !["name", "state", "env", "algorithm", "commit"].includes(column),
      }
      changed()
    },
    select: (key, on) => {
      const chosen = (state.chosen ??= new Map(colors().places))
      const free = Array.from({ length: mostDrawn }, (_, place) => place).find(
        (place) => ![...chosen.values()].includes(place),
      )
      refused = on && free === undefined
      if (!on) chosen.delete(key)
      else if (free !== undefined) chosen.set(key, free)
      changed()
    },
    expand: (key) => {
      if (!state.open.delete(key)) state.open.add(key)
      changed()
    },
  })

  const keyOf = (item) => item.key ?? item.path

  /** Returns which rows are drawn in the charts, and their colours: the rows that the user has ticked, or the first. */
  const colors = () => {
    const trained = items.filter(({ kind }) => kind === "run")
    const places = state.chosen ?? new Map(trained.slice(0, mostDrawn).map((item, place) => [keyOf(item), place]))
    return {
      places,
      drawable: trained.length,
      colors: new Map([...places].map(([key, place]) => [key, seriesColor(place)])),
    }
  }

  const failed = (error) => {
    problem.textContent = error.message
    problem.hidden = false
  }

  /** Reads the settings if a column or the order needs them. */
  const readForColumns = () => {
    if (![...state.columns, state.sort.by].some(isSetting) || (hasSettings() && !settingsAreStale())) return
    readSettings().then(update, failed)
  }

  const update = () => {
    const runs = [...state.runs.values()]
    const passing = filtered(runs, state.filter, update, failed)
    readForColumns()
    const shown = sortRuns(passing.runs, state.sort)
    problem.textContent = passing.problems.join("; ")
    problem.hidden = passing.problems.length === 0
    filter.setAttribute("aria-invalid", String(passing.problems.length > 0))
    const options = [...plainGroupings, ...variablesOf(runs).map((variable) => [variable, `variable ${variable}`])]
    if (!options.some(([by]) => by === state.by)) state.by = plainGroupings[0][0]
    if (grouping.dataset.options !== JSON.stringify(options)) {
      grouping.dataset.options = JSON.stringify(options)
      const change = (by) => {
        state.by = by
        state.chosen = undefined
        changed()
      }
      grouping.replaceChildren(choice("group by", options, state.by, change))
    }
    grouping.querySelector("select").value = state.by
    items = state.by === "none" ? shown : groupRuns(shown, state.by, state.sort)
    const running = shown.filter((run) => run.state === "running").length
    const of = shown.length === runs.length ? "" : `${number(shown.length)} of `
    count.textContent = `${of}${counted(runs.length, "run")}${running > 0 ? `, ${number(running)} running` : ""}${passing.isWaiting ? ", reading the settings …" : ""}`
    const drawn = colors()
    const some = state.chosen === undefined && drawn.drawable > mostDrawn
    full.textContent = refused
      ? `At most ${mostDrawn} are drawn at once: untick one first.`
      : some
        ? `The first ${mostDrawn} of ${number(drawn.drawable)} are drawn: untick some to draw others.`
        : ""
    full.hidden = full.textContent === ""
    showTrainers()
    showStudies()
    welcome.hidden = runs.length > 0
    for (const part of [controls, curves.element, allMetrics, search, table.element]) part.hidden = runs.length === 0
    const nothing = passing.isWaiting ? "reading the settings …" : (passing.problems[0] ?? "No run passes the filter.")
    const { sort, open: expanded, columns } = state
    table.show({ items, sort, colors: drawn.colors, expanded, columns, nothing })
    // Groups, single runs, and the runs in groups can be selected.
    const selected = items
      .flatMap((item) => [item, ...(item.runs ?? [])])
      .filter((item) => drawn.colors.has(keyOf(item)))
    const labels = shortLabels(selected)
    const drawnHere = items.some(({ kind }) => kind === "run")
    const empty =
      items.length === 0
        ? "no run passes the filter"
        : drawnHere
          ? "tick rows below to draw them"
          : "what is here has no curves"
    selection = selected.map((item, index) => {
      const runs = (item.runs ?? [item]).map(({ path }) => path)
      return { key: keyOf(item), label: labels[index], color: drawn.colors.get(keyOf(item)), kind: item.kind, runs }
    })
    curves.show(selection, empty)
    comparison.element.open = state.view.tests
    comparison.show(
      selection.flatMap(({ label, kind }, index) =>
        kind === "run" ? [{ label, runs: selected[index].runs ?? [selected[index]] }] : [],
      ),
    )
    const pair = selection.map((item) => item.runs)
    compare.hidden = pair.length !== 2 || pair.some(({ length }) => length !== 1)
    compare.setAttribute("href", compareAddress(pair.flat(), state.view))
    allMetrics.open = state.view.metrics
    if (state.view.metrics) {
      const trained = selection.filter(({ kind }) => kind === "run")
      metrics.show(trained.map((item) => ({ ...item, runs: item.runs.slice(0, mostMembers) })))
    }
  }

  /** Shows links to the newest multi-run trainers, whose runs are in the table. */
  const showTrainers = () => {
    const newest = [...state.trainers.values()].sort((a, b) => (a.time < b.time ? 1 : -1)).slice(0, mostTrainers)
    const links = newest.map(({ path, name, time, runs }) => [
      " ",
      el("a", { href: trainerAddress(path), title: formatTime(time) }, `${name} (${counted(runs.length, "run")})`),
    ])
    trainers.replaceChildren("Many runs in one trainer:", ...links.flat())
    trainers.hidden = newest.length === 0
  }

  /** Shows links to the newest studies, whose runs are in the table. */
  const showStudies = () => {
    const trials = [...state.runs.values()].filter((run) => studyOf(run) !== undefined)
    const newest = [...Map.groupBy(trials, studyOf)].sort(([, [a]], [, [b]]) => (a.time < b.time ? 1 : -1)).slice(0, mostTrainers) // prettier-ignore
    const links = newest.map(([path, runs]) => [
      " ",
      el("a", { href: studyAddress(path), title: formatTime(runs[0].time) }, `${runs[0].name} (${counted(new Set(runs.map(({ population }) => population.trial)).size, "trial")})`), // prettier-ignore
    ])
    studies.replaceChildren("Studies:", ...links.flat())
    studies.hidden = newest.length === 0
  }

  const changed = (control) => {
    update()
    refused = false
    seen(control)
  }

  /** Shows what the address describes, after the address has changed. */
  const restore = () => {
    if (filter.value !== state.filter) filter.value = state.filter
    controls.replaceChildren(viewControls(state.view, changed, { several: true }))
    update()
  }

  const search = el(
    "div.controls",
    { role: "search" },
    el("label.field.grow", el("span", "filter"), filter),
    grouping,
    makeColumnChooser(state, changed),
    compare,
    count,
  )
  const welcome = el(
    "div.card.welcome",
    { role: "status", hidden: true },
    el("h2", "No runs yet"),
    el("p", el("code", "npx effect run FILE"), " makes one, and it appears here while it trains."),
    el("p.quiet", "Or this is another folder than the one that your runs are in."),
  )

  const element = el(
    "div.overview",
    el("h1.hidden", "Runs"),
    controls,
    curves.element,
    comparison.element,
    allMetrics,
    search,
    problem,
    full,
    trainers,
    studies,
    welcome,
    table.element,
  )
  return {
    element,
    update: restore,
    restore,
    draw: update,
    changed: (paths) => {
      changeSettings([...paths].flatMap((path) => state.runs.get(path) ?? []))
      update()
      curves.stale(paths)
      metrics.stale(paths)
    },
  }
}
