/**
 * DoubleIntegrator-v0: a force moves a mass on a line; bring the mass to rest in the middle. It is the simplest
 * continuous control task, and its best policy is known: the linear one of the linear-quadratic regulator (LQR).
 *
 * A state is [position x, velocity v], as is the observation; the action u is a force from −1 to 1. A step takes 0.1 s
 * and costs 0.1 (x² + 0.1 v² + 0.1 u²); an episode has 100 steps.
 */
import { make, type Env } from "../Env.ts"
import { clip, type Moved } from "../internal/motion.ts"
import { box, type Box } from "../Space.ts"
import { doubleIntegrator } from "../ui/doubleIntegrator.ts"
import { picturesOf } from "../ui/pictures.ts"

const tau = 0.1
const farthest = 5
const fastest = 5
const strongest = 1

/** Computes one step of the mass, without a time limit. */
export const dynamics = (state: ArrayLike<number>, action: ArrayLike<number>): Moved => {
  const force = clip(action[0], strongest)
  const cost = state[0] * state[0] + 0.1 * state[1] * state[1] + 0.1 * force * force
  const velocity = clip(state[1] + force * tau, fastest)
  const position = clip(state[0] + velocity * tau, farthest)
  const next = [position, velocity]
  return { state: next, observation: next.map(Math.fround), reward: -cost * tau, terminated: false }
}

/**
 * Returns the gains k of the best policy, for position and velocity: it sets the force u to −k · state. They solve the
 * discrete Riccati equation, which holds as long as neither the state nor the force is clipped.
 */
export const gains = (): readonly [number, number] => {
  // The next state [x', v'] is A [x, v] + B u, because v' = v + τ u and x' = x + τ v'. Here a12, b1, b2 are elements of
  // A and B; q1, q2, r are the weights of the cost (Q is the matrix with q1, q2 on its diagonal); p11, p12, p22 are
  // elements of the symmetric matrix P, by which a state's future cost is stateᵀ P state.
  const [a12, b1, b2] = [tau, tau * tau, tau]
  const [q1, q2, r] = [1, 0.1, 0.1]
  let [p11, p12, p22] = [q1, 0, q2]
  let k: readonly [number, number] = [0, 0]
  for (let sweep = 0; sweep < 2000; sweep++) {
    const pb1 = p11 * b1 + p12 * b2
    const pb2 = p12 * b1 + p22 * b2
    const s = r + b1 * pb1 + b2 * pb2
    k = [pb1 / s, (a12 * pb1 + pb2) / s]
    // This is one step of the Riccati iteration: P ← Q + Aᵀ P (A − B k).
    const [c11, c12, c21, c22] = [1 - b1 * k[0], a12 - b1 * k[1], -b2 * k[0], 1 - b2 * k[1]]
    const [d11, d12] = [p11 * c11 + p12 * c21, p11 * c12 + p12 * c22]
    const d22 = p12 * c12 + p22 * c22
    p11 = q1 + d11
    p22 = q2 + a12 * d12 + d22
    p12 = d12
  }
  return k
}

/** The env, which has no options: `Batch.make(DoubleIntegrator.env, 16)`. */
export const env: Env<ReadonlyArray<number>, Box, Box> = make({
  id: "DoubleIntegrator-v0",
  observationSpace: box([-farthest, -fastest], [farthest, fastest]),
  actionSpace: box(-strongest, strongest),
  maxSteps: 100,
  reset: (random): ReadonlyArray<number> => [random.between(-1, 1), random.between(-1, 1)],
  observe: (state) => state,
  step: (state, action) => dynamics(state, action),
  ...picturesOf("DoubleIntegrator-v0", doubleIntegrator, { farthest, fastest, strongest }),
})
