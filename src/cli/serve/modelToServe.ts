/** Finds what `effect serve` serves: a folder with a model, or a run of a trainer with broadcasts. */
import { basename, join } from "node:path"
import { Effect } from "effect"
import { exists } from "../../config/files.ts"
import { modelFiles } from "../../formats/modelFiles.ts"
import * as Layout from "../../multirun/Layout.ts"
import { newestBroadcast } from "../../multirun/weights/receive.ts"
import { baseOf, onlyRunIn } from "../../multirun/weights/SavedModel.ts"
import { config as runConfig } from "../../run/Layout.ts"
import { onDisk } from "../../run/store/FileTree.ts"
import { usageError } from "../output/output.ts"

/** A model to serve. */
export interface ModelToServe {
  /** The folder of the base model. */
  readonly folder: string
  readonly name: string
  /** The folders whose broadcasts belong to the model. */
  readonly watch: ReadonlyArray<string>
}

/**
 * Finds the model that the user named. The newest broadcast of a run is a whole model, or an adapter whose config names
 * the base model.
 */
export const modelToServe = Effect.fnUntraced(function* (named: string) {
  const typed = yield* Effect.mapError(onlyRunIn(named), ({ message }) => usageError(message))
  // A run has a file of the same name, beside its `config.yaml`.
  if ((yield* exists(join(typed, modelFiles.config))) && !(yield* exists(join(typed, runConfig)))) {
    const found: ModelToServe = { folder: typed, name: basename(typed), watch: [] }
    return found
  }
  if (!(yield* exists(typed))) return yield* usageError(`${typed}: there is no such folder`)
  const step = yield* newestBroadcast(yield* onDisk(typed))
  if (step === undefined) {
    const problem = `expected a model (${modelFiles.config}) or a run with a complete ${Layout.broadcasts}/step_N`
    return yield* usageError(`${typed}: ${problem}`)
  }
  const broadcast = join(typed, Layout.broadcast(step))
  if (yield* exists(join(broadcast, modelFiles.config))) {
    const found: ModelToServe = { folder: broadcast, name: basename(typed), watch: [typed] }
    return found
  }
  const base = yield* Effect.mapError(baseOf(broadcast), ({ message }) =>
    usageError(`${message}; serve the base model: effect serve MODEL --watch ${typed}`),
  )
  const found: ModelToServe = { folder: base, name: basename(base), watch: [typed] }
  return found
})
