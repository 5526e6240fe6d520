/**
 * HumanoidStandup-v5: a person who lies on its back stands up, by the torques of 17 joints. The reward is the torso's height divided
 * by the time step, and 1, minus costs of the torques and of contact forces; an episode has 1,000 steps. Its model and its rules are
 * those of Gymnasium's v5.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { checkOptions } from "../../../../base/EnvError.ts"
import type { Env } from "../../Env.ts"
import { withRecipe } from "../../recipe.ts"
import { box, type Box } from "../../Space.ts"
import * as Mujoco from "../Mujoco.ts"
import { mjcfOf } from "../mjcf.ts"
import { lyingPerson, observedFields, observerOf } from "./person.ts"
import { noisyStart, range, type Range, sumOfSquares, unbounded, weight } from "./shared.ts"

export const HumanoidStandupOptions = Schema.Struct({
  ...observedFields,
  /** The weight of the torques' cost. Default: 0.1. */
  ctrlCostWeight: weight,
  /** The weight of the cost of contact forces. Default: 0.0000005. */
  impactCostWeight: weight,
  /** The cost of contact forces is clipped to this range. Default: [-.inf, 10]. */
  impactCostRange: range,
})
export type HumanoidStandupOptions = typeof HumanoidStandupOptions.Type

/** Makes the env with other options: `HumanoidStandup.make({ impactCostWeight: 0 })`. */
export const make = (options: HumanoidStandupOptions = {}): Env<Mujoco.MujocoState, Box, Box> => {
  checkOptions("HumanoidStandup", options, HumanoidStandupOptions)
  const { ctrlCostWeight = 0.1, impactCostWeight = 5e-7, resetNoiseScale: scale = 0.01 } = options
  const [cheapest, dearest]: Range = options.impactCostRange ?? [-Infinity, 10]
  const { size, observe } = observerOf(options)
  const env = Mujoco.env({
    id: "HumanoidStandup-v5",
    model: Effect.sync(() => mjcfOf(lyingPerson)),
    frameSkip: 5,
    observationSpace: unbounded(size),
    actionSpace: box(-0.4, 0.4, [17]),
    maxSteps: 1000,
    camera: { floor: 0, around: 0.6, above: 0.35, far: 4.2, at: [0, 0, 0.6] },
    reset: noisyStart({ scale, velocities: "uniform" }),
    observe,
    reward: ({ world: { model, data } }) => {
      const impact = impactCostWeight * sumOfSquares(data.cfrc_ext)
      return {
        up: data.qpos[2] / model.opt.timestep,
        ctrl: -ctrlCostWeight * sumOfSquares(data.ctrl),
        impact: -Math.min(Math.max(impact, cheapest), dearest),
        survive: 1,
      }
    },
  })
  return withRecipe(env, "HumanoidStandup", options)
}

/** The env with its default options: `Batch.open(HumanoidStandup.env, 16)`. */
export const env = make()
