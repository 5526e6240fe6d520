/**
 * CartPole-v1: keep a pole upright on a cart by pushing the cart left (0) or right (1). The reward is 1 per step; an
 * episode has at most 500 steps.
 *
 * A state is [x, x velocity, angle, angular velocity]; the observation is the state. The dynamics are Gymnasium's
 * (Barto, Sutton and Anderson 1983, Euler steps of 0.02 s), number for number.
 */
import { cos, sin } from "../../rng/Elementary.ts"
import type { Stream } from "../../rng/Rng.ts"
import { make, type Env } from "../Env.ts"
import { columnStates, type Moved } from "../internal/columns.ts"
import { canvas, caption, disc, palette, short, slab, stroke, svg } from "../internal/draw.ts"
import { batchOf, type Columns, type Kernel } from "../internal/episodes.ts"
import { box, discrete, type Discrete } from "../Space.ts"
import { cartPole } from "../ui/cartPole.ts"

const gravity = 9.8
const poleMass = 0.1
const totalMass = poleMass + 1
/** The distance from the pivot to the pole's centre, which is half its length. */
const length = 0.5
const poleMassLength = poleMass * length
const force = 10
const tau = 0.02
const farthest = 2.4
const steepest = (12 * 2 * Math.PI) / 360
const spread = 0.05

/** Computes one step of the cart and the pole, without a time limit. */
export const dynamics = (state: ArrayLike<number>, action: number): Moved => {
  const push = action === 1 ? force : -force
  const sine = sin(state[2])
  const cosine = cos(state[2])
  const pull = (push + poleMassLength * (state[3] * state[3]) * sine) / totalMass
  const turn = (gravity * sine - cosine * pull) / (length * (4 / 3 - (poleMass * (cosine * cosine)) / totalMass))
  const acceleration = pull - (poleMassLength * turn * cosine) / totalMass
  const next = [
    state[0] + tau * state[1],
    state[1] + tau * acceleration,
    state[2] + tau * state[3],
    state[3] + tau * turn,
  ]
  const terminated = next[0] < -farthest || next[0] > farthest || next[2] < -steepest || next[2] > steepest
  return { state: next, observation: next.map(Math.fround), reward: 1, terminated }
}

/**
 * Steps all envs of a batch: it does the same arithmetic as `dynamics`, in the same order, over columns. A property test
 * compares the two, bit for bit.
 */
const kernel = ({ numEnvs, observations, rewards, terminated }: Columns): Kernel => {
  const x = new Float64Array(numEnvs)
  const xVelocity = new Float64Array(numEnvs)
  const angle = new Float64Array(numEnvs)
  const spin = new Float64Array(numEnvs)

  const start = (index: number, random: Stream): void => {
    x[index] = random.between(-spread, spread)
    xVelocity[index] = random.between(-spread, spread)
    angle[index] = random.between(-spread, spread)
    spin[index] = random.between(-spread, spread)
    observations[4 * index] = x[index]
    observations[4 * index + 1] = xVelocity[index]
    observations[4 * index + 2] = angle[index]
    observations[4 * index + 3] = spin[index]
  }

  const advance = (actions: Float32Array | Int32Array, waiting: Uint8Array): void => {
    for (let index = 0; index < numEnvs; index++) {
      if (waiting[index] !== 0) continue
      const push = actions[index] === 1 ? force : -force
      const theta = angle[index]
      const omega = spin[index]
      const velocity = xVelocity[index]
      const sine = sin(theta)
      const cosine = cos(theta)
      const pull = (push + poleMassLength * (omega * omega) * sine) / totalMass
      const turn = (gravity * sine - cosine * pull) / (length * (4 / 3 - (poleMass * (cosine * cosine)) / totalMass))
      const acceleration = pull - (poleMassLength * turn * cosine) / totalMass
      const nextX = x[index] + tau * velocity
      const nextVelocity = velocity + tau * acceleration
      const nextTheta = theta + tau * omega
      const nextOmega = omega + tau * turn
      x[index] = nextX
      xVelocity[index] = nextVelocity
      angle[index] = nextTheta
      spin[index] = nextOmega
      const at = 4 * index
      observations[at] = nextX
      observations[at + 1] = nextVelocity
      observations[at + 2] = nextTheta
      observations[at + 3] = nextOmega
      rewards[index] = 1
      terminated[index] = nextX < -farthest || nextX > farthest || nextTheta < -steepest || nextTheta > steepest ? 1 : 0
    }
  }

  return { start, advance, ...columnStates(env, { x, xVelocity, angle, spin }) }
}

/** The env with its default options: `Batch.make(CartPole.env, 1024)`. */
export const env: Env<ReadonlyArray<number>, Discrete> = make({
  id: "CartPole-v1",
  observationSpace: box(
    [-2 * farthest, Number.NEGATIVE_INFINITY, -2 * steepest, Number.NEGATIVE_INFINITY],
    [2 * farthest, Number.POSITIVE_INFINITY, 2 * steepest, Number.POSITIVE_INFINITY],
  ),
  actionSpace: discrete(2),
  maxSteps: 500,
  rewardThreshold: 475,
  reset: (random): ReadonlyArray<number> => [
    random.between(-spread, spread),
    random.between(-spread, spread),
    random.between(-spread, spread),
    random.between(-spread, spread),
  ],
  observe: (state) => state,
  step: (state, action) => dynamics(state, action),
  renderText: ([x, , angle]) => {
    const { put, line, write, text } = canvas(61, 12, { width: 2 * farthest, height: 1.9 })
    line({ x: -farthest, y: -0.9 }, { x: farthest, y: -0.9 }, "─")
    line({ x, y: -0.6 }, { x: x + 1.3 * sin(angle), y: -0.6 + 1.3 * cos(angle) }, "•")
    for (let dx = -0.22; dx <= 0.22; dx += 0.07) put(x + dx, -0.72, "█")
    write(0, 0, `x ${short(x)} m  angle ${short((angle * 180) / Math.PI)}°`)
    return text()
  },
  renderSvg: ([x, , angle]) => {
    const hinge = { x: 300 + x * 120, y: 190 }
    const tip = { x: hinge.x + 130 * sin(angle), y: hinge.y - 130 * cos(angle) }
    return svg("CartPole-v1", 600, 260, [
      stroke({ x: 12, y: 222 }, { x: 588, y: 222 }, palette.faint, 3),
      slab({ x: hinge.x - 36, y: 186 }, 72, 28, palette.body),
      disc({ x: hinge.x - 20, y: 215 }, 7, palette.ink),
      disc({ x: hinge.x + 20, y: 215 }, 7, palette.ink),
      stroke(hinge, tip, palette.pole, 9),
      disc(hinge, 5, palette.joint),
      caption(`x ${short(x)} m, angle ${short((angle * 180) / Math.PI)}°`),
    ])
  },
  ui: cartPole("CartPole-v1", { farthest, steepest }),
  batch: (numEnvs, options) => batchOf(env, numEnvs, options, kernel),
})
