/** Cuts the files that a run appends to (scores, rollouts, logs) back to their sizes at a checkpoint, for `Run.ts`. */
import { Effect, Option } from "effect"
import * as Schema from "effect/Schema"
import { jsonText } from "../base/text/jsonText.ts"
import { intactBytes } from "../base/formats/tfevents.ts"
import { utf8 } from "../base/text/utf8.ts"
import * as Layout from "./Layout.ts"
import { CheckpointError } from "./Checkpoint.ts"
import { Checkpoints } from "./Checkpoints.ts"
import { Appended } from "./store/appended.ts"
import type { Changed, RunFiles } from "./store/RunFiles.ts"
import type { RunStoreError } from "./store/RunStoreError.ts"

/** The checkpoint to resume from, with the sizes and digests that the run's growing files had when it was saved. */
export interface Target {
  readonly name: string
  /** The path of the folder of checkpoints, for messages. */
  readonly folder: string
  readonly appended: Appended
}

/**
 * Maps each log to a function that returns the length, in bytes, of the log's readable beginning, up to the step `lastStep`.
 */
const logs: Readonly<Record<string, (bytes: Uint8Array, lastStep?: number) => number>> = {
  [Layout.tensorBoard]: intactBytes,
  [Layout.progressCsv]: (bytes, lastStep = Infinity) => {
    const whole = bytes.subarray(0, bytes.lastIndexOf(0x0a) + 1)
    if (lastStep === Infinity) return whole.length
    let kept = 0
    for (const line of utf8.decode(whole).split("\n").slice(0, -1)) {
      // The heading has no step, so it is always kept.
      if (Number(line.split(",", 1)[0]) > lastStep) return kept
      kept += utf8.encode(line).length + 1
    }
    return kept
  },
}

/**
 * Fails if scores, rollouts or memories that existed at the checkpoint were changed since. Logs may have changed; returns
 * those. Changes no files.
 */
export const refuseChanged = Effect.fnUntraced(function* (run: RunFiles, target: Target) {
  const changed: ReadonlyArray<Changed> = yield* run.changedSince(target.appended)
  const [first] = changed.filter(({ file }) => !Object.hasOwn(logs, file))
  if (first === undefined) return changed
  const path = run.pathOf(first.file)
  const message = `${path}: ${first.problem} since the checkpoint ${target.name}; ${yield* remedy(run, target)}`
  return yield* new CheckpointError({ path, message })
})

/**
 * Cuts the growing files back to their sizes at a checkpoint. Fails if scores, rollouts or memories were changed since.
 * A log that was changed since is also cut to its readable beginning, and the result has a warning for each such log.
 */
export const cutBack = Effect.fnUntraced(function* (run: RunFiles, target: Target) {
  const changed = yield* refuseChanged(run, target)
  yield* run.cutBack(target.appended)
  return yield* Effect.forEach(changed, ({ file, problem }) =>
    Effect.map(
      keepReadable(run, file),
      (kept) =>
        `${run.pathOf(file)}: ${problem} since the checkpoint ${target.name}; the log continues after its first ${kept} bytes`,
    ),
  )
})

/** Removes the entries of logs after a step, and incomplete entries at their ends. */
export const keepLogsUntil = (run: RunFiles, lastStep: number) =>
  Effect.forEach(Object.keys(logs), (file) => keepReadable(run, file, lastStep), { discard: true })

/** Removes the unreadable end of a log, and its entries after a step. Returns the number of remaining bytes. */
const keepReadable = Effect.fnUntraced(function* (run: RunFiles, file: string, lastStep?: number) {
  if (!(yield* run.exists(file))) return 0
  const bytes = yield* run.read(file)
  const kept = logs[file](bytes, lastStep)
  if (kept === 0) yield* run.remove(file)
  else if (kept < bytes.length) yield* run.truncate(file, kept)
  return kept
})

/** Describes how the user can resume: from the newest checkpoint that still matches the files, if there is one. */
const remedy = Effect.fnUntraced(function* (run: RunFiles, { name, folder }: Target) {
  const newer: Array<string> = []
  for (const other of yield* (yield* Checkpoints)(run).list) {
    if (other !== name && (yield* matches(run, other))) {
      const folders = newer.map((one) => `${folder}/${one}`)
      return `to resume from the checkpoint ${other}, which still matches, remove ${folders.join(", ")} and resume again`
    }
    newer.push(other)
  }
  return "restore the file, or start a new run: no other checkpoint matches"
})

const decodeAppended = Schema.decodeUnknownOption(jsonText(Schema.Struct({ appended: Appended })))

/** Tells whether the checkpoint `name` is intact and the run's growing files still match it; logs may differ. */
const matches = (run: RunFiles, name: string): Effect.Effect<boolean, RunStoreError> =>
  Effect.gen(function* () {
    const { files } = yield* (yield* Checkpoints)(run).at(name)
    const saved = decodeAppended(utf8.decode(files[Layout.inCheckpoint.runtime]))
    if (Option.isNone(saved)) return false
    return (yield* run.changedSince(saved.value.appended)).every(({ file }) => Object.hasOwn(logs, file))
  }).pipe(Effect.catchTag("CheckpointError", () => Effect.succeed(false)))
