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
 * const outcomes = yield* Effect.flatMap(Broadcasts, ({ publish }) => publish)
 * ```
 */
import { Context, Effect, Fiber, type FileSystem, Layer, type Path, Result, Schema } from "effect"
import type { Contents } from "../../run/store/FileTree.ts"
import { openRunFolder, type RunFolder, RunGone } from "../runs/guardedFolder.ts"
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
     * Publishes the weights of the runs that are ready to update, which then no longer are, and of those whose last
     * broadcast failed. On ranks other than the master it only clears the flags. A failure is logged, and returned.
     */
    readonly publish: Effect.Effect<ReadonlyArray<BroadcastOutcome>>
    /**
     * Does the same, but returns when the weights are copied, and writes the files while others work. Only for runs at their
     * last step it waits for the files. They are complete when the scope of the service has closed.
     */
    readonly publishMeanwhile: Effect.Effect<void>
    /**
     * Waits until the files of a run are written. A checkpoint must not be saved before: a resumed run writes the weights of
     * its checkpoint again, but those of no earlier step.
     */
    readonly settled: (run: Pick<RunSlot, "generation">) => Effect.Effect<void>
    /** The ids of the runs whose weights are still to be published. */
    readonly pending: () => ReadonlyArray<string>
  }
>()("effect-rl/multirun/Broadcasts") {
  /**
   * Makes the service. When a run begins, weights of steps after its own are removed, because the run makes them again;
   * and a resumed run's weights are published if they are not, for example because a process was killed before.
   */
  static readonly layer = (
    options: BroadcastOptions,
  ): Layer.Layer<Broadcasts, never, Runs | FileSystem.FileSystem | Path.Path> =>
    Layer.effect(
      Broadcasts,
      Effect.gen(function* () {
        const runs = yield* Runs
        const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
        /** The folders of the trained runs, by generation. */
        const folders = new Map<number, RunFolder>()
        /** The generations of the runs whose weights are still to be published. */
        const pending = new Set<number>()
        /** Returns where the current weights of a run belong. */
        const destinationsOf = ({ progress: { step }, config: { weights, maxSteps } }: RunSlot) => {
          const isDue = weights.every > 0 && step > 0 && (step % weights.every === 0 || step === maxSteps)
          const all: Array<Destination> = []
          if (isDue) all.push({ parent: Layout.weights, keep: weights.keep })
          // The last: it lets a run end, whose weights must then be complete.
          if (options.keep > 0) all.push({ parent: Layout.broadcasts, keep: options.keep })
          return all
        }
        const publishOne = Effect.fnUntraced(function* (
          run: RunSlot,
          folder: RunFolder,
          { contents }: Pick<NewWeights, "contents">,
        ) {
          const { step } = run.progress
          pending.delete(run.generation)
          const result = yield* Effect.result(
            Effect.forEach(
              destinationsOf(run),
              (destination) => writeWeights(folder, step, { ...destination, contents }),
              { discard: true },
            ),
          )
          if (Result.isFailure(result)) {
            yield* Effect.logWarning(result.failure.message)
            if (!result.failure.gone) pending.add(run.generation)
          }
          return { run, step, result } satisfies BroadcastOutcome
        })
        const scope = yield* Effect.scope
        /** The writes in progress, by generation. */
        const writes = new Map<number, Fiber.Fiber<unknown>>()
        const settled = ({ generation }: Pick<RunSlot, "generation">): Effect.Effect<void> =>
          Effect.suspend(() => {
            const write = writes.get(generation)
            return write === undefined ? Effect.void : Effect.asVoid(Fiber.await(write))
          })
        /** Marks the runs that were updated, and returns all whose weights are still to be published. */
        const due = Effect.sync(() => {
          for (const run of runs.slots()) {
            if (run.readyToUpdate && runs.isMaster && destinationsOf(run).length > 0) pending.add(run.generation)
            run.readyToUpdate = false
          }
          return runs.slots().flatMap((run) => {
            const folder = folders.get(run.generation)
            return pending.has(run.generation) && folder !== undefined ? [{ run, folder }] : []
          })
        })
        /** Copies the weights of a run, so that they can be written after the run has changed. */
        const copied = ({ run }: { readonly run: RunSlot }) =>
          Effect.map(Effect.exit(options.contents(run)), (contents) => ({ contents }))
        if (runs.isMaster) {
          yield* runs.register({
            creation: (run) =>
              Effect.map(Effect.provideContext(openRunFolder(run), context), (folder) => {
                folders.set(run.generation, folder)
              }),
            postCreation: Effect.fnUntraced(function* (run) {
              const { generation, progress } = run
              const folder = folders.get(generation)
              if (folder === undefined) return
              const { tree, guarded } = folder
              for (const parent of [Layout.broadcasts, Layout.weights])
                yield* guarded(removeNewer(tree, parent, progress.step))
              if (progress.step === 0 && options.atOnce !== true) return
              for (const { parent } of destinationsOf(run))
                if (!(yield* guarded(isStable(tree, parent, progress.step)))) pending.add(generation)
              if (!pending.has(generation)) return
              // A run that has no more updates would wait for ever for the end of a turn.
              const { result } = yield* publishOne(run, folder, yield* copied({ run }))
              // An orchestrator elsewhere waits for these weights, so without them the run cannot go on.
              if (options.atOnce === true) yield* Effect.fromResult(result)
            }),
            deletion: Effect.fnUntraced(function* ({ generation }) {
              yield* settled({ generation })
              writes.delete(generation)
              folders.delete(generation)
              pending.delete(generation)
            }),
          })
        }
        return {
          publish: Effect.flatMap(
            due,
            Effect.forEach(({ run, folder }) =>
              Effect.flatMap(copied({ run }), (weights) => publishOne(run, folder, weights)),
            ),
          ),
          publishMeanwhile: Effect.flatMap(
            due,
            Effect.forEach(
              Effect.fnUntraced(function* ({ run, folder }) {
                yield* settled(run)
                const write = Effect.uninterruptible(publishOne(run, folder, yield* copied({ run })))
                if (isAtEnd(run)) return yield* write
                writes.set(run.generation, yield* Effect.forkIn(write, scope, { startImmediately: true }))
              }),
              { discard: true },
            ),
          ),
          settled,
          pending: () => runs.slots().flatMap(({ id, generation }) => (pending.has(generation) ? [id] : [])),
        }
      }),
    )
}
