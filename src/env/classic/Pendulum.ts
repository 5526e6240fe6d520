/**
 * Pendulum-v1: swing a pendulum up and hold it there with a torque of at most 2 N m. The reward is minus a cost of the
 * angle from upright, the speed and the torque; an episode has 200 steps.
 *
 * A state is [angle, angular velocity]: the angle is 0 when upright and is never wrapped. The observation is [cos, sin,
 * velocity]. The dynamics are Gymnasium's.
 */
import { cos, sin } from "../../rng/Elementary.ts"
import type { Stream } from "../../rng/Rng.ts"
import { make, type Env } from "../Env.ts"
import { columnStates, type Moved } from "../internal/columns.ts"
import { canvas, caption, disc, palette, short, stroke, svg } from "../internal/draw.ts"
import { batchOf, type Columns, type Kernel } from "../internal/episodes.ts"
import { box, type Box } from "../Space.ts"
import { pendulum } from "../ui/pendulum.ts"

const fastest = 8
const strongest = 2
const tau = 0.05
const gravity = 10
const turn = 2 * Math.PI

/** Returns the same angle within [−π, π). */
const wrapped = (angle: number): number => {
  const raised = angle + Math.PI
  // For an angle at most one turn outside, the remainder is one exact subtraction; `%` is many times slower.
  if (raised >= 0 && raised < 2 * turn) return (raised < turn ? raised : raised - turn) - Math.PI
  const rest = raised % turn
  return (rest < 0 ? rest + turn : rest) - Math.PI
}

const clip = (value: number, limit: number): number => Math.min(Math.max(value, -limit), limit)

/** Computes one step of the pendulum, without a time limit. */
export const dynamics = (state: ArrayLike<number>, action: ArrayLike<number>): Moved => {
  const torque = clip(action[0], strongest)
  const away = wrapped(state[0])
  const cost = away * away + 0.1 * (state[1] * state[1]) + 0.001 * (torque * torque)
  const velocity = clip(state[1] + (((3 * gravity) / 2) * sin(state[0]) + 3 * torque) * tau, fastest)
  const angle = state[0] + velocity * tau
  return { state: [angle, velocity], observation: see([angle, velocity]), reward: -cost, terminated: false }
}

const see = ([angle, velocity]: ReadonlyArray<number>): ReadonlyArray<number> =>
  [cos(angle), sin(angle), velocity].map(Math.fround)

/** Steps all envs of a batch: it does the same arithmetic as `dynamics`, over columns. */
const kernel = ({ numEnvs, observations, rewards }: Columns): Kernel => {
  const angles = new Float64Array(numEnvs)
  const velocities = new Float64Array(numEnvs)
  /** The sines of the current angles, computed for the observation and used again by the next step. */
  const sines = new Float64Array(numEnvs)

  const look = (index: number): void => {
    sines[index] = sin(angles[index])
    observations[3 * index] = cos(angles[index])
    observations[3 * index + 1] = sines[index]
    observations[3 * index + 2] = velocities[index]
  }

  const start = (index: number, random: Stream): void => {
    angles[index] = random.between(-Math.PI, Math.PI)
    velocities[index] = random.between(-1, 1)
    look(index)
  }

  const advance = (actions: Float32Array | Int32Array, waiting: Uint8Array): void => {
    for (let index = 0; index < numEnvs; index++) {
      if (waiting[index] !== 0) continue
      const torque = clip(actions[index], strongest)
      const angle = angles[index]
      const velocity = velocities[index]
      const away = wrapped(angle)
      const cost = away * away + 0.1 * (velocity * velocity) + 0.001 * (torque * torque)
      const next = clip(velocity + (((3 * gravity) / 2) * sines[index] + 3 * torque) * tau, fastest)
      velocities[index] = next
      angles[index] = angle + next * tau
      rewards[index] = -cost
      look(index)
    }
  }

  return { start, advance, ...columnStates(env, { angles, velocities, sines }) }
}

/** The env with its default options: `Batch.make(Pendulum.env, 64)`. */
export const env: Env<ReadonlyArray<number>, Box> = make({
  id: "Pendulum-v1",
  observationSpace: box([-1, -1, -fastest], [1, 1, fastest]),
  actionSpace: box(-strongest, strongest),
  maxSteps: 200,
  reset: (random): ReadonlyArray<number> => [random.between(-Math.PI, Math.PI), random.between(-1, 1)],
  observe: see,
  step: (state, action) => dynamics(state, action),
  renderText: ([angle, velocity]) => {
    const { put, line, write, text } = canvas(41, 19, { width: 2.6, height: 2.6 })
    line({ x: 0, y: 0 }, { x: -sin(angle), y: cos(angle) }, "•")
    put(0, 0, "◉")
    write(0, 0, `angle ${short(wrapped(angle))}  velocity ${short(velocity)}`)
    return text()
  },
  renderSvg: ([angle, velocity]) => {
    const hinge = { x: 160, y: 170 }
    const tip = { x: 160 - 110 * sin(angle), y: 170 - 110 * cos(angle) }
    return svg("Pendulum-v1", 320, 320, [
      stroke(hinge, { x: 160, y: 48 }, palette.faint, 3),
      stroke(hinge, tip, palette.pole, 16),
      disc(hinge, 6, palette.ink),
      caption(`angle ${short(wrapped(angle))}, velocity ${short(velocity)}`),
    ])
  },
  ui: pendulum("Pendulum-v1", { strongest }),
  batch: (numEnvs, options) => batchOf(env, numEnvs, options, kernel),
})
