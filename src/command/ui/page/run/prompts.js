/** Makes the section of a run that learns prompts: its tree of candidates, with their scores and what each has changed. */
import { textChanges } from "../../../../agents/prompts/changes.ts"
import { el, tableOf } from "../parts/dom.js"
import { number } from "../parts/format.js"

const signs = { same: " ", removed: "−", added: "+" }

/** The number of lines that are shown of one candidate. More would hang the tab. */
const mostLines = 5000

/** Makes the texts that differ from those of the parent. Texts come from models: they are only ever text. */
const changesOf = (before, after) => {
  let left = mostLines
  const texts = textChanges(before, after).map(({ name, lines }) => {
    const shown = lines.slice(0, left)
    left -= shown.length
    const elements = shown.map(({ kind, line }) => el(`span.${kind}`, `${signs[kind]} ${line}\n`))
    return { hidden: lines.length - shown.length, elements: shown.length === 0 ? [] : [el("h3", name), el("pre.changes", elements)] } // prettier-ignore
  })
  const hidden = texts.reduce((sum, text) => sum + text.hidden, 0)
  return [
    ...texts.flatMap(({ elements }) => elements),
    hidden > 0 && el("p.quiet", `${number(hidden)} more lines are in candidates.json`),
  ]
}

/** Makes a part that draws its changes when it is first opened, because a run may have hundreds of candidates. */
const foldOf = (isOpen, title, changes) => {
  const details = el("details", { open: isOpen }, el("summary", title), isOpen && changes())
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(...changes().filter(Boolean))
  })
  return details
}

const interval = ({ mean, low, high }) => `${mean.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}]`

/** Makes the table that compares the best candidate with the seed. A run that is not finished has none. */
const comparisonTable = (comparisons) => {
  const caption = "The best candidate and the seed, with intervals"
  const headings = ["tasks", "seed", "best candidate", "difference"]
  const row = ({ set, tasks, seed, best, difference }) =>
    el(
      "tr",
      el("th", { scope: "row" }, `${number(tasks)} ${set} tasks`),
      el("td.number", interval(seed)),
      el("td.number", interval(best)),
      el("td.number", `${difference.mean > 0 ? "+" : ""}${interval(difference)}`),
    )
  return tableOf(
    caption,
    el("caption.quiet", caption),
    el("thead", el("tr", headings.map((heading, at) => el("th", { scope: "col", class: at === 0 ? "" : "number" }, heading)))), // prettier-ignore
    el("tbody", comparisons.map(row)),
  )
}

/** Returns the indices of a candidate and of all from which it descends. The candidate may be one that is not shown. */
const descentOf = (candidates, index) => {
  const found = new Set()
  const open = [index]
  while (open.length > 0) {
    const next = open.pop()
    if (found.has(next)) continue
    found.add(next)
    open.push(...(candidates[next]?.parents ?? []))
  }
  return found
}

/** Makes the line about a candidate. The names of those from which the best one descends are bold. */
const titleOf = (candidate, index, { best, descent }) => {
  const { parents, inFront, tasks, foundAfter } = candidate
  const origin = parents.length === 0 ? "the seed" : `from ${parents.join(" and ")}`
  return [
    el(descent.has(index) ? "strong" : "span", `candidate ${index}${index === best ? " (best)" : ""}`),
    ` ${origin}: ${interval(candidate)}, `,
    `best on ${number(inFront)} of ${number(tasks)} tasks, found after ${number(foundAfter)}`,
  ]
}

/** Makes a candidate and, below it, the candidates that were made from it. A merge is below its first parent. */
const branchOf = (index, report) => {
  const { candidates, best } = report
  const candidate = candidates[index]
  const parent = candidates[candidate.parents[0]]?.texts ?? {}
  const changes = () => changesOf(parent, candidate.texts)
  const children = candidates.flatMap(({ parents }, child) => (parents[0] === index ? [child] : []))
  return el(
    "li",
    foldOf(index === best && index > 0, titleOf(candidate, index, report), changes),
    children.length > 0 && el("ul", children.map((child) => branchOf(child, report))), // prettier-ignore
  )
}

export const makePrompts = () => {
  const place = el("div")
  const element = el("section.card.prompts", { hidden: true }, el("h2", "Candidates"), place)
  let drawn
  return {
    element,
    show: ({ prompts }) => {
      element.hidden = prompts === null || prompts === undefined
      const now = JSON.stringify(prompts)
      if (element.hidden || now === drawn) return
      drawn = now
      const { best, iterations, metricCalls, comparisons, candidates, left } = prompts
      const about = `${number(iterations)} iterations, ${number(metricCalls)} played tasks`
      const more = left === 0 ? "" : `; ${number(left)} more candidates are in candidates.json`
      place.replaceChildren(
        el("p.quiet", `${about}${more}`),
        ...(comparisons.length === 0 ? [] : [comparisonTable(comparisons)]),
        ...(candidates.length === 0 ? [] : [el("ul.tree", branchOf(0, { ...prompts, descent: descentOf(candidates, best) }))]), // prettier-ignore
      )
    },
  }
}
