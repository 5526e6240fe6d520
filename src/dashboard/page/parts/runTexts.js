/** Short texts about a run that several pages show. */
import { el } from "./dom.js"

/** Returns the population variables of a run as text. They distinguish it from other runs of the same name. */
export const variables = (run) =>
  Object.entries(run.population)
    .map(([variable, value]) => `${variable}=${value}`)
    .join(" ")

/**
 * Makes the badge with the state of a run or a group. A folder that only holds rollouts has no state, as no file says
 * whether it is complete.
 */
export const badge = ({ kind, state }) =>
  kind === "rollouts" ? el("span", { class: "quiet" }, "–") : el("span", { class: `badge ${state}` }, state)
