/**
 * Reads the progress of a trainer's runs, and the time for which earlier processes trained them.
 *
 * @example
 * ```ts
 * const progress = yield* progressIn(runFiles)
 * const { step } = positionOf({ progress }) // the updates of all runs
 * ```
 */
import { Effect } from "effect"
import { finishedResult } from "../run/finishedResult.ts"
import { RunResult } from "../run/RunResult.ts"
import type { RunFiles } from "../run/store/RunFiles.ts"
import * as Layout from "./Layout.ts"
import { trainerSecondsIn } from "./records/RunRecords.ts"
import { startingProgress } from "./runs/resume.ts"
import { makeRunFolders } from "./runs/runFolder.ts"
import type { Progress } from "./runs/TrainedRun.ts"

/** The progress of each run, by the run's id. */
type ProgressOfRuns = ReadonlyMap<string, Readonly<Progress>>

/** Reads the progress of the runs of a resumed trainer. */
export const progressIn = Effect.fnUntraced(function* (files: RunFiles) {
  const all = new Map<string, Readonly<Progress>>()
  if (!files.resumed) return all
  const folders = yield* makeRunFolders
  for (const id of yield* folders.list(files.directory)) {
    const progress = startingProgress(folders, folders.at(files.directory, id), { resumeStep: -1 })
    // Runs that cannot be resumed are skipped here: `Runs` reports the reason.
    yield* Effect.match(progress, { onSuccess: (found) => void all.set(id, found), onFailure: () => undefined })
  }
  return all
})

/**
 * Returns the number of seconds for which earlier processes trained: until the trainer finished, or until its last
 * checkpoint.
 */
export const secondsBefore = Effect.fnUntraced(function* (files: RunFiles, progress: ProgressOfRuns) {
  if (!files.resumed) return 0
  const folders = yield* makeRunFolders
  const saved = yield* Effect.forEach([...progress], ([id, { step }]) => {
    const file = `${Layout.checkpoint(step)}/${Layout.inCheckpoint.recorded}`
    return folders.read(folders.at(files.directory, id), file)
  })
  const finished = yield* finishedResult(files, RunResult)
  return Math.max(
    finished?.wallSeconds ?? 0,
    ...saved.map((file) => (file._tag === "Text" ? trainerSecondsIn(file.text) : 0)),
  )
})

/** Returns the number of updates, of samples and of tokens of all runs together. */
export const positionOf = ({
  progress,
}: {
  readonly progress: ProgressOfRuns
}): { readonly step: number; readonly episodes: number; readonly tokens: number } => {
  const all = [...progress.values()]
  return {
    step: all.reduce((sum, { step }) => sum + step, 0),
    episodes: all.reduce((sum, { totalSamples }) => sum + totalSamples, 0),
    tokens: all.reduce((sum, { totalTokens }) => sum + totalTokens, 0),
  }
}
