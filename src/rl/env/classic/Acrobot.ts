/**
 * Acrobot-v1: two links hang from a hinge, with a motor only in the joint between them. The task is to swing the free
 * end above a bar, which is one link's length above the hinge. Actions: torque −1 (0), none (1), +1 (2). The reward is
 * −1 per step; an episode has at most 500 steps.
 *
 * A state is [angle 1, angle 2, velocity 1, velocity 2]: angle 1 is 0 when the link hangs down, angle 2 is relative to
 * the first link. The observation is [cos 1, sin 1, cos 2, sin 2, velocity 1, velocity 2]. The dynamics are
 * Gymnasium's: the equations of Sutton and Barto's book, one Runge-Kutta step of 0.2 s.
 */
import { cos, sin } from "../../../base/rng/Elementary.ts"
import type { Env } from "../Env.ts"
import { clip, type Motion, motionEnv, type Moved } from "../internal/motion.ts"
import { type Box, box, discrete, type Discrete } from "../Space.ts"
import { acrobot } from "../ui/acrobot.ts"
import { picturesOf } from "../ui/pictures.ts"

// Both links have length 1, mass 1, their centre of mass at 0.5, and moment of inertia 1.
const gravity = 9.8
// The factors of gravity's torque: on both links about the hinge, and on the lower link about the joint.
const upperWeight = (1 * 0.5 + 1 * 1) * gravity
const lowerWeight = 0.5 * gravity
const tau = 0.2
const quarter = Math.PI / 2
// The largest velocities of the two angles, in radians per second.
const fastest1 = 4 * Math.PI
const fastest2 = 9 * Math.PI
/** The first state's four numbers are uniform from −spread to spread. */
const spread = 0.1

/** Writes the time derivatives of a state under a torque to `into`. The names d1, d2, phi1 and phi2 are the book's. */
const derive = (
  angle1: number,
  angle2: number,
  velocity1: number,
  velocity2: number,
  torque: number,
  into: Float64Array,
): void => {
  const cosine2 = cos(angle2)
  const sine2 = sin(angle2)
  const d1 = 0.25 + (1 + 0.25 + cosine2) + 1 + 1
  const d2 = 0.25 + 0.5 * cosine2 + 1
  const phi2 = lowerWeight * cos(angle1 + angle2 - quarter)
  const phi1 =
    -0.5 * (velocity2 * velocity2) * sine2 - velocity2 * velocity1 * sine2 + upperWeight * cos(angle1 - quarter) + phi2
  const acceleration2 =
    (torque + (d2 / d1) * phi1 - 0.5 * (velocity1 * velocity1) * sine2 - phi2) / (0.25 + 1 - (d2 * d2) / d1)
  into[0] = velocity1
  into[1] = velocity2
  into[2] = -(d2 * acceleration2 + phi1) / d1
  into[3] = acceleration2
}

const wrap = (angle: number): number => {
  let wrapped = angle
  while (wrapped > Math.PI) wrapped -= 2 * Math.PI
  while (wrapped < -Math.PI) wrapped += 2 * Math.PI
  return wrapped
}

const k1 = new Float64Array(4)
const k2 = new Float64Array(4)
const k3 = new Float64Array(4)
const k4 = new Float64Array(4)
/** Returns by how much a Runge-Kutta step changes the state's number `index`, from its slopes in k1, k2, k3 and k4. */
const changeOf = (index: number): number => (tau / 6) * (k1[index] + 2 * k2[index] + 2 * k3[index] + k4[index])

/** Moves the state that begins at offset `at` by one Runge-Kutta step. */
const move = (states: Float64Array, at: number, torque: number): void => {
  const angle1 = states[at]
  const angle2 = states[at + 1]
  const velocity1 = states[at + 2]
  const velocity2 = states[at + 3]
  const half = tau / 2
  derive(angle1, angle2, velocity1, velocity2, torque, k1)
  derive(angle1 + half * k1[0], angle2 + half * k1[1], velocity1 + half * k1[2], velocity2 + half * k1[3], torque, k2)
  derive(angle1 + half * k2[0], angle2 + half * k2[1], velocity1 + half * k2[2], velocity2 + half * k2[3], torque, k3)
  derive(angle1 + tau * k3[0], angle2 + tau * k3[1], velocity1 + tau * k3[2], velocity2 + tau * k3[3], torque, k4)
  states[at] = wrap(angle1 + changeOf(0))
  states[at + 1] = wrap(angle2 + changeOf(1))
  states[at + 2] = clip(velocity1 + changeOf(2), fastest1)
  states[at + 3] = clip(velocity2 + changeOf(3), fastest2)
}

const observe: NonNullable<Motion["observe"]> = (states, at, into, to) => {
  into[to] = cos(states[at])
  into[to + 1] = sin(states[at])
  into[to + 2] = cos(states[at + 1])
  into[to + 3] = sin(states[at + 1])
  into[to + 4] = states[at + 2]
  into[to + 5] = states[at + 3]
}

const advance: Motion["advance"] = (states, { observations, rewards, terminated }, actions, waiting) => {
  for (let index = 0; index < waiting.length; index++) {
    if (waiting[index] !== 0) continue
    const at = 4 * index
    move(states, at, actions[index] - 1)
    // The left side is the height of the free end above the hinge.
    const isUp = -cos(states[at]) - cos(states[at + 1] + states[at]) > 1
    terminated[index] = isUp ? 1 : 0
    rewards[index] = isUp ? 0 : -1
    observe(states, at, observations, 6 * index)
  }
}

const motion = motionEnv({
  id: "Acrobot-v1",
  observationSpace: box([-1, -1, -1, -1, -fastest1, -fastest2], [1, 1, 1, 1, fastest1, fastest2]),
  actionSpace: discrete(3),
  maxSteps: 500,
  rewardThreshold: -100,
  columns: ["angles1", "angles2", "velocities1", "velocities2"],
  // The first state is rounded to float32, as in Gymnasium.
  reset: (states, at, random) => {
    for (let number = 0; number < 4; number++) states[at + number] = Math.fround(random.between(-spread, spread))
  },
  advance,
  observe,
  ...picturesOf("Acrobot-v1", acrobot, {}),
})

/** Computes one step of the two links, without a time limit. */
export const dynamics: (state: ArrayLike<number>, action: number) => Moved = motion.dynamics

/** The env, which has no options: `Batch.make(Acrobot.env, 16)`. */
export const env: Env<ReadonlyArray<number>, Discrete, Box> = motion.env
