/**
 * Does the three steps in the life of a run's folder: it prepares the files of a new or resumed run, starts the recording,
 * and writes the results. `Run.execute` calls these functions for a single run, a multi-run trainer for each of its runs.
 */
import { Effect } from "effect"
import { stringify } from "yaml"
import { toSnakeCase } from "../base/config/Config.ts"
import { prettyJson } from "../base/text/text.ts"
import { cutBack, keepLogsUntil, type Target } from "./cutBack.ts"
import { encodeReturnFile, type Evaluation } from "./evaluation.ts"
import { encodeMetrics } from "./finishedResult.ts"
import * as Layout from "./Layout.ts"
import { Recorder, type Recording } from "./record/Recorder.ts"
import type { RunStarted } from "./record/RunEvent.ts"
import type { RunSpec } from "./RunSpec.ts"
import type { RunFiles } from "./store/RunFiles.ts"

/** Describes which files of an earlier process are kept. */
interface Kept {
  /** The checkpoint to which scores and logs are cut back; undefined if the run starts over. */
  readonly saved: Target | undefined
  /** The step up to which a run without a checkpoint keeps its logs. If left out, the logs begin again. */
  readonly logsUntil?: number | undefined
  /** Result files to remove, in addition to metrics.json and return.json. */
  readonly results?: ReadonlyArray<string> | undefined
}

/** The results of a run: `metrics.json`, and its validations for `return.json`. */
export interface Result<A> {
  readonly metrics: A
  readonly evaluations: ReadonlyArray<Evaluation>
}

/** Writes the files that describe the run: its config and its description. */
export const writeSpec = Effect.fnUntraced(function* (files: RunFiles, { config, description }: RunSpec) {
  const contents = {
    [Layout.config]: stringify(toSnakeCase(config)),
    [Layout.configJson]: prettyJson(toSnakeCase(config)),
    [Layout.description]: `${description}\n`,
  }
  // Flushing several files at once takes hardly longer than one.
  yield* Effect.forEach(Object.entries(contents), ([file, content]) => files.write(file, content), {
    concurrency: "unbounded",
    discard: true,
  })
})

/**
 * Prepares a folder with files of an earlier process for the run that begins: cuts scores and logs back, removes results, and
 * writes the config. Returns a warning for each log that was changed since the checkpoint.
 */
export const prepare = Effect.fnUntraced(function* (
  files: RunFiles,
  spec: RunSpec,
  { saved, logsUntil, results = [] }: Kept,
) {
  const warnings = saved === undefined ? [] : yield* cutBack(files, saved)
  if (saved === undefined)
    yield* logsUntil === undefined ? files.cutBack({ sizes: {} }) : keepLogsUntil(files, logsUntil)
  for (const stale of [...Layout.results, ...results]) yield* files.remove(stale)
  yield* writeSpec(files, spec)
  return warnings
})

/** Starts the recording of a run by the event `started`, with notes and warnings about its beginning. */
export const startRecording = Effect.fnUntraced(function* (
  files: RunFiles,
  started: RunStarted,
  { notes = [], warnings = [] }: { readonly notes?: ReadonlyArray<string>; readonly warnings?: ReadonlyArray<string> },
) {
  const recording = yield* (yield* Recorder).start(files, started)
  yield* recording.emit([
    started,
    ...notes.map((message) => ({ _tag: "Note" as const, message })),
    ...warnings.map((message) => ({ _tag: "Warning" as const, message })),
  ])
  return recording
})

/** Writes the results of a run whose work is done. */
export const conclude = Effect.fnUntraced(function* (
  { files, recording }: { readonly files: RunFiles; readonly recording: Recording },
  { metrics, evaluations }: Result<object>,
) {
  yield* files.write(Layout.metrics, encodeMetrics(metrics))
  yield* recording.flush
  // Written last: a run that has this file is finished.
  yield* files.write(Layout.returns, encodeReturnFile(evaluations))
})
