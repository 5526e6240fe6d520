/** The first page: what to show, its curves, and the table. */
import { makeCurves, viewControls } from "./curves.js"
import { choice, el } from "./dom.js"
import { groupRuns, matches, plainGroupings, sortRuns, variablesOf } from "./groups.js"
import { makeTable, variables } from "./table.js"

/** As many as there are colours. */
const mostDrawn = 8

/** What is selected of itself: the first few. */
const drawnAtFirst = 5

const colorOf = (place) =>
  getComputedStyle(document.documentElement)
    .getPropertyValue(`--series-${place + 1}`)
    .trim()

export const makeOverview = (state) => {
  const curves = makeCurves(state.view)
  /** Key → place among the colours; undefined until somebody chooses. */
  let chosen
  const expanded = new Set()
  let items = []

  const filter = el("input", {
    type: "search",
    id: "filter",
    placeholder: "ppo cartpole state=running seed=1",
    value: state.filter,
    oninput: () => {
      state.filter = filter.value
      update()
    },
  })
  const grouping = el("div", { class: "slot" })
  const count = el("p", { class: "quiet count", role: "status" })
  const full = el("p", { class: "quiet", role: "status" })

  const table = makeTable({
    sortBy: (column) => {
      const same = state.sort.by === column
      state.sort = { by: column, descending: same ? !state.sort.descending : column !== "name" && column !== "state" }
      update()
    },
    select: (key, on) => {
      chosen ??= new Map(colors().places)
      const free = Array.from({ length: mostDrawn }, (_, place) => place).find(
        (place) => ![...chosen.values()].includes(place),
      )
      full.textContent = on && free === undefined ? `At most ${mostDrawn} are drawn at once.` : ""
      if (!on) chosen.delete(key)
      else if (free !== undefined) chosen.set(key, free)
      update()
    },
    expand: (key) => {
      if (!expanded.delete(key)) expanded.add(key)
      update()
    },
  })

  /** Runs in open groups can be drawn too. */
  const drawable = () =>
    items.flatMap((item) =>
      item.runs === undefined
        ? [{ key: item.path, label: labelOf(item), runs: [item.path] }]
        : [
            { key: item.key, label: item.label, runs: item.runs.map(({ path }) => path) },
            ...item.runs.map((run) => ({ key: run.path, label: labelOf(run), runs: [run.path] })),
          ],
    )

  const colors = () => {
    const keyOf = (item) => (item.runs === undefined ? item.path : item.key)
    const places = chosen ?? new Map(items.slice(0, drawnAtFirst).map((item, place) => [keyOf(item), place]))
    return { places, colors: new Map([...places].map(([key, place]) => [key, colorOf(place)])) }
  }

  const update = () => {
    const runs = [...state.runs.values()]
    const shown = sortRuns(
      runs.filter((run) => matches(run, state.filter)),
      state.sort,
    )
    const options = [...plainGroupings, ...variablesOf(runs).map((variable) => [variable, `variable ${variable}`])]
    const known = grouping.dataset.options
    if (known !== JSON.stringify(options)) {
      grouping.dataset.options = JSON.stringify(options)
      const change = (by) => {
        state.by = by
        chosen = undefined
        update()
      }
      grouping.replaceChildren(choice("group by", options, state.by, change))
    }
    items = state.by === "none" ? shown : groupRuns(shown, state.by, state.sort)
    const running = shown.filter((run) => run.state === "running").length
    const of = shown.length === runs.length ? `${runs.length}` : `${shown.length} of ${runs.length}`
    count.textContent = `${of} ${runs.length === 1 ? "run" : "runs"}${running > 0 ? `, ${running} running` : ""}`
    const drawn = colors()
    const nothing = runs.length === 0 ? "No run here yet: `effect run FILE` makes one." : "No run is like that."
    table.show({ items, sort: state.sort, colors: drawn.colors, expanded, nothing })
    const selected = drawable().flatMap((item) => {
      const color = drawn.colors.get(item.key)
      return color === undefined ? [] : [{ ...item, color }]
    })
    curves.show(selected, state)
  }

  const dark = matchMedia("(prefers-color-scheme: dark)")
  dark.addEventListener("change", update)
  const element = el(
    "div",
    { class: "overview" },
    el("h1", { class: "hidden" }, "Runs"),
    viewControls(state.view, () => update(), { several: true }),
    curves.element,
    el(
      "div",
      { class: "controls", role: "search" },
      el("label", { class: "field grow" }, el("span", {}, "filter"), filter),
      grouping,
      count,
    ),
    full,
    table.element,
  )
  return {
    element,
    update,
    changed: (paths) => {
      update()
      curves.stale(paths)
    },
    close: () => dark.removeEventListener("change", update),
  }
}

const labelOf = (run) =>
  [run.name, variables(run), run.seed === null ? "" : `seed ${run.seed}`].filter(Boolean).join(" ")
