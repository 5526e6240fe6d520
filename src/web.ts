/**
 * Provides the Layers for browsers and edge workers: the `wasm` backend, and runs kept in memory.
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
 * const atTheEdge = Layer.merge(Web.layer, Reference.layer)
 * ```
 */
import { Layer } from "effect"
import * as wasm from "./backend/wasm.ts"
import { RunStore } from "./run/store/RunStore.ts"
import { Recorder } from "./run/record/Recorder.ts"

/** Provides the `wasm` backend, a store that keeps runs in memory, and a recorder that writes nothing. */
export const layer = Layer.mergeAll(wasm.layer, RunStore.layerMemory, Recorder.layerSilent)

export { layer as layerIndexedDb } from "./run/store/objects/indexedDb.ts"
export { type Bucket, layerBucket, layerNamespace, type Namespace } from "./run/store/objects/edgeStores.ts"
