/**
 * The service that writes the weights of runs after their updates. Each update goes to `broadcast/step_N`, for inference
 * servers; only the newest broadcasts are kept. At the intervals of the run's config, weights also go to `weights/step_N`.
 * Call `publish`, or `publishMeanwhile`, which does not wait for the files, at the end of each turn of the training loop. If
 * the weights of a run cannot be written, this does not affect other runs, and is tried again at the next turn.
 *
 * Nothing is written into a folder that was deleted or made again meanwhile.
 *
 * @example
 * ```ts
 * const layer = Broadcasts.layer({ keep: 2, contents: (run) => adapterOf(run.index) })
 * const outcomes = yield* Effect.flatMap(Broadcasts, ({ publish }) => publish(updated))
 * ```
 */
import { Context, Effect, Fiber, Layer, Result, type Scope } from "effect"
import type { Contents } from "../../run/store/FileTree.ts"
import { type RunFolder } from "../runs/guardedFolder.ts"
import * as Layout from "../Layout.ts"
import { Runs } from "../runs/Runs.ts"
import { isAtEnd, type RunSlot } from "../runs/RunSlot.ts"
import { isStable, keepNewest, removeNewer, writeStep } from "../runs/stepFolders.ts"
import { isGone, TrainerError } from "../TrainerError.ts"

/** The files of a run's weights by name: an adapter in peft's format, or the folder of a model. */
export type WeightFiles = Readonly<Record<string, Contents>>

export interface BroadcastOptions {
  /**
   * The number of broadcasts of a run to keep; 0 writes none. Keep at least 2, because an inference server may still be
   * reading the last but one.
   */
  readonly keep: number
  /** Whether the weights of a run are published as soon as it begins, before its first update. @default false */
  readonly atOnce?: boolean
  /** Returns the current weights of a run. It is called on the master only. */
  readonly contents: (run: RunSlot) => Effect.Effect<WeightFiles, { readonly message: string }>
}

/** The result of publishing one run's weights. */
export interface BroadcastOutcome {
  readonly run: RunSlot
  readonly step: number
  readonly result: Result.Result<void, TrainerError>
}

/** A folder that has a folder for each step, and the number of steps to keep in it; null keeps all. */
interface Destination {
  readonly parent: string
  readonly keep: number | null
}

interface NewWeights extends Destination {
  readonly contents: Effect.Effect<WeightFiles, { readonly message: string }>
}

/** Writes the weights of one step into a folder of the run, as a whole or not at all, and removes older ones. */
export const writeWeights = Effect.fnUntraced(function* (
  folder: RunFolder,
  step: number,
  { parent, keep, contents }: NewWeights,
): Effect.fn.Return<void, TrainerError> {
  const path = `${folder.directory}/${parent}/${Layout.stepName(step)}`
  const failed = (error: { readonly message: string }) => {
    const gone = isGone(error) ? { reason: "gone" as const } : {}
    const code = "code" in error && typeof error.code === "string" ? { code: error.code } : {}
    return new TrainerError({ ...gone, ...code, message: `${path}: ${error.message}` })
  }
  const { tree, guarded } = folder
  const write = Effect.gen(function* () {
    const files = yield* contents
    yield* guarded(tree.repair(parent))
    yield* guarded(writeStep(tree, parent, step, files))
  })
  yield* Effect.mapError(write, failed)
  if (keep === null) return
  // The new weights are written, so a failure to remove old ones is only logged.
  yield* keepNewest(tree, parent, keep).pipe(
    Effect.catch((error) => Effect.logWarning(`${folder.id}: old ${parent}/step_N are kept: ${error.message}`)),
  )
})

/** Writes the weights of one step into `broadcast/step_N` of a run's folder, and removes older ones. */
export const broadcast = (folder: RunFolder, step: number, weights: Omit<NewWeights, "parent">) =>
  writeWeights(folder, step, { ...weights, parent: Layout.broadcasts })

export class Broadcasts extends Context.Service<
  Broadcasts,
  {
    /**
     * Publishes the weights of the updated runs, and of runs whose last broadcast failed. A failure is logged and returned.
     * Does nothing on ranks other than the master.
     */
    readonly publish: (updated: ReadonlyArray<RunSlot>) => Effect.Effect<ReadonlyArray<BroadcastOutcome>>
    /**
     * Does the same as `publish`, but only copies the weights, and writes the files in the background. For runs at their last
     * step it waits for the files. All files are complete when the scope of the service has closed.
     */
    readonly publishMeanwhile: (updated: ReadonlyArray<RunSlot>) => Effect.Effect<void>
    /**
     * Waits until the files of a run are written. Call it before a checkpoint is saved: a resumed run only repeats the
     * broadcast of its checkpoint's step, not of earlier steps.
     */
    readonly settled: (run: RunSlot) => Effect.Effect<void>
    /** Returns the ids of the runs whose weights are not published yet. */
    readonly pending: () => ReadonlyArray<string>
  }
