// IQL learns to swing a pendulum up from data of mixed quality, without playing: a rough controller that a third of the time
// does something random, and random play. Behaviour cloning imitates both.
//   npx effect run examples/demonstrations/iql-pendulum.ts --seed 1
import { Iql, Pendulum, Rng, Train, Transitions } from "effect-rl"

const random = Rng.stream(1, "examples/demonstrations/iql-pendulum")

/** Pumps energy into the pendulum, balances it near the top, and errs often. */
const rough = ([cos, sin, speed]: ReadonlyArray<number>): ReadonlyArray<number> => {
  if (random.uniform() < 0.35) return [random.between(-2, 2)]
  const torque = cos > 0.8 ? -8 * sin - 2 * speed : 2 * Math.sign(speed)
  return [Math.min(2, Math.max(-2, torque))]
}

export const transitions = Transitions.concat([
  Transitions.record(Pendulum.env, { episodes: 50, policy: rough, seed: 1 }),
  Transitions.record(Pendulum.env, { episodes: 50, policy: "random", seed: 2 }),
])

export default Train.run({
  env: Pendulum.env,
  algorithm: Iql.make(transitions, { learningRate: 1e-3, expectile: 0.9 }),
  totalSteps: 2_560_000,
  validation: { everySteps: 512_000, episodes: 20 },
})
