// Trains a pole's policy, then goes on from its weights on shorter episodes, with other envs and a lower learning rate.
//   npx node examples/programs/fine-tune.ts
// With files, the second training can as well be a program of its own, `start: { from: "results/…/0001" }`, or an option:
//   npx effect run examples/cartpole.ts --set start.from=latest --set num_envs=32
import { Effect, Layer } from "effect"
import { CartPole, Ppo, Recorder, RunStore, Train, Wasm, Wrapper } from "effect-rl"

const train = (settings: Pick<Parameters<typeof Train.run>[0], "env" | "numEnvs" | "algorithm" | "start">) =>
  Train.run({ ...settings, totalSteps: 16_384, validation: { everySteps: 4096, episodes: 10 } })

const program = Effect.gen(function* () {
  const first = yield* train({ env: CartPole.env, numEnvs: 8, algorithm: Ppo.make({ learningRate: 1e-3, nsteps: 64 }) })

  const fineTuning = { env: Wrapper.timeLimit(CartPole.env, 300), numEnvs: 32, algorithm: Ppo.make({ nsteps: 32 }) }
  const tuned = yield* train({ ...fineTuning, start: { from: first.runDir, weights: "all" } })
  const fromScratch = yield* train(fineTuning)
  return { first, tuned, fromScratch }
})

export const outcome = await Effect.runPromise(
  Effect.provide(program, Layer.mergeAll(Wasm.layer, RunStore.layerMemory, Recorder.layerSilent)),
)
const scores = Object.entries(outcome).map(([name, { validation }]) => `${name} ${validation?.meanReturn.toFixed(0)}`)
console.log(scores.join(", "))
