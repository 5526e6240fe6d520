// Behaviour cloning: ten episodes of somebody who knows how, and no reward at all.
//   npx effect run examples/demonstrations/bc-cartpole.ts --seed 1
import { Bc, CartPole, Demonstrations, Train } from "effect-rl"

const shown = Demonstrations.record(CartPole.env, {
  episodes: 10,
  policy: ([at, speed, angle, spin]) => (0.02 * at + 0.05 * speed + angle + 0.25 * spin > 0 ? 1 : 0),
})

export default Train.run({
  env: CartPole.env,
  algorithm: Bc.make(shown),
  totalSteps: 50_000,
  validation: { everySteps: 10_000, episodes: 20 },
})
