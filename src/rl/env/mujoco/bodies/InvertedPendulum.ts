/**
 * InvertedPendulum-v5: a cart on a rail balances a pole, by a force on the cart. The reward is 1 for each step in which the pole
 * is nearly upright; an episode ends when it falls, or after 1,000 steps. Its model and its rules are those of Gymnasium's v5.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { checkOptions } from "../../../../base/EnvError.ts"
import type { Env } from "../../Env.ts"
import { withRecipe } from "../../recipe.ts"
import { box, type Box } from "../../Space.ts"
import * as Mujoco from "../Mujoco.ts"
import { capsule, hinge, mjcfOf, rod, type World } from "../mjcf.ts"
import { across, along, here, joined, noisyStart, unbounded, weight } from "./shared.ts"

const lying = { quat: [0.707, 0, 0.707, 0] }

const model: World = {
  name: "inverted pendulum",
  angle: "degree",
  option: { timestep: 0.02, integrator: "RK4", gravity: [0, 0, -9.81] },
  defaults: {
    joint: { armature: 0, damping: 1, limited: true },
    shape: { contype: 0, friction: [1, 0.1, 0.1], rgba: [0.7, 0.7, 0, 1] },
  },
  shapes: [rod(here, 0.02, 1, { name: "rail", rgba: [0.3, 0.3, 0.7, 1], ...lying })],
  parts: [
    {
      name: "cart",
      at: here,
      joints: [{ type: "slide", name: "slider", axis: along, range: [-1, 1] }],
      shapes: [rod(here, 0.1, 0.1, { name: "cart", ...lying })],
      parts: [
        {
          name: "pole",
          at: here,
          joints: [hinge("hinge", across, [-90, 90])],
          shapes: [capsule(here, [0.001, 0, 0.6], 0.049, { name: "cpole", rgba: [0, 0.7, 0.7, 1] })],
        },
      ],
    },
  ],
  motors: [["slider", 100]],
  strongest: 3,
}

export const InvertedPendulumOptions = Schema.Struct({
  /** How far the start of an episode differs from the model's own. Default: 0.01. */
  resetNoiseScale: weight,
})
export type InvertedPendulumOptions = typeof InvertedPendulumOptions.Type

/** Makes the env with other options: `InvertedPendulum.make({ resetNoiseScale: 0.1 })`. */
export const make = (options: InvertedPendulumOptions = {}): Env<Mujoco.MujocoState, Box, Box> => {
  checkOptions("InvertedPendulum", options, InvertedPendulumOptions)
  const { resetNoiseScale: scale = 0.01 } = options
  const hasFallen = ({ data: { qpos, qvel } }: Mujoco.MujocoWorld): boolean =>
    !(Math.abs(qpos[1]) <= 0.2 && Number.isFinite(qpos[0]) && qvel.every(Number.isFinite))
  const env = Mujoco.env({
    id: "InvertedPendulum-v5",
    model: Effect.sync(() => mjcfOf(model)),
    frameSkip: 2,
    observationSpace: unbounded(4),
    actionSpace: box(-3, 3, [1]),
    maxSteps: 1000,
    camera: { above: 0.05, far: 3.6, at: [0, 0, 0.25], follows: -1 },
    rewardThreshold: 950,
    reset: noisyStart({ scale, velocities: "uniform" }),
    observe: ({ data }) => joined(data.qpos, data.qvel),
    reward: ({ world }) => ({ survive: hasFallen(world) ? 0 : 1 }),
    terminated: ({ world }) => hasFallen(world),
  })
  return withRecipe(env, "InvertedPendulum", options)
}

/** The env with its default options: `Batch.open(InvertedPendulum.env, 16)`. */
export const env = make()
