// A loss of your own: PPO with a term of behaviour cloning, from ten episodes of somebody who knows how.
//   npx effect run examples/own-parts/own-loss.ts
import { CartPole, Demonstrations, Graph, Learner, Losses, Ppo, Train } from "effect-rl"

const demonstrations = Demonstrations.record(CartPole.env, {
  episodes: 10,
  policy: ([at, speed, angle, spin]) => (0.02 * at + 0.05 * speed + angle + 0.25 * spin > 0 ? 1 : 0),
})

/** Adds the unlikeliness of the demonstrated actions to PPO's loss. Each update draws 64 demonstrated steps. */
const loss = Learner.lossWith(demonstrations, { batchSize: 64 }, (_, out, shown) => {
  const { distribution } = out.evaluate(shown.observations)
  const cloning = Losses.behaviourCloning(distribution.logProbability(shown.actions))
  return { loss: Graph.add(out.loss, Graph.mul(cloning, 0.02)), metrics: { "losses/cloning": cloning } }
})

export default Train.run({
  env: CartPole.env,
  algorithm: Ppo.make({ loss, learningRate: 1e-3 }),
  totalSteps: 50_000,
  validation: { everySteps: 10_000, episodes: 20 },
})
