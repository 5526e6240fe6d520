import { Effect, Layer } from "effect"
import type { Backend, BackendUnavailable } from "../../../src/tensor/backend/Backend.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as safetensors from "../../../src/base/formats/safetensors.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { Recorder, type Sink } from "../../../src/run/record/Recorder.ts"
import type { RunEvent } from "../../../src/run/record/RunEvent.ts"
import type { RunResult } from "../../../src/run/RunResult.ts"
import * as Train from "../../../src/rl/train/Train.ts"

export interface Kept {
  readonly result: RunResult
  readonly events: ReadonlyArray<RunEvent>
  readonly files: ReadonlyMap<string, Uint8Array>
}

/** A training with everything about it in memory. */
export const keep = (
  input: Parameters<typeof Train.run>[0],
  backend: Layer.Layer<Backend, BackendUnavailable> = Wasm.layer,
): Effect.Effect<Kept, Train.TrainError> =>
  Effect.suspend(() => {
    const events: Array<RunEvent> = []
    const sink: Sink = () =>
      Effect.succeed({ emit: (batch) => Effect.sync(() => void events.push(...batch)), flush: Effect.void })
    const store = RunStore.memory()
    return Train.run(input).pipe(
      Effect.provide(Layer.mergeAll(backend, store.layer, Recorder.layer(sink))),
      Effect.map((result) => ({ result, events, files: below(store.files, `${result.runDir}/`) })),
    )
  })

/** A folder's files, by their paths in it. */
const below = (files: ReadonlyMap<string, Uint8Array>, folder: string): ReadonlyMap<string, Uint8Array> =>
  new Map(
    [...files].flatMap(([path, bytes]) =>
      path.startsWith(folder) ? [[path.slice(folder.length), bytes] as const] : [],
    ),
  )

/** The final weights, by their names. */
export const tensorsOf = ({ files }: Kept) => {
  const path =
    [...files.keys()]
      .filter((file) => file.endsWith("/weights.safetensors"))
      .sort()
      .at(-1) ?? ""
  return safetensors.decode(files.get(path) ?? new Uint8Array(0))
}

/** The final weights, one after another. */
export const weightsOf = (kept: Kept): Float32Array => {
  const tensors = tensorsOf(kept)
  return Float32Array.from(
    Object.keys(tensors)
      .sort()
      .flatMap((name) => [...tensors[name].data]),
  )
}

export const textOf = ({ files }: Kept, path: string): string => new TextDecoder().decode(files.get(path))
