/** Defines the columns of the table of runs: the built-in columns, and any setting or result as a column of its own. */
import { el, toggle } from "../parts/dom.js"
import { duration, number, time } from "../parts/format.js"
import { badge, tagList } from "../parts/runTexts.js"
import { readSettings, settingKeys, settingOf } from "./settings.js"

const score = (item) => [
  number(item.score),
  item.scoreStd === null ? "" : el("span.quiet", ` ± ${number(item.scoreStd)}`),
]

/**
 * The built-in columns. `of` returns the value by which a column is sorted, and `cell` returns the content that it shows.
 * `kind` contains the CSS classes of its cells; columns of the class `wide` are hidden on narrow screens.
 */
const builtIn = {
  state: { text: "state", kind: "state", of: (run) => run.state, cell: (item) => badge(item) },
  seed: { text: "seed", kind: "number wide", of: (run) => run.seed, cell: ({ seed }) => (seed === null ? "" : String(seed)) }, // prettier-ignore
  steps: { text: "steps", kind: "number", of: (run) => run.steps, cell: (item) => number(item.steps) },
  episodes: { text: "episodes", kind: "number wide", of: (run) => run.episodes, cell: (item) => number(item.episodes) },
  score: { text: "score", kind: "number", of: (run) => run.score, cell: score },
  best: { text: "best", kind: "number wide", of: (run) => run.best, cell: (item) => number(item.best) },
  seconds: { text: "took", kind: "number wide", of: (run) => run.seconds, cell: (item) => duration(item.seconds) },
  time: { text: "started", kind: "wide", of: (run) => run.time, cell: (item) => time(item.time) },
  env: { text: "environment", kind: "wide", of: (run) => run.env, cell: ({ env }) => env },
  algorithm: { text: "algorithm", kind: "wide", of: (run) => run.algorithm, cell: ({ algorithm }) => algorithm },
  tags: { text: "tags", kind: "wide", of: ({ tags = [] }) => tags.join(" "), cell: ({ tags = [] }) => tagList(tags) },
  commit: { text: "commit", kind: "wide", of: (run) => run.commit, cell: ({ commit }) => commit },
}

export const firstColumns = ["state", "seed", "steps", "episodes", "score", "best", "seconds", "time"]

const byName = { text: "run", kind: "name", of: (run) => `${run.name} ${Object.values(run.population).join(" ")}` }

/** Returns the value of a setting in a run. For a group, returns the value that all of its runs have, or `several`. */
const valueOf = (item, key) => {
  if (item.runs === undefined) return settingOf(item, key)
  const values = new Set(item.runs.map((run) => settingOf(run, key)))
  return values.size === 1 ? [...values][0] : several
}
const several = "several"

const settingColumn = (key) => ({
  text: key,
  kind: "setting",
  of: (item) => valueOf(item, key),
  cell: (item) => {
    const value = valueOf(item, key)
    if (value === undefined) return "–"
    if (value === several && item.runs !== undefined) return el("span.quiet", several)
    return Number.isInteger(value) ? number(value) : String(value)
  },
})

/** The columns that `columnOf` has made for settings, by key. */
const settings = new Map()

/** Returns a column by its key, which is `name`, the key of a built-in column, or the key of a setting. */
export const columnOf = (key) => {
  if (key === "name") return byName
  if (Object.hasOwn(builtIn, key)) return builtIn[key]
  if (!settings.has(key)) settings.set(key, settingColumn(key))
  return settings.get(key)
}

/** Tells whether a column shows a value that the summaries of runs lack, so that their settings must be read. */
export const isSetting = (key) => key !== "name" && !Object.hasOwn(builtIn, key)

/** The largest number of columns in the chooser's list; the user finds the others by searching. */
const mostChoices = 60

/** Makes the control that chooses columns. It changes `state.columns` and then calls `changed`. */
export const makeColumnChooser = (state, changed) => {
  const list = el("div.choices", { role: "group", "aria-label": "Columns" })
  const search = el("input.findColumn", {
    type: "search",
    placeholder: "learning_rate …",
    "aria-label": "Find a column",
    spellcheck: "false",
    oninput: () => fill(),
  })
  const note = el("p.quiet.hint")
  const element = el(
    "details.chooser",
    { ontoggle: () => void (element.open && open()) },
    el("summary.button", "columns"),
    el("div.card.popover", search, list, note),
  )
  const open = () => {
    note.textContent = "reading the settings …"
    fill()
    readSettings().then(fill, (error) => (note.textContent = error.message))
  }
  const choose = (key) => (isChosen) => {
    // A column that the user adds becomes the last one.
    state.columns = isChosen ? [...state.columns, key] : state.columns.filter((one) => one !== key)
    changed()
  }
  const fill = () => {
    const words = search.value.toLowerCase().split(/\s+/)
    const all = [...new Set([...Object.keys(builtIn), ...state.columns, ...settingKeys([...state.runs.values()])])]
    const matching = all.filter((key) => words.every((word) => `${key} ${columnOf(key).text}`.toLowerCase().includes(word))) // prettier-ignore
    const shown = matching.slice(0, mostChoices)
    list.replaceChildren(
      ...shown.map((key) => toggle(columnOf(key).text, state.columns.includes(key), choose(key), `choice-${key}`)),
    )
    note.textContent =
      shown.length < matching.length ? `${number(matching.length - shown.length)} more can be found by name.` : ""
  }
  return element
}
