/** The model of Humanoid and of HumanoidStandup: one stands, the other lies on its back. What both observe is the same. */
import * as Schema from "effect/Schema"
import type { MujocoWorld } from "../Mujoco.ts"
import { type Attributes, capsule, hinge, type Part, plane, sphere, type Vector, type World } from "../mjcf.ts"
import { flag, here, joined, skin, weight } from "./shared.ts"

/** How a person is at the start: the way from the hips to the feet, and what hangs where. */
interface Pose {
  readonly name: string
  readonly height: number
  readonly head: Vector
  readonly waist: readonly [Vector, Vector]
  readonly belly: Vector
  readonly pelvis: Vector
  readonly hip: number
  /** The vector of a leg's length, for the length of a thigh, of a shin, and the place of the foot. */
  readonly down: (length: number, aside: number) => Vector
  readonly foot: Vector
  readonly lowestHip: number
}

const standing: Pose = {
  name: "humanoid",
  height: 1.4,
  head: [0, 0, 0.19],
  waist: [
    [-0.01, -0.06, -0.12],
    [-0.01, 0.06, -0.12],
  ],
  belly: [-0.01, 0, -0.26],
  pelvis: [0, 0, -0.165],
  hip: -0.04,
  down: (length, aside) => [0, aside, -length],
  foot: [0, 0, -0.45],
  lowestHip: -110,
}

const lying: Pose = {
  name: "humanoid standup",
  height: 0.105,
  head: [-0.15, 0, 0],
  waist: [
    [0.11, -0.06, 0],
    [0.11, 0.06, 0],
  ],
  belly: [0.21, 0, 0],
  pelvis: [0.165, 0, 0],
  hip: 0,
  down: (length, aside) => [length, aside, 0],
  foot: [0.35, 0, -0.1],
  lowestHip: -120,
}

const joint = (
  name: string,
  axis: Vector,
  range: readonly [number, number],
  armature: number,
  more: Attributes = {},
): Attributes => hinge(name, axis, range, { armature, ...more })

/** A leg: `side` is -1 for the right one, 1 for the left one. Both hips bend outwards at positive angles. */
const leg = (name: "right" | "left", pose: Pose): Part => {
  const side = name === "right" ? -1 : 1
  const stiff = (stiffness: number) => ({ damping: 5, stiffness })
  return {
    name: `${name}_thigh`,
    at: [0, 0.1 * side, pose.hip],
    joints: [
      joint(`${name}_hip_x`, [-side, 0, 0], [-25, 5], 0.01, stiff(10)),
      joint(`${name}_hip_z`, [0, 0, -side], [-60, 35], 0.01, stiff(10)),
      joint(
        `${name}_hip_y`,
        [0, 1, 0],
        [name === "right" ? -110 : pose.lowestHip, 20],
        name === "right" ? 0.008 : 0.01,
        stiff(20),
      ),
    ],
    shapes: [capsule(here, pose.down(0.34, -0.01 * side), 0.06, { name: `${name}_thigh1` })],
    parts: [
      {
        name: `${name}_shin`,
        at: pose.down(0.403, -0.01 * side),
        joints: [
          joint(`${name}_knee`, [0, -1, 0], [-160, -2], 0.006, {
            pos: [0, 0, 0.02],
            ...(side === 1 && { stiffness: 1 }),
          }),
        ],
        shapes: [capsule(here, pose.down(0.3, 0), 0.049, { name: `${name}_shin1` })],
        parts: [
          { name: `${name}_foot`, at: pose.foot, shapes: [sphere([0, 0, 0.1], 0.075, { name: `${name}_foot` })] },
        ],
      },
    ],
  }
}

/** An arm, which points forwards and down, and with its hand forwards and up. */
const arm = (name: "right" | "left"): Part => {
  const side = name === "right" ? -1 : 1
  const shoulder: readonly [number, number] = name === "right" ? [-85, 60] : [-60, 85]
  return {
    name: `${name}_upper_arm`,
    at: [0, 0.17 * side, 0.06],
    joints: [
      joint(`${name}_shoulder1`, [2, -side, 1], shoulder, 0.0068, { stiffness: 1 }),
      joint(`${name}_shoulder2`, [0, side, 1], shoulder, 0.0051, { stiffness: 1 }),
    ],
    shapes: [capsule(here, [0.16, 0.16 * side, -0.16], 0.04, { name: `${name}_uarm1` })],
    parts: [
      {
        name: `${name}_lower_arm`,
        at: [0.18, 0.18 * side, -0.18],
        joints: [joint(`${name}_elbow`, [0, -1, -side], [-90, 50], 0.0028, { stiffness: 0 })],
        shapes: [
          capsule([0.01, -0.01 * side, 0.01], [0.17, -0.17 * side, 0.17], 0.031, { name: `${name}_larm` }),
          sphere([0.18, -0.18 * side, 0.18], 0.04, { name: `${name}_hand` }),
        ],
      },
    ],
  }
}

const tilted = [1, 0, -0.002, 0] as const

