/** Makes the list of the trainings that the browser stores, each with buttons to load it and to remove it. */
import { el } from "../parts/dom.js"
import { time } from "../parts/format.js"

/** Returns a training's start time, env and seed, which are parts of the path of its folder. */
const nameOf = (directory) => {
  const parts = directory.split("/")
  return `${parts.at(-2)} seed ${Number(parts.at(-1))}, ${time(parts[0])}`
}

export const makeSaves = (load, remove) => {
  const list = el("ul.saves")
  const nothing = el("p.quiet", "None yet. A training is saved when it ends or stops, and ten times on its way.")
  const item = (directory) =>
    el(
      "li",
      el("span", nameOf(directory)),
      el("button.button", { onclick: () => load(directory), "aria-label": `Load ${nameOf(directory)}` }, "Load"),
      el("button.button", { onclick: () => remove(directory), "aria-label": `Remove ${nameOf(directory)}` }, "Remove"),
    )
  return {
    element: el("section.card", el("h2", "Saved in this browser"), list, nothing),
    show: (directories) => {
      nothing.hidden = directories.length > 0
      list.replaceChildren(...directories.map(item))
    },
  }
}
