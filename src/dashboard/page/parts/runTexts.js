/** Short texts about a run that several pages show. */
import { el } from "./dom.js"

/** The variables of a run, which tell it from others of the same name. */
export const variables = (run) =>
  Object.entries(run.population)
    .map(([variable, value]) => `${variable}=${value}`)
    .join(" ")

/** The state of a run or a group. Folders that only hold rollouts have none, as no file says whether they are complete. */
export const badge = ({ kind, state }) =>
  kind === "rollouts" ? el("span", { class: "quiet" }, "–") : el("span", { class: `badge ${state}` }, state)
