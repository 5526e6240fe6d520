/**
 * Loads the broadcasts of a trainer's runs into an engine as soon as they are complete: adapters under the name of their run,
 * or new weights of the base model. The engine continues to answer requests meanwhile. A broadcast that cannot be loaded is
 * reported and skipped, and the engine keeps the weights that it has. If the engine has no room for another adapter, the
 * adapter of a run that has ended is unloaded; if no run has ended, the broadcast waits until there is room.
 */
import { type Duration, Effect, type FileSystem, Path } from "effect"
import { type StepAdapter, Engine, EngineError } from "../../decoder/inference/Engine.ts"
import type { NamedArray } from "../../tensor/graph/Parameters.ts"
import * as Layout from "../Layout.ts"
import { stateIn } from "../outside/runStates.ts"
import { makeRunFolders, type RunFolders } from "../runs/runFolder.ts"
import { newestBroadcast, readBroadcast } from "./receive.ts"
import { type FileTree, onDisk } from "../../run/store/FileTree.ts"

/** The weights in a broadcast. */
export type BroadcastWeights =
  | { readonly _tag: "Adapter"; readonly adapter: StepAdapter }
  | { readonly _tag: "Full"; readonly weights: Readonly<Record<string, NamedArray>> }

/**
 * Reports what happened to a broadcast: it was loaded, or there was a problem; that a run's folder cannot be read at the
 * moment; or that a run is gone.
 */
export type Followed =
  | { readonly _tag: "Loaded"; readonly run: string; readonly step: number }
  | { readonly _tag: "Failed"; readonly run: string; readonly step: number; readonly message: string }
  | { readonly _tag: "Unreadable"; readonly run: string; readonly message: string }
  | { readonly _tag: "Gone"; readonly run: string }

interface FollowOptions {
  /** The folder of one run, or a folder with runs (`run_*`). */
  readonly directory: string
  /** Decodes the files of a broadcast; `path` names their folder in errors. */
  readonly decode: (
    files: Readonly<Record<string, Uint8Array>>,
    path: string,
  ) => Effect.Effect<BroadcastWeights, { readonly message: string }>
  readonly report: (followed: Followed) => Effect.Effect<void>
  /** The time between two scans of the folders. Default: 100 milliseconds. */
  readonly pollInterval?: Duration.Input
}

/** A broadcast that was handled before. */
interface HandledBroadcast {
  /** The step of the broadcast, with the token of the run's folder. */
  readonly broadcast: string
  /**
   * If the engine had no room for the broadcast: the models that it had then. The broadcast is tried again when the models
   * have changed. null if the broadcast was loaded or is broken.
   */
  readonly refusedBeside: string | null
}

const isFull = (error: { readonly message: string }): boolean => error instanceof EngineError && error.reason === "full"

/** The state of following broadcasts, and the engine that gets the weights. */
interface FollowState extends FollowOptions {
  readonly engine: Engine["Service"]
  readonly path: Path.Path
  readonly runFolders: RunFolders
  readonly root: FileTree
  /** The name of the run, if the folder is the folder of a single run. */
  readonly single: string
  /** The newest broadcast of each run. */
  readonly known: Map<string, HandledBroadcast>
  /** The problem of each run whose folder could not be read at the last scan. */
  readonly unreadable: Map<string, string>
  /** The folders of the runs whose adapters are loaded, in the order in which they were first loaded. */
  readonly adapters: Map<string, FileTree>
}

/** Returns the names and folders of the runs. A folder that has broadcasts itself is a single run; an empty one has none. */
const foldersOf = (
  { known, single, directory, path }: FollowState,
  names: ReadonlyArray<string>,
): ReadonlyArray<readonly [run: string, folder: string]> => {
  if (names.length === 0) return []
  if (names.includes(Layout.broadcasts) || known.has(single)) return [[single, directory]]
  return names.filter(Layout.isRunName).map((name) => [name, path.join(directory, name)])
}

/** Opens the runs' folders, by name. */
const runsIn = Effect.fnUntraced(function* (state: FollowState) {
  const folders = foldersOf(state, yield* state.root.list("."))
  const trees = new Map<string, FileTree>()
  for (const [run, folder] of folders) trees.set(run, yield* onDisk(folder))
  return trees
})

/**
 * Tells whether a run has ended. A run that was resumed with more steps has not ended, although it still has the file of its
 * earlier end.
 */
const hasEnded = Effect.fnUntraced(function* (state: FollowState, run: string, folder: FileTree) {
  if (yield* folder.exists(Layout.evicted)) return true
  if (!(yield* folder.exists(Layout.finished))) return false
  return (yield* stateIn(state.runFolders, folder.root, run))._tag === "Finished"
})

/**
 * Unloads the oldest adapter whose run has ended. Returns false if no such adapter exists, or if the run that needs the room
 * has itself ended: otherwise, ended runs would replace each other again and again.
 */
