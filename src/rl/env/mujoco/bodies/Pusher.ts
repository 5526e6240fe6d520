/**
 * Pusher-v5: an arm with seven joints pushes a cylinder on a table to a goal. The reward is minus the distances from the arm to the
 * cylinder and from the cylinder to the goal, and minus a cost of the torques; an episode has 100 steps. Its model and its rules are
 * those of Gymnasium's v5.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { checkOptions } from "../../../../base/EnvError.ts"
import type { Env } from "../../Env.ts"
import { withRecipe } from "../../recipe.ts"
import { box, type Box } from "../../Space.ts"
import * as Mujoco from "../Mujoco.ts"
import type { Stream } from "../../../../base/rng/Rng.ts"
import { type Attributes, capsule, hinge, mjcfOf, type Part, plane, sphere, type Vector, type World } from "../mjcf.ts"
import { across, along, differenceOf, here, joined, lengthOf, controlCost, unbounded, up, weight } from "./shared.ts"

const eye = { rgba: [0.6, 0.6, 0.6, 1] }
const pupil = { rgba: [0.1, 0.1, 0.1, 1] }
/** The shapes that push. */
const solid = { contype: 1, conaffinity: 1 }

/** A link of the arm, which hangs at the end of the link before it. */
const link = (
  name: string,
  at: Vector,
  joint: Attributes | undefined,
  shapes: ReadonlyArray<Attributes>,
  parts: ReadonlyArray<Part>,
): Part => ({ name: `r_${name}_link`, at, joints: joint === undefined ? [] : [joint], shapes, parts })

const turn = (name: string, axis: Vector, range: readonly [number, number], damping: number): Attributes =>
  hinge(`r_${name}_joint`, axis, range, { damping })

const fingers = link(
  "wrist_roll",
  here,
  turn("wrist_roll", along, [-1.5, 1.5], 0.1),
  [
    capsule([0, -0.1, 0], [0, 0.1, 0], 0.02, solid),
    capsule([0, -0.1, 0], [0.1, -0.1, 0], 0.02, solid),
    capsule([0, 0.1, 0], [0.1, 0.1, 0], 0.02, solid),
  ],
  [
    {
      name: "tips_arm",
      at: here,
      shapes: [sphere([0.1, -0.1, 0], 0.01, { name: "tip_arml" }), sphere([0.1, 0.1, 0], 0.01, { name: "tip_armr" })],
    },
  ],
)

const wrist = link(
  "wrist_flex",
  [0.321, 0, 0],
  turn("wrist_flex", across, [-1.094, 0], 0.1),
  [capsule([0, -0.02, 0], [0, 0.02, 0], 0.01, { name: "wf" })],
  [fingers],
)

const elbow = link(
  "elbow_flex",
  [0.4, 0, 0],
  turn("elbow_flex", across, [-2.3213, 0], 0.1),
  [capsule([0, -0.02, 0], [0, 0.02, 0], 0.06, { name: "ef" })],
  [
    link(
      "forearm_roll",
      here,
      turn("forearm_roll", along, [-1.5, 1.5], 0.1),
      [capsule([-0.1, 0, 0], [0.1, 0, 0], 0.02, { name: "fr" })],
      [link("forearm", here, undefined, [capsule(here, [0.291, 0, 0], 0.05, { name: "fa" })], [wrist])],
    ),
  ],
)

const shoulder = link(
  "shoulder_pan",
  [0, -0.6, 0],
  turn("shoulder_pan", up, [-2.2854, 1.714602], 1),
  [
    sphere([-0.06, 0.05, 0.2], 0.05, { name: "e1", ...eye }),
    sphere([0.06, 0.05, 0.2], 0.05, { name: "e2", ...eye }),
    sphere([-0.06, 0.09, 0.2], 0.03, { name: "e1p", ...pupil }),
    sphere([0.06, 0.09, 0.2], 0.03, { name: "e2p", ...pupil }),
    capsule([0, 0, -0.4], [0, 0, 0.2], 0.1, { name: "sp" }),
  ],
  [
    link(
      "shoulder_lift",
      [0.1, 0, 0],
      turn("shoulder_lift", across, [-0.5236, 1.3963], 1),
      [capsule([0, -0.1, 0], [0, 0.1, 0], 0.1, { name: "sl" })],
      [
        link(
          "upper_arm_roll",
          here,
          turn("upper_arm_roll", along, [-1.5, 1.7], 0.1),
          [capsule([-0.1, 0, 0], [0.1, 0, 0], 0.02, { name: "uar" })],
          [link("upper_arm", here, undefined, [capsule(here, [0.4, 0, 0], 0.06, { name: "ua" })], [elbow])],
        ),
      ],
    ),
  ],
)

