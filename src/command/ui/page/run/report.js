/** Makes the section of an evaluation's page with its report: scores, costs and comparisons of the agents. */
import { changeTexts, scorerText } from "../../../../agents/evaluate/report/direction.ts"
import { el, tableOf } from "../parts/dom.js"
import { number } from "../parts/format.js"

const figure = (value) => {
  const size = Math.abs(value)
  return size >= 100 ? value.toFixed(1) : value.toFixed(size >= 10 ? 2 : 3)
}
const between = ({ low, high }) => `${figure(low)} to ${figure(high)}`

/** The texts for scores that combine several episodes of a task, by the name of the rule that combines them. */
const triesText = {
  pass: (at) => `pass@${at}`,
  best: (at) => `best of ${at}`,
  majority: (at) => `majority of ${at}`,
}

/** Makes a table. A heading that begins with `#` marks a column of numbers; the `#` is not shown. */
const reportTable = (caption, headings, bodies) =>
  tableOf(
    caption,
    el("caption.quiet", caption),
    el("thead", el("tr", headings.map((heading) => el("th", { scope: "col", class: heading.startsWith("#") ? "number" : "" }, heading.replace("#", ""))))), // prettier-ignore
    bodies,
  )
const cells = (texts, numbers) => [
  ...texts.map((text) => el("td", text)),
  ...numbers.map((text) => el("td.number", text)),
]

const scoresOf = ({ agent, scores, tries, by }) => {
  const lines = [
    ...scores.map((one) => [one.scorer, one]),
    ...tries.map((one) => [triesText[one.reducer](one.at), one]),
    ...by.map((one) => [`${one.key}=${one.value}`, one]),
  ]
  const name = el("th", { scope: "rowgroup", rowspan: String(Math.max(1, lines.length)) }, agent)
  if (lines.length === 0) return el("tbody", el("tr", name, el("td", { colspan: "4" }, "nothing was scored")))
  const row = ([score, one], place) =>
    el("tr", place === 0 && name, cells([score], [figure(one.mean), between(one), number(one.tasks)]))
  return el("tbody", lines.map(row))
}

const costsOf = ({ agent, episodes, failed, calls, inputTokens, outputTokens, cost }) =>
  el(
    "tr",
    el("th", { scope: "row" }, agent),
    cells([], [episodes, failed, calls, inputTokens, outputTokens, cost].map(number)),
  )

const comparisonOf = (one) =>
  el(
    "tr",
    el("th", { scope: "row" }, `${one.right} − ${one.left}`),
    cells(
      [scorerText(one)],
      [
        `${one.difference > 0 ? "+" : ""}${figure(one.difference)}`,
        between(one),
        ...changeTexts(one),
        number(one.tasks),
        one.p < 0.0001 ? "<0.0001" : String(Number(one.p.toPrecision(3))),
      ],
    ),
    el("td", one.test === "mcnemar" ? "McNemar" : "permutation"),
  )

const agreementsOf = ({ agent, agreement }) =>
  agreement.map((one) =>
    el(
      "tr",
      el("th", { scope: "row" }, `${one.scorer} and ${one.label}`),
      cells(
        [agent],
        [
          figure(one.agreement),
          one.kappa === null ? "–" : figure(one.kappa),
          one.low === null ? "–" : between(one),
          number(one.pairs),
          number(one.items),
        ],
      ),
    ),
  )

const tablesOf = ({ agents, comparisons, confidence }) => {
  const percent = `#${Number((confidence * 100).toPrecision(4))} %`
  const costHeadings = ["agent", "#episodes", "#failed", "#calls", "#input tokens", "#output tokens", "#cost"]
  const agreements = agents.flatMap(agreementsOf)
  const agreed = ["judge and label", "agent", "#agreement", "#kappa", percent, "#answers", "#tasks"]
  const compared = ["compared", "score", "#difference", percent, "#better", "#worse", "#tasks", "#p", "by"]
  return [
    reportTable("How well they did", ["agent", "score", "#mean", percent, "#tasks"], agents.map(scoresOf)),
    comparisons.length > 0 && reportTable("Task by task", compared, el("tbody", comparisons.map(comparisonOf))),
    agreements.length > 0 && reportTable("Judges and labels", agreed, el("tbody", agreements)),
    reportTable("What it took", costHeadings, el("tbody", agents.map(costsOf))),
  ].filter(Boolean)
}

export const makeReport = () => {
  const place = el("div")
  const element = el("section.card.report", { hidden: true }, el("h2", "Report"), place)
  let drawn
  return {
    element,
    show: ({ summary, report }) => {
      element.hidden = summary.kind !== "evaluation"
      const now = JSON.stringify([summary.state, report])
      if (element.hidden || now === drawn) return
      drawn = now
      const nothing = summary.state === "finished" ? "There is none." : "It comes when all episodes are played."
      place.replaceChildren(...(report === null ? [el("p.quiet", nothing)] : tablesOf(report)))
    },
  }
}
