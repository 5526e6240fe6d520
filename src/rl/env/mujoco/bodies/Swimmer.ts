/**
 * Swimmer-v5: a chain of three links swims along the x axis, by the torques of two joints. The reward is its speed minus a cost
 * of the torques; an episode has 1,000 steps. Its model and its rules are those of Gymnasium's v5.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { checkOptions } from "../../../../base/EnvError.ts"
import type { Env } from "../../Env.ts"
import { withRecipe } from "../../recipe.ts"
import { box, type Box } from "../../Space.ts"
import * as Mujoco from "../Mujoco.ts"
import { capsule, hinge, mjcfOf, plane, type Vector, type World } from "../mjcf.ts"
import {
  across,
  along,
  flag,
  here,
  joined,
  noisyStart,
  skin,
  speed,
  controlCost,
  unbounded,
  up,
  weight,
} from "./shared.ts"

const tail: Vector = [-1, 0, 0]
const bend = (name: string) => hinge(name, up, [-100, 100], { limited: true })

const model: World = {
  name: "swimmer",
  angle: "degree",
  option: { timestep: 0.01, integrator: "RK4", density: 4000, viscosity: 0.1 },
  defaults: { joint: { armature: 0.1 }, shape: { ...skin, contype: 0, conaffinity: 0, condim: 1 } },
  shapes: [plane([40, 40, 0.1], { name: "floor", pos: [0, 0, -0.1], condim: 3, rgba: [0.8, 0.9, 0.8, 1] })],
  parts: [
    {
      name: "torso",
      at: here,
      joints: [
        { type: "slide", name: "slider1", axis: along },
        { type: "slide", name: "slider2", axis: across },
        { type: "hinge", name: "free_body_rot", axis: up },
      ],
      shapes: [capsule([1.5, 0, 0], [0.5, 0, 0], 0.1, { density: 1000 })],
      parts: [
        {
          name: "mid",
          at: [0.5, 0, 0],
          joints: [bend("motor1_rot")],
          shapes: [capsule(here, tail, 0.1, { density: 1000 })],
          parts: [
            {
              name: "back",
              at: tail,
              joints: [bend("motor2_rot")],
              shapes: [capsule(here, tail, 0.1, { density: 1000 })],
            },
          ],
        },
      ],
    },
  ],
  motors: [
    ["motor1_rot", 150],
    ["motor2_rot", 150],
  ],
  strongest: 1,
}

export const SwimmerOptions = Schema.Struct({
  /** The weight of the speed in the reward. Default: 1. */
  forwardRewardWeight: weight,
  /** The weight of the torques' cost. Default: 0.0001. */
  ctrlCostWeight: weight,
  /** How far the start of an episode differs from the model's own. Default: 0.1. */
  resetNoiseScale: weight,
  /** Whether observations lack the position in the water. Default: true. */
  excludeCurrentPositionsFromObservation: flag,
})
export type SwimmerOptions = typeof SwimmerOptions.Type

/** Makes the env with other options: `Swimmer.make({ ctrlCostWeight: 0 })`. */
export const make = (options: SwimmerOptions = {}): Env<Mujoco.MujocoState, Box, Box> => {
  checkOptions("Swimmer", options, SwimmerOptions)
  const { forwardRewardWeight = 1, ctrlCostWeight = 1e-4, resetNoiseScale: scale = 0.1 } = options
  const first = options.excludeCurrentPositionsFromObservation === false ? 0 : 2
  const env = Mujoco.env({
    id: "Swimmer-v5",
    model: Effect.sync(() => mjcfOf(model)),
    frameSkip: 4,
    observationSpace: unbounded(10 - first),
    actionSpace: box(-1, 1, [2]),
    maxSteps: 1000,
    camera: { floor: -0.1, above: 0.8, far: 7, at: [0, 0, 0] },
    rewardThreshold: 360,
    reset: noisyStart({ scale, velocities: "uniform" }),
    measure: ({ data }) => [data.qpos[0]],
    observe: ({ data }) => joined(data.qpos.subarray(first), data.qvel),
    reward: (step) => ({
      forward: forwardRewardWeight * speed(step),
      ctrl: -controlCost(ctrlCostWeight, step.action),
    }),
  })
  return withRecipe(env, "Swimmer", options)
}

/** The env with its default options: `Batch.open(Swimmer.env, 16)`. */
export const env = make()
