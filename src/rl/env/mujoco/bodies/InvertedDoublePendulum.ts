/**
 * InvertedDoublePendulum-v5: a cart on a rail balances two poles on top of each other, by a force on the cart. The reward is 10
 * minus costs of the tip's distance from its highest point and of the poles' speeds; an episode ends when the tip falls, or after
 * 1,000 steps. Its model and its rules are those of Gymnasium's v5.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { cos, sin } from "../../../../base/rng/Elementary.ts"
import { checkOptions } from "../../../../base/EnvError.ts"
import type { Env } from "../../Env.ts"
import { withRecipe } from "../../recipe.ts"
import { box, type Box } from "../../Space.ts"
import * as Mujoco from "../Mujoco.ts"
import { capsule, mjcfOf, plane, rod, type World } from "../mjcf.ts"
import { across, along, clipped, here, joined, noisyStart, unbounded, weight } from "./shared.ts"

const lying = { quat: [0.707, 0, 0.707, 0] }
const top = [0, 0, 0.6] as const
const pole = { rgba: [0, 0.7, 0.7, 1] }

const model: World = {
  name: "inverted double pendulum",
  angle: "degree",
  option: { timestep: 0.01, integrator: "RK4", gravity: [1e-5, 0, -9.81] },
  defaults: {
    joint: { damping: 0.05 },
    shape: { contype: 0, friction: [1, 0.1, 0.1], rgba: [0.7, 0.7, 0, 1] },
  },
  shapes: [
    plane([40, 40, 40], { name: "floor", pos: [0, 0, -3], rgba: [0.8, 0.9, 0.8, 1] }),
    rod(here, 0.02, 1, { name: "rail", rgba: [0.3, 0.3, 0.7, 1], ...lying }),
  ],
  parts: [
    {
      name: "cart",
      at: here,
      joints: [{ type: "slide", name: "slider", axis: along, limited: true, range: [-1, 1], margin: 0.01 }],
      shapes: [rod(here, 0.1, 0.1, { name: "cart", ...lying })],
      parts: [
        {
          name: "pole",
          at: here,
          joints: [{ type: "hinge", name: "hinge", axis: across }],
          shapes: [capsule(here, top, 0.045, { name: "cpole", ...pole })],
          parts: [
            {
              name: "pole2",
              at: top,
              joints: [{ type: "hinge", name: "hinge2", axis: across }],
              shapes: [capsule(here, top, 0.045, { name: "cpole2", ...pole })],
              sites: [{ name: "tip", pos: top, size: [0.01, 0.01] }],
            },
          ],
        },
      ],
    },
  ],
  motors: [["slider", 500]],
  strongest: 1,
}

export const InvertedDoublePendulumOptions = Schema.Struct({
  /** The reward of each step in which the tip is high enough. Default: 10. */
  healthyReward: weight,
  /** How far the start of an episode differs from the model's own. Default: 0.1. */
  resetNoiseScale: weight,
})
export type InvertedDoublePendulumOptions = typeof InvertedDoublePendulumOptions.Type

/** Makes the env with other options: `InvertedDoublePendulum.make({ resetNoiseScale: 0.01 })`. */
export const make = (options: InvertedDoublePendulumOptions = {}): Env<Mujoco.MujocoState, Box, Box> => {
  checkOptions("InvertedDoublePendulum", options, InvertedDoublePendulumOptions)
  const { healthyReward = 10, resetNoiseScale: scale = 0.1 } = options
  const hasFallen = ({ data }: Mujoco.MujocoWorld): boolean => data.site_xpos[2] <= 1
  const env = Mujoco.env({
    id: "InvertedDoublePendulum-v5",
    model: Effect.sync(() => mjcfOf(model)),
    frameSkip: 5,
    observationSpace: unbounded(9),
    actionSpace: box(-1, 1, [1]),
    maxSteps: 1000,
    camera: { above: 0.05, far: 4.4, at: [0, 0, 0.5], follows: -1 },
    rewardThreshold: 9100,
    reset: noisyStart({ scale, velocities: "normal" }),
    observe: ({ data: { qpos, qvel, qfrc_constraint: forces } }) => {
      const angles = qpos.subarray(1)
      const force = clipped(forces.subarray(0, 1), -10, 10)
      return joined(
        qpos.subarray(0, 1),
        angles.map((angle) => sin(angle)),
        angles.map((angle) => cos(angle)),
        clipped(qvel, -10, 10),
        force,
      )
    },
    reward: ({ world }) => {
      const [, first, second] = world.data.qvel
      const [x, , z] = world.data.site_xpos
      return {
        survive: hasFallen(world) ? 0 : healthyReward,
        distance: -(0.01 * x * x + (z - 2) * (z - 2)),
        velocity: -(1e-3 * first * first + 5e-3 * second * second),
      }
    },
    terminated: ({ world }) => hasFallen(world),
  })
  return withRecipe(env, "InvertedDoublePendulum", options)
}

/** The env with its default options: `Batch.open(InvertedDoublePendulum.env, 16)`. */
export const env = make()
