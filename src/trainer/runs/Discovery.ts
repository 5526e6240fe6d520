/**
 * Finds the runs below the output folder, on the master rank: folders with a valid config, runs that wait for an index,
 * invalid and evicted runs, and folders that have vanished. It does not change indices: `Runs` asks it which runs to create,
 * and reports deletions to it.
 */
import { Effect } from "effect"
import { linkProblem } from "../../run/store/links.ts"
import * as hooks from "./hooks.ts"
import * as Layout from "../Layout.ts"
import { type OrchestratorConfig, parseNoted } from "../config/OrchestratorConfig.ts"
import {
  type DiscoveryOptions,
  type DiscoveryState,
  evict,
  evictedState,
  type Folder,
  type FolderOf,
  type Leaving,
  leaveAlone,
  leaveQueue,
  makeDiscoveryState,
  refuse,
  moveFolder,
  sortedFolders,
  tellEvicted,
  vanish,
} from "./folderStates.ts"
import { overrunProblem, startingProgress, withPendingResume } from "./resume.ts"
import type { DiscoveredRun, Hooks } from "./RunSlot.ts"
import { tokenText } from "./token.ts"
import type { Progress } from "./TrainedRun.ts"

/** A run that gets an index now. */
interface Starting {
  readonly run: DiscoveredRun
  readonly progress: Progress
}

/** Makes the discovery of an output folder. It does nothing before the first `scan`. */
export const makeDiscovery = Effect.fnUntraced(function* (options: DiscoveryOptions) {
  const state = yield* makeDiscoveryState(options)
  return {
    /** Reads the state of all folders. `takeLeaving` and `start` then apply the changes. */
    scan: scan(state),
    takeLeaving: takeLeaving(state),
    evictTrained: (generation: number, reason: string) => evictTrained(state, generation, reason),
    leaveTrained: (generation: number, message: string) => leaveTrained(state, generation, message),
    finishTrained: (generation: number) => finishTrained(state, generation),
    start: (count: number) => start(state, count),
    status: () => statusOf(state),
  }
})

/** Reads the state of all folders. The changes take effect by `takeLeaving` and `start`. */
const scan = Effect.fnUntraced(function* (state: DiscoveryState) {
  const ids = yield* state.folders.list(state.outputDirectory)
  for (const folder of sortedFolders(state)) if (!ids.includes(folder.id)) yield* vanish(state, folder)
  for (const id of ids) yield* lookAt(state, id)
})

/** Returns why a run cannot resume from its checkpoint; undefined if it can. */
const resumeProblem = (state: DiscoveryState, { directory, config }: DiscoveredRun) =>
  Effect.match(startingProgress(state.folders, directory, config), {
    onSuccess: (progress) => {
      const problem = overrunProblem(progress, config)
      return problem && `${state.folders.at(directory, Layout.configs)}: max_steps: ${problem}`
    },
    onFailure: ({ message }) => message,
  })

/**
 * Returns what is wrong with a config that fits the Schema: a problem that a hook reports, or a checkpoint from which the run
 * cannot resume.
 */
const problemOf = Effect.fnUntraced(function* (state: DiscoveryState, run: DiscoveredRun) {
  const problem = yield* hooks.untilFailure(state.parts(), ({ validation }) => validation, run)
  return problem ?? (yield* resumeProblem(state, run))
})

/**
 * Returns why nothing may be written into the folder of a run: it has links, through which files elsewhere would be changed, or
 * another process writes it. Undefined if it may be written.
 */
const whyToLeave = Effect.fnUntraced(function* (state: DiscoveryState, run: DiscoveredRun) {
  const link = yield* state.folders.foreignLink(run.directory)
  if (link !== undefined) return linkProblem(link)
  return yield* hooks.untilFailure(state.parts(), ({ unlocked }) => unlocked, run)
})

/** Tells whether a run has ended and has a checkpoint of its last step, so that nothing is left to do. */
const isFinished = Effect.fnUntraced(function* (state: DiscoveryState, { directory, config }: DiscoveredRun) {
  if (!(yield* state.folders.isFinished(directory, config.maxSteps))) return false
  return yield* Effect.match(startingProgress(state.folders, directory, config), {
    onSuccess: ({ step }) => config.maxSteps !== null && step >= config.maxSteps,
    onFailure: () => false,
  })
})

