/** Makes the section of a run's page with the table of its validations, the newest first. */
import { el } from "../parts/dom.js"
import { number } from "../parts/format.js"

const headings = ["step", "mean return", "±", "episodes", "length", "terminated"]

const row = (cell, values) => el("tr", values.map((value) => el(cell, { class: "number" }, value))) // prettier-ignore

const cellsOf = (line) => [
  number(line.step),
  number(line.mean),
  number(line.std),
  number(line.episodes),
  number(line.length),
  line.terminated === null ? "–" : `${Math.round(100 * line.terminated)} %`,
]

export const makeValidations = () => {
  const body = el("tbody")
  const table = el("table", el("thead", row("th", headings)), body)
  const scroll = el("div.scroll", { tabindex: "0", role: "group", "aria-label": "Validations" }, table)
  const nothing = el("p.quiet")
  return {
    element: el("section.card", el("h2", "Validations"), scroll, nothing),
    show: ({ summary, validations }) => {
      scroll.hidden = validations.length === 0
      nothing.hidden = validations.length > 0
      nothing.textContent = summary.state === "running" ? "None so far." : "There are none."
      body.replaceChildren(...validations.toReversed().map((line) => row("td", cellsOf(line))))
    },
  }
}
