/**
 * Provides the checkpoints of a run as a service. By default they are folders in the run's own folder. A program can provide
 * a Layer that keeps them elsewhere; nothing else about the run changes. `Run.ts` uses the service.
 *
 * @example
 * ```ts
 * const result = yield* training.pipe(Effect.provide(Checkpoints.layerMemory))
 * ```
 */
import { Context, Effect, Layer } from "effect"
import * as Checkpoint from "./Checkpoint.ts"
import * as Layout from "./Layout.ts"
import type { FileTree } from "./store/FileTree.ts"
import { type Folder, inMemory, treeOf } from "./store/Folder.ts"
import type { RunFiles } from "./store/RunFiles.ts"
import type { RunStoreError } from "./store/RunStoreError.ts"

type Failure = Checkpoint.CheckpointError | RunStoreError

/** The checkpoints of one run. */
export interface RunCheckpoints {
  /** Saves a checkpoint, makes it the latest, and deletes those that its strategy does not keep. */
  readonly save: (checkpoint: Checkpoint.NewCheckpoint) => Effect.Effect<void, Failure>
  /** The names of all checkpoints: the latest, then the others from the newest to the oldest. */
  readonly list: Effect.Effect<ReadonlyArray<string>, Failure>
  /** Loads the newest intact checkpoint, and lists the damaged ones that are newer. Fails if none is intact. */
  readonly latest: Effect.Effect<Checkpoint.Loaded, Failure>
  /** Loads the checkpoint with this name. Fails if it is missing or damaged. */
  readonly at: (name: string) => Effect.Effect<Checkpoint.Loaded, Failure>
}

const within = (tree: FileTree): RunCheckpoints => {
  const manifests: Checkpoint.Manifests = new Map()
  return {
    save: (checkpoint) => Checkpoint.save(tree, checkpoint, manifests),
    // A process that was killed while it replaced its only checkpoint has left it under another name.
    list: Effect.andThen(tree.repair(Layout.checkpoints), Checkpoint.names(tree)),
    latest: Checkpoint.load(tree, "latest"),
    at: (name) => Checkpoint.load(tree, name),
  }
}

/** The function that opens the checkpoints of a run. To keep them elsewhere, provide another one by a Layer below. */
export const Checkpoints = Context.Reference<(run: RunFiles) => RunCheckpoints>("effect-rl/run/Checkpoints", {
  defaultValue: () => within,
})

/** Makes the Layer that keeps checkpoints in a custom store. `folderAt` opens a folder by the path of the run. */
export const layer = (folderAt: (directory: string) => Folder): Layer.Layer<never> =>
  Layer.succeed(Checkpoints, ({ directory }) => within(treeOf(directory, folderAt(directory))))

/** The Layer that keeps checkpoints in memory, so only this process can resume the run. */
export const layerMemory: Layer.Layer<never> = Layer.suspend(() => layer(inMemory(new Map())))
