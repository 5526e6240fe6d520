/**
 * Provides the Layers for browsers and edge workers: the `wasm` backend, runs kept in memory or in an object store, and
 * language models by `fetch`.
 *
 * @example
 * ```ts
 * import * as Web from "effect-rl/web"
 *
 * const result = await Effect.runPromise(training.pipe(Effect.provide(Web.layer)))
 * ```
 *
 * Edge workers on workerd (Cloudflare's runtime) cannot compile WebAssembly at run time. There, replace the `wasm`
 * backend by `Reference.layer`, the backend in plain TypeScript, which is slower.
 *
 * @example
 * ```ts
 * import * as Web from "effect-rl/web"
 *
 * const atTheEdge = Layer.merge(Web.layer, Reference.layer)
 * ```
 *
 * Agents that ask language models need `platform`, and `recorder` writes a run's files into its store.
 */
import { Effect, Layer, Path } from "effect"
import * as FileSystem from "effect/FileSystem"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as wasm from "./tensor/backend/wasm.ts"
import { RunStore } from "./run/store/RunStore.ts"
import { progress } from "./run/record/progress.ts"
import { Recorder, type Sink } from "./run/record/Recorder.ts"
import { runLog } from "./run/record/runLog.ts"
import { scores } from "./run/record/scores.ts"
import { tensorBoard } from "./run/record/tensorBoard.ts"

/** Provides the `wasm` backend, a store that keeps runs in memory, and a recorder that writes nothing. */
export const layer = Layer.mergeAll(wasm.layer, RunStore.layerMemory, Recorder.layerSilent)

export { layer as layerIndexedDb } from "./run/store/objects/indexedDb.ts"
export { type Bucket, layerBucket, layerNamespace, type Namespace } from "./run/store/objects/edgeStores.ts"

/**
 * Provides what language-model agents need: HTTP to model servers by `fetch`, and a file system without files, so data sets
 * and settings have to be in code.
 */
export const platform = Layer.mergeAll(FetchHttpClient.layer, FileSystem.layerNoop({}), Path.layer)

/** Provides the recorder that writes a run's scores and logs into its store, and passes its events to the sinks in `more`. */
export const recorder = (...more: ReadonlyArray<Sink>): Layer.Layer<Recorder> =>
  Recorder.layer(scores, tensorBoard, runLog, ...more)

/** A sink (a receiver of a run's events) that prints warnings and the result to the console. `listening` calls a function. */
export const consoleProgress: Sink = progress({
  write: (text) => Effect.sync(() => console.log(text.trimEnd())),
  isTerminal: false,
  columns: 200,
})
