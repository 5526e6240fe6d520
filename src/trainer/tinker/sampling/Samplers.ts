/**
 * Gives the engine the adapters that clients sample from. The engine has room for a few; the one that was not used for the
 * longest time makes room for a new one.
 */
import { Clock, Effect, Latch, Semaphore } from "effect"
import type { DecoderConfig, AdapterShape } from "../../../decoder/networks/Decoder.ts"
import * as Decoder from "../../../decoder/networks/Decoder.ts"
import * as HuggingFaceAdapter from "../../../decoder/huggingFace/Adapter.ts"
import type { EngineError, EngineService } from "../../../decoder/inference/Engine.ts"
import { ApiError } from "../../../decoder/serve/ApiError.ts"
import type { FileTree } from "../../../run/store/FileTree.ts"
import type { RunStoreError } from "../../../run/store/RunStoreError.ts"
import { notFound } from "../answers.ts"
import {
  addressOf,
  type CheckpointInfo,
  type CheckpointPlace,
  folderOfCheckpoint,
  infoOf,
  isExpired,
} from "../models/checkpoints.ts"
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
  info: CheckpointInfo
  /** Whether the checkpoint may have been changed or removed since it was read. */
  isOutdated: boolean
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
  /** Tells whether the adapter of a checkpoint is loaded, so that its files need not be read. */
  readonly isLoaded: (place: CheckpointPlace) => Effect.Effect<boolean>
  /** Lets the next use of a checkpoint read it again, because it was saved again, or expires at another time. */
  readonly renew: (place: CheckpointPlace) => Effect.Effect<void>
  /** Removes the adapter of a checkpoint, whose files are gone, from the engine. */
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

/** Reads the adapter of a checkpoint. */
const readAdapter = Effect.fnUntraced(function* ({ files, config, shape }: SamplersOptions, place: CheckpointPlace) {
  const saved = yield* Effect.mapError(
    HuggingFaceAdapter.load(files, folderOfCheckpoint(place), config),
    ({ message }) => new ApiError({ status: 500, code: null, param: "model_path", message }),
  )
  const { rank, alpha, tensors } = HuggingFaceAdapter.withTargets(saved, config, shape.targets)
  const table = new Decoder.MultiLoRA(config, shape, 1)
  table.load(0, { rank, alpha }, tensors)
  const row: AdapterRow = { row: table.row(0), scaling: table.scalings[0] }
  return { adapter: { rank, alpha, tensors }, row }
})

/** Tells whether an adapter can be used without reading its checkpoint. */
const isCurrent = ({ isOutdated, info }: Entry): Effect.Effect<boolean> =>
  Effect.map(Clock.currentTimeMillis, (now) => !isOutdated && !isExpired(info, now))

/** Waits until the engine has room for another adapter. `freed` opens when an adapter is no longer used. */
const makeRoom = Effect.fnUntraced(function* (
  { engine, slots }: SamplersOptions,
  loaded: Map<string, Entry>,
  freed: Latch.Latch,
) {
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

export const makeSamplers = Effect.fnUntraced(function* (options: SamplersOptions): Effect.fn.Return<Samplers> {
  const { engine, baseName, config, shape, files } = options
  const loaded = new Map<string, Entry>()
  const loading = yield* Semaphore.make(1)
  const freed = Latch.makeUnsafe(false)
  let uses = 0
  /** The number of checkpoints that were changed or removed. A checkpoint that is read meanwhile may be outdated at once. */
  let changes = 0

  const load = Effect.fnUntraced(function* (place: CheckpointPlace) {
    const name = addressOf(place)
    const known = loaded.get(name)
    if (known !== undefined && (yield* isCurrent(known))) return known
    const changesBefore = changes
    const info = yield* infoOf(files, place)
    if (info === undefined)
      return yield* notFound("model_path", `there is no checkpoint ${name}; it may have been deleted`)
    // The number of the request that saved it recognises a checkpoint that was saved again.
    if (known?.info.seq === info.seq) {
      known.info = info
      known.isOutdated = changes !== changesBefore
      return known
    }
    const { adapter, row } = yield* readAdapter(options, place)
    // A checkpoint that was saved again replaces its adapter; requests in progress end with the old one.
    if (known === undefined) yield* makeRoom(options, loaded, freed)
    yield* engine.loadAdapter({ name, step: info.steps, adapter })
    const state = { adapter: row, info, isOutdated: changes !== changesBefore }
    const entry = known === undefined ? { name, users: 0, lastUse: 0, ...state } : Object.assign(known, state)
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
    isLoaded: (place) =>
      Effect.suspend(() => {
        const entry = loaded.get(addressOf(place))
        return entry === undefined ? Effect.succeed(false) : isCurrent(entry)
      }),
    renew: (place) =>
      Effect.sync(() => {
        changes++
        const entry = loaded.get(addressOf(place))
        if (entry !== undefined) entry.isOutdated = true
      }),
    using: (place, work) => Effect.acquireUseRelease(take(place), work, give),
    forget: (place) =>
      Effect.suspend(() => {
        changes++
        freed.openUnsafe()
        return loaded.delete(addressOf(place)) ? Effect.ignore(engine.unloadAdapter(addressOf(place))) : Effect.void
      }),
  }
})
