import { Effect, Layer } from "effect"
import type { Backend, BackendUnavailable } from "../../../src/tensor/backend/Backend.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import type { RunResult } from "../../../src/run/RunResult.ts"
import * as Train from "../../../src/rl/train/Train.ts"

type Input = Parameters<typeof Train.run>[0]

export interface Resumable {
  readonly whole: RunResult
  readonly resumed: RunResult
  /** The step of the checkpoint that the second run went on from. */
  readonly stoppedAt: number
}

/**
 * A training that runs to its end, and once more from its first checkpoint at `stop` steps or later, as if everything
 * after that had never been written; with other settings (`again`) where those may change.
 */
export const resumable = (
  input: Input,
  stop: number,
  again: Partial<Input> = {},
  backend: Layer.Layer<Backend, BackendUnavailable> = Wasm.layer,
): Effect.Effect<Resumable, Train.TrainError> =>
  Effect.gen(function* () {
    const saving = { ...input, checkpoint: { everySteps: stop, strategy: { _tag: "LastN", keep: 0 } as const } }
    const store = RunStore.memory()
    const layers = (layer: Layer.Layer<RunStore>) => Layer.mergeAll(backend, layer, Recorder.layerSilent)
    const whole = yield* Train.run(saving).pipe(Effect.provide(layers(store.layer)))

    const stepOf = (path: string): number => Number(/checkpoints\/step_(\d+)\//.exec(path)?.[1] ?? NaN)
    const stoppedAt = Math.min(...[...store.files.keys()].map(stepOf).filter((step) => step >= stop))
    const left = new Map([...store.files].filter(([path]) => !(stepOf(path) > stoppedAt)))
    const rest = RunStore.memory({ files: left, resume: whole.runDir })
    const resumed = yield* Train.run({ ...saving, ...again }).pipe(Effect.provide(layers(rest.layer)))
    return { whole, resumed, stoppedAt }
  })
