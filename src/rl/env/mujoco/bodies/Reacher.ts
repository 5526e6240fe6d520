/**
 * Reacher-v5: an arm of two links on a table brings its tip to a target, by the torques of two joints. The reward is minus the
 * distance and minus a cost of the torques; an episode has 50 steps. Its model and its rules are those of Gymnasium's v5.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { cos, sin } from "../../../../base/rng/Elementary.ts"
import { checkOptions } from "../../../../base/EnvError.ts"
import type { Env } from "../../Env.ts"
import { withRecipe } from "../../recipe.ts"
import { box, type Box } from "../../Space.ts"
import type { Stream } from "../../../../base/rng/Rng.ts"
import * as Mujoco from "../Mujoco.ts"
import { capsule, hinge, loose, mjcfOf, plane, sphere, type World } from "../mjcf.ts"
import { across, along, differenceOf, here, joined, lengthOf, controlCost, unbounded, up, weight } from "./shared.ts"

const rim = { conaffinity: 0, rgba: [0.9, 0.4, 0.6, 1] }
const arm = { rgba: [0, 0.4, 0.6, 1] }

const model: World = {
  name: "reacher",
  angle: "radian",
  option: { timestep: 0.01, integrator: "RK4", gravity: [0, 0, -9.81] },
  defaults: {
    joint: { armature: 1, damping: 1, limited: true },
    shape: { contype: 0, friction: [1, 0.1, 0.1], rgba: [0.7, 0.7, 0, 1] },
  },
  shapes: [
    plane([1, 1, 10], { name: "ground", contype: 0, conaffinity: 0, rgba: [0.9, 0.9, 0.9, 1] }),
    capsule([-0.3, -0.3, 0.01], [0.3, -0.3, 0.01], 0.02, { name: "sideS", ...rim }),
    capsule([0.3, -0.3, 0.01], [0.3, 0.3, 0.01], 0.02, { name: "sideE", ...rim }),
    capsule([-0.3, 0.3, 0.01], [0.3, 0.3, 0.01], 0.02, { name: "sideN", ...rim }),
    capsule([-0.3, -0.3, 0.01], [-0.3, 0.3, 0.01], 0.02, { name: "sideW", ...rim }),
    { type: "cylinder", name: "root", fromto: [0, 0, 0, 0, 0, 0.02], size: 0.011, contype: 0, ...rim },
  ],
  parts: [
    {
      name: "body0",
      at: [0, 0, 0.01],
      joints: [{ type: "hinge", name: "joint0", axis: up, limited: false }],
      shapes: [capsule(here, [0.1, 0, 0], 0.01, { name: "link0", ...arm })],
      parts: [
        {
          name: "body1",
          at: [0.1, 0, 0],
          joints: [hinge("joint1", up, [-3, 3])],
          shapes: [capsule(here, [0.1, 0, 0], 0.01, { name: "link1", ...arm })],
          parts: [
            {
              name: "fingertip",
              at: [0.11, 0, 0],
              shapes: [sphere(here, 0.01, { name: "fingertip", contype: 0, rgba: [0, 0.8, 0.6, 1] })],
            },
          ],
        },
      ],
    },
    {
      name: "target",
      at: [0.1, -0.1, 0.01],
      joints: [
        loose("slide", "target_x", along, { limited: true, range: [-0.27, 0.27], ref: 0.1 }),
        loose("slide", "target_y", across, { limited: true, range: [-0.27, 0.27], ref: -0.1 }),
      ],
      shapes: [sphere(here, 0.009, { name: "target", contype: 0, conaffinity: 0, rgba: [0.9, 0.2, 0.2, 1] })],
    },
  ],
  motors: [
    ["joint0", 200],
    ["joint1", 200],
  ],
  strongest: 1,
}

export const ReacherOptions = Schema.Struct({
  /** The weight of the distance in the reward. Default: 1. */
  rewardDistWeight: weight,
  /** The weight of the torques' cost. Default: 1. */
  rewardControlWeight: weight,
})
export type ReacherOptions = typeof ReacherOptions.Type

/** Starts near the model's own start, with the target within 0.2 of the middle. */
const start = ({ data: { qpos, qvel } }: Mujoco.MujocoWorld, random: Stream): void => {
  for (let at = 0; at < qpos.length; at++) qpos[at] += random.between(-0.1, 0.1)
  do {
    qpos[2] = random.between(-0.2, 0.2)
    qpos[3] = random.between(-0.2, 0.2)
  } while (lengthOf(qpos.subarray(2, 4)) >= 0.2)
  for (let at = 0; at < 2; at++) qvel[at] = random.between(-0.005, 0.005)
}

/** Returns the way from the target to the tip. */
const distance = (world: Mujoco.MujocoWorld): Float64Array =>
  differenceOf(world, world.indexOf("body", "fingertip"), world.indexOf("body", "target"))

/** Makes the env with other options: `Reacher.make({ rewardControlWeight: 0.1 })`. */
export const make = (options: ReacherOptions = {}): Env<Mujoco.MujocoState, Box, Box> => {
  checkOptions("Reacher", options, ReacherOptions)
  const { rewardDistWeight = 1, rewardControlWeight = 1 } = options
  const env = Mujoco.env({
    id: "Reacher-v5",
    model: Effect.sync(() => mjcfOf(model)),
    frameSkip: 2,
    observationSpace: unbounded(10),
    actionSpace: box(-1, 1, [2]),
    maxSteps: 50,
    camera: { floor: 0, above: 1.2, far: 1.1, at: [0, 0, 0], follows: -1 },
    rewardThreshold: -3.75,
    reset: start,
    observe: (world) => {
      const { qpos, qvel } = world.data
      const angles = qpos.subarray(0, 2)
      const way = distance(world).subarray(0, 2)
      return joined(
        angles.map((angle) => cos(angle)),
        angles.map((angle) => sin(angle)),
        qpos.subarray(2),
        qvel.subarray(0, 2),
        way,
      )
    },
    reward: ({ world, action }) => ({
      distance: -rewardDistWeight * lengthOf(distance(world)),
      ctrl: -controlCost(rewardControlWeight, action),
    }),
  })
  return withRecipe(env, "Reacher", options)
}

/** The env with its default options: `Batch.open(Reacher.env, 16)`. */
export const env = make()
