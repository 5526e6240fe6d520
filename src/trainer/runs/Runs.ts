/**
 * The service that manages the runs of a multi-run trainer: it finds the folders `run_*`, gives runs an index at which they
 * are trained, and keeps their progress. The master rank searches for folders (`checkForChanges`); then all ranks apply the
 * same changes (`syncRuns`), so that indices and hooks are the same on all ranks. Indices change only in `syncRuns`.
 *
 * @example
 * ```ts
 * const loop = Effect.gen(function* () {
 *   const runs = yield* Runs
 *   yield* runs.register({ creation: (run) => Effect.log(`${run.id} is trained at index ${run.index}`) })
 *   yield* runs.awaitRun
 *   runs.indexToId(0) // "run_a"
 * })
 * const layer = Runs.layer({ outputDirectory: "outputs", maxConcurrentRuns: 8 })
 * ```
 */
import {
  Clock,
  Context,
  Duration,
  Effect,
  type FileSystem,
  identity,
  Layer,
  type Path,
  PubSub,
  type Scope,
  Semaphore,
  Stream,
} from "effect"
import { isMachineFault, makeFolder } from "../../base/files/files.ts"
import { makeDiscovery } from "./Discovery.ts"
import { type EvictedRun, evictionMessage } from "./eviction.ts"
import { changeTogether, type RunsState, slots, unusedIndices, usedIndices } from "./changes.ts"
import { exchangeOf } from "./exchange.ts"
import type { OrchestratorConfig } from "../config/OrchestratorConfig.ts"
import { openRunFolder, type RunFolder } from "./guardedFolder.ts"
import { makePause } from "./pause.ts"
import { makeRunFolders } from "./runFolder.ts"
import type { DiscoveredRun, Hooks, InvalidRun, RunChange, RunSlot } from "./RunSlot.ts"
import type { Progress } from "./TrainedRun.ts"
import { Store } from "../store/Store.ts"
import { machineFault } from "../machine.ts"
import { TrainerError } from "../TrainerError.ts"

/** The folders that are not trained, as the master last saw them; empty on the other ranks. */
export interface Status {
  /** The runs that wait for a free index, the next one first. */
  readonly waiting: ReadonlyArray<DiscoveredRun>
  readonly invalid: ReadonlyArray<InvalidRun>
  /** The folders that were evicted, with the reasons. They are left alone. */
  readonly evicted: ReadonlyArray<EvictedRun>
  /** The runs that have reached their last step. */
  readonly finished: ReadonlyArray<string>
  /** The folders that have no config yet. */
  readonly unconfigured: ReadonlyArray<string>
  /** Whether all changes of the last scan have taken effect, and no run is trained or waits. */
  readonly isSettled: boolean
}

export interface RunsOptions {
  /** The folder that holds the folders of the runs. It is made if it is missing. */
  readonly outputDirectory: string
  /** The number of runs that can be trained at once. */
  readonly maxConcurrentRuns: number
  /** The number of this rank; 0 is the master. @default 0 */
  readonly rank?: number
  /** The number of ranks. @default 1 */
  readonly ranks?: number
  /**
   * The time after which a rank that has not called `syncRuns` counts as dead. It must be longer than the longest step of the
   * trainer. @default "30 minutes"
   */
  readonly rankDeadline?: Duration.Input
  /** The time after which `awaitRun` fails if there is no run. @default "10 minutes" */
  readonly firstRunDeadline?: Duration.Input
  /** The longest time between two scans of the output folder while waiting. @default "1 second" */
  readonly pollInterval?: Duration.Input
  /** Whether to watch the output folder, so that a new folder is found at once. @default true */
  readonly watch?: boolean
}

