/**
 * Finds the checkpoints that a path names. The path is the folder of a run, or of one checkpoint. `Policy.load` and
 * `start.from` of a training read from them. It writes nothing.
 */
import { Effect, type FileSystem, type Path } from "effect"
import { parseYaml } from "../base/config/yaml.ts"
import { CheckpointError } from "./Checkpoint.ts"
import * as Layout from "./Layout.ts"
import { type FileTree, onDisk } from "./store/FileTree.ts"
import { relocated } from "./store/RunFiles.ts"
import type { RunStoreError } from "./store/RunStoreError.ts"

/** Opens a folder by its path. */
type FolderAt = (path: string) => Effect.Effect<FileTree>

/** Opens folders on disk. */
export const foldersOnDisk: Effect.Effect<FolderAt, never, FileSystem.FileSystem | Path.Path> = Effect.map(
  Effect.context<FileSystem.FileSystem | Path.Path>(),
  (context) => (folder) => Effect.provideContext(onDisk(folder), context),
)

/** Some checkpoints of a run, by their usual paths. */
interface SavedAt {
  /** The folder of the run. If the path names a checkpoint, only checkpoints can be read in it. */
  readonly tree: FileTree
  /** The name of the checkpoint; `latest` if the path names a run. */
  readonly wanted: string
  /** Returns the path of the folder of a checkpoint. */
  readonly pathOf: (checkpoint: string) => string
}

/** Splits a path at its last separator. */
const split = (path: string): readonly [folder: string, name: string] => {
  const tidy = path.replace(/[\\/]+$/, "")
  const at = Math.max(tidy.lastIndexOf("/"), tidy.lastIndexOf("\\"))
  return at < 0 ? [".", tidy] : [tidy.slice(0, at) || "/", tidy.slice(at + 1)]
}

/** Finds the checkpoints that a path names. Fails with a `CheckpointError` if it names neither a run nor a checkpoint. */
export const savedAt = Effect.fnUntraced(function* (
  path: string,
  folderAt: FolderAt,
): Effect.fn.Return<SavedAt, CheckpointError | RunStoreError> {
  const opened = yield* folderAt(path)
  // Do not repair the folder: another process may be writing the run.
  const tree: FileTree = { ...opened, repair: () => Effect.void }
  if (yield* tree.exists(Layout.config)) {
    const parsed = parseYaml(yield* tree.readText(Layout.config))
    const places = Layout.placesIn("value" in parsed ? parsed.value : undefined)
    const folder = Layout.locate(places, Layout.checkpoints)
    return {
      tree: relocated(tree, places),
      wanted: Layout.latest,
      pathOf: (checkpoint) => `${folder.startsWith("/") ? folder : `${path}/${folder}`}/${checkpoint}`,
    }
  }
  const [parent, name] = split(path)
  if (name !== Layout.latest && !(yield* tree.exists(Layout.inCheckpoint.manifest))) {
    const problem = `expected the folder of a run (with ${Layout.config}) or of a checkpoint (with ${Layout.inCheckpoint.manifest})`
    return yield* new CheckpointError({ path, message: `${path}: ${problem}` })
  }
  const folder: FileTree = { ...(yield* folderAt(parent)), repair: () => Effect.void }
  // `checkpoints/latest` is a link to a checkpoint.
  const wanted = (yield* folder.target(name)) ?? name
  return {
    tree: relocated(folder, { [Layout.checkpoints]: "." }),
    wanted,
    pathOf: (checkpoint) => `${parent}/${checkpoint}`,
  }
})
