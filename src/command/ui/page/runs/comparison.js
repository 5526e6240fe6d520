/**
 * Makes the section of the overview that tests whether the difference between the drawn rows is more than chance, in the same
 * way as `effect runs compare`. Each row is compared with the first one, by the scores of its runs in each env.
 */
import { compareAlgorithms } from "../../../../base/statistics/unpaired.ts"
import { envOf } from "../../grouping.ts"
import { el, tableOf } from "../parts/dom.js"
import { number, signed } from "../parts/format.js"

const headings = [["compared"], ["environment"], ["runs", true], ["IQM", true], ["difference", true], ["95 %", true], ["improves", true], ["95 %", true], ["p", true]] // prettier-ignore

const between = ({ low, high }, text) => (low === null ? "–" : `${text(low)} to ${text(high)}`)
const percent = (share) => `${Math.round(100 * share)} %`
const chance = (p) => (p === null ? "–" : p < 0.0001 ? "<0.0001" : String(Number(p.toPrecision(3))))

/** Returns the scores of runs by their envs. A run without a score is left out. */
const scoresOf = (runs) => {
  const scored = runs.filter(({ score }) => score !== null)
  const groups = Map.groupBy(scored, (run) => envOf(run))
  return new Map([...groups].map(([env, some]) => [env, some.map(({ score }) => score)]))
}

const rowOf = (name, one, environment) =>
  el(
    "tr",
    el("th", { scope: "row" }, name),
    el("td", environment || "–"),
    [
      `${one.rightRuns} and ${one.leftRuns}`,
      `${number(one.right)} and ${number(one.left)}`,
      signed(one.difference.value),
      between(one.difference, number),
      percent(one.improvement.value),
      between(one.improvement, percent),
      chance(one.p),
    ].map((text) => el("td.number", text)),
  )

/** Makes the rows of the table for an item that is compared with the first one. */
const rowsOf = (first, other) => {
  const name = `${other.label} − ${first.label}`
  const comparison = compareAlgorithms(scoresOf(first.runs), scoresOf(other.runs))
  if (comparison === null) return [el("tr", el("th", { scope: "row" }, name), el("td.quiet", { colspan: "8" }, "no env has scores of both"))] // prettier-ignore
  const { environments, overall } = comparison
  return [
    ...environments.map((one) => rowOf(name, one, one.environment)),
    ...(overall === null ? [] : [rowOf(name, overall, "all of them, scores from 0 to 1")]),
  ]
}

const hint =
  "The score of a run is the mean return of its last validation. IQM: the interquartile mean of the runs' scores. Improves: how " +
  "often a run of the first row that is named scores higher than a run of the second. p: the chance of so large a difference if there is none, by a " +
  "permutation test. With a single run on a side there is no interval and no p."

/** Makes the section. `toggled` is called after the user has opened or closed it. */
export const makeComparison = (toggled) => {
  const place = el("div")
  const element = el(
    "details.card.comparison",
    { hidden: true, ontoggle: () => toggled() },
    el("summary", "Compare the rows that are drawn: differences, intervals, p-values"),
    place,
    el("p.quiet.hint", hint),
  )
  let shown
  return {
    element,
    /** Compares items `{ label, runs }`, where `runs` are summaries. */
    show: (items) => {
      element.hidden = items.length < 2
      if (element.hidden || !element.open) return
      const now = JSON.stringify(items.map(({ label, runs }) => [label, runs.map(({ path, env, score }) => [path, env, score])])) // prettier-ignore
      if (now === shown) return
      shown = now
      const [first, ...others] = items
      const head = el("tr", headings.map(([text, isNumber]) => el("th", { scope: "col", class: isNumber ? "number" : "" }, text))) // prettier-ignore
      place.replaceChildren(tableOf("Comparison", el("thead", head), el("tbody", others.flatMap((other) => rowsOf(first, other))))) // prettier-ignore
    },
  }
}
