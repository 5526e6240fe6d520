/**
 * Finds and reads the checkpoint of another run on disk, for the settings `resume_from` and `start.memory`. It changes no
 * files.
 */
import { Effect, FileSystem, Path } from "effect"
import * as Checkpoint from "../../run/Checkpoint.ts"
import { onDisk } from "../../run/store/FileTree.ts"
import { makeRunFiles } from "../../run/store/RunFiles.ts"
import { runStoreError } from "../../run/store/RunStoreError.ts"
import * as Layout from "../../run/Layout.ts"

/**
 * Reads the files of the checkpoint at a path: the checkpoint's own folder, the link `latest`, or the folder of all
 * checkpoints. A checkpoint of another program has no hashes (`manifest.json`), so it is read without a check, with a
 * warning.
 */
export const checkpointAt = Effect.fnUntraced(function* (
  path: string,
  { setting }: { readonly setting?: string } = {},
) {
  const none = (at: string, problem: string) =>
    new Checkpoint.CheckpointError({ path: at, message: setting === undefined ? problem : `${setting}: ${problem}` })
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const has = (...parts: ReadonlyArray<string>) =>
    Effect.mapError(fs.exists(paths.join(path, ...parts)), (error) => runStoreError("look for", path, error))

  const isCheckpoint = yield* has(Layout.inCheckpoint.runtime)
  const isPointer = paths.basename(path) === Layout.latest && !isCheckpoint
  const folder = isPointer || isCheckpoint ? paths.dirname(paths.resolve(path)) : paths.resolve(path)
  if (!isCheckpoint && !isPointer && !(yield* has(Layout.latest)) && !(yield* has(Layout.latestPointer))) {
    const message = `expected a checkpoint or a folder of checkpoints, found neither runtime.json nor latest in ${path}`
    return yield* none(path, message)
  }
  const tree = yield* onDisk(folder)
  const noIdentity = { name: "", population: {}, seed: 0 }
  // Never repair files in another run's folder. The identity is not used, because nothing is written.
  const run = makeRunFiles({ ...tree, repair: () => Effect.void }, noIdentity, true).placed(
    Layout.places({ checkpoints: "." }),
  )
  const name = isCheckpoint
    ? paths.basename(yield* Effect.mapError(fs.realPath(path), (error) => runStoreError("find", path, error)))
    : yield* Checkpoint.latestName(run)
  if (name === undefined) {
    const message = `the checkpoint that latest names is missing in ${run.directory}; name another checkpoint`
    return yield* none(run.directory, message)
  }
  const at = paths.join(folder, name)
  if (yield* run.exists(Layout.checkpointFile(name, Layout.inCheckpoint.manifest))) {
    const { files } = yield* Checkpoint.load(run, name)
    return { path: at, files, warnings: [] }
  }
  const files: Record<string, Uint8Array> = {}
  for (const file of yield* run.list(Layout.checkpoint(name))) {
    files[file] = yield* run.read(Layout.checkpointFile(name, file))
  }
  return { path: at, files, warnings: [`${at} has no manifest.json, so it cannot be checked for damage`] }
})
