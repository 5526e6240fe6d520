/**
 * Measures from which size of minibatch a second process pays that computes half of the gradients: the steps per second of
 * PPO's rollouts and updates, on two ranks and on one, in turn. Both compute the same two slices of each minibatch.
 */
import { Effect, Layer, Logger } from "effect"
import { CartPole, Ppo } from "effect-rl"
import { backend, trainingRanks } from "effect-rl/node"
import * as Batch from "../../src/rl/env/Batch.ts"
import { Ranks, type RanksService } from "../../src/spread/ranks/Ranks.ts"
import { TrainingRanks } from "../../src/spread/ranks/TrainingRanks.ts"
import { defineBench } from "../Bench.ts"
import { learnerOf } from "../../src/rl/learner/learnerOf.ts"

const numEnvs = 64
const minibatches = 2
const rounds = 7

const bench = (minibatch: number, hidden: ReadonlyArray<number>) =>
  defineBench({
    name: `ppo-ranks-${minibatch}-${hidden[0]}`,
    unit: "× one rank",
    higherIsBetter: true,
    about: `PPO on CartPole, minibatches of ${minibatch.toLocaleString("en")}, ${hidden.join("-")}: steps/s of two processes against one`,
    run: () => {
      let joined = false
      const watching = Logger.layer([
        Logger.make(({ message }) => void (joined ||= String(message) === "rank 1 computes slices")),
      ])
      return Effect.gen(function* () {
        const nsteps = (minibatch * minibatches) / numEnvs
        const rows = numEnvs * nsteps
        const task = { ...CartPole.env, numEnvs, totalSteps: 1e9, seed: 1 }
        const settings = { nsteps, minibatches, epochs: 4, slices: 2, hidden }

        /** Makes a learner whose slices these ranks compute; returns what measures the seconds of an iteration. */
        const learnerOn = Effect.fnUntraced(function* (ranks: RanksService | undefined) {
          const algorithm = yield* Ppo.make(settings).configure(settings, { source: "bench" })
          const learner = yield* learnerOf(algorithm, task)
          const envs = Batch.make(CartPole.env, numEnvs)
          envs.reset(1, "env")
          let iteration = 0
          const iterate = Effect.gen(function* () {
            const begun = performance.now()
            const position = { iteration, step: iteration++ * rows }
            yield* learner.rollout(envs, position)
            yield* learner.update(position)
            // The ranks join between two iterations, as in a training.
            yield* Effect.yieldNow
            return (performance.now() - begun) / 1000
          })
          return ranks === undefined ? iterate : Effect.provideService(iterate, Ranks, ranks)
        })
        const [one, two] = [yield* learnerOn(undefined), yield* learnerOn(yield* (yield* TrainingRanks).start(2))]
        while (!joined) yield* Effect.andThen(two, Effect.sleep("10 millis"))

        const [seconds1, seconds2]: [Array<number>, Array<number>] = [[], []]
        for (let round = 0; round < rounds; round++) {
          for (let time = 0; time < Math.ceil(8192 / rows); time++) {
            seconds1.push(yield* one)
            seconds2.push(yield* two)
          }
        }
        const median = (values: Array<number>) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]
        const [speed1, speed2] = [rows / median(seconds1), rows / median(seconds2)]
        return {
          value: speed2 / speed1,
          details: { "steps/s of one": Math.round(speed1), "steps/s of two": Math.round(speed2) },
        }
      }).pipe(
        Effect.scoped,
        Effect.provide(Layer.mergeAll(backend("wasm"), trainingRanks(), watching)),
        Effect.runPromise,
      )
    },
  })

export default [
  ...[256, 1024, 4096, 16_384].map((minibatch) => bench(minibatch, [64, 64])),
  bench(1024, [256, 256]),
  bench(4096, [256, 256]),
]
