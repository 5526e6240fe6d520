// Records a training with a sink of your own, next to a built-in one: no files, no command.
//   npx node examples/own-parts/own-recorder.ts
import { Effect, Layer } from "effect"
import { CartPole, Ppo, Recorder, RunStore, scores, type Sink, Train, Wasm } from "effect-rl"

const training = Train.run({
  env: CartPole.env,
  algorithm: Ppo.make({ learningRate: 1e-3, nsteps: 64 }),
  totalSteps: 40_000,
  validation: { everySteps: 20_000, episodes: 10 },
})

/** A sink gets the events of a run in batches. This one counts episodes, and prints the number whenever it is flushed. */
const counting: Sink = () =>
  Effect.sync(() => {
    let episodes = 0
    return {
      emit: (events) =>
        Effect.sync(() => void (episodes += events.filter(({ _tag }) => _tag === "EpisodeEnded").length)),
      flush: Effect.suspend(() => Effect.log(`${episodes} episodes so far`)),
    }
  })

const within = (recorder: Layer.Layer<Recorder>) =>
  Effect.provide(training, Layer.mergeAll(Wasm.layer, RunStore.layerMemory, recorder))

// The same training twice: how it is recorded changes nothing.
const silent = within(Recorder.layerSilent)
const counted = within(Recorder.layer(counting, scores))
export const results = await Effect.runPromise(Effect.all([silent, counted]))
for (const { digest, validation } of results) {
  console.log(`${digest.slice(0, 16)} validation ${validation?.meanReturn}`)
}
