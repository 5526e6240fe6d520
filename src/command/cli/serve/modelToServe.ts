/** Finds what `effect serve` serves: a folder with a model, or a run of a trainer with broadcasts. */
import { basename, dirname, resolve } from "node:path"
import { Effect } from "effect"
import * as Layout from "../../../trainer/Layout.ts"
import { baseOf, findModel, onlyRunIn } from "../../../trainer/weights/SavedModel.ts"
import { usageError } from "../output/output.ts"

interface ModelToServe {
  /** The folder of the base model. */
  readonly folder: string
  readonly name: string
  /** The folders whose broadcasts belong to the model. */
  readonly watch: ReadonlyArray<string>
}

const exporting = "serve the folder of its trainer, or write a model: effect export RUN --to model"

/**
 * Finds the model that the user named. The newest broadcast of a run is a whole model, or an adapter whose config names
 * the base model.
 */
export const modelToServe = Effect.fnUntraced(function* (
  named: string,
): Effect.fn.Return<ModelToServe, ReturnType<typeof usageError>, Effect.Services<ReturnType<typeof findModel>>> {
  const place = Effect.flatMap(onlyRunIn(named), (typed) =>
    Effect.map(findModel(typed), (found) => ({ ...found, typed })),
  )
  const { holds, folder, name, typed } = yield* Effect.mapError(place, ({ message }) => usageError(message))
  if (folder === resolve(typed)) {
    if (holds === "model") return { folder, name: basename(folder), watch: [] }
    const found = holds === "adapter" ? "an adapter" : "a checkpoint"
    const remedy =
      holds === "adapter" ? `serve its base model: effect serve MODEL --adapter ${name}=${named}` : exporting
    return yield* usageError(`${named}: expected a model, found ${found}; ${remedy}`)
  }
  const run = dirname(dirname(folder))
  if (basename(dirname(folder)) !== Layout.broadcasts)
    return yield* usageError(`${named}: expected a run with a complete ${Layout.broadcasts}/step_N; ${exporting}`)
  if (holds === "model") return { folder, name, watch: [run] }
  const base = yield* Effect.mapError(baseOf(folder), ({ message }) =>
    usageError(`${message}; serve the base model: effect serve MODEL --watch ${run}`),
  )
  return { folder: base, name: basename(base), watch: [run] }
})
