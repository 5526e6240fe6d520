/** Starts an evaluation, or resumes it: from its journal, if the settings are the same. */
import { Effect } from "effect"
import type { FormatError } from "../../base/formats/FormatError.ts"
import { ConfigError, display, isPlain, type Plain, toSnakeCase } from "../../base/config/Config.ts"
import { firstDifference } from "../../base/config/difference.ts"
import { parsedJson } from "../../base/text/text.ts"
import { finishedResult } from "../../run/finishedResult.ts"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import { RunStoreError } from "../../run/store/RunStoreError.ts"
import * as Layout from "../../run/Layout.ts"
import type * as Run from "../../run/Run.ts"
import * as Journal from "./journal.ts"
import { EvaluationResult } from "./result.ts"
import type { EvaluationProgress, PreparedEvaluation } from "./PreparedEvaluation.ts"

/**
 * Makes the state with which the run starts: begins a new journal, or reads the journal of an earlier process. The tables
 * need not be restored, because they are written again from the first episode. If a resumed run has no journal, it must be
 * finished already: then nothing is played, and its saved result is returned.
 */
export const open = Effect.fnUntraced(function* (
  prepared: PreparedEvaluation,
  files: RunFiles,
): Effect.fn.Return<Run.Opened<EvaluationProgress, EvaluationResult>, ConfigError | RunStoreError | FormatError> {
  if (files.resumed && !(yield* files.exists(Layout.evaluation.journal))) {
    yield* checkFinished(prepared, files)
    return { state: { rows: [], earlier: new Map() }, resumedFromStep: null, isOver: () => true }
  }
  const { settings, entries, spent, seconds } = yield* Journal.readEarlier(files)
  if (settings === undefined) yield* Journal.begin(files, prepared.identity)
  else yield* refuseOther(prepared.identity, settings, { source: prepared.source, what: "evaluation" })
  Object.assign(prepared.spent, spent)
  return {
    state: { rows: [], earlier: new Map(entries) },
    resumedFromStep: files.resumed ? entries.size : null,
    seconds,
  }
})

/**
 * Fails if the settings in the first line of a journal differ from those of the run that resumes it. `what` is what the user
 * started: an evaluation, or a run.
 */
export const refuseOther = (
  identity: Plain,
  before: Plain,
  { source, what }: { readonly source: string; readonly what: "evaluation" | "run" },
): Effect.Effect<void, ConfigError> => {
  const keys = [...new Set([...Object.keys(identity), ...Object.keys(before)])]
  const key = keys.find((one) => JSON.stringify(identity[one]) !== JSON.stringify(before[one]))
  if (key === undefined) return Effect.void
  const problem = `the ${what} was started with ${display(before[key])}, found ${display(identity[key])}; start a new ${what} without --resume`
  return Effect.fail(ConfigError.at({ source }, key, problem))
}

/** Checks a resumed run that has no journal. Fails unless the run is finished and had the same settings. */
const checkFinished = Effect.fnUntraced(function* ({ effective, source }: PreparedEvaluation, files: RunFiles) {
  const path = files.directory
  if ((yield* finishedResult(files, EvaluationResult)) === undefined || !(yield* files.exists(Layout.configJson))) {
    const message = `${path}: expected an evaluation that was stopped, found nothing to resume; start a new evaluation without --resume`
    return yield* new RunStoreError({ path, operation: "resume", message })
  }
  const difference = firstDifference(
    essential(effective),
    essential(parsedJson(yield* files.readText(Layout.configJson))),
  )
  if (difference === undefined) return
  const { key, now, then } = difference
  const problem = `${path} was finished with ${display(then)}, found ${display(now)}; start a new evaluation without --resume`
  return yield* ConfigError.at({ source }, key, problem)
})

/** Returns the settings on which an evaluation's result depends, in snake_case, without all other settings. */
const essential = (config: unknown): Plain => {
  const renamed = toSnakeCase(config)
  if (!isPlain(renamed)) return {}
  const { workers: _1, verbose: _2, output: _3, description: _4, ...rest } = renamed
  return rest
}
