/**
 * Finds the runs below the output folder, for the master rank: which folders hold a valid config, which wait for an
 * index, which are invalid or evicted, and which have vanished. It changes no indices: `Runs` asks it for the next
 * creations and tells it about deletions.
 */
import { Clock, Effect } from "effect"
import { oneLine } from "../../base/config/text.ts"
import * as hooks from "./hooks.ts"
import * as Layout from "../Layout.ts"
import { type OrchestratorConfig, parse } from "../config/OrchestratorConfig.ts"
import { overrunProblem, startingProgress, withPendingResume } from "./resume.ts"
import type { Origin, RunFolders } from "./runFolder.ts"
import type { DiscoveredRun, Hooks, InvalidRun, Progress, RunChange } from "./RunSlot.ts"
import { tokenText } from "./token.ts"

/** A folder that was found, by what is to become of it. */
type Folder = { readonly id: string; readonly directory: string } & (
  | { readonly _tag: "Unconfigured" }
  | { readonly _tag: "Invalid"; readonly message: string }
  | ({ readonly _tag: "Waiting"; readonly text: string } & Found)
  | ({ readonly _tag: "Trained"; readonly text: string } & Found)
  /** A run that has reached its last step. It begins again if its config changes. */
  | { readonly _tag: "Finished"; readonly origin: Origin; readonly text: string }
  /** `origin` is set if the trainer evicted the run; `isWritten` tells whether the reason stands in the folder. */
  | {
      readonly _tag: "Evicted"
      readonly origin: Origin | undefined
      readonly isWritten: boolean
      readonly reason: string
    }
)

/** A run with a valid config. */
interface Found {
  readonly origin: Origin
  readonly run: DiscoveredRun
  /** The parts whose hook on the discovery completed; the others are not told of the end. */
  readonly parts: ReadonlyArray<Hooks>
}

type Of<Tag extends Folder["_tag"]> = Extract<Folder, { _tag: Tag }>

/** A trained run that has to leave its index. */
interface Leaving {
  readonly generation: number
  /** The reason of an eviction; null if the folder has vanished. */
  readonly reason: string | null
}

/** A run that gets an index. */
interface Starting {
  readonly run: DiscoveredRun
  readonly progress: Progress
}

interface DiscoveryOptions {
  readonly outputDirectory: string
  readonly folders: RunFolders
  /** Returns the registered parts of the trainer. */
  readonly parts: () => ReadonlyArray<Hooks>
  readonly report: (change: RunChange) => Effect.Effect<void>
}

