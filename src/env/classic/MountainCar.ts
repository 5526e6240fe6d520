/**
 * MountainCar-v0: a car too weak for the hill must swing back and forth to get up. Actions: push left (0), don't push
 * (1), push right (2). The reward is −1 per step; an episode has at most 200 steps.
 *
 * A state is [position, velocity]; the observation is the state. The dynamics are Gymnasium's (Moore 1990).
 */
import { cos } from "../../rng/Elementary.ts"
import type { Stream } from "../../rng/Rng.ts"
import { make, type Env } from "../Env.ts"
import { columnStates, type Moved } from "../internal/columns.ts"
import { batchOf, type Columns, type Kernel } from "../internal/episodes.ts"
import { fastest, highest, hillSvg, hillText, lowest } from "../internal/hill.ts"
import { box, discrete, type Discrete } from "../Space.ts"
import { mountainCar } from "../ui/mountainCar.ts"

const goal = 0.5
const force = 0.001
const gravity = 0.0025

const clip = (value: number, low: number, high: number): number => Math.min(Math.max(value, low), high)

/** Computes one step of the car, without a time limit. */
export const dynamics = (state: ArrayLike<number>, action: number): Moved => {
  const speed = clip(state[1] + ((action - 1) * force + cos(3 * state[0]) * -gravity), -fastest, fastest)
  const position = clip(state[0] + speed, lowest, highest)
  const velocity = position === lowest && speed < 0 ? 0 : speed
  const next = [position, velocity]
  return {
    state: next,
    observation: next.map(Math.fround),
    reward: -1,
    terminated: position >= goal && velocity >= 0,
  }
}

/** Steps all envs of a batch: it does the same arithmetic as `dynamics`, over columns. */
const kernel = ({ numEnvs, observations, rewards, terminated }: Columns): Kernel => {
  const positions = new Float64Array(numEnvs)
  const velocities = new Float64Array(numEnvs)

  const start = (index: number, random: Stream): void => {
    positions[index] = random.between(-0.6, -0.4)
    velocities[index] = 0
    observations[2 * index] = positions[index]
    observations[2 * index + 1] = 0
  }

  const advance = (actions: Float32Array | Int32Array, waiting: Uint8Array): void => {
    for (let index = 0; index < numEnvs; index++) {
      if (waiting[index] !== 0) continue
      const from = positions[index]
      const speed = clip(
        velocities[index] + ((actions[index] - 1) * force + cos(3 * from) * -gravity),
        -fastest,
        fastest,
      )
      const position = clip(from + speed, lowest, highest)
      const velocity = position === lowest && speed < 0 ? 0 : speed
      positions[index] = position
      velocities[index] = velocity
      observations[2 * index] = position
      observations[2 * index + 1] = velocity
      rewards[index] = -1
      terminated[index] = position >= goal && velocity >= 0 ? 1 : 0
    }
  }

  return { start, advance, ...columnStates(env, { positions, velocities }) }
}

/** The env with its default options: `Batch.make(MountainCar.env, 16)`. */
export const env: Env<ReadonlyArray<number>, Discrete> = make({
  id: "MountainCar-v0",
  observationSpace: box([lowest, -fastest], [highest, fastest]),
  actionSpace: discrete(3),
  maxSteps: 200,
  rewardThreshold: -110,
  reset: (random): ReadonlyArray<number> => [random.between(-0.6, -0.4), 0],
  observe: (state) => state,
  step: (state, action) => dynamics(state, action),
  renderText: ([position, velocity]) => hillText(position, velocity, goal),
  renderSvg: ([position, velocity]) => hillSvg("MountainCar-v0", position, velocity, goal),
  ui: mountainCar("MountainCar-v0", { lowest, highest, goal, continuous: false }),
  batch: (numEnvs, options) => batchOf(env, numEnvs, options, kernel),
})