/** Adds a run with a valid config to the queue, unless its folder changed while it was read. */
const discover = Effect.fnUntraced(function* (
  state: DiscoveryState,
  folder: Folder,
  text: string,
  config: OrchestratorConfig,
) {
  const { id, directory } = folder
  const generation = state.generations + 1
  const run: DiscoveredRun = { id, generation, directory, config }
  const why = yield* whyToLeave(state, run)
  if (why !== undefined) return yield* leaveAlone(state, folder, why)
  const invalid = yield* problemOf(state, run)
  if (invalid !== undefined) return yield* refuse(state, folder, invalid)
  const { origin, problem } = yield* state.folders.mark(
    directory,
    tokenText({ id, generation, startedAtMillis: state.startedAtMillis }),
  )
  // Read the config again: if it changed while the folder was marked, the next scan handles it.
  const again = yield* state.folders.readConfig(directory)
  if (origin === undefined || again?.read._tag !== "Text" || again.read.text !== text) return
  if (problem !== undefined) yield* Effect.logWarning(`${id}: cannot mark its folder: ${problem}`)
  state.generations = generation
  yield* state.folders.remove(directory, Layout.configProblem)
  if (yield* isFinished(state, run)) {
    state.known.set(id, { _tag: "Finished", id, directory, origin, text })
    return
  }
  // If a run returns to an earlier step, it no longer counts as ended.
  if (config.resumeStep !== -1) yield* state.folders.remove(directory, Layout.finished)
  const notified: Array<Hooks> = []
  const waiting: FolderOf<"Waiting"> = { _tag: "Waiting", id, directory, origin, text, run, parts: notified }
  state.known.set(id, waiting)
  state.queue.push(id)
  yield* state.report({ _tag: "Discovered", run })
  for (const part of state.parts()) {
    const failure = yield* hooks.outcomeOf(part.discovered, run)
    if (failure !== undefined) return yield* evict(state, waiting, `a hook on its discovery failed: ${failure}`)
    notified.push(part)
  }
})

/** Replaces the config of a waiting run, which keeps its place in the queue. */
const reconfigure = Effect.fnUntraced(function* (
  state: DiscoveryState,
  folder: FolderOf<"Waiting">,
  text: string,
  config: OrchestratorConfig,
) {
  const run = { ...folder.run, config }
  const why = yield* whyToLeave(state, run)
  if (why !== undefined) return yield* leaveAlone(state, folder, why)
  const problem = yield* problemOf(state, run)
  if (problem !== undefined) return yield* refuse(state, folder, problem)
  state.known.set(folder.id, { ...folder, text, run })
})

/** Reads the config of a folder that is not trained, and moves the folder to the state that follows from it. */
const examine = Effect.fnUntraced(function* (
  state: DiscoveryState,
  folder: FolderOf<"Unconfigured" | "Invalid" | "Waiting" | "Finished">,
) {
  const found = yield* state.folders.readConfig(folder.directory)
  if (found === undefined) {
    if (folder._tag === "Unconfigured") return
    return yield* moveFolder(state, folder, null, { _tag: "Unconfigured", id: folder.id, directory: folder.directory })
  }
  const { file, read } = found
  if (read._tag === "Failed") return yield* refuse(state, folder, `${file}: ${read.problem}`)
  const { text } = read
  if (folder._tag === "Waiting" && folder.text === text) {
    // The checkpoint from which the run resumes may have vanished meanwhile.
    const problem = yield* resumeProblem(state, folder.run)
    return problem === undefined ? undefined : yield* refuse(state, folder, problem)
  }
  if (folder._tag === "Finished" && folder.text === text) return
  const parsed = yield* Effect.match(parseNoted(text, file), {
    onSuccess: (noted) => noted,
    onFailure: ({ message }) => ({ message }),
  })
  if ("message" in parsed) return yield* refuse(state, folder, parsed.message)
  const config = yield* withPendingResume(state.folders, folder.directory, parsed.config)
  yield* folder._tag === "Waiting" ? reconfigure(state, folder, text, config) : discover(state, folder, text, config)
  if (state.known.get(folder.id)?._tag !== "Waiting") return
  for (const note of parsed.notes) yield* Effect.logWarning(`${folder.id}: ${note}`)
})

/** Tells whether a known folder is still the same, or was deleted and made again. */
const comparisonOf = (state: DiscoveryState, folder: Folder) =>
  "origin" in folder && folder.origin !== undefined
    ? state.folders.compare(folder.directory, folder.origin)
    : Effect.succeed("same" as const)

