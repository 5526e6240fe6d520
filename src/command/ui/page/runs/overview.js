/** Makes the overview, the first page: the controls, learning curves, all metrics, the filter and the table of runs. */
import { compareAddress, mostCompared, studyAddress, trainerAddress } from "../address.js"
import { makeMetrics } from "../parts/metrics.js"
import { makeComparison } from "./comparison.js"
import { makeCurves } from "./curves.js"
import { viewControls } from "../parts/viewControls.js"
import { choice, csvButton, el, seriesColor, toggle } from "../parts/dom.js"
import { counted, number, time as formatTime } from "../parts/format.js"
import { shortLabels } from "../parts/runTexts.js"
import { columnOf, isSetting, makeColumnChooser } from "./columns.js"
import { filtered } from "./filter.js"
import { studyOf, variablesOf } from "../../grouping.ts"
import { groupRuns, plainGroupings, sortRuns } from "./groups.js"
import { changeSettings, hasSettings, readSettings, settingsAreStale } from "./settings.js"
import { makeTable } from "./table.js"

/** The largest number of rows in the charts, which is the number of colours. */
const mostDrawn = 8

/** The largest number of a group's runs from which its metrics are computed, because each run's file must be read. */
const mostMembers = 10

/** The largest number of links to multi-run trainers above the table, and also of links to studies. */
const mostTrainers = 5

/** Makes the page. It calls `seen` after the user has changed what is shown. */
export const makeOverview = (state, seen) => {
  const page = makePage(state, seen)
  return {
    element: page.element,
    update: () => restore(page),
    restore: () => restore(page),
    draw: () => update(page),
    changed: (paths) => {
      changeSettings([...paths].flatMap((path) => state.runs.get(path) ?? []))
      update(page)
      page.curves.stale(paths)
      page.metrics.stale(paths)
    },
  }
}

/** Makes the state of the page: its elements, and the rows that it shows. All functions below work on this state. */
const makePage = (state, seen) => {
  const metricsNote = el("p.problem", { role: "alert" })
  const page = {
    state,
    seen,
    /** The rows of the table: runs or groups. */
    items: [],
    /** Whether the user has just ticked one more row than can be drawn. */
    refused: false,
    filter: makeFilter((text) => {
      state.filter = text
      changed(page, "filter")
    }),
    grouping: el("div.slot"),
    controls: el("div"),
    curves: makeCurves(state),
    metricsNote,
    metrics: makeMetrics(state.view, seen, (error) => (metricsNote.textContent = error.message)),
    comparison: makeComparison(() => toggled(page, "tests", page.comparison.element)),
    trainers: el("p.quiet.trainers", { hidden: true }),
    studies: el("p.quiet.trainers.studies", { hidden: true }),
    problem: el("p.problem", { id: "filter-problem", role: "alert", hidden: true }),
    archived: el("div.slot"),
    count: el("p.quiet.count", { role: "status" }),
    compare: el("a.button.compareLink", { hidden: true }, "compare the two"),
    full: el("p.quiet", { role: "status" }),
    welcome: makeWelcome(),
    table: makeTable({
      sortBy: (column) => sortBy(page, column),
      select: (key, on) => select(page, key, on),
      expand: (key) => expand(page, key),
    }),
    // `assemble` makes the following elements.
    allMetrics: undefined,
    search: undefined,
    element: undefined,
  }
  return assemble(page)
}

/** Makes the elements that contain other elements. */
const assemble = (page) => {
  const { controls, curves, comparison, problem, full, trainers, studies, welcome, table } = page
  const heading = el("summary", "All metrics of the runs that are drawn")
  page.allMetrics = el(
    "details.card.allMetrics",
    { ontoggle: () => toggled(page, "metrics", page.allMetrics) },
    heading,
    page.metricsNote,
    page.metrics.element,
  )
  page.search = el(
    "div.controls",
    { role: "search" },
    el("label.field.grow", el("span", "filter"), page.filter),
    page.grouping,
    makeColumnChooser(page.state, (control) => changed(page, control)),
    page.archived,
    page.compare,
    csvButton("Runs", () => rowsOf(page)),
    page.count,
  )
  page.element = el(
    "div.overview",
    el("h1.hidden", "Runs"),
    controls,
    curves.element,
    comparison.element,
    page.allMetrics,
    page.search,
    problem,
    full,
    trainers,
    studies,
    welcome,
    table.element,
  )
  return page
}

const makeFilter = (typed) => {
  const filter = el("input", {
    type: "search",
    id: "filter",
    placeholder: "ppo cartpole state=running validation>400 algorithm.learning_rate<1e-3",
    "aria-describedby": "filter-problem",
    spellcheck: "false",
    oninput: () => typed(filter.value),
  })
  return filter
}

const makeWelcome = () =>
  el(
    "div.card.welcome",
    { role: "status", hidden: true },
    el("h2", "No runs yet"),
    el("p", el("code", "npx effect run FILE"), " makes one, and it appears here while it trains."),
    el("p.quiet", "Or this is another folder than the one that your runs are in."),
  )

