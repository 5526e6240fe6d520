/**
 * Hopper-v5: a body with one leg hops in a plane, by the torques of three joints. The reward is its speed, and 1 while it is
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

const model: World = {
  name: "hopper",
  angle: "degree",
  option: { timestep: 0.002, integrator: "RK4" },
  defaults: {
    joint: { armature: 1, damping: 1, limited: true },
    shape: {
      ...skin,
      contype: 1,
      conaffinity: 1,
      condim: 1,
      margin: 0.001,
      solimp: [0.8, 0.8, 0.01],
      solref: [0.02, 1],
    },
  },
  shapes: [floor({ size: [20, 20, 0.125] })],
  parts: [trunk([leg("", { ankle: 0.13, toe: 0.065, half: 0.195, friction: 2 })])],
  motors: [
    ["thigh_joint", 200],
    ["leg_joint", 200],
    ["foot_joint", 200],
  ],
  strongest: 1,
}

export const HopperOptions = Schema.Struct({
  /** The weight of the speed in the reward. Default: 1. */
  forwardRewardWeight: weight,
  /** The weight of the torques' cost. Default: 0.001. */
  ctrlCostWeight: weight,
  /** The reward of each step in which the body is healthy. Default: 1. */
  healthyReward: weight,
  /** Whether an episode ends when the body is not healthy. Default: true. */
  terminateWhenUnhealthy: flag,
  /** The body is healthy while all its positions and velocities but the first two are in this range. Default: [-100, 100]. */
  healthyStateRange: range,
  /** The body is healthy while its height is in this range. Default: [0.7, .inf]. */
  healthyZRange: range,
  /** The body is healthy while its angle from upright is in this range. Default: [-0.2, 0.2]. */
  healthyAngleRange: range,
  /** How far the start of an episode differs from the model's own. Default: 0.005. */
  resetNoiseScale: weight,
  /** Whether observations lack the position along the way. Default: true. */
  excludeCurrentPositionsFromObservation: flag,
})
export type HopperOptions = typeof HopperOptions.Type

/** Makes the env with other options: `Hopper.make({ terminateWhenUnhealthy: false })`. */
export const make = (options: HopperOptions = {}): Env<Mujoco.MujocoState, Box, Box> => {
  checkOptions("Hopper", options, HopperOptions)
  const { forwardRewardWeight = 1, ctrlCostWeight = 1e-3, resetNoiseScale: scale = 5e-3 } = options
  const { healthyReward = 1, terminateWhenUnhealthy = true } = options
  const states: Range = options.healthyStateRange ?? [-100, 100]
  const heights: Range = options.healthyZRange ?? [0.7, Infinity]
  const angles: Range = options.healthyAngleRange ?? [-0.2, 0.2]
  const first = options.excludeCurrentPositionsFromObservation === false ? 0 : 1
  const isHealthy = ({ data: { qpos, qvel } }: Mujoco.MujocoWorld): boolean =>
    isBetween(qpos[1], heights) &&
    isBetween(qpos[2], angles) &&
    qpos.subarray(2).every((value) => isBetween(value, states)) &&
    qvel.every((value) => isBetween(value, states))
  const env = Mujoco.env({
    id: "Hopper-v5",
    model: Effect.sync(() => mjcfOf(model)),
    frameSkip: 4,
    observationSpace: unbounded(12 - first),
    actionSpace: box(-1, 1, [3]),
    maxSteps: 1000,
    camera: { floor: 0, far: 4.2, at: [0, 0, 0.8] },
    rewardThreshold: 3800,
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
  return withRecipe(env, "Hopper", options)
}

/** The env with its default options: `Batch.open(Hopper.env, 16)`. */
export const env = make()
