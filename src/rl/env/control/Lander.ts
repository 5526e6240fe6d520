/**
 * Lander-v0 and LanderContinuous-v0: land a craft on the pad between the flags, upright and slowly. The physics is a
 * rigid body under gravity, with a main engine that pushes along its axis and two side engines that turn it, over flat
 * ground.
 *
 * A state is [x, y, vx, vy, angle, spin]; the field is 2 wide, and the pad is 0.4 wide at x = 0, y = 0. The observation
 * is the state. Discrete actions: nothing, left engine, main engine, right engine. Continuous actions (`continuous`):
 * main engine from −1 (off) to 1 (full), side engines from −1 (turns right) to 1 (turns left).
 *
 * The reward is the change of a potential (nearer, slower and more upright is better), minus 0.3 per step of the main
 * engine and 0.03 per step of a side engine. Landing on the pad ends the episode with 100 points; touching the ground
 * in any other way, or leaving the field, ends it with −100.
 */
import { cos, sin } from "../../../base/rng/Elementary.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import { make, type Env } from "../Env.ts"
import { clip, type Moved } from "../internal/motion.ts"
import { box, discrete, type Box, type Discrete } from "../Space.ts"
import { lander } from "../ui/lander.ts"
import { picturesOf } from "../ui/pictures.ts"

const tau = 0.05
const gravity = 0.4
const mainPower = 1.1
const sidePower = 0.08
const turnPower = 2
const padHalf = 0.2
const fieldHalf = 1
const ceiling = 1.6
// The craft breaks if it touches the ground faster than these speeds (downwards, sideways) or tilted beyond this angle.
const slowDown = 0.25
const slowAcross = 0.2
const upright = 0.3

type LanderState = ReadonlyArray<number>

/** Returns the potential of a state: higher is better. The reward contains its change in a step. */
const potential = ([x, y, vx, vy, angle]: ArrayLike<number> & Iterable<number>): number =>
  -100 * Math.sqrt(x * x + y * y) - 50 * Math.sqrt(vx * vx + vy * vy) - 40 * Math.abs(angle)

/** Computes one step with engines at these powers: main from 0 to 1, side from −1 (turns right) to 1 (left). */
const fly = (state: LanderState, main: number, side: number): Moved => {
  const [x, y, vx, vy, angle, spin] = state
  const push = main * mainPower
  const across = side * sidePower
  const nextVx = vx + (-sin(angle) * push + cos(angle) * across) * tau
  const nextVy = vy + (cos(angle) * push + sin(angle) * across - gravity) * tau
  const nextSpin = spin + side * turnPower * tau
  const next = [x + nextVx * tau, y + nextVy * tau, nextVx, nextVy, angle + nextSpin * tau, nextSpin]
  const shaped = potential(next) - potential(state) - 0.3 * main - 0.03 * Math.abs(side)
  const [nextX, nextY, , , nextAngle] = next
  const touches = nextY <= 0
  const leaves = Math.abs(nextX) > fieldHalf || nextY > ceiling
  const lands =
    touches &&
    Math.abs(nextX) <= padHalf &&
    -nextVy <= slowDown &&
    Math.abs(nextVx) <= slowAcross &&
    Math.abs(nextAngle) <= upright
  return {
    state: next,
    observation: next.map(Math.fround),
    reward: shaped + (lands ? 100 : touches || leaves ? -100 : 0),
    terminated: touches || leaves,
  }
}

// The powers of the main engine and of the side engines for each discrete action.
const mains = [0, 0, 1, 0]
const sides = [0, 1, 0, -1]

/** Computes one step for a discrete action. */
export const dynamics = (state: LanderState, action: number): Moved => fly(state, mains[action], sides[action])

/** Computes one step for continuous actions, the powers of the engines. */
export const dynamicsContinuous = (state: LanderState, action: ArrayLike<number>): Moved =>
  fly(state, (clip(action[0], 1) + 1) / 2, clip(action[1], 1))

/** The limits of a landing and of the field, which the drawing of the env in a browser (`ui/lander.ts`) shows. */
const limits = { padHalf, fieldHalf, slowDown, slowAcross, upright }

const common = {
  observationSpace: box([-2, -1, -4, -4, -7, -8], [2, 2, 4, 4, 7, 8]),
  maxSteps: 400,
  rewardThreshold: 100,
  reset: (random: Stream): LanderState => [
    random.between(-0.5, 0.5),
    random.between(1.1, 1.4),
    random.between(-0.2, 0.2),
    random.between(-0.2, 0),
    random.between(-0.2, 0.2),
    random.between(-0.2, 0.2),
  ],
  observe: (state: LanderState): LanderState => state,
}

/** The env with discrete actions: `Batch.make(Lander.env, 16)`. */
export const env: Env<LanderState, Discrete, Box> = make({
  ...common,
  id: "Lander-v0",
  actionSpace: discrete(4),
  step: (state, action) => dynamics(state, action),
  ...picturesOf("Lander-v0", lander, { ...limits, continuous: false }),
})

/** The env with continuous actions: `Batch.make(Lander.continuous, 16)`. */
export const continuous: Env<LanderState, Box, Box> = make({
  ...common,
  id: "LanderContinuous-v0",
  actionSpace: box([-1, -1], [1, 1]),
  step: (state, action) => dynamicsContinuous(state, action),
  ...picturesOf("LanderContinuous-v0", lander, { ...limits, continuous: true }),
})