// --- Actions of the user ---

const changed = (page, control) => {
  update(page)
  page.refused = false
  page.seen(control)
}

/** Opens or closes a part of the page; `name` is the key of that part's state in the view. */
const toggled = (page, name, details) => {
  const { view } = page.state
  if (view[name] === details.open) return
  view[name] = details.open
  changed(page)
}

const sortBy = (page, column) => {
  const { sort } = page.state
  const isText = ["name", "state", "env", "algorithm", "commit"].includes(column)
  page.state.sort = { by: column, descending: sort.by === column ? !sort.descending : !isText }
  changed(page)
}

/** Adds a row to the charts or removes it. An added row gets the first free colour. */
const select = (page, key, on) => {
  const chosen = (page.state.chosen ??= new Map(colorsOf(page).places))
  const free = Array.from({ length: mostDrawn }, (_, place) => place).find(
    (place) => ![...chosen.values()].includes(place),
  )
  page.refused = on && free === undefined
  if (!on) chosen.delete(key)
  else if (free !== undefined) chosen.set(key, free)
  changed(page)
}

const expand = (page, key) => {
  if (!page.state.open.delete(key)) page.state.open.add(key)
  changed(page)
}

/** Shows what the address describes, after the address has changed. */
const restore = (page) => {
  const { state, filter, controls } = page
  if (filter.value !== state.filter) filter.value = state.filter
  controls.replaceChildren(viewControls(state.view, (control) => changed(page, control), { several: true }))
  update(page)
}

// --- Contents of the page ---

const keyOf = (item) => item.key ?? item.path

/**
 * Returns the rows that are drawn in the charts, with their colours: the rows that the user has ticked, otherwise the first
 * rows.
 */
const colorsOf = ({ state, items }) => {
  const trained = items.filter(({ kind }) => kind === "run")
  const places = state.chosen ?? new Map(trained.slice(0, mostDrawn).map((item, place) => [keyOf(item), place]))
  return {
    places,
    drawable: trained.length,
    colors: new Map([...places].map(([key, place]) => [key, seriesColor(place)])),
  }
}

const failed = ({ problem }, error) => {
  problem.textContent = error.message
  problem.hidden = false
}

/** Reads the settings if a column or the sort order needs them. */
const readForColumns = (page) => {
  const { columns, sort } = page.state
  if (![...columns, sort.by].some(isSetting) || (hasSettings() && !settingsAreStale())) return
  readSettings().then(
    () => update(page),
    (error) => failed(page, error),
  )
}

/** Shows the newest data of the runs, with the current view and filter. */
const update = (page) => {
  const { state, curves, allMetrics, welcome, controls, search, table } = page
  const all = [...state.runs.values()]
  // Archived runs are left out, unless the user ticks a box or asks for them in the filter.
  const isAsked = state.archived || /\barchived\b/.test(state.filter)
  const runs = isAsked ? all : all.filter(({ archived }) => archived !== true)
  showArchived(page, all)
  const passing = filtered(
    runs,
    state.filter,
    () => update(page),
    (error) => failed(page, error),
  )
  readForColumns(page)
  const shown = sortRuns(passing.runs, state.sort)
  showProblems(page, passing.problems)
  showGrouping(page, runs)
  page.items = state.by === "none" ? shown : groupRuns(shown, state.by, state.sort)
  showCount(page, runs, shown, passing.isWaiting)
  const drawn = colorsOf(page)
  showLimit(page, drawn.drawable)
  showTrainers(page)
  showStudies(page)
  welcome.hidden = all.length > 0
  for (const part of [controls, curves.element, allMetrics, search, table.element]) part.hidden = all.length === 0
  const nothing = passing.isWaiting ? "reading the settings …" : (passing.problems[0] ?? "No run passes the filter.")
  const { sort, open: expanded, columns } = state
  table.show({ items: page.items, sort, colors: drawn.colors, expanded, columns, nothing })
  showDrawn(page, drawn.colors)
}

const showProblems = ({ problem, filter }, problems) => {
  problem.textContent = problems.join("; ")
  problem.hidden = problems.length === 0
  filter.setAttribute("aria-invalid", String(problems.length > 0))
}

/** Shows the ways in which runs can be grouped; each variable of a sweep is one of them. */
const showGrouping = (page, runs) => {
  const { state, grouping } = page
  const options = [...plainGroupings, ...variablesOf(runs).map((variable) => [variable, `variable ${variable}`])]
  if (!options.some(([by]) => by === state.by)) state.by = plainGroupings[0][0]
  if (grouping.dataset.options !== JSON.stringify(options)) {
    grouping.dataset.options = JSON.stringify(options)
    const change = (by) => {
      state.by = by
      state.chosen = undefined
      changed(page)
    }
    grouping.replaceChildren(choice("group by", options, state.by, change))
  }
  grouping.querySelector("select").value = state.by
}

