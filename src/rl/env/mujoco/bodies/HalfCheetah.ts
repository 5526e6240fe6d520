/**
 * HalfCheetah-v5: a cheetah with one front and one back leg runs in a plane, by the torques of six joints. The reward is its
 * speed minus a cost of the torques; an episode has 1,000 steps. Its model and its rules are those of Gymnasium's v5.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { checkOptions } from "../../../../base/EnvError.ts"
import type { Env } from "../../Env.ts"
import { withRecipe } from "../../recipe.ts"
import { box, type Box } from "../../Space.ts"
import * as Mujoco from "../Mujoco.ts"
import { capsule, hinge, mjcfOf, type Part, rod, type Vector, type World } from "../mjcf.ts"
import {
  across,
  flag,
  floor,
  joined,
  noisyStart,
  planar,
  skin,
  speed,
  controlCost,
  unbounded,
  weight,
} from "./shared.ts"

/** A part of a cheetah's leg: a capsule that is turned around y, and a spring in its joint. */
const limb = (
  name: string,
  at: Vector,
  {
    range,
    damping,
    stiffness,
  }: { readonly range: readonly [number, number]; readonly damping: number; readonly stiffness: number },
  { middle, turn, half }: { readonly middle: Vector; readonly turn: number; readonly half: number },
  parts: ReadonlyArray<Part> = [],
): Part => ({
  name,
  at,
  joints: [hinge(name, across, range, { damping, stiffness })],
  shapes: [rod(middle, 0.046, half, { name, axisangle: [0, 1, 0, turn] })],
  parts,
})

const model: World = {
  name: "half cheetah",
  angle: "radian",
  mass: 14,
  option: { timestep: 0.01, gravity: [0, 0, -9.81] },
  defaults: {
    joint: {
      armature: 0.1,
      damping: 0.01,
      limited: true,
      solimplimit: [0, 0.8, 0.03],
      solreflimit: [0.02, 1],
      stiffness: 8,
    },
    shape: {
      ...skin,
      contype: 1,
      conaffinity: 0,
      condim: 3,
      friction: [0.4, 0.1, 0.1],
      solimp: [0, 0.8, 0.01],
      solref: [0.02, 1],
    },
  },
  shapes: [floor({})],
  parts: [
    {
      name: "torso",
      at: [0, 0, 0.7],
      joints: planar(0),
      shapes: [
        capsule([-0.5, 0, 0], [0.5, 0, 0], 0.046, { name: "torso" }),
        rod([0.6, 0, 0.1], 0.046, 0.15, { name: "head", axisangle: [0, 1, 0, 0.87] }),
      ],
      parts: [
        limb(
          "bthigh",
          [-0.5, 0, 0],
          { range: [-0.52, 1.05], damping: 6, stiffness: 240 },
          { middle: [0.1, 0, -0.13], turn: -3.8, half: 0.145 },
          [
            limb(
              "bshin",
              [0.16, 0, -0.25],
              { range: [-0.785, 0.785], damping: 4.5, stiffness: 180 },
              { middle: [-0.14, 0, -0.07], turn: -2.03, half: 0.15 },
              [
                limb(
                  "bfoot",
                  [-0.28, 0, -0.14],
                  { range: [-0.4, 0.785], damping: 3, stiffness: 120 },
                  { middle: [0.03, 0, -0.097], turn: -0.27, half: 0.094 },
                ),
              ],
            ),
          ],
        ),
        limb(
          "fthigh",
          [0.5, 0, 0],
          { range: [-1, 0.7], damping: 4.5, stiffness: 180 },
          { middle: [-0.07, 0, -0.12], turn: 0.52, half: 0.133 },
          [
            limb(
              "fshin",
              [-0.14, 0, -0.24],
              { range: [-1.2, 0.87], damping: 3, stiffness: 120 },
              { middle: [0.065, 0, -0.09], turn: -0.6, half: 0.106 },
              [
                limb(
                  "ffoot",
                  [0.13, 0, -0.18],
                  { range: [-0.5, 0.5], damping: 1.5, stiffness: 60 },
                  { middle: [0.045, 0, -0.07], turn: -0.6, half: 0.07 },
                ),
              ],
            ),
          ],
        ),
      ],
    },
  ],
  motors: [
    ["bthigh", 120],
    ["bshin", 90],
    ["bfoot", 60],
    ["fthigh", 120],
    ["fshin", 60],
    ["ffoot", 30],
  ],
  strongest: 1,
}

export const HalfCheetahOptions = Schema.Struct({
  /** The weight of the speed in the reward. Default: 1. */
  forwardRewardWeight: weight,
  /** The weight of the torques' cost. Default: 0.1. */
  ctrlCostWeight: weight,
  /** How far the start of an episode differs from the model's own. Default: 0.1. */
  resetNoiseScale: weight,
  /** Whether observations lack the position along the way. Default: true. */
  excludeCurrentPositionsFromObservation: flag,
})
export type HalfCheetahOptions = typeof HalfCheetahOptions.Type

/** Makes the env with other options: `HalfCheetah.make({ ctrlCostWeight: 0 })`. */
export const make = (options: HalfCheetahOptions = {}): Env<Mujoco.MujocoState, Box, Box> => {
  checkOptions("HalfCheetah", options, HalfCheetahOptions)
  const { forwardRewardWeight = 1, ctrlCostWeight = 0.1, resetNoiseScale: scale = 0.1 } = options
  const first = options.excludeCurrentPositionsFromObservation === false ? 0 : 1
  const env = Mujoco.env({
    id: "HalfCheetah-v5",
    model: Effect.sync(() => mjcfOf(model)),
    frameSkip: 5,
    observationSpace: unbounded(18 - first),
    actionSpace: box(-1, 1, [6]),
    maxSteps: 1000,
    camera: { floor: 0, far: 5, at: [0, 0, 0.5] },
    rewardThreshold: 4800,
    reset: noisyStart({ scale, velocities: "normal" }),
    measure: ({ data }) => [data.qpos[0]],
    observe: ({ data }) => joined(data.qpos.subarray(first), data.qvel),
    reward: (step) => ({
      forward: forwardRewardWeight * speed(step),
      ctrl: -controlCost(ctrlCostWeight, step.action),
    }),
  })
  return withRecipe(env, "HalfCheetah", options)
}

/** The env with its default options: `Batch.open(HalfCheetah.env, 16)`. */
export const env = make()
