/**
 * Writes and reads an orchestrator's reports about a run, which are files in the run's folder: the metrics and transcripts of
 * a step, next to its samples, and the validations. The trainer records a report in the run's logs after it has trained the
 * report's step, so nothing is lost or recorded twice if the orchestrator or the trainer is killed.
 *
 * @example
 * ```ts
 * yield* writeValidation(folder, { step: 100, scores: [1, 0, 1], transcripts })
 * yield* validationsIn(folder, { after: 40, upTo: 100 }) // [{ step: 100, … }]
 * ```
 */
import { Effect, Schema } from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import { naturalInt } from "../../base/config/fields.ts"
import { oneLine, shortened } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { StepScored } from "../../run/record/RunEvent.ts"
import type { RunStoreError } from "../../run/store/RunStoreError.ts"
import type { RunFolder, RunFolderError } from "../runs/guardedFolder.ts"
import * as Layout from "../Layout.ts"
import { TrainerError } from "../TrainerError.ts"

/** An episode of a step or a validation that failed, so that it gave no sample or score. */
export const FailedEpisode = Schema.Struct({
  id: Schema.String,
  /** The position of the episode's task in the data set. */
  task: naturalInt,
  envId: Schema.String,
  envType: Schema.String,
  /** The tag of the error, such as `EnvError` or `LmError`. */
  error: Schema.String,
  message: Schema.String,
})
export type FailedEpisode = typeof FailedEpisode.Type

/** The failed episodes of a step or a validation. */
export const Failures = Schema.Struct({
  failed: Schema.Array(FailedEpisode),
  /** The number of episodes that were played, including the failed ones. */
  played: naturalInt,
})
export type Failures = typeof Failures.Type

const labelOf = ({ envType, envId }: FailedEpisode): string => `${envType} "${shortened(envId)}"`

/** Describes the failures of a step or a validation in one line: the tasks and the first message. */
export const summaryOf = (what: string, { failed, played }: Failures): string => {
  const tasks = [...new Set(failed.map(labelOf))]
  const named = tasks.length > 3 ? `${tasks.slice(0, 3).join(", ")} and ${tasks.length - 3} more` : tasks.join(", ")
  return `${what}: ${failed.length} of ${played} episodes failed, of ${named}: ${failed[0].id}: ${failed[0].message}`
}

/** The report of a step's samples. */
export const StepReport = Schema.Struct({
  metrics: Schema.Record(Schema.String, Schema.Finite),
  transcripts: Schema.Array(StepScored),
  /** The episodes that failed; left out if none did. */
  failures: Schema.optionalKey(Failures),
})
export type StepReport = typeof StepReport.Type

/** The report of a validation: the step whose weights played, and the score of each task that could be played. */
export const Validation = Schema.Struct({
  step: naturalInt,
  scores: Schema.Array(Schema.Finite),
  transcripts: Schema.Array(StepScored),
  failures: Schema.optionalKey(Failures),
})
export type Validation = typeof Validation.Type

export const encodeStepReport = (report: StepReport): Uint8Array => utf8.encode(`${JSON.stringify(report)}\n`)

const reading = Effect.fnUntraced(function* <A>(
  { tree, directory }: RunFolder,
  path: string,
  schema: Schema.Codec<A, unknown>,
): Effect.fn.Return<A, RunFolderError> {
  const decode = Schema.decodeUnknownEffect(jsonText(schema))
  const file = `${directory}/${path}`
  return yield* Effect.mapError(decode(yield* tree.readText(path)), (error) =>
    TrainerError.at(file, `expected a report (${oneLine(error.message)})`),
  )
})

/** Reads the report of a step; undefined if there is none, because another program made the samples. */
export const readStepReport = Effect.fnUntraced(function* (folder: RunFolder, step: number) {
  const path = `${Layout.rolloutsOf(step)}/${Layout.inRollouts.report}`
  if (!(yield* folder.tree.exists(path))) return undefined
  return yield* reading(folder, path, StepReport)
})

export const hasValidation = ({ tree }: RunFolder, step: number): Effect.Effect<boolean, RunStoreError> =>
  tree.exists(Layout.validationOf(step))

export const writeValidation = (
  { tree, guarded }: RunFolder,
  validation: Validation,
): Effect.Effect<void, RunFolderError> =>
  guarded(tree.write(Layout.validationOf(validation.step), `${JSON.stringify(validation)}\n`))

/** Reads the validations of the steps after `after`, up to `upTo`, in the order of their steps. */
export const validationsIn = Effect.fnUntraced(function* (
  folder: RunFolder,
  { after, upTo }: { readonly after: number; readonly upTo: number },
): Effect.fn.Return<ReadonlyArray<Validation>, RunFolderError> {
  const steps = (yield* folder.tree.list(Layout.validations)).flatMap((name) => Layout.validationStepOf(name) ?? [])
  const wanted = steps.filter((step) => step > after && step <= upTo).toSorted((a, b) => a - b)
  return yield* Effect.forEach(wanted, (step) => reading(folder, Layout.validationOf(step), Validation))
})
