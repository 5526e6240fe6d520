/**
 * The service that publishes the weights of runs after their updates: in `broadcast/step_N` of each run, of which only the
 * newest are kept, for an inference server to load; and every so many steps in `weights/step_N`, as the run's config
 * says. `publish`, or `publishMeanwhile`, which does not wait for the files, belongs at the end of each turn of the training
 * loop. A run whose weights cannot be written is published again at the next turn, and never keeps the others from theirs.
 *
 * Nothing is written into a folder that was deleted or made again meanwhile.
 *
 * @example
 * ```ts
 * const layer = Broadcasts.layer({ keep: 2, contents: (run) => encodePeft(adapterOf(run.index)) })
 * const outcomes = yield* Effect.flatMap(Broadcasts, ({ publish }) => publish(updated))
 * ```
 */
import { Context, Effect, Fiber, Layer, Result, Schema, type Scope } from "effect"
import type { Contents } from "../../run/store/FileTree.ts"
import { type RunFolder, RunGone } from "../runs/guardedFolder.ts"
import * as Layout from "../Layout.ts"
import { Runs } from "../runs/Runs.ts"
import { isAtEnd, type RunSlot } from "../runs/RunSlot.ts"
import { isStable, keepNewest, removeNewer, writeStep } from "../runs/stepFolders.ts"

/** A run's weights could not be published. The message is one line that names the folder and the problem. */
export class BroadcastError extends Schema.TaggedError<BroadcastError>()("BroadcastError", {
  run: Schema.String,
  step: Schema.Int,
  path: Schema.String,
  /** Whether the run's folder is gone, so that there is nothing to try again. */
  gone: Schema.Boolean,
  /** The system's code of a failure of the disk. */
  code: Schema.optionalKey(Schema.String),
  message: Schema.String,
}) {}

/** The files of a run's weights by name: an adapter as peft writes it, or the folder of a model. */
export type WeightFiles = Readonly<Record<string, Contents>>

export interface BroadcastOptions {
  /**
   * The number of broadcasts of a run to keep; 0 writes none. An inference server may still read the one before the
   * newest.
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
  readonly result: Result.Result<void, BroadcastError>
}

/** A folder with a folder for each step, and the number of steps to keep in it; null keeps all. */
interface Destination {
  readonly parent: string
  readonly keep: number | null
}

interface NewWeights extends Destination {
  readonly contents: Effect.Effect<WeightFiles, { readonly message: string }>
}

/** Writes the weights of one step below a folder of the run, and removes older ones. It fails as a whole or not at all. */
export const writeWeights = Effect.fnUntraced(function* (
  folder: RunFolder,
  step: number,
  { parent, keep, contents }: NewWeights,
): Effect.fn.Return<void, BroadcastError> {
  const path = `${folder.directory}/${parent}/${Layout.stepName(step)}`
  const failed = (error: { readonly message: string }) => {
    const gone = error instanceof RunGone
    const code = "code" in error && typeof error.code === "string" ? { code: error.code } : {}
    return new BroadcastError({ run: folder.id, step, path, gone, ...code, message: `${path}: ${error.message}` })
  }
  const { tree, guarded } = folder
  const write = Effect.gen(function* () {
    const files = yield* contents
    yield* guarded(tree.repair(parent))
    yield* guarded(writeStep(tree, parent, step, files))
  })
  yield* Effect.mapError(write, failed)
  if (keep === null) return
  // The new weights are complete, so old ones that cannot be removed are no failure of these.
  yield* keepNewest(tree, parent, keep).pipe(
    Effect.catch((error) => Effect.logWarning(`${folder.id}: old ${parent}/step_N are kept: ${error.message}`)),
  )
})

/** Writes the weights of one step into the run's folder for an inference server, and removes older ones. */
export const broadcast = (folder: RunFolder, step: number, weights: Omit<NewWeights, "parent">) =>
  writeWeights(folder, step, { ...weights, parent: Layout.broadcasts })

export class Broadcasts extends Context.Service<
  Broadcasts,
  {
    /**
     * Publishes the weights of the runs that were updated, and of those whose last broadcast failed. Ranks other than the
     * master publish none. A failure is logged, and returned.
     */
    readonly publish: (updated: ReadonlyArray<RunSlot>) => Effect.Effect<ReadonlyArray<BroadcastOutcome>>
    /**
     * Does the same, but returns when the weights are copied, and writes the files while others work. Only for runs at their
     * last step it waits for the files. They are complete when the scope of the service has closed.
     */
    readonly publishMeanwhile: (updated: ReadonlyArray<RunSlot>) => Effect.Effect<void>
    /**
     * Waits until the files of a run are written. A checkpoint must not be saved before: a resumed run writes the weights of
     * its checkpoint again, but those of no earlier step.
     */
    readonly settled: (run: RunSlot) => Effect.Effect<void>
    /** The ids of the runs whose weights are still to be published. */
    readonly pending: () => ReadonlyArray<string>
  }
>()("effect-rl/multirun/Broadcasts") {
  /**
   * Makes the service. When a run begins, weights of steps after its own are removed, because the run makes them again;
   * and a resumed run's weights are published if they are not, for example because a process was killed before.
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

/** Returns where the current weights of a run belong. */
const destinationsOf = (
  { options }: BroadcastsState,
  { progress: { step }, config: { weights, maxSteps } }: RunSlot,
): ReadonlyArray<Destination> => {
  const isDue = weights.every > 0 && step > 0 && (step % weights.every === 0 || step === maxSteps)
  return [
    ...(isDue ? [{ parent: Layout.weights, keep: weights.keep }] : []),
    // The last: it lets a run end, whose weights must then be complete.
    ...(options.keep > 0 ? [{ parent: Layout.broadcasts, keep: options.keep }] : []),
  ]
}

/** Copies the weights of a run, so that they can be written after the run has changed. */
const copied = ({ options }: BroadcastsState, run: RunSlot) => Effect.exit(options.contents(run))

/** Writes the weights of a run to all places where they belong. */
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
    own.isUnpublished = !result.failure.gone
  }
  return { run, step, result }
})

/** Waits for the last write of a run. */
const settled = ({ own }: RunSlot): Effect.Effect<void> =>
  Effect.suspend(() => (own.broadcast === undefined ? Effect.void : Effect.asVoid(Fiber.await(own.broadcast))))

/** Marks the runs that were updated, and returns all whose weights are still to be published. */
const due = (state: BroadcastsState, updated: ReadonlyArray<RunSlot>): Effect.Effect<ReadonlyArray<RunSlot>> =>
  Effect.sync(() => {
    for (const run of updated)
      if (state.runs.isMaster && destinationsOf(state, run).length > 0) run.own.isUnpublished = true
    return state.runs.slots().filter(({ own }) => own.isUnpublished)
  })

/** Copies the weights of a run, and writes them while others work; those of the last step at once. */
const publishLater = Effect.fnUntraced(function* (state: BroadcastsState, run: RunSlot) {
  yield* settled(run)
  const write = Effect.uninterruptible(publishOne(state, run, yield* copied(state, run)))
  if (isAtEnd(run)) yield* write
  else run.own.broadcast = yield* Effect.forkIn(write, state.scope, { startImmediately: true })
})

/** Removes the weights of later steps of a run that begins, and publishes its own if they are missing. */
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
  // A run that has no more updates would wait for ever for the end of a turn.
  const { result } = yield* publishOne(state, run, yield* copied(state, run))
  // An orchestrator elsewhere waits for these weights, so without them the run cannot go on.
  if (isPromised) yield* Effect.fromResult(result)
})
