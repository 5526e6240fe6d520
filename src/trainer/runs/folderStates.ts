/**
 * Defines the states of the folders below the output folder on the master rank, and the transitions between them of which the
 * trainer's parts are notified: a run is evicted, its config is refused, or its folder vanishes.
 */
import { Clock, Effect } from "effect"
import { oneLine } from "../../base/text/text.ts"
import * as hooks from "./hooks.ts"
import * as Layout from "../Layout.ts"
import type { Origin, RunFolders } from "./runFolder.ts"
import type { DiscoveredRun, Hooks, InvalidRun, RunChange } from "./RunSlot.ts"

/** A known folder, in one of these states. */
export type Folder = { readonly id: string; readonly directory: string } & (
  | { readonly _tag: "Unconfigured" }
  | { readonly _tag: "Invalid"; readonly message: string }
  | ({ readonly _tag: "Waiting"; readonly text: string } & Found)
  | ({ readonly _tag: "Trained"; readonly text: string } & Found)
  /** The run has reached its last step. It begins again if its config changes. */
  | { readonly _tag: "Finished"; readonly origin: Origin; readonly text: string }
  /**
   * The run was evicted. `origin` is set if the trainer evicted it. `isWritten` tells whether the reason was written into the
   * folder.
   */
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
  /** The parts whose `discovered` hook succeeded. Only these are notified when the run ends. */
  readonly parts: ReadonlyArray<Hooks>
}

export type FolderOf<Tag extends Folder["_tag"]> = Extract<Folder, { _tag: Tag }>

/** A trained run that has to leave its index. */
export interface Leaving {
  readonly generation: number
  /** The reason of an eviction; null if the folder has vanished. */
  readonly reason: string | null
}

export interface DiscoveryOptions {
  readonly outputDirectory: string
  readonly folders: RunFolders
  /** Returns the registered parts of the trainer. */
  readonly parts: () => ReadonlyArray<Hooks>
  readonly report: (change: RunChange) => Effect.Effect<void>
}

/** The state of all folders. */
export interface DiscoveryState extends DiscoveryOptions {
  /** The time at which the trainer began. */
  readonly startedAtMillis: number
  /** The folders by their ids. */
  readonly known: Map<string, Folder>
  /** The ids of the waiting runs, in the order of their discovery. */
  readonly queue: Array<string>
  /** The trained runs that have to leave at the next turn. */
  leaving: Array<Leaving>
  /** The number of runs that were found so far. */
  generations: number
}

export const makeDiscoveryState = (options: DiscoveryOptions): Effect.Effect<DiscoveryState> =>
  Effect.map(Clock.currentTimeMillis, (startedAtMillis) => ({
    ...options,
    startedAtMillis,
    known: new Map(),
    queue: [],
    leaving: [],
    generations: 0,
  }))

/** Returns all folders in the order of their ids. */
export const sortedFolders = (state: DiscoveryState) =>
  [...state.known.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))

export const leaveQueue = (state: DiscoveryState, id: string): void => {
  const place = state.queue.indexOf(id)
  if (place >= 0) state.queue.splice(place, 1)
}

/** Notifies the parts that a run is no longer waiting or trained. */
const forget = Effect.fnUntraced(function* (state: DiscoveryState, { run, parts: notified }: Found) {
  const present = notified.filter((part) => state.parts().includes(part))
  yield* hooks.all(present, ({ forgotten }) => forgotten, run, "end")
  yield* state.report({ _tag: "Forgotten", run })
})

/** Notifies the parts that a run was evicted, unless they know the reason already. */
export const tellEvicted = (state: DiscoveryState, folder: Folder, { id, reason }: FolderOf<"Evicted">) => {
  const isKnown = folder._tag === "Evicted" && folder.reason === reason
  return isKnown ? Effect.void : hooks.all(state.parts(), ({ evicted }) => evicted, { id, reason }, "eviction")
}

/** Forgets a folder that has vanished or was replaced by another one. */
export const vanish = Effect.fnUntraced(function* (state: DiscoveryState, folder: Folder) {
  const { id, directory } = folder
  yield* moveFolder(state, folder, null)
  if (folder._tag !== "Unconfigured")
    yield* hooks.all(state.parts(), ({ vanished }) => vanished, { id, directory }, "disappearance")
})

/** Moves a folder to `next`; without it, forgets the folder. */
export const moveFolder = Effect.fnUntraced(function* (
  state: DiscoveryState,
  folder: Folder,
  reason: string | null,
  next?: Folder,
) {
  if (next === undefined) state.known.delete(folder.id)
  else state.known.set(folder.id, next)
  if (folder._tag === "Waiting") leaveQueue(state, folder.id)
  if (folder._tag === "Trained") state.leaving.push({ generation: folder.run.generation, reason })
  if (folder._tag === "Waiting" || folder._tag === "Trained") yield* forget(state, folder)
})

export const evictedState = (
  { id, directory }: Folder,
  rest: Pick<FolderOf<"Evicted">, "origin" | "isWritten" | "reason">,
): FolderOf<"Evicted"> => ({ _tag: "Evicted", id, directory, ...rest })

/** Evicts a waiting or trained run, and writes the reason into its folder. */
export const evict = Effect.fnUntraced(function* (
  state: DiscoveryState,
  folder: FolderOf<"Waiting" | "Trained">,
  why: string,
) {
  const reason = oneLine(why)
  const { id, directory, origin } = folder
  const next = evictedState(folder, { origin, isWritten: false, reason })
  yield* moveFolder(state, folder, reason, next)
  yield* tellEvicted(state, folder, next)
  const isWritten = yield* state.folders.writeEviction(directory, origin, reason)
  if (state.known.get(id) === next) state.known.set(id, { ...next, isWritten })
})

const isRefusedFor = (folder: Folder, message: string): boolean =>
  folder._tag === "Invalid" && folder.message === message

/** Notifies the parts that a folder has become invalid. */
const tellInvalid = Effect.fnUntraced(function* (state: DiscoveryState, run: InvalidRun) {
  yield* hooks.all(state.parts(), ({ invalid }) => invalid, run, "invalid config")
  yield* state.report({ _tag: "Invalid", run })
})

/** Marks a folder as invalid because another process writes it or it has links. Notifies the parts, but writes nothing into it. */
export const leaveAlone = Effect.fnUntraced(function* (state: DiscoveryState, folder: Folder, message: string) {
  if (isRefusedFor(folder, message)) return
  const run: InvalidRun = { id: folder.id, directory: folder.directory, message }
  yield* moveFolder(state, folder, null, { _tag: "Invalid", ...run })
  yield* tellInvalid(state, run)
})

/** Marks a folder as invalid, writes the reason into it, and notifies the parts; once for each problem. */
export const refuse = Effect.fnUntraced(function* (state: DiscoveryState, folder: Folder, message: string) {
  const { id, directory } = folder
  const isSame = isRefusedFor(folder, message)
  if (!isSame) yield* moveFolder(state, folder, null, { _tag: "Invalid", id, directory, message })
  // The file may be missing, because the folder was made again or the disk was full.
  const written = yield* state.folders.read(directory, Layout.configProblem)
  const expected = `${message}\n`
  if (written._tag !== "Text" || written.text !== expected) {
    const problem = yield* state.folders.write(directory, Layout.configProblem, expected)
    if (problem !== undefined && !isSame)
      yield* Effect.logWarning(`${id}: cannot write why its config is refused: ${problem}`)
  }
  if (isSame) return
  yield* tellInvalid(state, { id, directory, message })
})