>()("effect-rl/multirun/Broadcasts") {
  /**
   * Makes the service. When a run begins, removes weights of later steps, because the run makes them again. Publishes the
   * weights of a resumed run if they are missing, for example because a process was killed before.
   */
  static readonly layer = (options: BroadcastOptions): Layer.Layer<Broadcasts, never, Runs> =>
    Layer.effect(
      Broadcasts,
      Effect.gen(function* () {
        const state: BroadcastsState = { options, runs: yield* Runs, scope: yield* Effect.scope }
        if (state.runs.isMaster)
          yield* state.runs.register({ postCreation: (run) => publishFirst(state, run), deletion: settled })
        return {
          publish: (updated) =>
            Effect.flatMap(
              due(state, updated),
              Effect.forEach((run) =>
                Effect.flatMap(copied(state, run), (contents) => publishOne(state, run, contents)),
              ),
            ),
          publishMeanwhile: (updated) =>
            Effect.flatMap(
              due(state, updated),
              Effect.forEach((run) => publishLater(state, run), { discard: true }),
            ),
          settled,
          pending: () => state.runs.slots().flatMap(({ id, own }) => (own.isUnpublished ? [id] : [])),
        }
      }),
    )
}

interface BroadcastsState {
  readonly options: BroadcastOptions
  readonly runs: Runs["Service"]
  /** Writes in progress are completed before this scope closes. */
  readonly scope: Scope.Scope
}

/** Returns the folders to which the current weights of a run must be written. */
const destinationsOf = (
  { options }: BroadcastsState,
  { progress: { step }, config: { weights, maxSteps } }: RunSlot,
): ReadonlyArray<Destination> => {
  const isDue = weights.every > 0 && step > 0 && (step % weights.every === 0 || step === maxSteps)
  return [
    ...(isDue ? [{ parent: Layout.weights, keep: weights.keep }] : []),
    // Broadcasts come last: the final broadcast ends a run, and then all other files must be complete.
    ...(options.keep > 0 ? [{ parent: Layout.broadcasts, keep: options.keep }] : []),
  ]
}

/** Copies the weights of a run, so that the run may change them while they are written. */
const copied = ({ options }: BroadcastsState, run: RunSlot) => Effect.exit(options.contents(run))

/** Writes the weights of a run into all folders that need them. */
const publishOne = Effect.fnUntraced(function* (
  state: BroadcastsState,
  run: RunSlot,
  contents: NewWeights["contents"],
): Effect.fn.Return<BroadcastOutcome> {
  const { own, progress } = run
  const { step } = progress
  own.isUnpublished = false
  const write = Effect.forEach(
    destinationsOf(state, run),
    (destination) => writeWeights(own.folder, step, { ...destination, contents }),
    { discard: true },
  )
  const result = yield* Effect.result(write)
  if (Result.isFailure(result)) {
    yield* Effect.logWarning(result.failure.message)
    own.isUnpublished = !isGone(result.failure)
  }
  return { run, step, result }
})

/** Waits until the last broadcast of a run is written. */
const settled = ({ own }: RunSlot): Effect.Effect<void> =>
  Effect.suspend(() => (own.broadcast === undefined ? Effect.void : Effect.asVoid(Fiber.await(own.broadcast))))

/** Marks the updated runs, and returns all runs whose weights are not published yet. */
const due = (state: BroadcastsState, updated: ReadonlyArray<RunSlot>): Effect.Effect<ReadonlyArray<RunSlot>> =>
  Effect.sync(() => {
    for (const run of updated)
      if (state.runs.isMaster && destinationsOf(state, run).length > 0) run.own.isUnpublished = true
    return state.runs.slots().filter(({ own }) => own.isUnpublished)
  })

/** Copies the weights of a run, and writes them in the background; for the last step, waits for the files. */
const publishLater = Effect.fnUntraced(function* (state: BroadcastsState, run: RunSlot) {
  yield* settled(run)
  const write = Effect.uninterruptible(publishOne(state, run, yield* copied(state, run)))
  if (isAtEnd(run)) yield* write
  else run.own.broadcast = yield* Effect.forkIn(write, state.scope, { startImmediately: true })
})

/** Removes the weights of steps after the one at which a run begins, and publishes the run's own if they are missing. */
const publishFirst = Effect.fnUntraced(function* (state: BroadcastsState, run: RunSlot) {
  const {
    progress: { step },
    own,
  } = run
  const { tree, guarded } = own.folder
  const isPromised = state.options.atOnce === true
  for (const parent of [Layout.broadcasts, Layout.weights]) yield* guarded(removeNewer(tree, parent, step))
  if (step === 0 && !isPromised) return
  for (const { parent } of destinationsOf(state, run))
    if (!(yield* guarded(isStable(tree, parent, step)))) own.isUnpublished = true
  if (!own.isUnpublished) return
  // Do not wait for the next turn: a run without further updates would never be published.
  const { result } = yield* publishOne(state, run, yield* copied(state, run))
  // An orchestrator in another process waits for these weights, so the run cannot begin without them.
  if (isPromised) yield* Effect.fromResult(result)
})
