import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Effect, FileSystem, Layer } from "effect"
import { RunStore } from "../../src/run/store/RunStore.ts"
import { progress } from "../../src/run/record/progress.ts"
import { Recorder, type Recording } from "../../src/run/record/Recorder.ts"
import type { RunEvent, RunStarted } from "../../src/run/record/RunEvent.ts"
import { runLog } from "../../src/run/record/runLog.ts"
import { scores } from "../../src/run/record/scores.ts"
import { tensorBoard } from "../../src/run/record/tensorBoard.ts"
import { defineBench } from "../Bench.ts"

const about: RunStarted = {
  _tag: "RunStarted",
  name: "bench",
  env: "CartPole-v1",
  algorithm: "ppo",
  devices: { act: "wasm", update: "cpu" },
  seed: 1,
  totalSteps: 1_000_000,
  numEnvs: 1024,
  resumedFromStep: null,
  config: { gamma: 0.99 },
}

const episodesABatch = 1000

/** The events of one iteration of a training with many envs and short episodes. */
const iteration: ReadonlyArray<RunEvent> = [
  ...Array.from({ length: episodesABatch }, (_, at): RunEvent => ({
    _tag: "EpisodeEnded",
    step: 123_000 + 20 * at,
    episode: 6000 + at,
    env: at % 1024,
    return: 20 + (at % 7),
    length: 20 + (at % 7),
    terminated: true,
    truncated: false,
    truncationReason: null,
  })),
  {
    _tag: "UpdateApplied",
    step: 131_072,
    update: 8,
    metrics: {
      "losses/policy_loss": -0.012,
      "losses/value_loss": 31.5,
      "losses/entropy": 0.65,
      "losses/approx_kl": 0.011,
      "losses/clipfrac": 0.09,
      "losses/explained_variance": 0.31,
      "charts/learning_rate": 2.5e-4,
      "charts/SPS": 700_000,
      "charts/episodic_return": 23.1,
      "charts/episodic_length": 23.1,
    },
  },
]

const files = Layer.merge(NodeFileSystem.layer, NodePath.layer)

/** Uses a recording with all sinks, and deletes its files afterwards. */
const withRecording = <A>(use: (recording: Recording) => Promise<A>): Promise<A> =>
  Effect.gen(function* () {
    const resultsDir = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped()
    const store = RunStore.layerFileSystem({ resultsDir, time: new Date(), commit: "no-hash" })
    const run = yield* Effect.flatMap(RunStore, ({ open }) => open({ name: "bench", population: {}, seed: 1 })).pipe(
      Effect.provide(store),
    )
    const line = progress({ write: () => Effect.void, isTerminal: true, columns: 100 })
    const recorder = yield* Recorder.pipe(Effect.provide(Recorder.layer(scores, tensorBoard, runLog, line)))
    const recording = yield* recorder.start(run, about)
    return yield* Effect.promise(() => use(recording))
  }).pipe(Effect.scoped, Effect.provide(files), Effect.runPromise)

export default defineBench({
  name: "record-episode",
  unit: "µs",
  higherIsBetter: false,
  about: "Recording an episode's end to scores, TensorBoard, log and progress line, files written",
  run: ({ timeAsync }) =>
    withRecording(async ({ emit }) => {
      const { seconds, best } = await timeAsync(() => Effect.runPromise(emit(iteration)))
      return {
        value: (seconds * 1e6) / episodesABatch,
        details: { best: (best * 1e6) / episodesABatch, "events/s": episodesABatch / seconds },
      }
    }),
})
