/**
 * MountainCarContinuous-v0: the car of MountainCar with a force from −1 to 1. Reaching the flag is worth 100; each step
 * costs a tenth of the squared force. An episode has at most 999 steps.
 *
 * A state is [position, velocity]; the observation is the state. The dynamics are Gymnasium's, which keeps the state in
 * float32 from step to step.
 */
import { cos } from "../../rng/Elementary.ts"
import type { Stream } from "../../rng/Rng.ts"
import { make, type Env } from "../Env.ts"
import { columnStates, type Moved } from "../internal/columns.ts"
import { batchOf, type Columns, type Kernel } from "../internal/episodes.ts"
import { fastest, highest, hillSvg, hillText, lowest } from "../internal/hill.ts"
import { box, type Box } from "../Space.ts"
import { mountainCar } from "../ui/mountainCar.ts"

const goal = 0.45
const power = 0.0015

const clip = (value: number, low: number, high: number): number => Math.min(Math.max(value, low), high)

/** Computes one step of the car, without a time limit. */
export const dynamics = (state: ArrayLike<number>, action: ArrayLike<number>): Moved => {
  const force = clip(action[0], -1, 1)
  const speed = clip(state[1] + (force * power - 0.0025 * cos(3 * state[0])), -fastest, fastest)
  const position = clip(state[0] + speed, lowest, highest)
  const velocity = position === lowest && speed < 0 ? 0 : speed
  const terminated = position >= goal && velocity >= 0
  const next = [Math.fround(position), Math.fround(velocity)]
  return { state: next, observation: next, reward: (terminated ? 100 : 0) - action[0] * action[0] * 0.1, terminated }
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
      const action = actions[index]
      const from = positions[index]
      const force = clip(action, -1, 1)
      const speed = clip(velocities[index] + (force * power - 0.0025 * cos(3 * from)), -fastest, fastest)
      const position = clip(from + speed, lowest, highest)
      const velocity = position === lowest && speed < 0 ? 0 : speed
      const ended = position >= goal && velocity >= 0
      positions[index] = Math.fround(position)
      velocities[index] = Math.fround(velocity)
      observations[2 * index] = position
      observations[2 * index + 1] = velocity
      rewards[index] = (ended ? 100 : 0) - action * action * 0.1
      terminated[index] = ended ? 1 : 0
    }
  }

  return { start, advance, ...columnStates(env, { positions, velocities }) }
}

/** The env with its default options: `Batch.make(MountainCarContinuous.env, 16)`. */
export const env: Env<ReadonlyArray<number>, Box> = make({
  id: "MountainCarContinuous-v0",
  observationSpace: box([lowest, -fastest], [highest, fastest]),
  actionSpace: box(-1, 1),
  maxSteps: 999,
  rewardThreshold: 90,
  reset: (random): ReadonlyArray<number> => [random.between(-0.6, -0.4), 0],
  observe: (state) => state,
  step: (state, action) => dynamics(state, action),
  renderText: ([position, velocity]) => hillText(position, velocity, goal),
  renderSvg: ([position, velocity]) => hillSvg("MountainCarContinuous-v0", position, velocity, goal),
  ui: mountainCar("MountainCarContinuous-v0", { lowest, highest, goal, continuous: true }),
  batch: (numEnvs, options) => batchOf(env, numEnvs, options, kernel),
})
