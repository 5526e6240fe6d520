// A network of your own: attention over the parts of CartPole's observation, and a layer that is a function of tensors.
//   npx effect run examples/own-parts/own-network.ts
import { CartPole, Graph, Initialisers, Network, Ppo, Train } from "effect-rl"

/** Multiplies each feature by a learned factor. */
const scaled = Network.custom("scaled", {
  parameters: (shape) => ({ factors: { shape, init: Initialisers.constant(1) } }),
  apply: ({ factors }, x) => Graph.mul(x, factors),
})

/** Reads position, speed, angle and spin as four tokens, which attend to each other. */
const network = Network.sequential([
  scaled,
  Network.reshape(4, 1),
  Network.dense(32),
  Network.positions(),
  Network.residual([Network.norm, Network.attention({ heads: 4 })]),
  Network.residual([Network.norm, Network.dense(64), Network.gelu, Network.dense(32)]),
  Network.flatten,
  Network.dense(64),
  Network.tanh,
])

export default Train.run({
  env: CartPole.env,
  // From vectors, an actor and a critic learn better with two networks than with one that they share.
  algorithm: Ppo.make({
    network: { actor: network, critic: network },
    learningRate: 1e-3,
    schedule: { type: "cosine", warmUp: 0.05 },
  }),
  totalSteps: 100_000,
  validation: { everySteps: 20_000, episodes: 20 },
})
