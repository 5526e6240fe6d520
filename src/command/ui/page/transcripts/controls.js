/** Makes the controls above the list of episodes: the search, the phase, bounds of returns and advantages, and the order. */
import { choice, el, toggle } from "../parts/dom.js"
import { number } from "../parts/format.js"
import { makeLegend } from "./tokens.js"

const orders = [
  ["oldest", "oldest first"],
  ["newest", "newest first"],
  ["lowest", "lowest return first"],
  ["highest", "highest return first"],
]
const advantageOrders = [
  ["lowestAdvantage", "lowest advantage first"],
  ["highestAdvantage", "highest advantage first"],
]

const boundLabels = [
  ["least", "return from"],
  ["most", "to"],
  ["leastAdvantage", "advantage from"],
  ["mostAdvantage", "to"],
]

/**
 * Makes the controls of `state.transcripts`. They call `changed` with the condition that the user has changed; for a text
 * field, also with the field's name. `draw` shows the conditions that belong to a part of the list.
 */
export const makeControls = (state, changed) => {
  const search = el("input.find", {
    type: "search",
    placeholder: "a word, a name, a number",
    oninput: () => changed({ text: search.value }, "text"),
  })
  const bounds = boundLabels.map(([name, label]) => makeBound(name, label, changed))
  const [phases, order, failed, legend] = Array.from({ length: 4 }, () => el("div.slot"))
  const element = el(
    "div.controls",
    el("label.field.grow", el("span", "find in what was said and seen"), search),
    phases,
    ...bounds.map(({ label }) => label),
    order,
    failed,
  )
  let drawn
  const draw = ({ groups, largest }) => {
    const conditions = state.transcripts
    const hasAdvantages = (largest ?? null) !== null
    setUnlessFocused(search, conditions.text)
    for (const { name, field, label } of bounds) {
      setUnlessFocused(field, conditions[name])
      if (name.endsWith("Advantage")) label.hidden = !hasAdvantages
    }
    const now = JSON.stringify([groups, conditions.phase, conditions.order, conditions.failed, largest])
    if (now === drawn) return
    drawn = now
    phases.replaceChildren(phaseChoice(groups, conditions.phase, (phase) => changed({ phase })))
    const choices = hasAdvantages ? [...orders, ...advantageOrders] : orders
    order.replaceChildren(choice("order", choices, conditions.order, (value) => changed({ order: value })))
    legend.replaceChildren(hasAdvantages ? makeLegend(largest, "episode") : "")
    failed.replaceChildren(toggle("failed only", conditions.failed, (value) => changed({ failed: value })))
  }
  return { element, legend, search, draw }
}

/** Makes the field of a bound, such as the lowest return. It ignores texts that are not numbers. */
const makeBound = (name, label, changed) => {
  const field = el("input.bound", {
    type: "number",
    step: "any",
    oninput: () => field.validity.valid && changed({ [name]: field.value }, name),
  })
  return { name, field, label: el("label.field", el("span", label), field) }
}

const setUnlessFocused = (field, value) => {
  if (document.activeElement !== field) field.value = value
}

/** Makes the choice of a phase; returns an empty text if the run has only one. */
const phaseChoice = (groups, phase, chosen) => {
  const options = phaseOptions(groups ?? [])
  if (!options.some(([value]) => value === phase)) options.push([phase, phase])
  return options.length > 2 || phase !== "" ? choice("phase", options, phase, chosen) : ""
}

const phaseOptions = (groups) => {
  const withCount = (text, episodes) => `${text} (${number(episodes)})`
  const sum = (some) => some.reduce((total, { episodes }) => total + episodes, 0)
  const validations = groups.filter(({ seen }) => seen !== null)
  return [
    ["", withCount("all", sum(groups))],
    ...groups.filter(({ seen }) => seen === null).map(({ name, episodes }) => [name, withCount(names[name] ?? name, episodes)]), // prettier-ignore
    // All episodes of an evaluation are validations, so the choice “all” is enough.
    ...(validations.length > 1 && validations.some(({ contestant }) => contestant === null) ? [["validation", withCount("all validations", sum(validations))]] : []), // prettier-ignore
    ...validations.map(({ name, seen, contestant, episodes }) => [name, withCount(contestant ?? `validation after ${seen}`, episodes)]), // prettier-ignore
  ]
}

const names = { train: "training" }
