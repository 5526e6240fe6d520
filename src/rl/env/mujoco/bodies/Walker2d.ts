/**
 * Walker2d-v5: a body with two legs walks in a plane, by the torques of six joints. The reward is its speed, and 1 while it is
 * upright, minus a cost of the torques; an episode ends when it falls, or after 1,000 steps. Its model and its rules are those
 * of Gymnasium's v5.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { checkOptions } from "../../../../base/EnvError.ts"
import type { Env } from "../../Env.ts"
import { withRecipe } from "../../recipe.ts"
import { box, type Box } from "../../Space.ts"
import * as Mujoco from "../Mujoco.ts"
import { mjcfOf, type World } from "../mjcf.ts"
import { leg, trunk } from "./legs.ts"
import {
  clipped,
  flag,
  floor,
  isBetween,
  joined,
  noisyStart,
  range,
  type Range,
  skin,
  speed,
  controlCost,
  unbounded,
  weight,
} from "./shared.ts"

const walkersFoot = { ankle: 0.2, toe: 0.1, half: 0.1, friction: 1.9 }

const model: World = {
  name: "walker2d",
  angle: "degree",
  option: { timestep: 0.002, integrator: "RK4" },
  defaults: {
    joint: { armature: 0.01, damping: 0.1, limited: true },
    shape: { ...skin, contype: 1, conaffinity: 0, condim: 3, density: 1000, friction: [0.7, 0.1, 0.1] },
  },
  shapes: [floor({})],
  parts: [trunk([leg("", walkersFoot), leg("_left", walkersFoot)])],
  motors: ["thigh", "leg", "foot", "thigh_left", "leg_left", "foot_left"].map(
    (joint) => [`${joint}_joint`, 100] as const,
  ),
  strongest: 1,
}

export const Walker2dOptions = Schema.Struct({
  /** The weight of the speed in the reward. Default: 1. */
  forwardRewardWeight: weight,
  /** The weight of the torques' cost. Default: 0.001. */
  ctrlCostWeight: weight,
  /** The reward of each step in which the body is healthy. Default: 1. */
  healthyReward: weight,
  /** Whether an episode ends when the body is not healthy. Default: true. */
  terminateWhenUnhealthy: flag,
  /** The body is healthy while its height is in this range. Default: [0.8, 2]. */
  healthyZRange: range,
  /** The body is healthy while its angle from upright is in this range. Default: [-1, 1]. */
  healthyAngleRange: range,
  /** How far the start of an episode differs from the model's own. Default: 0.005. */
  resetNoiseScale: weight,
  /** Whether observations lack the position along the way. Default: true. */
  excludeCurrentPositionsFromObservation: flag,
})
export type Walker2dOptions = typeof Walker2dOptions.Type

/** Makes the env with other options: `Walker2d.make({ terminateWhenUnhealthy: false })`. */
export const make = (options: Walker2dOptions = {}): Env<Mujoco.MujocoState, Box, Box> => {
  checkOptions("Walker2d", options, Walker2dOptions)
  const { forwardRewardWeight = 1, ctrlCostWeight = 1e-3, resetNoiseScale: scale = 5e-3 } = options
  const { healthyReward = 1, terminateWhenUnhealthy = true } = options
  const heights: Range = options.healthyZRange ?? [0.8, 2]
  const angles: Range = options.healthyAngleRange ?? [-1, 1]
  const first = options.excludeCurrentPositionsFromObservation === false ? 0 : 1
  const isHealthy = ({ data: { qpos } }: Mujoco.MujocoWorld): boolean =>
    isBetween(qpos[1], heights) && isBetween(qpos[2], angles)
  const env = Mujoco.env({
    id: "Walker2d-v5",
    model: Effect.sync(() => mjcfOf(model)),
    frameSkip: 4,
    observationSpace: unbounded(18 - first),
    actionSpace: box(-1, 1, [6]),
    maxSteps: 1000,
    camera: { floor: 0, far: 4.2, at: [0, 0, 0.8] },
    reset: noisyStart({ scale, velocities: "uniform" }),
    measure: ({ data }) => [data.qpos[0]],
    observe: ({ data }) => joined(data.qpos.subarray(first), clipped(data.qvel, -10, 10)),
    reward: (step) => ({
      forward: forwardRewardWeight * speed(step),
      ctrl: -controlCost(ctrlCostWeight, step.action),
      survive: isHealthy(step.world) ? healthyReward : 0,
    }),
    terminated: ({ world }) => terminateWhenUnhealthy && !isHealthy(world),
  })
  return withRecipe(env, "Walker2d", options)
}

/** The env with its default options: `Batch.open(Walker2d.env, 16)`. */
export const env = make()
