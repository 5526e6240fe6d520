/**
 * The service that publishes the weights of runs after their updates, in `broadcast/step_N` of each run, for an
 * inference server to load. `publish` belongs at the end of each turn of the training loop. A run whose broadcast fails
 * is published again at the next turn, and never keeps the others from theirs.
 *
 * Nothing is written into a folder that was deleted or made again meanwhile.
 *
 * @example
 * ```ts
 * const layer = Broadcasts.layer({
 *   keep: 2,
 *   contents: (run) => Effect.map(adapterOf(run.index), (adapter) => ({ _tag: "Adapter", ...encodePeft(adapter) })),
 * })
 * const outcomes = yield* Effect.flatMap(Broadcasts, ({ publish }) => publish)
 * ```
 */
import { Context, Effect, type FileSystem, Layer, type Path, Result, Schema } from "effect"
import { modelFiles } from "../../formats/modelFiles.ts"
import type { Contents } from "../../run/store/FileTree.ts"
import { openRunFolder, type RunFolder, RunGone } from "../guardedFolder.ts"
import * as Layout from "../Layout.ts"
import { Runs } from "../Runs.ts"
import type { RunSlot } from "../RunSlot.ts"
import { isStable, keepNewest, removeNewer, writeStep } from "../stepFolders.ts"

/** A run's weights could not be published. The message is one line that names the folder and the problem. */
export class BroadcastError extends Schema.TaggedError<BroadcastError>()("BroadcastError", {
  run: Schema.String,
  step: Schema.Int,
  path: Schema.String,
  /** Whether the run's folder is gone, so that there is nothing to try again. */
  gone: Schema.Boolean,
  message: Schema.String,
}) {}

/** The files of a broadcast: an adapter as peft writes it, or all weights of a model. */
export type BroadcastContents =
  | {
      readonly _tag: "Adapter"
      /** The file `adapter_model.safetensors`. */
      readonly model: Contents
      /** The file `adapter_config.json`. */
      readonly config: Contents
    }
  | { readonly _tag: "Full"; readonly files: Readonly<Record<string, Contents>> }

export interface BroadcastOptions {
  /** The number of broadcasts of a run to keep. An inference server may still read the one before the newest. */
  readonly keep: number
  /** Returns the current weights of a run. It is called on the master only. */
  readonly contents: (run: RunSlot) => Effect.Effect<BroadcastContents, { readonly message: string }>
}

/** The result of one run's broadcast. */
export interface BroadcastOutcome {
  readonly run: RunSlot
  readonly step: number
  readonly result: Result.Result<void, BroadcastError>
}

/** Returns the files of a broadcast by name. */
export const filesOf = (contents: BroadcastContents): Readonly<Record<string, Contents>> =>
  contents._tag === "Full"
    ? contents.files
    : { [modelFiles.adapterWeights]: contents.model, [modelFiles.adapterConfig]: contents.config }

/** Writes the weights of one step into the run's folder, and removes older ones. It fails as a whole or not at all. */
export const broadcast = Effect.fnUntraced(function* (
  folder: RunFolder,
  step: number,
  {
    keep,
    contents,
  }: { readonly keep: number; readonly contents: Effect.Effect<BroadcastContents, { readonly message: string }> },
): Effect.fn.Return<void, BroadcastError> {
  const path = `${folder.directory}/${Layout.broadcast(step)}`
  const failed = (error: { readonly message: string }) => {
    const gone = error instanceof RunGone
    return new BroadcastError({ run: folder.id, step, path, gone, message: `${path}: ${error.message}` })
  }
  const { tree, guarded } = folder
  const write = Effect.gen(function* () {
    const files = filesOf(yield* contents)
    yield* guarded(tree.repair(Layout.broadcasts))
    yield* guarded(writeStep(tree, Layout.broadcasts, step, files))
  })
  yield* Effect.mapError(write, failed)
  // The broadcast is complete, so an old one that cannot be removed is no failure of this one.
  yield* keepNewest(tree, Layout.broadcasts, keep).pipe(
    Effect.catch((error) => Effect.logWarning(`${folder.id}: old broadcasts are kept: ${error.message}`)),
  )
})

export class Broadcasts extends Context.Service<
  Broadcasts,
  {
    /**
     * Publishes the weights of the runs that are ready to update, which then no longer are, and of those whose last
     * broadcast failed. On ranks other than the master it only clears the flags. A failure is logged, and returned.
     */
    readonly publish: Effect.Effect<ReadonlyArray<BroadcastOutcome>>
    /** The ids of the runs whose weights are still to be published. */
    readonly pending: () => ReadonlyArray<string>
  }
>()("effect-rl/multirun/Broadcasts") {
  /**
   * Makes the service. When a run begins, broadcasts of steps after its own are removed, because their weights were
   * lost; and a resumed run's weights are published again if they no longer are.
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
        if (runs.isMaster) {
          yield* runs.register({
            creation: (run) =>
              Effect.map(Effect.provideContext(openRunFolder(run), context), (folder) => {
                folders.set(run.generation, folder)
              }),
            postCreation: Effect.fnUntraced(function* ({ generation, progress: { step } }) {
              const folder = folders.get(generation)
              if (folder === undefined) return
              const { tree, guarded } = folder
              yield* guarded(removeNewer(tree, Layout.broadcasts, step))
              if (step > 0 && !(yield* guarded(isStable(tree, Layout.broadcasts, step)))) pending.add(generation)
            }),
            deletion: ({ generation }) =>
              Effect.sync(() => {
                folders.delete(generation)
                pending.delete(generation)
              }),
          })
        }
        const publishOne = Effect.fnUntraced(function* (run: RunSlot, folder: RunFolder) {
          const { step } = run.progress
          const result = yield* Effect.result(
            broadcast(folder, step, { keep: options.keep, contents: options.contents(run) }),
          )
          if (Result.isFailure(result)) {
            yield* Effect.logWarning(result.failure.message)
            if (result.failure.gone) pending.delete(run.generation)
          } else pending.delete(run.generation)
          return { run, step, result } satisfies BroadcastOutcome
        })
        return {
          publish: Effect.gen(function* () {
            for (const run of runs.slots()) {
              if (run.readyToUpdate && runs.isMaster) pending.add(run.generation)
              run.readyToUpdate = false
            }
            const outcomes: Array<BroadcastOutcome> = []
            for (const run of runs.slots()) {
              const folder = folders.get(run.generation)
              if (pending.has(run.generation) && folder !== undefined) outcomes.push(yield* publishOne(run, folder))
            }
            return outcomes
          }),
          pending: () => runs.slots().flatMap(({ id, generation }) => (pending.has(generation) ? [id] : [])),
        }
      }),
    )
}