const modelOf = (pose: Pose): World => ({
  name: pose.name,
  angle: "degree",
  option: { timestep: 0.003, integrator: "RK4", iterations: 50, solver: "PGS" },
  defaults: {
    joint: { armature: 1, damping: 1, limited: true },
    shape: { ...skin, contype: 1, conaffinity: 1, condim: 1, margin: 0.001 },
  },
  shapes: [plane([20, 20, 0.125], { name: "floor", condim: 3, friction: [1, 0.1, 0.1], rgba: [0.8, 0.9, 0.8, 1] })],
  parts: [
    {
      name: "torso",
      at: [0, 0, pose.height],
      joints: [{ type: "free", name: "root", limited: false, armature: 0, damping: 0, stiffness: 0 }],
      shapes: [
        capsule([0, -0.07, 0], [0, 0.07, 0], 0.07, { name: "torso1" }),
        sphere(pose.head, 0.09, { name: "head" }),
        capsule(...pose.waist, 0.06, { name: "uwaist" }),
      ],
      parts: [
        {
          name: "lwaist",
          at: pose.belly,
          turned: tilted,
          joints: [
            joint("abdomen_z", [0, 0, 1], [-45, 45], 0.02, { pos: [0, 0, 0.065], damping: 5, stiffness: 20 }),
            joint("abdomen_y", [0, 1, 0], [-75, 30], 0.02, { pos: [0, 0, 0.065], damping: 5, stiffness: 10 }),
          ],
          shapes: [capsule([0, -0.06, 0], [0, 0.06, 0], 0.06, { name: "lwaist" })],
          parts: [
            {
              name: "pelvis",
              at: pose.pelvis,
              turned: tilted,
              joints: [joint("abdomen_x", [1, 0, 0], [-35, 35], 0.02, { pos: [0, 0, 0.1], damping: 5, stiffness: 10 })],
              shapes: [capsule([-0.02, -0.07, 0], [-0.02, 0.07, 0], 0.09, { name: "butt" })],
              parts: [leg("right", pose), leg("left", pose)],
            },
          ],
        },
        arm("right"),
        arm("left"),
      ],
    },
  ],
  tendons: {
    left_hipknee: { left_hip_y: -1, left_knee: 1 },
    right_hipknee: { right_hip_y: -1, right_knee: 1 },
  },
  motors: [
    ["abdomen_y", 100],
    ["abdomen_z", 100],
    ["abdomen_x", 100],
    ...(["right", "left"] as const).flatMap(
      (side) =>
        [
          [`${side}_hip_x`, 100],
          [`${side}_hip_z`, 100],
          [`${side}_hip_y`, 300],
          [`${side}_knee`, 200],
        ] as const,
    ),
    ...(["right", "left"] as const).flatMap(
      (side) =>
        [
          [`${side}_shoulder1`, 25],
          [`${side}_shoulder2`, 25],
          [`${side}_elbow`, 25],
        ] as const,
    ),
  ],
  strongest: 0.4,
})

export const standingPerson = modelOf(standing)
export const lyingPerson = modelOf(lying)

/** The options of both envs: what observations have, and the noise of a start. */
export const observedFields = {
  /** How far the start of an episode differs from the model's own. Default: 0.01. */
  resetNoiseScale: weight,
  /** Whether observations lack the position on the ground. Default: true. */
  excludeCurrentPositionsFromObservation: flag,
  /** Whether observations have the parts' inertias. Default: true. */
  includeCinertInObservation: flag,
  /** Whether observations have the parts' velocities. Default: true. */
  includeCvelInObservation: flag,
  /** Whether observations have the motors' torques. Default: true. */
  includeQfrcActuatorInObservation: flag,
  /** Whether observations have the forces of contacts. Default: true. */
  includeCfrcExtInObservation: flag,
}

const Observed = Schema.Struct(observedFields)

/** Returns what is observed by these options, and the number of its elements. */
export const observerOf = ({
  excludeCurrentPositionsFromObservation: excluded = true,
  includeCinertInObservation: hasInertias = true,
  includeCvelInObservation: hasVelocities = true,
  includeQfrcActuatorInObservation: hasTorques = true,
  includeCfrcExtInObservation: hasForces = true,
}: typeof Observed.Type) => {
  const first = excluded ? 2 : 0
  const nothing = new Float64Array(0)
  // The first part is the world itself. It has no inertia, and the first six velocities are those of the torso.
  const parts = 13
  return {
    size:
      47 -
      first +
      (hasInertias ? 10 * parts : 0) +
      (hasVelocities ? 6 * parts : 0) +
      (hasTorques ? 17 : 0) +
      (hasForces ? 6 * parts : 0),
    observe: ({ data }: MujocoWorld): Float64Array =>
      joined(
        data.qpos.subarray(first),
        data.qvel,
        hasInertias ? data.cinert.subarray(10) : nothing,
        hasVelocities ? data.cvel.subarray(6) : nothing,
        hasTorques ? data.qfrc_actuator.subarray(6) : nothing,
        hasForces ? data.cfrc_ext.subarray(6) : nothing,
      ),
  }
}