/** Returns a line for each run that passes the filter, also those in groups, with the columns of the table and all digits. */
const rowsOf = ({ items, state }) => {
  const columns = state.columns.map((key) => [key, columnOf(key).of])
  const runs = items.flatMap((item) => item.runs ?? [item])
  return [
    ["path", "title", "name", ...columns.map(([key]) => key)],
    ...runs.map((run) => [run.path, run.title, run.name, ...columns.map(([, of]) => of(run))]),
  ]
}

/** Shows the box for archived runs, if there are any. */
const showArchived = (page, all) => {
  const { state, archived } = page
  const count = all.filter((run) => run.archived === true).length
  const shown = `${count} ${state.archived}`
  if (archived.dataset.shown === shown) return
  archived.dataset.shown = shown
  const change = (isOn) => {
    state.archived = isOn
    changed(page)
  }
  archived.replaceChildren(
    ...(count === 0 ? [] : [toggle(`${number(count)} archived`, state.archived, change, "archived")]),
  )
}

const showCount = ({ count }, runs, shown, isWaiting) => {
  const running = shown.filter((run) => run.state === "running").length
  const of = shown.length === runs.length ? "" : `${number(shown.length)} of `
  count.textContent = `${of}${counted(runs.length, "run")}${running > 0 ? `, ${number(running)} running` : ""}${isWaiting ? ", reading the settings …" : ""}`
}

/** Tells the user that not all rows are drawn, or that no more can be drawn. */
const showLimit = ({ state, full, refused }, drawable) => {
  const some = state.chosen === undefined && drawable > mostDrawn
  const first = some ? `The first ${mostDrawn} of ${number(drawable)} are drawn: untick some to draw others.` : ""
  full.textContent = refused ? `At most ${mostDrawn} are drawn at once: untick one first.` : first
  full.hidden = full.textContent === ""
}

/** Draws the rows that have a colour, which are groups, single runs, and runs inside groups. */
const showDrawn = (page, colors) => {
  const { items, curves } = page
  const selected = items.flatMap((item) => [item, ...(item.runs ?? [])]).filter((item) => colors.has(keyOf(item)))
  const labels = shortLabels(selected)
  const selection = selected.map((item, index) => {
    const runs = (item.runs ?? [item]).map(({ path }) => path)
    return { key: keyOf(item), label: labels[index], color: colors.get(keyOf(item)), kind: item.kind, runs }
  })
  curves.show(selection, reasonForNoCurves(items))
  showComparison(page, selection, selected)
  showMetrics(page, selection)
}

const reasonForNoCurves = (items) => {
  if (items.length === 0) return "no run passes the filter"
  return items.some(({ kind }) => kind === "run") ? "tick rows below to draw them" : "what is here has no curves"
}

/** Shows the tests between the drawn rows, and a link that compares their runs, if there are neither too few nor too many. */
const showComparison = ({ state, comparison, compare }, selection, selected) => {
  comparison.element.open = state.view.tests
  comparison.show(
    selection.flatMap(({ label, kind }, index) =>
      kind === "run" ? [{ label, runs: selected[index].runs ?? [selected[index]] }] : [],
    ),
  )
  const paths = [...new Set(selection.flatMap((item) => item.runs))]
  compare.hidden = paths.length < 2 || paths.length > mostCompared
  compare.textContent = paths.length === 2 ? "compare the two" : `compare the ${paths.length} runs`
  compare.setAttribute("href", compareAddress(paths, state.view))
}

const showMetrics = ({ state, allMetrics, metrics }, selection) => {
  allMetrics.open = state.view.metrics
  if (!state.view.metrics) return
  const trained = selection.filter(({ kind }) => kind === "run")
  metrics.show(trained.map((item) => ({ ...item, runs: item.runs.slice(0, mostMembers) })))
}

/** Shows links to the newest multi-run trainers, whose runs are in the table. */
const showTrainers = ({ state, trainers }) => {
  const newest = [...state.trainers.values()].sort((a, b) => (a.time < b.time ? 1 : -1)).slice(0, mostTrainers)
  const links = newest.map(({ path, name, time, runs }) => [
    " ",
    el("a", { href: trainerAddress(path), title: formatTime(time) }, `${name} (${counted(runs.length, "run")})`),
  ])
  trainers.replaceChildren("Many runs in one trainer:", ...links.flat())
  trainers.hidden = newest.length === 0
}

/** Shows links to the newest studies, whose runs are in the table. */
const showStudies = ({ state, studies }) => {
  const trials = [...state.runs.values()].filter((run) => studyOf(run) !== undefined)
  const newest = [...Map.groupBy(trials, studyOf)].sort(([, [a]], [, [b]]) => (a.time < b.time ? 1 : -1)).slice(0, mostTrainers) // prettier-ignore
  const links = newest.map(([path, runs]) => [
    " ",
    el("a", { href: studyAddress(path), title: formatTime(runs[0].time) }, `${runs[0].name} (${counted(new Set(runs.map(({ population }) => population.trial)).size, "trial")})`), // prettier-ignore
  ])
  studies.replaceChildren("Studies:", ...links.flat())
  studies.hidden = newest.length === 0
}
