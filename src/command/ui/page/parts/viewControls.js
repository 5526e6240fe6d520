/**
 * Makes the controls with which the user sets the view, that is, how all charts are drawn. See `firstView` in `address.js`.
 */
import { choice, el, toggle } from "./dom.js"

/** Makes the controls, which change `view` and call `changed`; with `several`, also the controls for groups of runs. */
export const viewControls = (view, changed, { several }) => {
  const set = (name, control) => (value) => {
    view[name] = value
    changed(control)
  }
  const smoothing = el("input", {
    type: "range",
    min: "0",
    max: "0.98",
    step: "0.02",
    value: String(view.smoothing),
    oninput: () => set("smoothing", "smoothing")(Number(smoothing.value)),
  })
  return el(
    "div.controls",
    { role: "group", "aria-label": "How the curves are drawn" },
    several &&
      choice("middle", [["iqm", "IQM, 95 % interval"], ["mean", "mean, 95 % interval"]], view.centre, set("centre")), // prettier-ignore
    choice("over", [["steps", "steps"], ["time", "time"], ["episodes", "episodes"]], view.axis, set("axis")), // prettier-ignore
    el("label.field", el("span", "smoothing"), smoothing),
    el(
      "div.field.boxes",
      toggle("log x", view.logX, set("logX")),
      toggle("log y", view.logY, set("logY")),
      several && toggle("single runs", view.singles, set("singles")),
      several && toggle("envs in one chart", view.together, set("together")),
    ),
  )
}
