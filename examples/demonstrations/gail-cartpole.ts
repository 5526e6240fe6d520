// GAIL: ten episodes of somebody who knows how; the env's rewards are never seen, except in validations.
//   npx effect run examples/demonstrations/gail-cartpole.ts --seed 1
import { CartPole, Demonstrations, Gail, Train } from "effect-rl"

const shown = Demonstrations.record(CartPole.env, {
  episodes: 10,
  policy: ([at, speed, angle, spin]) => (0.02 * at + 0.05 * speed + angle + 0.25 * spin > 0 ? 1 : 0),
})

export default Train.run({
  env: CartPole.env,
  algorithm: Gail.make(shown, {
    learningRate: 1e-3,
    nsteps: 64,
    epochs: 10,
    entropyCoefficient: 0,
    clipValue: false,
  }),
  totalSteps: 100_000,
  validation: { everySteps: 10_000, episodes: 20 },
})
