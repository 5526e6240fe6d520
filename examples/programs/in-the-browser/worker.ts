// A training in a web worker. It keeps the run in the browser's database, and tells the page how it goes.
import { Effect, Layer } from "effect"
import { CartPole, Ppo, Recorder, RunStore, Train } from "effect-rl"
import * as Web from "effect-rl/web"

declare const self: { readonly postMessage: (message: string) => void }

const training = Train.run({
  env: CartPole.env,
  numEnvs: 8,
  algorithm: Ppo.make({ learningRate: 1e-3, nsteps: 64, epochs: 10, entropyCoefficient: 0, clipValue: false }),
  totalSteps: 20_000,
  validation: { everySteps: 5000, episodes: 20 },
})

/** Tells the page the result of each validation. */
const toPage = Recorder.layer(() =>
  Effect.succeed({
    emit: (events) =>
      Effect.sync(() => {
        for (const event of events) {
          if (event._tag !== "ValidationEnded") continue
          self.postMessage(`step ${event.step}: mean return ${event.meanReturn.toFixed(1)}`)
        }
      }),
    flush: Effect.void,
  }),
)
const kept = RunStore.layerObjects().pipe(Layer.provide(Web.layerIndexedDb("in-the-browser")))

const program = training.pipe(
  Effect.map(({ digest }) => `digest ${digest}`),
  Effect.catch(({ message }) => Effect.succeed(message)),
  Effect.provide(Layer.mergeAll(Web.layer, kept, toPage)),
  Effect.map((message) => self.postMessage(message)),
)
Effect.runFork(program)