export class Runs extends Context.Service<
  Runs,
  {
    readonly rank: number
    readonly isMaster: boolean
    /** The number of runs that can be trained at once. */
    readonly maxRuns: number
    /** Registers the hooks of a part, until the scope closes. Register before the first `syncRuns`. */
    readonly register: (hooks: Hooks) => Effect.Effect<void, never, Scope.Scope>
    /**
     * Searches for new, vanished and changed folders. The changes take effect at the next `syncRuns`. Does nothing on ranks
     * other than the master.
     */
    readonly checkForChanges: Effect.Effect<void, TrainerError>
    /**
     * Applies the same changes on all ranks: deletions first, then creations. Every rank must call it equally often. Fails
     * with the names of ranks that do not call it in time.
     */
    readonly syncRuns: Effect.Effect<void, TrainerError>
    /**
     * The master calls this instead of `syncRuns` when it cannot continue. Then `syncRuns` fails on all other ranks with the
     * reason, so that they do not wait for the master until the deadline.
     */
    readonly stopRanks: (reason: string) => Effect.Effect<void>
    /**
     * Repeats `checkForChanges` and `syncRuns` on all ranks until a run is trained. If there is no run before the deadline,
     * fails with the reason, such as the error in the only config.
     */
    readonly awaitRun: Effect.Effect<void, TrainerError>
    /** Waits until the output folder may have changed, but no longer than the poll interval. */
    readonly pause: Effect.Effect<void>
    /**
     * Evicts a run at the next `syncRuns`. Every rank may call it. The reason is written into a file in the run's folder; the
     * run is not trained while this file exists. Does nothing if no run is trained at the index.
     */
    readonly evict: (index: number, reason: string) => Effect.Effect<void>
    /**
     * Handles a failure in the work for a run: evicts the run with the reason. But if the machine is at fault (a full disk,
     * for example), the trainer ends at the next `syncRuns` instead, and can be resumed.
     */
    readonly fail: (index: number, error: { readonly message: string }, reason?: string) => Effect.Effect<void>
    /**
     * Frees the index of a run that has reached its last step and has a checkpoint of it, at the next `syncRuns`, so that a
     * waiting run can begin. Does nothing on ranks other than the master.
     */
    readonly finish: (index: number) => Effect.Effect<void>
    readonly status: Effect.Effect<Status>
    /** The changes from now on. A slow subscriber does not delay the trainer. */
    readonly changes: Stream.Stream<RunChange>
    /** Returns the trained runs in the order of their indices. */
    readonly slots: () => ReadonlyArray<RunSlot>
    readonly slot: (index: number) => RunSlot | undefined
    readonly idToIndex: (id: string) => number | undefined
    readonly indexToId: (index: number) => string | undefined
    readonly usedIndices: () => ReadonlyArray<number>
    readonly unusedIndices: () => ReadonlyArray<number>
    readonly readyToUpdateIndices: () => ReadonlyArray<number>
    /** Returns the progress of a run. `syncRuns` copies it, and `readyToUpdate`, from the master to the other ranks. */
    readonly progress: (index: number) => Progress | undefined
    readonly config: (index: number) => OrchestratorConfig | undefined
  }
>()("effect-rl/multirun/Runs") {
  /**
   * Provides the runs of one rank. Except for `rank`, the options must be the same on all ranks, and a `Store` must connect
   * the ranks.
   */
  static readonly layer = (
    options: RunsOptions,
  ): Layer.Layer<Runs, TrainerError, Store | FileSystem.FileSystem | Path.Path> => Layer.effect(Runs, make(options))
}

const make = Effect.fnUntraced(function* (options: RunsOptions) {
  const { outputDirectory, maxConcurrentRuns: maxRuns, rank = 0, ranks = 1 } = options
  const { rankDeadline = "30 minutes", firstRunDeadline = "10 minutes", pollInterval = "1 second" } = options
  const isMaster = rank === 0
  yield* checkOptions(options)
  const exchange = exchangeOf(yield* Store, { rank, ranks, deadline: rankDeadline })
  const published = yield* Effect.acquireRelease(PubSub.unbounded<RunChange>(), PubSub.shutdown)
  const report = (change: RunChange): Effect.Effect<void> => Effect.asVoid(PubSub.publish(published, change))
  if (isMaster) yield* makeOutputDirectory(outputDirectory)
  const parts: Array<Hooks> = []
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const state: RunsState = {
    outputDirectory,
    isMaster,
    maxRuns,
    exchange,
    discovery: yield* makeDiscovery({
      outputDirectory,
      folders: yield* makeRunFolders,
      parts: () => parts,
      report,
    }),
    openFolder: (run) =>
      Effect.map(Effect.provideContext(openRunFolder(run), context), isMaster ? identity : unrepaired),
    report,
    alone: yield* Semaphore.make(1),
    parts,
    trained: new Map(),
    wanted: [],
    turn: 0,
    isSettled: false,
    fault: undefined,
  }
  const { alone, trained } = state
  const pause = yield* makePause(outputDirectory, pollInterval, isMaster && options.watch !== false)

  return Runs.of({
    rank,
    isMaster,
    maxRuns,
    register: (part) => register(state, part),
    checkForChanges: look(state),
    syncRuns: sync(state),
    stopRanks: (reason) =>
      isMaster && ranks > 1 ? Effect.ignore(alone.withPermit(changeTogether(state, reason))) : Effect.void,
    awaitRun: awaitRun(state, pause, firstRunDeadline),
    pause,
    evict: (index, reason) => evict(state, index, reason),
    fail: (index, error, reason = error.message) => fail(state, index, error, reason),
    finish: (index) => finish(state, index),
    status: Effect.sync(() => ({ ...state.discovery.status(), isSettled: state.isSettled })),
    changes: Stream.fromPubSub(published),
    slots: () => slots(state),
    slot: (index) => trained.get(index)?.run,
    idToIndex: (id) => slots(state).find((run) => run.id === id)?.index,
    indexToId: (index) => trained.get(index)?.run.id,
    usedIndices: () => usedIndices(state),
    unusedIndices: () => unusedIndices(state),
    readyToUpdateIndices: () => usedIndices(state).filter((index) => trained.get(index)?.run.readyToUpdate),
    progress: (index) => trained.get(index)?.run.progress,
    config: (index) => trained.get(index)?.run.config,
  })
})

