/** Shows the terms of a body's reward as numbers with bars, and finds what a recorded state has of a body. */
import { el } from "../parts/dom.js"
import { shownTerms } from "./trajectories.js"

/** Makes an empty list, which is hidden until there are terms. */
export const makeTerms = () => {
  const list = el("dl.terms", { hidden: true })
  const rows = new Map()
  /** The largest term so far, which has a whole bar. */
  let largest = 0
  const rowOf = (name) => {
    const row = { value: el("span"), bar: el("i", { "aria-hidden": "true" }) }
    list.append(el("div", el("dt", name), el("dd", row.value, row.bar)))
    rows.set(name, row)
    return row
  }
  return {
    element: list,
    /** Shows these terms; hides the list if there are none. */
    show: (terms = {}) => {
      const entries = shownTerms(terms)
      list.hidden = entries.length === 0
      if (entries.some(([name]) => !rows.has(name))) {
        list.replaceChildren()
        rows.clear()
        largest = 0
      }
      for (const [, value] of entries) largest = Math.max(largest, Math.abs(value))
      for (const [name, value] of entries) {
        const { value: text, bar } = rows.get(name) ?? rowOf(name)
        const shown = value.toFixed(2)
        text.textContent = Number(shown) === 0 ? "0.00" : shown.replace("-", "−")
        bar.className = value < 0 ? "minus" : "plus"
        bar.style.width = `${largest === 0 ? 0 : (50 * Math.abs(value)) / largest}%`
      }
    },
  }
}

/** Returns the state of a body, which is within the states of wrappers; undefined if the env has no body. */
export const bodyIn = (state) => {
  let inner = state
  for (let depth = 0; depth < 20 && typeof inner === "object" && inner !== null; depth++) {
    if (Array.isArray(inner.forces) && typeof inner.terms === "object" && inner.terms !== null) return inner
    inner = inner.inner
  }
  return undefined
}
