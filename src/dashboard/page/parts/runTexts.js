/** Makes short texts about a run, which several pages show. */
import { el } from "./dom.js"

/** Returns the variables in the name of a run's folder as text. They distinguish it from other runs of its name. */
export const variables = (run) =>
  Object.entries(run.population)
    .map(([variable, value]) => `${variable}=${value}`)
    .join(" ")

/** Makes the badge of a run's or a group's state. A folder of rollouts has none, as no file says if it is complete. */
export const badge = ({ kind, state }) =>
  kind === "rollouts" ? el("span.quiet", "–") : el("span", { class: `badge ${state}` }, state)
