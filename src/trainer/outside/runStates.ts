/**
 * Reads the states of a trainer's runs from the files in its folder, for a process that plays their tasks. It changes
 * nothing: the trainer decides about the runs.
 */
import { Effect, type FileSystem, type Path } from "effect"
import * as Layout from "../Layout.ts"
import { type OrchestratorConfig, parse } from "../config/OrchestratorConfig.ts"
import { makeRunFolders, type Origin, type RunFolders } from "../runs/runFolder.ts"
import { onDisk } from "../../run/store/FileTree.ts"
import { newestBroadcast } from "../weights/receive.ts"
import type { TrainerError } from "../TrainerError.ts"

/** A run that the trainer trains. */
export interface TrainedRun {
  readonly id: string
  readonly directory: string
  readonly config: OrchestratorConfig
  /** The identity of the folder. Its token differs if the trainer was started again, or the folder deleted and made again. */
  readonly origin: Origin
}

/** The state of a run's folder. A run is `Waiting` until the trainer has published its weights. */
export type RunState =
  | { readonly _tag: "Waiting" | "Finished" | "Unconfigured"; readonly id: string }
  | { readonly _tag: "Evicted" | "Invalid"; readonly id: string; readonly reason: string }
  | { readonly _tag: "Trained"; readonly id: string; readonly run: TrainedRun }

/** Reads the state of the run `id` in the folder `directory`. */
export const stateIn = Effect.fnUntraced(function* (
  folders: RunFolders,
  directory: string,
  id: string,
): Effect.fn.Return<RunState, never, FileSystem.FileSystem | Path.Path> {
  const evicted = yield* folders.read(directory, Layout.evicted)
  if (evicted._tag === "Text") return { _tag: "Evicted", id, reason: evicted.text.trim() }
  const found = yield* folders.readConfig(directory)
  if (found === undefined) return { _tag: "Unconfigured", id }
  const problem = yield* folders.read(directory, Layout.configProblem)
  if (problem._tag === "Text") return { _tag: "Invalid", id, reason: problem.text.trim() }
  if (found.read._tag === "Failed") return { _tag: "Waiting", id }
  const config = yield* Effect.option(parse(found.read.text, found.file))
  // An invalid config counts as waiting: the trainer reports what is wrong with it.
  if (config._tag === "None") return { _tag: "Waiting", id }
  if (yield* folders.isFinished(directory, config.value.maxSteps)) return { _tag: "Finished", id }
  const origin = yield* folders.recognise(directory)
  const step = yield* Effect.orElseSucceed(Effect.flatMap(onDisk(directory), newestBroadcast), () => undefined)
  if (origin === undefined || step === undefined) return { _tag: "Waiting", id }
  return { _tag: "Trained", id, run: { id, directory, config: config.value, origin } }
})

/**
 * Makes the Effect that reads the states of all runs in a trainer's folder, in the order of their names.
 *
 * @example
 * ```ts
 * const states = yield* Effect.flatMap(makeRunStates("out"), (read) => read)
 * states[0] // { _tag: "Trained", id: "run_a", run: { … } }
 * ```
 */
export const makeRunStates = Effect.fnUntraced(function* (outputDirectory: string) {
  const folders = yield* makeRunFolders
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()

  const all: Effect.Effect<ReadonlyArray<RunState>, TrainerError> = Effect.flatMap(
    folders.list(outputDirectory),
    (ids) =>
      Effect.provideContext(
        Effect.forEach(ids, (id) => stateIn(folders, folders.at(outputDirectory, id), id)),
        context,
      ),
  )
  return all
})