export const makeDiscovery = Effect.fnUntraced(function* (options: DiscoveryOptions) {
  const { outputDirectory, folders, parts, report } = options
  const started = yield* Clock.currentTimeMillis
  const known = new Map<string, Folder>()
  /** The ids of the waiting runs, in the order of their discovery. */
  const queue: Array<string> = []
  /** The trained runs that have to leave, and were not yet told to. */
  let leaving: Array<Leaving> = []
  let generations = 0

  /** Returns all folders in the order of their ids. */
  const sorted = () => [...known.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))

  const leaveQueue = (id: string): void => {
    const place = queue.indexOf(id)
    if (place >= 0) queue.splice(place, 1)
  }

  const forget = Effect.fnUntraced(function* ({ run, parts: told }: Found) {
    const present = told.filter((part) => parts().includes(part))
    yield* hooks.all(present, ({ forgotten }) => forgotten, run, "end")
    yield* report({ _tag: "Forgotten", run })
  })

  /** Tells the parts that a run was evicted, unless they know it. */
  const tellEvicted = (folder: Folder, { id, reason }: Of<"Evicted">) => {
    const isKnown = folder._tag === "Evicted" && folder.reason === reason
    return isKnown ? Effect.void : hooks.all(parts(), ({ evicted }) => evicted, { id, reason }, "eviction")
  }

  /** Ends the state of a folder that has vanished, or in whose place there is another one. */
  const vanish = Effect.fnUntraced(function* (folder: Folder) {
    const { id, directory } = folder
    yield* end(folder, null)
    if (folder._tag !== "Unconfigured")
      yield* hooks.all(parts(), ({ vanished }) => vanished, { id, directory }, "disappearance")
  })

  /** Ends the state of a folder, which then has the state `next`, or is dropped. */
  const end = Effect.fnUntraced(function* (folder: Folder, reason: string | null, next?: Folder) {
    if (next === undefined) known.delete(folder.id)
    else known.set(folder.id, next)
    if (folder._tag === "Waiting") leaveQueue(folder.id)
    if (folder._tag === "Trained") leaving.push({ generation: folder.run.generation, reason })
    if (folder._tag === "Waiting" || folder._tag === "Trained") yield* forget(folder)
  })

  const evictedState = (
    { id, directory }: Folder,
    rest: Pick<Of<"Evicted">, "origin" | "isWritten" | "reason">,
  ): Of<"Evicted"> => ({ _tag: "Evicted", id, directory, ...rest })

  /** Evicts a run that is waiting or trained, and writes the reason into its folder. */
  const evict = Effect.fnUntraced(function* (folder: Of<"Waiting" | "Trained">, why: string) {
    const reason = oneLine(why)
    const { id, directory, origin } = folder
    const next = evictedState(folder, { origin, isWritten: false, reason })
    yield* end(folder, reason, next)
    yield* tellEvicted(folder, next)
    const isWritten = yield* folders.writeEviction(directory, origin, reason)
    if (known.get(id) === next) known.set(id, { ...next, isWritten })
  })

  /** Makes a folder invalid, and says why in its folder and to the hooks, once for each problem. */
  const refuse = Effect.fnUntraced(function* (folder: Folder, message: string) {
    const { id, directory } = folder
    const isSame = folder._tag === "Invalid" && folder.message === message
    if (!isSame) yield* end(folder, null, { _tag: "Invalid", id, directory, message })
    // A folder that was made again, or a disk that was full, lacks the message.
    const written = yield* folders.read(directory, Layout.configProblem)
    const expected = `${message}\n`
    if (written._tag !== "Text" || written.text !== expected) {
      const problem = yield* folders.write(directory, Layout.configProblem, expected)
      if (problem !== undefined && !isSame)
        yield* Effect.logWarning(`${id}: cannot write why its config is refused: ${problem}`)
    }
    if (isSame) return
    const run: InvalidRun = { id, directory, message }
    yield* hooks.all(parts(), ({ invalid }) => invalid, run, "invalid config")
    yield* report({ _tag: "Invalid", run })
  })

  const resumeProblem = ({ directory, config }: DiscoveredRun) =>
    Effect.match(startingProgress(folders, directory, config), {
      onSuccess: (progress) => {
        const problem = overrunProblem(progress, config)
        return problem && `${folders.at(directory, Layout.configs)}: max_steps: ${problem}`
      },
      onFailure: ({ message }) => message,
    })

  /** Checks a config beyond its Schema: by the hooks, and whether the run can resume from its checkpoint. */
  const problemOf = Effect.fnUntraced(function* (run: DiscoveredRun) {
    const problem = yield* hooks.untilFailure(parts(), ({ validation }) => validation, run)
    return problem ?? (yield* resumeProblem(run))
  })

  /** Tells whether a run has ended, and has a checkpoint of its last step, so that there is nothing to do. */
  const isFinished = Effect.fnUntraced(function* ({ directory, config }: DiscoveredRun) {
    if (!(yield* folders.isFinished(directory, config.maxSteps))) return false
    return yield* Effect.match(startingProgress(folders, directory, config), {
      onSuccess: ({ step }) => config.maxSteps !== null && step >= config.maxSteps,
      onFailure: () => false,
    })
  })

  /** Adds a run with a valid config to the queue, unless its folder changed while it was read. */
  const discover = Effect.fnUntraced(function* (folder: Folder, text: string, config: OrchestratorConfig) {
    const { id, directory } = folder
    const generation = generations + 1
    const run: DiscoveredRun = { id, generation, directory, config }
    const invalid = yield* problemOf(run)
    if (invalid !== undefined) return yield* refuse(folder, invalid)
    const { origin, problem } = yield* folders.mark(directory, tokenText({ id, generation, startedAtMillis: started }))
    // The config must be that of the marked folder: otherwise the next look finds out.
    const again = yield* folders.readConfig(directory)
    if (origin === undefined || again?.read._tag !== "Text" || again.read.text !== text) return
    if (problem !== undefined) yield* Effect.logWarning(`${id}: cannot mark its folder: ${problem}`)
    generations = generation
    yield* folders.remove(directory, Layout.configProblem)
    if (yield* isFinished(run)) {
      known.set(id, { _tag: "Finished", id, directory, origin, text })
      return
    }
    // A run that goes back to an earlier step is not at its end any more.
    if (config.resumeStep !== -1) yield* folders.remove(directory, Layout.finished)
    const told: Array<Hooks> = []
    const waiting: Of<"Waiting"> = { _tag: "Waiting", id, directory, origin, text, run, parts: told }
    known.set(id, waiting)
    queue.push(id)
    yield* report({ _tag: "Discovered", run })
    for (const part of parts()) {
      const failure = yield* hooks.outcomeOf(part.discovered, run)
      if (failure !== undefined) return yield* evict(waiting, `a hook on its discovery failed: ${failure}`)
      told.push(part)
    }
  })

  /** Gives a waiting run its changed config. It keeps its place in the queue. */
  const reconfigure = Effect.fnUntraced(function* (folder: Of<"Waiting">, text: string, config: OrchestratorConfig) {
    const run = { ...folder.run, config }
    const problem = yield* problemOf(run)
    if (problem !== undefined) return yield* refuse(folder, problem)
    known.set(folder.id, { ...folder, text, run })
  })

  /** Reads the config of a folder that is not trained, and draws the consequences. */
  const examine = Effect.fnUntraced(function* (folder: Of<"Unconfigured" | "Invalid" | "Waiting" | "Finished">) {
    const found = yield* folders.readConfig(folder.directory)
    if (found === undefined) {
      if (folder._tag === "Unconfigured") return
      return yield* end(folder, null, { _tag: "Unconfigured", id: folder.id, directory: folder.directory })
    }
    const { file, read } = found
    if (read._tag === "Failed") return yield* refuse(folder, `${file}: ${read.problem}`)
    const { text } = read
    if (folder._tag === "Waiting" && folder.text === text) {
      // The checkpoint that it resumes from may have vanished meanwhile.
      const problem = yield* resumeProblem(folder.run)
      return problem === undefined ? undefined : yield* refuse(folder, problem)
    }
    if (folder._tag === "Finished" && folder.text === text) return
    const parsed = yield* Effect.match(parse(text, file), {
      onSuccess: (config) => ({ config }),
      onFailure: ({ message }) => ({ message }),
    })
    if ("message" in parsed) return yield* refuse(folder, parsed.message)
    const config = yield* withPendingResume(folders, folder.directory, parsed.config)
    return yield* folder._tag === "Waiting" ? reconfigure(folder, text, config) : discover(folder, text, config)
  })

  /** Tells whether a folder that was found before is still the same. */
  const stateOf = (folder: Folder) =>
    "origin" in folder && folder.origin !== undefined
      ? folders.compare(folder.directory, folder.origin)
      : Effect.succeed("same" as const)

  const lookAt = Effect.fnUntraced(function* (id: string) {
    const directory = folders.at(outputDirectory, id)
    const fresh: Folder = { _tag: "Unconfigured", id, directory }
    let folder = known.get(id) ?? fresh
    const state = yield* stateOf(folder)
    if (state === "unknown") return
    if (state !== "same") {
      yield* vanish(folder)
      if (state === "gone") return
      folder = fresh
    }
    const evicted = yield* folders.read(directory, Layout.evicted)
    if (evicted._tag === "Failed") return
    if (evicted._tag === "Text") {
      const reason = evicted.text.trim()
      // Somebody else may evict a run by writing the file.
      const origin = "origin" in folder ? folder.origin : undefined
      const next = evictedState(folder, { origin, isWritten: true, reason })
      yield* end(folder, reason, next)
      return yield* tellEvicted(folder, next)
    }
    if (folder._tag === "Evicted") {
      if (!folder.isWritten && folder.origin !== undefined) {
        const isWritten = yield* folders.writeEviction(directory, folder.origin, folder.reason)
        known.set(id, { ...folder, isWritten })
        return
      }
      // The file was removed, so the run may begin again.
      folder = fresh
    }
    if (folder._tag === "Trained") return
    known.set(id, folder)
    return yield* examine(folder)
  })

  /** Looks at all folders. What it finds takes effect by `takeLeaving` and `start`. */
  const scan = Effect.gen(function* () {
    const ids = yield* folders.list(outputDirectory)
    for (const folder of sorted()) if (!ids.includes(folder.id)) yield* vanish(folder)
    for (const id of ids) yield* lookAt(id)
  })

  /** Returns the trained runs that have to leave since the last call. */
  const takeLeaving = Effect.sync(() => {
    const gone = leaving
    leaving = []
    return gone
  })

  /** Evicts a trained run; nothing happens if it has left already. */
  const evictTrained = Effect.fnUntraced(function* (generation: number, reason: string) {
    const folder = [...known.values()].find((one) => one._tag === "Trained" && one.run.generation === generation)
    if (folder?._tag === "Trained") yield* evict(folder, reason)
  })

  /** Takes a trained run that has reached its last step from its index; nothing happens if it has left already. */
  const finishTrained = Effect.fnUntraced(function* (generation: number) {
    const folder = [...known.values()].find((one) => one._tag === "Trained" && one.run.generation === generation)
    if (folder?._tag !== "Trained") return
    const { id, directory, origin, text, run } = folder
    yield* end(folder, null, { _tag: "Finished", id, directory, origin, text })
    // Without the file, a resumed trainer validates the run once more.
    if ((yield* folders.compare(directory, origin)) === "same")
      yield* folders.write(directory, Layout.finished, `${run.config.maxSteps}\n`)
  })

  /** Takes the runs from the front of the queue that begin now, at most `count`. */
  const start = Effect.fnUntraced(function* (count: number) {
    const starting: Array<Starting> = []
    const waiting = queue.flatMap((id) => known.get(id) ?? [])
    for (const folder of waiting) {
      if (starting.length === count) break
      if (folder._tag !== "Waiting") continue
      const progress = yield* Effect.exit(startingProgress(folders, folder.directory, folder.run.config))
      // Its checkpoints changed since the last look: the next look says why.
      if (progress._tag === "Failure") continue
      const { id, directory, origin, text, run, parts } = folder
      leaveQueue(id)
      known.set(id, { _tag: "Trained", id, directory, origin, text, run, parts })
      starting.push({ run, progress: progress.value })
    }
    return starting
  })

  const status = () => {
    const all = sorted()
    return {
      waiting: queue.flatMap((id) => {
        const folder = known.get(id)
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

  return { scan, takeLeaving, evictTrained, finishTrained, start, status }
})
