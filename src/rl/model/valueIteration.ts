/** Makes the planner of a value-iteration network (VIN): a trunk that plans paths on a map, for `ActorCritic.ts`. */
import * as Schema from "effect/Schema"
import { bounded, intBetween, units, withDefault } from "../../base/config/fields.ts"
import { display, type RowSpace } from "../env/Space.ts"
import { orthogonal } from "../../tensor/graph/initialisers.ts"
import { conv } from "../../tensor/graph/layers.ts"
import { concat, conv2d, max, mul, reshape, slice, sum } from "../../tensor/graph/ops.ts"
import { fail } from "../../tensor/graph/ops/core.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { imageShapeOf, withoutMask } from "./observations.ts"
import type { Trunk } from "./trunk.ts"

/** The settings of a value-iteration network. */
export interface PlannerOptions {
  /** The number of sweeps over the map, about as many as the longest path has steps. @default 12 */
  readonly iterations?: number
  /** The number of filters of the layer that computes rewards from the observation. @default 32 */
  readonly filters?: number
  /** The number of actions in the planner's model of the map; they need not be the env's. @default 10 */
  readonly actions?: number
  /** The index of the observation's plane that shows where the agent is. @default 2 */
  readonly agentPlane?: number
}

export const Planning = Schema.Struct({
  iterations: withDefault(intBetween(1, 1000), 12),
  filters: withDefault(units, 32),
  actions: withDefault(units, 10),
  agentPlane: withDefault(bounded("index"), 2),
})
export type Planning = typeof Planning.Type

export interface PlanningOptions {
  /**
   * The settings of a planner for observations that are maps; `{}` takes its defaults, null uses none. @default null
   */
  readonly planning?: PlannerOptions | null
}

export const planningFields = {
  planning: withDefault(Schema.NullOr(Planning), null),
}

/**
 * Makes a value-iteration network (Tamar et al. 2016, arXiv:1602.02867). It computes a reward for every place on the map;
 * then values spread from place to place, each sweep a convolution and a maximum over the planner's actions. Its features
 * are the values of those actions at the place where the agent is.
 *
 * @example
 * ```ts
 * const planning = { iterations: 20, filters: 32, actions: 10, agentPlane: 2 }
 * planner("planner", GridWorld.env.observationSpace, planning).outputs // 10
 * ```
 */
export const planner = (name: string, space: RowSpace, planning: Planning): Trunk => {
  const { iterations, filters, actions, agentPlane } = planning
  const shape = imageShapeOf(space)
  if (shape === undefined || agentPlane >= shape[0]) {
    const expected = `it needs a map [planes, height, width] that has a plane ${agentPlane}`
    return fail("planner", `${expected}, found ${display(space)}`)
  }
  const [planes, height, width] = shape
  const encoder = conv(`${name}.look`, planes, filters, { kernel: 3, padding: "same" })
  const reward = conv(`${name}.reward`, filters, 1, { kernel: 1 })
  const sweepWeight = `${name}.sweep.weight`
  return {
    parameters: {
      ...encoder.parameters,
      ...reward.parameters,
      // The sweep's inputs are one plane of rewards and one of values.
      [sweepWeight]: { shape: [actions, 2, 3, 3], init: orthogonal(1) },
    },
    outputs: actions,
    depth: 0,
    apply: (weights, observations) => {
      const [rows] = observations.shape
      const map = reshape(withoutMask(space, observations), [rows, planes, height, width])
      const rewards = reward.apply(weights, encoder.apply(weights, map))
      const kernel = weights[sweepWeight]
      const onlyRewards = slice(kernel, [0, 0, 0, 0], [actions, 1, 3, 3])
      let actionValues: Tensor = conv2d(rewards, onlyRewards, { padding: "same" })
      for (let sweep = 0; sweep < iterations; sweep++) {
        const values = max(actionValues, 1, { keepDims: true })
        actionValues = conv2d(concat([rewards, values], 1), kernel, { padding: "same" })
      }
      const here = slice(map, [0, agentPlane, 0, 0], [rows, 1, height, width])
      return sum(mul(actionValues, here), [2, 3])
    },
  }
}

/** Returns the function that makes the planner of a config for a space of observations; null if the config has none. */
export const plannerOf = (planning: Planning | null): ((space: RowSpace) => Trunk) | null =>
  planning && ((space) => planner("planner", space, planning))
