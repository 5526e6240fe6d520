/**
 * Reads the end of a run from its folder: the weights of its last checkpoint, and its validations. A resumed trainer
 * finds there the runs that ended before, so its result does not depend on where it was interrupted.
 *
 * @example
 * ```ts
 * yield* writeValidation(run, { step: 100, scores: [1, 0, 1] })
 * const { progress, weights, validations } = yield* readEnding(run)
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

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Array(Validation)))

/** Reads the validations in a run's folder, in the order of their steps. */
const readValidations = Effect.fnUntraced(function* ({ tree, directory }: RunFolder) {
  if (!(yield* tree.exists(Layout.validations))) return []
  return yield* Effect.mapError(
    decode(yield* tree.readText(Layout.validations)),
    (error) =>
      new MultiRunError({
        message: `${directory}/${Layout.validations}: expected validations (${oneLine(error.message)})`,
      }),
  )
})

/** Adds a validation to those in a run's folder. A resumed run writes again those after its checkpoint. */
export const writeValidation = Effect.fnUntraced(function* (run: Place, { step, scores }: Validation) {
  const folder = yield* openRunFolder(run)
  const before = (yield* readValidations(folder)).filter((validation) => validation.step < step)
  yield* folder.guarded(folder.tree.write(Layout.validations, prettyJson([...before, { step, scores }])))
})

/** Reads the progress and weights of a run's newest checkpoint, and its validations. */
export const readEnding = Effect.fnUntraced(function* (run: Place) {
  const folder = yield* openRunFolder(run)
  const checkpoint = yield* loadCheckpoint(folder, -1)
  if (checkpoint === undefined)
    return yield* new MultiRunError({
      message: `${run.directory}: expected the checkpoint of its last step, found none`,
    })
  const { weights } = yield* runStateIn(checkpoint.parts)
  return { progress: checkpoint.progress, weights, validations: yield* readValidations(folder) }
})
