import { Effect } from "effect"
import * as Checkpoints from "../run/Checkpoint.ts"
import type { Appended, Changed, RunFiles } from "../run/store/RunFiles.ts"
import type { RunStoreError } from "../run/store/RunStoreError.ts"
import { intactBytes } from "../formats/tfevents.ts"
import * as Layout from "../run/Layout.ts"

/** A checkpoint that a run is to be cut back to. */
export interface Target {
  readonly name: string
  /** The folder that checkpoints are in, for people. */
  readonly folder: string
  readonly appended: Appended
  /** What `runtime.json` of another checkpoint says of the files that grow; undefined where that can't be read. */
  readonly appendedIn: (runtimeJson: string) => Appended | undefined
}

/** Files that a resume cuts back as far as it can: damage to them must not stop a training from being resumed. */
const logs: Readonly<Record<string, (bytes: Uint8Array) => number>> = {
  [Layout.tensorBoard]: intactBytes,
  [Layout.progressCsv]: (bytes) => bytes.lastIndexOf(0x0a) + 1,
}

/** Fails where scores, rollouts or memories of the run differ from those at the time of the checkpoint. */
export const refuseChanged = Effect.fnUntraced(function* (
  run: RunFiles,
  target: Target,
): Effect.fn.Return<ReadonlyArray<Changed>, Checkpoints.CheckpointError | RunStoreError> {
  const changed = yield* run.changedSince(target.appended)
  const [first] = changed.filter(({ file }) => !Object.hasOwn(logs, file))
  if (first === undefined) return changed
  const path = `${run.directory}/${first.file}`
  const message = `${path}: ${first.problem} since the checkpoint ${target.name}; ${yield* wayOut(run, target)}`
  return yield* new Checkpoints.CheckpointError({ path, message })
})

/**
 * Cuts the files that grow back to a checkpoint. A log that isn't what it was is cut to the part of it that can be read,
 * and a warning says so.
 */
export const cutBack = Effect.fnUntraced(function* (
  run: RunFiles,
  target: Target,
): Effect.fn.Return<ReadonlyArray<string>, Checkpoints.CheckpointError | RunStoreError> {
  const changed = yield* refuseChanged(run, target)
  yield* run.cutBack(target.appended)
  return yield* Effect.forEach(changed, ({ file, problem }) =>
    Effect.map(
      keepReadable(run, file),
      (kept) =>
        `${run.directory}/${file}: ${problem} since the checkpoint ${target.name}; the log goes on after ${kept} bytes of it`,
    ),
  )
})

/** Cuts a log off where it can't be read any more, and gives what is left. */
const keepReadable = Effect.fnUntraced(function* (
  run: RunFiles,
  file: string,
): Effect.fn.Return<number, RunStoreError> {
  if (!(yield* run.exists(file))) return 0
  const bytes = yield* run.read(file)
  const kept = logs[file](bytes)
  if (kept === 0) yield* run.remove(file)
  else if (kept < bytes.length) yield* run.truncate(file, kept)
  return kept
})

/** The newest checkpoint that the files still fit, and how to go on from it. */
const wayOut = Effect.fnUntraced(function* (
  run: RunFiles,
  { name, folder, appendedIn }: Target,
): Effect.fn.Return<string, RunStoreError> {
  const names = yield* Checkpoints.names(run)
  const newer: Array<string> = []
  for (const other of names) {
    if (other !== name && (yield* fits(run, other, appendedIn))) {
      const folders = newer.map((one) => `${folder}/${one}`)
      return `the checkpoint ${other} still fits: to go on from it, remove ${folders.join(", ")} and resume again`
    }
    newer.push(other)
  }
  return "no other checkpoint fits either: put the file back as it was, or start a new run"
})

const fits = (run: RunFiles, name: string, appendedIn: Target["appendedIn"]): Effect.Effect<boolean, RunStoreError> =>
  Effect.gen(function* () {
    yield* Checkpoints.open(run, name)
    const appended = appendedIn(yield* run.readText(Layout.checkpointFile(name, Layout.inCheckpoint.runtime)))
    if (appended === undefined) return false
    return (yield* run.changedSince(appended)).every(({ file }) => Object.hasOwn(logs, file))
  }).pipe(Effect.catchTag("CheckpointError", () => Effect.succeed(false)))