/**
 * Returns the folder without the function that repairs it. Only the master completes what a killed process left unfinished,
 * before any rank loads a checkpoint. Otherwise ranks could find different checkpoints.
 */
const unrepaired = (folder: RunFolder): RunFolder => ({
  ...folder,
  tree: { ...folder.tree, repair: () => Effect.void },
})

/** Scans all folders, on the master. */
const look = (state: RunsState): Effect.Effect<void, TrainerError> => {
  if (!state.isMaster) return Effect.void
  return state.alone.withPermit(
    Effect.suspend(() => {
      state.isSettled = false
      return state.discovery.scan
    }),
  )
}

/** Changes the runs on all ranks. Fails if this rank has recorded a fault of the machine, which ends the trainer. */
const sync = (state: RunsState) =>
  state.alone.withPermit(
    Effect.suspend(() => {
      const { fault, isMaster } = state
      state.isSettled = false
      // If another rank than the master fails here, the others miss it, and end, too.
      return fault !== undefined && !isMaster ? Effect.fail(fault) : changeTogether(state, fault?.message ?? null)
    }),
  )

/** Explains why no run is trained. */
const causeOf = (state: RunsState): string => {
  const { invalid, evicted, unconfigured, waiting, finished } = state.discovery.status()
  const reasons = [
    ...invalid.map(({ message }) => message),
    ...evicted.map((run) => evictionMessage(state.outputDirectory, run)),
    ...unconfigured.map((id) => `${id} has no config`),
    ...waiting.map(({ id }) => `${id} waits`),
    ...finished.map((id) => `${id} has reached its last step`),
  ]
  return reasons.length === 0 ? "it holds no folder run_*" : reasons.join("; ")
}

const evict = ({ trained, wanted }: RunsState, index: number, reason: string) =>
  Effect.sync(() => {
    const run = trained.get(index)?.run
    if (run !== undefined) wanted.push({ generation: run.generation, reason })
  })

/** Evicts a run because of a failure. If the machine is at fault, the trainer will end instead. */
const fail = (state: RunsState, index: number, error: { readonly message: string }, reason: string) =>
  Effect.suspend(() => {
    if (!isMachineFault(error)) return evict(state, index, reason)
    const run = state.trained.get(index)?.run
    if (run !== undefined) state.fault ??= machineFault(run.id, error)
    return Effect.void
  })

const finish = ({ trained, isMaster, alone, discovery }: RunsState, index: number) =>
  Effect.suspend(() => {
    const run = trained.get(index)?.run
    return run === undefined || !isMaster ? Effect.void : alone.withPermit(discovery.finishTrained(run.generation))
  })

const register = ({ parts }: RunsState, part: Hooks) =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => void parts.push(part)),
      () => Effect.sync(() => void parts.splice(parts.indexOf(part), 1)),
    ),
  )

/** Scans the folders and changes the runs until a run is trained. Fails if there is none within the deadline. */
const awaitRun = Effect.fnUntraced(function* (state: RunsState, pause: Effect.Effect<void>, deadline: Duration.Input) {
  const start = yield* Clock.currentTimeMillis
  const time = Duration.fromInputUnsafe(deadline)
  for (;;) {
    // A failure of the scan is sent to the other ranks, so that they do not wait for the master.
    const failure = yield* Effect.match(look(state), {
      onSuccess: () => null,
      onFailure: ({ message }) => message,
    })
    const isLate = (yield* Clock.currentTimeMillis) - start >= Duration.toMillis(time)
    const hasRun = state.discovery.status().waiting.length > 0
    const late = `${state.outputDirectory}: found no run to train within ${Duration.format(time)}: ${causeOf(state)}`
    yield* state.alone.withPermit(changeTogether(state, failure ?? (isLate && !hasRun ? late : null)))
    if (state.trained.size > 0) return
    if (state.isMaster) yield* pause
  }
})

const checkOptions = Effect.fnUntraced(function* (options: RunsOptions) {
  const { maxConcurrentRuns, rank = 0, ranks = 1 } = options
  const failing = (problem: string) => new TrainerError({ message: problem })
  if (!Number.isSafeInteger(maxConcurrentRuns) || maxConcurrentRuns < 1)
    return yield* failing(`max_concurrent_runs: expected a whole number from 1, found ${maxConcurrentRuns}`)
  if (!Number.isSafeInteger(ranks) || ranks < 1)
    return yield* failing(`ranks: expected a whole number from 1, found ${ranks}`)
  if (!Number.isSafeInteger(rank) || rank < 0 || rank >= ranks)
    return yield* failing(`rank: expected a whole number from 0 to ${ranks - 1}, found ${rank}`)
})

const makeOutputDirectory = (outputDirectory: string) =>
  Effect.mapError(makeFolder(outputDirectory), ({ message }) =>
    TrainerError.at(outputDirectory, `cannot make it: ${message}`),
  )