/** A flat cylinder that slides on the table. */
const disc = (name: string, height: number, shape: Attributes): Part => {
  const slide = (direction: string, axis: Vector): Attributes => ({
    type: "slide",
    name: `${name === "object" ? "obj" : name}_slide${direction}`,
    axis,
    range: [-10.3213, 10.3],
    damping: 0.5,
  })
  return {
    name,
    at: [0.45, -0.05, height],
    joints: [slide("y", across), slide("x", along)],
    shapes: [{ type: "cylinder", conaffinity: 0, ...shape }],
  }
}

const model: World = {
  name: "pusher",
  angle: "radian",
  option: { timestep: 0.01, gravity: [0, 0, 0], iterations: 20, integrator: "Euler" },
  defaults: {
    joint: { armature: 0.04, damping: 1, limited: true },
    shape: { friction: [0.8, 0.1, 0.1], density: 300, margin: 0.002, condim: 1, contype: 0, conaffinity: 0 },
  },
  shapes: [plane([1, 1, 0.1], { name: "table", pos: [0, 0.5, -0.325], ...solid })],
  parts: [
    shoulder,
    disc("object", -0.275, { size: [0.05, 0.05, 0.05], density: 0.01, contype: 1, rgba: [1, 1, 1, 1] }),
    disc("goal", -0.323, { size: [0.08, 0.001, 0.1], density: 0.00001, contype: 0, rgba: [1, 0, 0, 1] }),
  ],
  motors: [
    "shoulder_pan",
    "shoulder_lift",
    "upper_arm_roll",
    "elbow_flex",
    "forearm_roll",
    "wrist_flex",
    "wrist_roll",
  ].map((joint) => [`r_${joint}_joint`, 1] as const),
  strongest: 2,
}

export const PusherOptions = Schema.Struct({
  /** The weight of the distance from the arm to the cylinder. Default: 0.5. */
  rewardNearWeight: weight,
  /** The weight of the distance from the cylinder to the goal. Default: 1. */
  rewardDistWeight: weight,
  /** The weight of the torques' cost. Default: 0.1. */
  rewardControlWeight: weight,
})
export type PusherOptions = typeof PusherOptions.Type

/** Starts with the cylinder at a random place that is not too near to the goal. */
const start = ({ data: { qpos, qvel } }: Mujoco.MujocoWorld, random: Stream): void => {
  const cylinder = qpos.subarray(-4, -2)
  do {
    cylinder[0] = random.between(-0.3, 0)
    cylinder[1] = random.between(-0.2, 0.2)
  } while (lengthOf(cylinder) <= 0.17)
  for (let at = 0; at < qvel.length - 4; at++) qvel[at] = random.between(-0.005, 0.005)
}

/** Makes the env with other options: `Pusher.make({ rewardControlWeight: 0 })`. */
export const make = (options: PusherOptions = {}): Env<Mujoco.MujocoState, Box, Box> => {
  checkOptions("Pusher", options, PusherOptions)
  const { rewardNearWeight = 0.5, rewardDistWeight = 1, rewardControlWeight = 0.1 } = options
  const env = Mujoco.env({
    id: "Pusher-v5",
    model: Effect.sync(() => mjcfOf(model)),
    frameSkip: 5,
    observationSpace: unbounded(23),
    actionSpace: box(-2, 2, [7]),
    maxSteps: 100,
    camera: { floor: -0.325, around: -0.9, above: 0.6, far: 3.4, at: [0.2, -0.2, -0.1], follows: -1 },
    rewardThreshold: 0,
    reset: start,
    observe: (world) => {
      const { qpos, qvel, xpos } = world.data
      const places = ["tips_arm", "object", "goal"].map((name) => {
        const at = 3 * world.indexOf("body", name)
        return xpos.subarray(at, at + 3)
      })
      return joined(qpos.subarray(0, 7), qvel.subarray(0, 7), ...places)
    },
    reward: ({ world, action }) => {
      const object = world.indexOf("body", "object")
      return {
        distance: -rewardDistWeight * lengthOf(differenceOf(world, object, world.indexOf("body", "goal"))),
        ctrl: -controlCost(rewardControlWeight, action),
        near: -rewardNearWeight * lengthOf(differenceOf(world, object, world.indexOf("body", "tips_arm"))),
      }
    },
  })
  return withRecipe(env, "Pusher", options)
}

/** The env with its default options: `Batch.open(Pusher.env, 16)`. */
export const env = make()
