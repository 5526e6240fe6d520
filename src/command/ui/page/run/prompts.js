/** Makes the section of a run that learns prompts: its tree of candidates, with their scores and what each has changed. */
import { lineChanges } from "../../../../agents/prompts/changes.ts"
import { el } from "../parts/dom.js"
import { number } from "../parts/format.js"

const signs = { same: " ", removed: "−", added: "+" }

/** Makes the lines of a text that differ from those of its parent. Texts come from models: they are only ever text. */
const changesOf = (name, before, after) => {
  const lines = lineChanges(before ?? "", after)
  if (lines.every(({ kind }) => kind === "same")) return []
  return [
    el("h3", name),
    el(
      "pre.changes",
      lines.map(({ kind, line }) => el(`span.${kind}`, `${signs[kind]} ${line}\n`)),
    ),
  ]
}

const titleOf = ({ parents, mean, low, high, inFront, tasks, foundAfter }, index, best) => {
  const origin = parents.length === 0 ? "the seed" : `from ${parents.join(" and ")}`
  return [
    el("strong", `candidate ${index}${index === best ? " (best)" : ""}`),
    ` ${origin}: ${mean.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}], `,
    `best on ${number(inFront)} of ${number(tasks)} tasks, found after ${number(foundAfter)}`,
  ]
}

/** Makes a candidate and, below it, the candidates that were made from it. A merge is below its first parent. */
const branchOf = (index, report) => {
  const { candidates, best } = report
  const candidate = candidates[index]
  const parent = candidates[candidate.parents[0]]?.texts ?? {}
  const changes = Object.entries(candidate.texts).flatMap(([name, text]) => changesOf(name, parent[name], text))
  const children = candidates.flatMap(({ parents }, child) => (parents[0] === index ? [child] : []))
  return el(
    "li",
    el("details", { open: index === best && index > 0 }, el("summary", titleOf(candidate, index, best)), changes),
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
      const { iterations, metricCalls, candidates, left } = prompts
      const about = `${number(iterations)} iterations, ${number(metricCalls)} played tasks`
      const more = left === 0 ? "" : `; ${number(left)} more candidates are in candidates.json`
      place.replaceChildren(
        el("p.quiet", `${about}${more}`),
        candidates.length > 0 && el("ul.tree", branchOf(0, prompts)),
      )
    },
  }
}
