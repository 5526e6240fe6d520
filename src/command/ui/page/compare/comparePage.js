/** Makes the page that compares runs: their results, differing settings, curves and metrics. */
import { overviewAddress, runAddress } from "../address.js"
import { diffOfRuns, leaves } from "../../../../run/find/diff.ts"
import { makeMetrics } from "../parts/metrics.js"
import { el, seriesColor, swatch, tableOf } from "../parts/dom.js"
import { counted, duration, number, time } from "../parts/format.js"
import { badge, seededTitle, shortLabels } from "../parts/runTexts.js"
import { viewControls } from "../parts/viewControls.js"
import { makeCurves } from "../runs/curves.js"
import { changeSettings, readSettings, valuesOf } from "../runs/settings.js"

/** Makes the page of the runs with these paths, side by side. It calls `seen` after the user has changed what is shown. */
export const makeComparePage = (state, seen, paths) => {
  const back = el("a.back", "← all runs")
  const problem = el("p.problem", { role: "alert" })
  const controls = el("div")
  const curves = makeCurves(state)
  const failed = (error) => (problem.textContent = error.message)
  const metrics = makeMetrics(state.view, seen, failed)
  const results = el("div")
  const settings = el("div", el("p.quiet", "reading …"))
  const body = el("div", el("section.card", el("h2", "Results"), results), el("section.card", el("h2", "Settings that differ"), settings), controls, curves.element, el("section.card", el("h2", "Metrics"), metrics.element)) // prettier-ignore
  const element = el(
    "article.compare",
    back,
    el("h1", `${paths.length === 2 ? "Two" : number(paths.length)} runs side by side`),
    problem,
    body,
  )
  let isClosed = false

  const runs = () => paths.flatMap((path) => state.runs.get(path) ?? [])

  const items = () => {
    const labels = shortLabels(runs())
    return runs().map((run, place) => {
      const isSame = labels.some((label, other) => other !== place && label === labels[place])
      const label = isSame ? `${labels[place]} (${placeText(place, labels.length)})` : labels[place]
      return { key: run.path, label, color: colorAt(place), kind: run.kind, runs: [run.path] }
    })
  }

  const draw = () => {
    back.setAttribute("href", overviewAddress(state))
    const missing = paths.filter((path) => !state.runs.has(path))
    body.hidden = missing.length > 0
    problem.textContent = missing.map((path) => `There is no run “${path}” here.`).join(" ")
    if (missing.length > 0) return
    results.replaceChildren(resultsTable(runs()))
    curves.show(items(), "nothing measured so far")
    metrics.show(items())
  }

  const drawSettings = async () => {
    if (runs().length < paths.length) return
    try {
      await readSettings()
      const configs = runs().map((run) => valuesOf(run).config)
      if (!isClosed && configs.length === paths.length) settings.replaceChildren(...settingsTable(runs(), configs))
    } catch (error) {
      failed(error)
    }
  }

  const restore = () => {
    const changed = (control) => {
      draw()
      seen(control)
    }
    controls.replaceChildren(viewControls(state.view, changed, { several: false }))
    draw()
  }

  return {
    element,
    restore,
    draw,
    update: () => {
      restore()
      void drawSettings()
    },
    changed: (changedPaths) => {
      if (!paths.some((path) => changedPaths.has(path))) return
      changeSettings(runs())
      draw()
      curves.stale(changedPaths)
      metrics.stale(changedPaths)
      void drawSettings()
    },
    close: () => void (isClosed = true),
  }
}

/** The number of colours; with more runs, they repeat. */
const colors = 8
const colorAt = (place) => seriesColor(place % colors)

/** Names the column of a run whose label is that of another run, too. */
const placeText = (place, count) => (count === 2 ? ["left", "right"][place] : `column ${place + 1}`)

const facts = [
  ["state", (run) => badge(run)],
  ["environment", (run) => run.env || "–"],
  ["algorithm", (run) => run.algorithm || "–"],
  ["score", (run) => `${number(run.score)}${run.scoreStd === null ? "" : ` ± ${number(run.scoreStd)}`}`],
  ["best", (run) => number(run.best)],
  ["steps", (run) => number(run.steps)],
  ["episodes", (run) => number(run.episodes)],
  ["took", (run) => duration(run.seconds)],
  ["started", (run) => time(run.time) || "–"],
  ["commit", (run) => run.commit || "–"],
]

const headOf = (runs) =>
  el(
    "thead",
    el(
      "tr",
      el("td"),
      runs.map((run, place) =>
        el(
          "th",
          { scope: "col" },
          swatch(colorAt(place)),
          " ",
          el("a", { href: runAddress(run.path) }, seededTitle(run)),
        ),
      ),
    ),
  )

const rowOf = (name, cells) =>
  el("tr", el("th", { scope: "row" }, name), cells.map((cell) => el("td.wrap", cell))) // prettier-ignore

const resultsTable = (runs) =>
  tableOf("Results", headOf(runs), el("tbody", facts.map(([name, of]) => rowOf(name, runs.map(of))))) // prettier-ignore

const settingsTable = (runs, configs) => {
  const { differences, alike } = differencesOf(configs)
  const note = el("p.quiet", `${counted(alike, "setting")} ${alike === 1 ? "is" : "are"} the same.`)
  if (differences.length === 0) return [note]
  const rows = differences.map(({ key, values }) => rowOf(key, values.map(textOf)))
  return [tableOf("Settings that differ", headOf(runs), el("tbody", rows)), note]
}

/**
 * Returns the keys that differ between the first config and any other, with the value in each config (undefined if it lacks the
 * key), and the number of keys that are the same in all.
 */
const differencesOf = (configs) => {
  const [first, ...others] = configs
  /** The values of each key that differs somewhere, by the places of the configs that are known to have one. */
  const rows = new Map()
  const own = leaves(first)
  for (const [index, other] of others.entries()) {
    for (const one of diffOfRuns(first, other)) {
      const values = rows.get(one.key) ?? new Map()
      rows.set(one.key, values)
      if ("left" in one) values.set(0, one.left)
      values.set(index + 1, "right" in one ? one.right : undefined)
    }
  }
  const valueAt = (values, place) => (values.has(place) ? values.get(place) : values.get(0))
  const differences = Array.from(rows, ([key, values]) => ({
    key,
    values: configs.map((_, place) => valueAt(values, place)),
  }))
  const shared = [...own.keys()].filter((key) => others.every((other) => leaves(other).has(key)))
  return { differences, alike: shared.filter((key) => !rows.has(key)).length }
}

/** Formats the value that one of the runs has for a setting as YAML on one line. A run may lack the setting. */
const textOf = (value) => {
  if (value === undefined) return el("span.quiet", "not set")
  return typeof value === "string" ? value : JSON.stringify(value)
}