const makeRoom = Effect.fnUntraced(function* (state: FollowState, needing: string, folder: FileTree) {
  if (yield* hasEnded(state, needing, folder)) return false
  for (const [run, other] of state.adapters) {
    const isOver = yield* Effect.orElseSucceed(hasEnded(state, run, other), () => false)
    if (!isOver) continue
    state.adapters.delete(run)
    const broadcast = state.known.get(run)?.broadcast
    if (broadcast !== undefined) state.known.set(run, { broadcast, refusedBeside: "" })
    // This fails if a client has already unloaded the adapter.
    yield* Effect.ignore(state.engine.unloadAdapter(run))
    return true
  }
  return false
})

/** Returns the names of the models that the engine has, as one text. */
const modelNames = (state: FollowState) =>
  Effect.map(state.engine.models, (models) => JSON.stringify(models.map(({ name }) => name)))

/** Loads a broadcast into the engine. */
const load = Effect.fnUntraced(function* (state: FollowState, run: string, folder: FileTree, step: number) {
  const files = yield* readBroadcast(folder, step)
  // The trainer has removed this broadcast because there is a newer one, which the next scan finds.
  if (files === undefined) return
  const weights = yield* state.decode(files, `${folder.root}/${Layout.broadcast(step)}`)
  if (weights._tag === "Full") yield* state.engine.loadWeights({ step, weights: weights.weights })
  else {
    const loading = state.engine.loadAdapter({ name: run, step, adapter: weights.adapter })
    yield* Effect.catchIf(loading, isFull, (full) =>
      Effect.flatMap(makeRoom(state, run, folder), (hasRoom) => (hasRoom ? loading : Effect.fail(full))),
    )
    state.adapters.set(run, folder)
  }
  yield* state.report({ _tag: "Loaded", run, step })
})

/**
 * Loads the newest broadcast of a run, unless it was loaded before or is broken. The token is compared, too, because a run
 * that was made again may have the same steps.
 */
const update = Effect.fnUntraced(function* (state: FollowState, run: string, folder: FileTree) {
  const token = (yield* folder.exists(Layout.token)) ? yield* folder.readText(Layout.token) : ""
  const step = yield* newestBroadcast(folder)
  if (step === undefined) return
  const broadcast = `${step} ${token}`
  const before = state.known.get(run)
  const isSame = broadcast === before?.broadcast
  if (isSame) {
    if (before.refusedBeside === null) return
    if (before.refusedBeside === (yield* modelNames(state)) && !(yield* makeRoom(state, run, folder))) return
  }
  const failure = yield* Effect.match(load(state, run, folder, step), {
    onSuccess: () => undefined,
    onFailure: (error) => ({ message: error.message, isFull: isFull(error) }),
  })
  state.known.set(run, { broadcast, refusedBeside: failure?.isFull === true ? yield* modelNames(state) : null })
  if (failure === undefined || (failure.isFull && isSame)) return
  yield* state.report({ _tag: "Failed", run, step, message: failure.message })
})

/** Updates a run. If its folder cannot be read, reports that once; the next scan tries again. */
const lookAt = Effect.fnUntraced(function* (state: FollowState, run: string, folder: FileTree) {
  const problem = yield* Effect.match(update(state, run, folder), {
    onSuccess: () => undefined,
    onFailure: ({ message }) => message,
  })
  if (problem === undefined) state.unreadable.delete(run)
  else if (problem !== state.unreadable.get(run)) {
    state.unreadable.set(run, problem)
    yield* state.report({ _tag: "Unreadable", run, message: problem })
  }
})

/** Unloads the adapter of a run whose folder is gone. */
const forget = Effect.fnUntraced(function* (state: FollowState, run: string) {
  state.known.delete(run)
  state.unreadable.delete(run)
  if (state.adapters.delete(run)) yield* Effect.ignore(state.engine.unloadAdapter(run))
  yield* state.report({ _tag: "Gone", run })
})

/** Scans the folders once, and loads new broadcasts. */
const look = Effect.fnUntraced(function* (state: FollowState) {
  const present = yield* runsIn(state)
  for (const [run, folder] of present) yield* lookAt(state, run, folder)
  for (const run of new Set([...state.known.keys(), ...state.unreadable.keys()]))
    if (!present.has(run)) yield* forget(state, run)
})

/** Makes the Effect that scans the folders once, and loads new broadcasts. It remembers what it has loaded. */
export const makeLook = Effect.fnUntraced(function* (options: FollowOptions) {
  const path = yield* Path.Path
  const state: FollowState = {
    ...options,
    engine: yield* Engine,
    path,
    runFolders: yield* makeRunFolders,
    root: yield* onDisk(options.directory),
    single: path.basename(path.resolve(options.directory)),
    known: new Map(),
    unreadable: new Map(),
    adapters: new Map(),
  }
  return Effect.provideContext(look(state), yield* Effect.context<FileSystem.FileSystem | Path.Path>())
})

/**
 * Loads the newest broadcasts, and returns the Effect that loads each later one. A folder that cannot be read at the moment
 * is tried again.
 */
export const follow = Effect.fnUntraced(function* (
  options: FollowOptions,
): Effect.fn.Return<Effect.Effect<never>, never, Engine | FileSystem.FileSystem | Path.Path> {
  const look = Effect.ignore(yield* makeLook(options))
  const { pollInterval = "100 millis" } = options
  yield* look
  return Effect.forever(Effect.andThen(Effect.sleep(pollInterval), look))
})
