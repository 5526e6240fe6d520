/**
 * Reads the end of a run from its folder: the weights of its last checkpoint, and its last validation. A resumed trainer
 * finds there the runs that ended before, so its result does not depend on where it was interrupted.
 *
 * @example
 * ```ts
 * yield* writeValidation(run, { step: 100, scores: [1, 0, 1] })
 * const { progress, weights, validation } = yield* readEnding(run)
 * ```
 */
import { Effect, Schema } from "effect"
import { oneLine, prettyJson } from "../config/text.ts"
import { openRunFolder, type RunFolder } from "./guardedFolder.ts"
import * as Layout from "./Layout.ts"
import { MultiRunError } from "./MultiRunError.ts"
import { runStateIn } from "./trainer/checkpointParts.ts"
import { loadCheckpoint } from "./weights/checkpoints.ts"

type Place = Pick<RunFolder, "id" | "directory">

/** A validation: the step whose weights played, and the score of each task. */
const Validation = Schema.Struct({ step: Schema.Int, scores: Schema.Array(Schema.Finite) })
export type Validation = typeof Validation.Type

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Validation))

/** Replaces the last validation in a run's folder. */
export const writeValidation = Effect.fnUntraced(function* (run: Place, { step, scores }: Validation) {
  const { tree, guarded } = yield* openRunFolder(run)
  yield* guarded(tree.write(Layout.validation, prettyJson({ step, scores })))
})

/** Reads the progress and weights of a run's newest checkpoint, and its last validation; undefined if it has none. */
export const readEnding = Effect.fnUntraced(function* (run: Place) {
  const folder = yield* openRunFolder(run)
  const checkpoint = yield* loadCheckpoint(folder, -1)
  if (checkpoint === undefined)
    return yield* new MultiRunError({
      message: `${run.directory}: expected the checkpoint of its last step, found none`,
    })
  const { weights } = yield* runStateIn(checkpoint.parts)
  const { tree } = folder
  if (!(yield* tree.exists(Layout.validation))) return { progress: checkpoint.progress, weights, validation: undefined }
  const validation = yield* Effect.mapError(
    decode(yield* tree.readText(Layout.validation)),
    (error) =>
      new MultiRunError({
        message: `${run.directory}/${Layout.validation}: expected a validation (${oneLine(error.message)})`,
      }),
  )
  return { progress: checkpoint.progress, weights, validation }
})