/** Examines one folder: whether it is still the same folder, whether it is evicted, and otherwise its config. */
const lookAt = Effect.fnUntraced(function* (state: DiscoveryState, id: string) {
  const directory = state.folders.at(state.outputDirectory, id)
  const fresh: Folder = { _tag: "Unconfigured", id, directory }
  let folder = state.known.get(id) ?? fresh
  const comparison = yield* comparisonOf(state, folder)
  if (comparison === "unknown") return
  if (comparison !== "same") {
    yield* vanish(state, folder)
    if (comparison === "gone") return
    folder = fresh
  }
  const evicted = yield* state.folders.read(directory, Layout.evicted)
  if (evicted._tag === "Failed") {
    const link = yield* state.folders.foreignLink(directory)
    return link === undefined ? undefined : yield* leaveAlone(state, folder, linkProblem(link))
  }
  if (evicted._tag === "Text") {
    const reason = evicted.text.trim()
    // Other programs may evict a run by writing this file, too.
    const origin = "origin" in folder ? folder.origin : undefined
    const next = evictedState(folder, { origin, isWritten: true, reason })
    yield* moveFolder(state, folder, reason, next)
    return yield* tellEvicted(state, folder, next)
  }
  if (folder._tag === "Evicted") {
    if (!folder.isWritten && folder.origin !== undefined) {
      const isWritten = yield* state.folders.writeEviction(directory, folder.origin, folder.reason)
      state.known.set(id, { ...folder, isWritten })
      return
    }
    // The user removed the file, so the run may begin again.
    folder = fresh
  }
  if (folder._tag === "Trained") return
  state.known.set(id, folder)
  return yield* examine(state, folder)
})

/** Returns the trained runs that have to leave since the last call. */
const takeLeaving = (state: DiscoveryState): Effect.Effect<ReadonlyArray<Leaving>> =>
  Effect.sync(() => {
    const gone = state.leaving
    state.leaving = []
    return gone
  })

/** Returns the folder of a trained run; undefined if the run has left. */
const trainedFolder = (state: DiscoveryState, generation: number): FolderOf<"Trained"> | undefined =>
  [...state.known.values()].find(
    (one): one is FolderOf<"Trained"> => one._tag === "Trained" && one.run.generation === generation,
  )

/** Evicts a trained run. Does nothing if the run has left. */
const evictTrained = Effect.fnUntraced(function* (state: DiscoveryState, generation: number, reason: string) {
  const folder = trainedFolder(state, generation)
  if (folder !== undefined) yield* evict(state, folder, reason)
})

/** Makes a trained run leave because another process had locked its folder before. Does nothing if the run has left. */
const leaveTrained = Effect.fnUntraced(function* (state: DiscoveryState, generation: number, message: string) {
  const folder = trainedFolder(state, generation)
  if (folder !== undefined) yield* leaveAlone(state, folder, message)
})

/** Ends a trained run that has reached its last step. Does nothing if the run has left. */
const finishTrained = Effect.fnUntraced(function* (state: DiscoveryState, generation: number) {
  const folder = trainedFolder(state, generation)
  if (folder === undefined) return
  const { id, directory, origin, text, run } = folder
  yield* moveFolder(state, folder, null, { _tag: "Finished", id, directory, origin, text })
  // If writing this file fails, a resumed trainer only repeats the last validation.
  if ((yield* state.folders.compare(directory, origin)) === "same")
    yield* state.folders.write(directory, Layout.finished, `${run.config.maxSteps}\n`)
})

/** Takes at most `count` runs from the front of the queue, which now begin. */
const start = Effect.fnUntraced(function* (state: DiscoveryState, count: number) {
  const starting: Array<Starting> = []
  const waiting = state.queue.flatMap((id) => state.known.get(id) ?? [])
  for (const folder of waiting) {
    if (starting.length === count) break
    if (folder._tag !== "Waiting") continue
    const progress = yield* Effect.exit(startingProgress(state.folders, folder.directory, folder.run.config))
    // The checkpoints changed since the last scan; the next scan reports the problem.
    if (progress._tag === "Failure") continue
    const { id, directory, origin, text, run, parts } = folder
    leaveQueue(state, id)
    state.known.set(id, { _tag: "Trained", id, directory, origin, text, run, parts })
    starting.push({ run, progress: progress.value })
  }
  return starting
})

/** Lists the folders that are not trained, by their states. */
const statusOf = (state: DiscoveryState) => {
  const all = sortedFolders(state)
  return {
    waiting: state.queue.flatMap((id) => {
      const folder = state.known.get(id)
      return folder?._tag === "Waiting" ? [folder.run] : []
    }),
    invalid: all.flatMap((one) =>
      one._tag === "Invalid" ? [{ id: one.id, directory: one.directory, message: one.message }] : [],
    ),
    evicted: all.flatMap((one) => (one._tag === "Evicted" ? [{ id: one.id, reason: one.reason }] : [])),
    finished: all.flatMap((one) => (one._tag === "Finished" ? [one.id] : [])),
    unconfigured: all.flatMap((one) => (one._tag === "Unconfigured" ? [one.id] : [])),
  }
}
