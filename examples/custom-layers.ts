// The same kind of pipeline composed in code: no files, no command, one's own recorder.
//   npx node examples/custom-layers.ts
import { Effect, Layer } from "effect"
import { CartPole, Ppo, Recorder, RunStore, type Sink, Train, Wasm } from "effect-rl"

const training = Train.run({
  env: CartPole.env,
  algorithm: Ppo.make({ learningRate: 1e-3, nsteps: 64 }),
  totalSteps: 40_000,
  validation: { everySteps: 20_000, episodes: 10 },
})

/** A sink in ten lines: it counts episodes and speaks at the end. */
const counting: Sink = () =>
  Effect.sync(() => {
    let episodes = 0
    return {
      emit: (events) =>
        Effect.sync(() => void (episodes += events.filter(({ _tag }) => _tag === "EpisodeEnded").length)),
      flush: Effect.suspend(() => Effect.log(`${episodes} episodes so far`)),
    }
  })

const silent = training.pipe(Effect.provide(Layer.mergeAll(Wasm.layer, RunStore.layerMemory, Recorder.layerSilent)))
const counted = training.pipe(
  Effect.provide(Layer.mergeAll(Wasm.layer, RunStore.layerMemory, Recorder.layer(counting))),
)

// Two runs of one value: whoever watches changes nothing.
const results = await Effect.runPromise(Effect.all([silent, counted]))
console.log(
  results.map(({ digest, validation }) => `${digest.slice(0, 16)} validation ${validation?.meanReturn}`).join("\n"),
)
