/**
 * Implements exploration: ε-greedy actions (random with the probability ε, else the best), and random actions without a
 * policy.
 */
import * as Schema from "effect/Schema"
import { fraction, withDefault } from "../../base/config/fields.ts"
import { drawAllowed } from "../env/internal/rows.ts"
import { type Box, optionsOf } from "../env/Space.ts"
import {
  argMax,
  cast,
  cumSum,
  expandDims,
  floor,
  less,
  lessEqual,
  minimum,
  mul,
  reshape,
  slice,
  sub,
  sum,
  where,
} from "../../tensor/graph/ops.ts"
import { linear, type Schedule, within } from "../../tensor/graph/schedules.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { Stream } from "../../base/rng/Rng.ts"
import type { Task } from "./Learner.ts"
import { type Scheduled, scheduled, scheduleOf } from "./scheduled.ts"

/** The settings of ε-greedy exploration. */
export interface ExplorationOptions {
  /** The probability of a random action at the start of the run. @default 1 */
  readonly epsilonStart?: number
  /** The probability of a random action after the first `explorationFraction` of the run. @default 0.05 */
  readonly epsilonEnd?: number
  /** The share of the run, from its start, in which the probability falls linearly to `epsilonEnd`. @default 0.2 */
  readonly explorationFraction?: number
  /**
   * The probability of a random action over the run, instead of the three settings above, such as
   * `{ schedule: "linear", from: 1, to: 0.05, until: 0.2 }`; null uses those three. @default null
   */
  readonly epsilon?: Scheduled | null
}

export const explorationFields = {
  epsilonStart: withDefault(fraction, 1),
  epsilonEnd: withDefault(fraction, 0.05),
  explorationFraction: withDefault(fraction, 0.2),
  epsilon: withDefault(Schema.NullOr(scheduled(fraction, fraction)), null),
}

/**
 * Returns ε, the probability of a random action, as a function of the run's progress, which goes from 0 to 1.
 *
 * @example
 * ```ts
 * const epsilon = epsilonSchedule({ epsilonStart: 1, epsilonEnd: 0.1, explorationFraction: 0.5 })
 * epsilon(0.25) // 0.55
 * epsilon(0.8) // 0.1
 * ```
 */
export const epsilonSchedule = ({
  epsilonStart,
  epsilonEnd,
  explorationFraction,
  epsilon = null,
}: Omit<Required<ExplorationOptions>, "epsilon"> & Pick<ExplorationOptions, "epsilon">): Schedule =>
  epsilon === null ? within(explorationFraction, linear(epsilonStart, epsilonEnd)) : scheduleOf(epsilon)

/**
 * Chooses an action for each row: the one with the greatest value, or with probability ε a random one. It takes action values
 * of shape [rows, n] and uniform noise of shape [rows, 2], and returns actions of shape [rows]. With `allowed`, an action
 * mask of the shape of the values, random actions are among those that are allowed; the values of others must be lower.
 *
 * @example
 * ```ts
 * const values = Graph.constant([1, 2, 3], [1, 3])
 * epsilonGreedy(values, Graph.constant([0.9, 0.1], [1, 2]), Graph.constant(0.2)) // [2], as 0.9 is not below ε
 * ```
 */
export const epsilonGreedy = (values: Tensor, noise: Tensor, epsilon: Tensor, allowed?: Tensor): Tensor => {
  const [rows, n] = values.shape
  const column = (index: number): Tensor => reshape(slice(noise, [0, index], [rows, 1]), [rows])
  // The actions are 0 to n − 1, but rounding the product could give n.
  const randomAction =
    allowed === undefined ? minimum(cast(mul(column(1), n), "i32"), n - 1) : randomAllowed(column(1), allowed)
  return where(less(column(0), epsilon), randomAction, argMax(values))
}

/** Draws one of the allowed actions in each row from uniform numbers of shape [rows]. */
const randomAllowed = (uniform: Tensor, allowed: Tensor): Tensor => {
  // With c allowed actions, the k-th one is drawn, where k = ⌊c · uniform⌋: as many actions have a running count ≤ k.
  const count = sum(allowed, -1)
  const drawn = minimum(floor(mul(uniform, count)), sub(count, 1))
  return cast(sum(cast(lessEqual(cumSum(allowed, -1), expandDims(drawn, 1)), "f32"), -1), "i32")
}

/**
 * Fills `out` with a random action for each row of observations: uniform in the space, but standard normal in elements
 * that lack a finite bound, and among the allowed actions where the rows have masks.
 */
export const randomActions = (
  { actionSpace: space, observationSpace }: Pick<Task, "actionSpace" | "observationSpace">,
  observations: Float32Array,
  random: Stream,
  out: Float32Array | Int32Array,
): void => {
  if (observationSpace._tag === "Masked") return drawAllowed(observationSpace, observations, random, out)
  if (space._tag !== "Box") {
    const options = optionsOf(space) ?? []
    for (let at = 0, element = 0; at < out.length; at++) {
      out[at] = random.integer(options[element])
      element = element + 1 === options.length ? 0 : element + 1
    }
    return
  }
  const { low, high } = space
  for (let at = 0, element = 0; at < out.length; at++) {
    const bounded = Number.isFinite(low[element]) && Number.isFinite(high[element])
    out[at] = bounded ? random.between(low[element], high[element]) : random.normal()
    element = element + 1 === low.length ? 0 : element + 1
  }
}

/**
 * Adds noise to actions in a bounded box, and clips them to the box. `noise` returns a number for the index of each
 * element of `actions`; 1 is half the element's range.
 */
export const addNoise = (
  { low, high }: Pick<Box, "low" | "high">,
  noise: (place: number) => number,
  actions: Float32Array | Int32Array,
): void => {
  for (let at = 0; at < actions.length; at++) {
    const element = at % low.length
    const moved = actions[at] + (noise(at) * (high[element] - low[element])) / 2
    actions[at] = Math.min(Math.max(moved, low[element]), high[element])
  }
}
