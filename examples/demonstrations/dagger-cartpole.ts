// DAgger: an expert says what it would do in the states that the learner meets. 400 answers are enough.
//   npx effect run examples/demonstrations/dagger-cartpole.ts --seed 1
import { CartPole, Dagger, Train } from "effect-rl"

/** Balances the pole and drives back to the middle. In its place, Policy.load can load the policy of another run. */
const expert = ([at, speed, angle, spin]: ReadonlyArray<number>) =>
  0.02 * at + 0.05 * speed + angle + 0.25 * spin > 0 ? 1 : 0

export default Train.run({
  env: CartPole.env,
  numEnvs: 2,
  algorithm: Dagger.make(expert, { nsteps: 25, epochs: 40, betaFraction: 0.25 }),
  totalSteps: 400,
  validation: { everySteps: 100, episodes: 20 },
})
