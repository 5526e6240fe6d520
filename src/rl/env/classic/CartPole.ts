/**
 * CartPole-v1: keep a pole upright on a cart by pushing the cart left (0) or right (1). The reward is 1 per step; an
 * episode has at most 500 steps.
 *
 * A state is [x, x velocity, angle, angular velocity]; the observation is the state. The dynamics are Gymnasium's
 * (Barto, Sutton and Anderson 1983, Euler steps of 0.02 s), number for number.
 */
import * as G from "../../../tensor/graph/ops.ts"
import { cos, sin } from "../../../base/rng/Elementary.ts"
import type { Env } from "../Env.ts"
import type { EnvGraph } from "../EnvGraph.ts"
import { type Motion, motionEnv, type Moved } from "../internal/motion.ts"
import { type Box, box, discrete, type Discrete } from "../Space.ts"
import { cartPole } from "../ui/cartPole.ts"
import { picturesOf } from "../ui/pictures.ts"

const gravity = 9.8
const poleMass = 0.1
const totalMass = poleMass + 1
/** The distance from the pivot to the pole's centre, which is half its length. */
const length = 0.5
const poleMassLength = poleMass * length
const force = 10
const tau = 0.02
// The episode ends beyond this distance from the middle (in metres) or this angle (in radians).
const farthest = 2.4
const steepest = (12 * 2 * Math.PI) / 360
/** The first state's four numbers are uniform from −spread to spread. */
const spread = 0.05

const advance: Motion["advance"] = (states, { observations, rewards, terminated }, actions, waiting) => {
  for (let index = 0; index < waiting.length; index++) {
    if (waiting[index] !== 0) continue
    const at = 4 * index
    const velocity = states[at + 1]
    const angle = states[at + 2]
    const spin = states[at + 3]
    const push = actions[index] === 1 ? force : -force
    const sine = sin(angle)
    const cosine = cos(angle)
    const pull = (push + poleMassLength * (spin * spin) * sine) / totalMass
    const spinChange =
      (gravity * sine - cosine * pull) / (length * (4 / 3 - (poleMass * (cosine * cosine)) / totalMass))
    const acceleration = pull - (poleMassLength * spinChange * cosine) / totalMass
    const nextX = states[at] + tau * velocity
    const nextVelocity = velocity + tau * acceleration
    const nextAngle = angle + tau * spin
    const nextSpin = spin + tau * spinChange
    states[at] = observations[at] = nextX
    states[at + 1] = observations[at + 1] = nextVelocity
    states[at + 2] = observations[at + 2] = nextAngle
    states[at + 3] = observations[at + 3] = nextSpin
    rewards[index] = 1
    terminated[index] = nextX < -farthest || nextX > farthest || nextAngle < -steepest || nextAngle > steepest ? 1 : 0
  }
}

/** Computes the same step as `advance`, in single precision, for all copies at once. */
const step: EnvGraph["step"] = (state, action) => {
  const [x, velocity, angle, spin] = G.split(state, [1, 1, 1, 1], 1)
  const push = G.reshape(G.where(G.equal(action, 1), force, -force), x.shape)
  const [sine, cosine] = [G.sin(angle), G.cos(angle)]
  const pull = G.div(G.add(push, G.mul(G.mul(G.square(spin), sine), poleMassLength)), totalMass)
  const inertia = G.mul(G.sub(4 / 3, G.mul(G.square(cosine), poleMass / totalMass)), length)
  const spinChange = G.div(G.sub(G.mul(sine, gravity), G.mul(cosine, pull)), inertia)
  const acceleration = G.sub(pull, G.mul(G.mul(spinChange, cosine), poleMassLength / totalMass))
  const nextX = G.add(x, G.mul(velocity, tau))
  const nextAngle = G.add(angle, G.mul(spin, tau))
  const next = [nextX, G.add(velocity, G.mul(acceleration, tau)), nextAngle, G.add(spin, G.mul(spinChange, tau))]
  const ended = G.or(G.greater(G.abs(nextX), farthest), G.greater(G.abs(nextAngle), steepest))
  const rows = [x.shape[0]]
  return { state: G.concat(next, 1), reward: G.constant(1, rows), terminated: G.reshape(ended, rows) }
}

const motion = motionEnv({
  id: "CartPole-v1",
  observationSpace: box(
    [-2 * farthest, Number.NEGATIVE_INFINITY, -2 * steepest, Number.NEGATIVE_INFINITY],
    [2 * farthest, Number.POSITIVE_INFINITY, 2 * steepest, Number.POSITIVE_INFINITY],
  ),
  actionSpace: discrete(2),
  maxSteps: 500,
  rewardThreshold: 475,
  columns: ["x", "xVelocity", "angle", "spin"],
  reset: (states, at, random) => {
    for (let number = 0; number < 4; number++) states[at + number] = random.between(-spread, spread)
  },
  advance,
  // From its steepest start, the pole takes this many steps to fall if every push helps it.
  graph: { shortest: 8, observe: (state) => state, step },
  ...picturesOf("CartPole-v1", cartPole, { farthest, steepest }),
})

/** Computes one step of the cart and the pole, without a time limit. */
export const dynamics: (state: ArrayLike<number>, action: number) => Moved = motion.dynamics

/** The env, which has no options: `Batch.make(CartPole.env, 1024)`. */
export const env: Env<ReadonlyArray<number>, Discrete, Box> = motion.env
