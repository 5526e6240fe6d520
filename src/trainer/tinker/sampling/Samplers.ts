/**
 * Gives the engine the adapters that clients sample from. The engine has room for a few; the one that was not used for the
 * longest time makes room for a new one.
 */
import { Effect, Latch, Semaphore } from "effect"
import type { DecoderConfig, AdapterShape } from "../../../decoder/networks/Decoder.ts"
import * as Decoder from "../../../decoder/networks/Decoder.ts"
import * as HuggingFaceAdapter from "../../../decoder/huggingFace/Adapter.ts"
import type { EngineError, EngineService } from "../../../decoder/inference/Engine.ts"
import { ApiError } from "../../../decoder/serve/ApiError.ts"
import type { FileTree } from "../../../run/store/FileTree.ts"
import type { RunStoreError } from "../../../run/store/RunStoreError.ts"
import { notFound } from "../answers.ts"
import { addressOf, type CheckpointPlace, folderOfCheckpoint, infoOf } from "../models/checkpoints.ts"
import type { AdapterRow } from "../training/TrainingPrograms.ts"

/** An adapter that the engine has. */
export interface LoadedSampler {
  /** The name of the adapter in the engine. */
  readonly name: string
  readonly adapter: AdapterRow
}

interface Entry {
  readonly name: string
  adapter: AdapterRow
  /** The number of the request that saved the checkpoint, by which one that was saved again is recognised. */
  seq: number
  users: number
  lastUse: number
}

export interface Samplers {
  /** Runs work with the adapter of a checkpoint, which stays loaded until the work ends. */
  readonly using: <A, E, R>(
    place: CheckpointPlace,
    work: (sampler: LoadedSampler) => Effect.Effect<A, E, R>,
  ) => Effect.Effect<A, E | ApiError | EngineError | RunStoreError, R>
  /** Runs work with the base model. */
  readonly base: LoadedSampler
  /** Removes the adapter of a checkpoint from the engine. */
  readonly forget: (place: CheckpointPlace) => Effect.Effect<void>
  readonly engine: EngineService
}

interface SamplersOptions {
  readonly engine: EngineService
  readonly baseName: string
  readonly config: DecoderConfig
  readonly shape: AdapterShape
  /** The number of adapters for which the engine has room. */
  readonly slots: number
  readonly files: FileTree
}

export const makeSamplers = Effect.fnUntraced(function* (options: SamplersOptions): Effect.fn.Return<Samplers> {
  const { engine, baseName, config, shape, slots, files } = options
  const loaded = new Map<string, Entry>()
  const loading = yield* Semaphore.make(1)
  const freed = Latch.makeUnsafe(false)
  let uses = 0

  /** Waits until the engine has room for another adapter. */
  const makeRoom: Effect.Effect<void, EngineError> = Effect.gen(function* () {
    while (loaded.size >= slots) {
      const idle = [...loaded.values()].filter(({ users }) => users === 0).sort((a, b) => a.lastUse - b.lastUse)
      if (idle.length === 0) {
        freed.closeUnsafe()
        yield* freed.await
        continue
      }
      loaded.delete(idle[0].name)
      // A client of the other protocol may have removed it.
      yield* Effect.ignore(engine.unloadAdapter(idle[0].name))
    }
  })

  const load = Effect.fnUntraced(function* (place: CheckpointPlace) {
    const name = addressOf(place)
    const known = loaded.get(name)
    const info = yield* infoOf(files, place)
    if (info === undefined)
      return yield* notFound("model_path", `there is no checkpoint ${name}; it may have been deleted`)
    if (known?.seq === info.seq) return known
    const adapter = yield* Effect.mapError(
      HuggingFaceAdapter.load(files, folderOfCheckpoint(place), config),
      ({ message }) => new ApiError({ status: 500, code: null, param: "model_path", message }),
    )
    const { rank, alpha, tensors } = HuggingFaceAdapter.withTargets(adapter, config, shape.targets)
    // A checkpoint that was saved again replaces its adapter; requests in progress end with the old one.
    if (known === undefined) yield* makeRoom
    yield* engine.loadAdapter({ name, step: info.steps, adapter: { rank, alpha, tensors } })
    const table = new Decoder.MultiLoRA(config, shape, 1)
    table.load(0, { rank, alpha }, tensors)
    const entry = known ?? { name, adapter: { row: table.row(0), scaling: 0 }, seq: info.seq, users: 0, lastUse: 0 }
    entry.adapter = { row: table.row(0), scaling: table.scalings[0] }
    entry.seq = info.seq
    loaded.set(name, entry)
    return entry
  })

  const take = (place: CheckpointPlace) =>
    Effect.tap(load(place), (entry) =>
      Effect.sync(() => {
        entry.users++
        entry.lastUse = ++uses
      }),
    ).pipe(loading.withPermits(1))

  const give = (entry: Entry) =>
    Effect.sync(() => {
      entry.users--
      freed.openUnsafe()
    })

  const { size } = new Decoder.MultiLoRA(config, shape, 1)
  return {
    engine,
    base: { name: baseName, adapter: { row: new Float32Array(size), scaling: 0 } },
    using: (place, work) => Effect.acquireUseRelease(take(place), work, give),
    forget: (place) =>
      Effect.suspend(() => {
        freed.openUnsafe()
        return loaded.delete(addressOf(place)) ? Effect.ignore(engine.unloadAdapter(addressOf(place))) : Effect.void
      }),
  }
})
