/**
 * Ant-v5: a body with four legs runs along the x axis, by the torques of eight joints. The reward is its speed, and 1 while its
 * height is right, minus costs of the torques and of contact forces; an episode ends when it jumps or falls, or after 1,000
 * steps. Its model and its rules are those of Gymnasium's v5.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { checkOptions } from "../../../../base/EnvError.ts"
import type { Env } from "../../Env.ts"
import { withRecipe } from "../../recipe.ts"
import { box, type Box } from "../../Space.ts"
import * as Mujoco from "../Mujoco.ts"
import { capsule, hinge, mjcfOf, type Part, sphere, type Vector, type World } from "../mjcf.ts"
import {
  clipped,
  flag,
  floor,
  here,
  joined,
  noisyStart,
  range,
  type Range,
  skin,
  speed,
  controlCost,
  sumOfSquares,
  unbounded,
  up,
  weight,
} from "./shared.ts"

/** A leg of Ant, which points to a corner: `right` and `ahead` are 1 or -1. Its ankle bends towards the ground. */
const antLeg = (
  index: number,
  names: readonly [leg: string, aux: string, upper: string, lower: string],
  [right, ahead]: readonly [number, number],
  ankle: { readonly axis: Vector; readonly range: readonly [number, number] },
): Part => {
  const upper: Vector = [0.2 * right, 0.2 * ahead, 0]
  const lower: Vector = [0.4 * right, 0.4 * ahead, 0]
  const [name, aux, upperName, lowerName] = names
  return {
    name,
    at: here,
    shapes: [capsule(here, upper, 0.08, { name: aux })],
    parts: [
      {
        name: `aux_${index}`,
        at: upper,
        joints: [hinge(`hip_${index}`, up, [-30, 30])],
        shapes: [capsule(here, upper, 0.08, { name: upperName })],
        parts: [
          {
            name: `shank_${index}`,
            at: upper,
            joints: [hinge(`ankle_${index}`, ankle.axis, ankle.range)],
            shapes: [capsule(here, lower, 0.08, { name: lowerName })],
          },
        ],
      },
    ],
  }
}

const model: World = {
  name: "ant",
  angle: "degree",
  option: { timestep: 0.01, integrator: "RK4" },
  defaults: {
    joint: { armature: 1, damping: 1, limited: true },
    shape: { ...skin, conaffinity: 0, condim: 3, density: 5, friction: [1, 0.5, 0.5], margin: 0.01 },
  },
  shapes: [floor({})],
  parts: [
    {
      name: "torso",
      at: [0, 0, 0.75],
      joints: [{ type: "free", name: "root", limited: false, armature: 0, damping: 0, margin: 0.01 }],
      shapes: [sphere(here, 0.25, { name: "torso_geom" })],
      parts: [
        antLeg(1, ["front_left_leg", "aux_1_geom", "left_leg_geom", "left_ankle_geom"], [1, 1], {
          axis: [-1, 1, 0],
          range: [30, 70],
        }),
        antLeg(2, ["front_right_leg", "aux_2_geom", "right_leg_geom", "right_ankle_geom"], [-1, 1], {
          axis: [1, 1, 0],
          range: [-70, -30],
        }),
        antLeg(3, ["back_leg", "aux_3_geom", "back_leg_geom", "third_ankle_geom"], [-1, -1], {
          axis: [-1, 1, 0],
          range: [-70, -30],
        }),
        antLeg(4, ["right_back_leg", "aux_4_geom", "rightback_leg_geom", "fourth_ankle_geom"], [1, -1], {
          axis: [1, 1, 0],
          range: [30, 70],
        }),
      ],
    },
  ],
  motors: [4, 1, 2, 3].flatMap((index) => [[`hip_${index}`, 150] as const, [`ankle_${index}`, 150] as const]),
  strongest: 1,
}

export const AntOptions = Schema.Struct({
  /** The weight of the speed in the reward. Default: 1. */
  forwardRewardWeight: weight,
  /** The weight of the torques' cost. Default: 0.5. */
  ctrlCostWeight: weight,
  /** The weight of the cost of contact forces. Default: 0.0005. */
  contactCostWeight: weight,
  /** The reward of each step in which the body is healthy. Default: 1. */
  healthyReward: weight,
  /** Whether an episode ends when the body is not healthy. Default: true. */
  terminateWhenUnhealthy: flag,
  /** The body is healthy while its height is in this range. Default: [0.2, 1]. */
  healthyZRange: range,
  /** Contact forces are clipped to this range. Default: [-1, 1]. */
  contactForceRange: range,
  /** How far the start of an episode differs from the model's own. Default: 0.1. */
  resetNoiseScale: weight,
  /** Whether observations lack the position on the ground. Default: true. */
  excludeCurrentPositionsFromObservation: flag,
  /** Whether observations have the contact forces. Default: true. */
  includeCfrcExtInObservation: flag,
})
export type AntOptions = typeof AntOptions.Type

/** Makes the env with other options: `Ant.make({ includeCfrcExtInObservation: false })`. */
export const make = (options: AntOptions = {}): Env<Mujoco.MujocoState, Box, Box> => {
  checkOptions("Ant", options, AntOptions)
  const {
    forwardRewardWeight = 1,
    ctrlCostWeight = 0.5,
    contactCostWeight = 5e-4,
    resetNoiseScale: scale = 0.1,
  } = options
  const { healthyReward = 1, terminateWhenUnhealthy = true, includeCfrcExtInObservation: hasForces = true } = options
  const [lowest, highest]: Range = options.healthyZRange ?? [0.2, 1]
  const [weakest, strongest]: Range = options.contactForceRange ?? [-1, 1]
  const first = options.excludeCurrentPositionsFromObservation === false ? 0 : 2
  const isHealthy = ({ data: { qpos, qvel } }: Mujoco.MujocoWorld): boolean =>
    qpos.every(Number.isFinite) && qvel.every(Number.isFinite) && lowest <= qpos[2] && qpos[2] <= highest
  const forcesOf = ({ data }: Mujoco.MujocoWorld) => clipped(data.cfrc_ext, weakest, strongest)
  const env = Mujoco.env({
    id: "Ant-v5",
    model: Effect.sync(() => mjcfOf(model)),
    frameSkip: 5,
    // The forces are those on 13 parts, six numbers each.
    observationSpace: unbounded(29 - first + (hasForces ? 78 : 0)),
    actionSpace: box(-1, 1, [8]),
    maxSteps: 1000,
    camera: { floor: 0, around: 0.5, above: 0.5, far: 4.5, at: [0, 0, 0.4] },
    rewardThreshold: 6000,
    reset: noisyStart({ scale, velocities: "normal" }),
    // The place of the torso, whose index is 1.
    measure: ({ data }) => [data.xpos[3]],
    observe: (world) => {
      const { qpos, qvel } = world.data
      return joined(qpos.subarray(first), qvel, hasForces ? forcesOf(world).subarray(6) : [])
    },
    reward: (step) => ({
      forward: forwardRewardWeight * speed(step),
      ctrl: -controlCost(ctrlCostWeight, step.action),
      contact: -contactCostWeight * sumOfSquares(forcesOf(step.world)),
      survive: isHealthy(step.world) ? healthyReward : 0,
    }),
    terminated: ({ world }) => terminateWhenUnhealthy && !isHealthy(world),
  })
  return withRecipe(env, "Ant", options)
}

/** The env with its default options: `Batch.open(Ant.env, 16)`. */
export const env = make()
