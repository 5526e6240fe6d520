// Callbacks of your own: one lowers the learning rate and ends the training, one logs. A resumed run goes on bit for bit.
//   npx effect run examples/own-parts/own-callback.ts
import { Effect } from "effect"
import { Callback, CartPole, Ppo, Train } from "effect-rl"

/** Halves the learning rate after a validation that was no better, and stops when the pole stays up. */
const plateau = Callback.make({
  name: "plateau",
  memory: { best: -Infinity },
  afterValidation: ({ validation: { meanReturn }, memory, scaleLearningRate, stop }) =>
    Effect.gen(function* () {
      if (meanReturn >= 475) return yield* stop(`the mean return of a validation is ${meanReturn}`)
      if (meanReturn <= memory.best) yield* scaleLearningRate(0.5)
      memory.best = Math.max(memory.best, meanReturn)
    }),
})

/** Logs how fast the policy becomes certain, next to the learner's own metrics. */
const certainty = Callback.make({
  name: "certainty",
  memory: { last: 0 },
  afterUpdate: ({ metrics, memory, log }) => {
    const entropy = metrics["losses/entropy"]
    const change = entropy - memory.last
    memory.last = entropy
    return log({ "charts/entropy_change": change })
  },
})

export default Train.run({
  env: CartPole.env,
  algorithm: Ppo.make({ learningRate: 1e-3 }),
  totalSteps: 200_000,
  validation: { everySteps: 20_000, episodes: 10 },
  callbacks: [plateau, certainty],
})
