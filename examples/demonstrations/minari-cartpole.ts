// Writes a data set in the format of Minari, reads it, and learns from it by behaviour cloning.
//   npx effect run examples/demonstrations/minari-cartpole.ts --seed 1
import { Effect } from "effect"
import { Bc, CartPole, Train, Transitions } from "effect-rl"
import * as Node from "effect-rl/node"

const folder = "results/data-sets/cartpole/expert-v0"

const prepare = Effect.gen(function* () {
  const expert = Transitions.record(CartPole.env, {
    episodes: 10,
    policy: ([at, speed, angle, spin]) => (0.02 * at + 0.05 * speed + angle + 0.25 * spin > 0 ? 1 : 0),
  })
  yield* Transitions.toMinari(CartPole.env, folder, expert, { id: "cartpole/expert-v0" })
  // In place of this one, any data set with the spaces of the env: minari download …
  return yield* Transitions.fromMinari(CartPole.env, folder)
})

export default Train.run({
  env: CartPole.env,
  algorithm: Bc.make(await Effect.runPromise(prepare.pipe(Effect.provide(Node.platform)))),
  totalSteps: 50_000,
  validation: { everySteps: 10_000, episodes: 20 },
})
