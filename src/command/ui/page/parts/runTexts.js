/** Makes short texts about a run, which several pages show. */
import { el } from "./dom.js"

/** The variables whose values are clear without their names, in the order in which a title shows them. */
const alone = ["algorithm", "environment", "env", "env_id"]

/**
 * Returns the parts of a run's title as pairs of a key and a text: first the algorithm and the env, then the other variables
 * in the name of the run's folder, then the run's name.
 */
const titleParts = ({ name, population }) => {
  const others = Object.keys(population).filter((variable) => !alone.includes(variable))
  return [
    ...alone.flatMap((variable) => (population[variable] ? [[`=${variable}`, population[variable]]] : [])),
    ...others.map((variable) => [`=${variable}`, `${variable}=${population[variable]}`]),
    ...(name === "" ? [] : [["name", name]]),
  ]
}

/** Joins texts to a title: `a2c · CartPole-v1 · bench`. */
const joined = (texts) => texts.filter(Boolean).join(" · ")

/**
 * Returns the title of a run or a group of runs: the one that the user gave it, or `a2c · CartPole-v1 · num_envs=8 · bench`.
 */
export const titleOf = (run) => run.title ?? joined(titleParts(run).map(([, text]) => text))

/** Returns the title of a run with its seed, if it has one. */
export const seededTitle = (run) => joined([titleOf(run), seedText(run.seed)])

const seedText = (seed) => (seed === null || seed === undefined ? "" : `seed ${seed}`)

/** Makes the shortest labels that distinguish these items: the parts of their titles, and the seeds, that differ. */
export const shortLabels = (items) => {
  const parts = items.map((item) => [...titleParts(item), ["seed", seedText(item.seed)]])
  const textsOf = (key) => new Set(parts.map((some) => some.find(([one]) => one === key)?.[1]))
  return parts.map((some, place) => {
    if (items[place].title) return items[place].title
    const differing = some.filter(([key]) => textsOf(key).size > 1)
    return differing.length === 0 ? items[place].name : joined(differing.map(([, text]) => text))
  })
}

/**
 * Makes the badge of a run's or a group's state. A folder of rollouts has none, because no file tells whether it is complete.
 */
export const badge = ({ kind, state }) =>
  kind === "rollouts" ? el("span.quiet", "–") : el("span", { class: `badge ${state}` }, state)

/** Makes the list of a run's tags. */
export const tagList = (tags) => el("span.tags", tags.map((tag) => el("span.tag", tag))) // prettier-ignore
