/**
 * The service that knows the runs of a multi-run trainer: which `run_*` folders there are, which of them is trained at
 * which index, and how far each is. The master rank looks for folders (`checkForChanges`); all ranks then apply the same
 * changes (`syncRuns`), so that indices and hooks agree everywhere. Indices change only in `syncRuns`.
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
import { isMachineFault, makeFolder } from "../../base/config/files.ts"
import { MachineFault } from "../machine.ts"
import { makeDiscovery } from "./Discovery.ts"
import { type EvictedRun, evictionMessage } from "./eviction.ts"
import { changeTogether, failWith, type RunsState, slots, unusedIndices, usedIndices } from "./changes.ts"
import { exchangeOf } from "./exchange.ts"
import type { OrchestratorConfig } from "../config/OrchestratorConfig.ts"
import { openRunFolder, type RunFolder } from "./guardedFolder.ts"
import { makePause } from "./pause.ts"
import { makeRunFolders } from "./runFolder.ts"
import { RunsError } from "./RunsError.ts"
import type { DiscoveredRun, Hooks, InvalidRun, RunChange, RunSlot } from "./RunSlot.ts"
import type { Progress } from "./TrainedRun.ts"
import { Store, type StoreError } from "../store/Store.ts"

/** The folders that are not trained, as the master saw them last; empty on the other ranks. */
export interface Status {
  /** The runs that wait for a free index, the next one first. */
  readonly waiting: ReadonlyArray<DiscoveredRun>
  readonly invalid: ReadonlyArray<InvalidRun>
  /** The folders that are left alone because they were evicted, with the reasons. */
  readonly evicted: ReadonlyArray<EvictedRun>
  /** The runs that have reached their last step. */
  readonly finished: ReadonlyArray<string>
  /** The folders that have no config yet. */
  readonly unconfigured: ReadonlyArray<string>
  /** Whether the last look at all folders has taken effect, and has left no run that is trained or waits. */
  readonly isSettled: boolean
}

export interface RunsOptions {
  /** The folder that holds the folders of the runs. It is made if it is missing. */
  readonly outputDirectory: string
  /** The number of runs that can be trained at once. */
  readonly maxConcurrentRuns: number
  /** This rank, from 0, which is the master. @default 0 */
  readonly rank?: number
  /** The number of ranks. @default 1 */
  readonly ranks?: number
  /**
   * The time after which a rank that did not come to `syncRuns` counts as dead. It must be longer than the longest step
   * of the trainer. @default "30 minutes"
   */
  readonly rankDeadline?: Duration.Input
  /** The time after which `awaitRun` fails if there is no run. @default "10 minutes" */
  readonly firstRunDeadline?: Duration.Input
  /** The longest time between two looks at the output folder while waiting. @default "1 second" */
  readonly pollInterval?: Duration.Input
  /** Whether to watch the output folder, so that a new folder is seen at once. @default true */
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
     * Looks for new, vanished and changed folders, which then take effect at the next `syncRuns`. Only the master looks.
     */
    readonly checkForChanges: Effect.Effect<void, RunsError>
    /**
     * Applies the same changes on all ranks: deletions first, then creations. Every rank must call it equally often; a
     * rank that does not come in time is an error that names it.
     */
    readonly syncRuns: Effect.Effect<void, RunsError | StoreError>
    /**
     * Takes the place of `syncRuns` on the master if it cannot go on: on all other ranks, `syncRuns` fails with the
     * reason, so that they do not wait for the master until the deadline.
     */
    readonly stopRanks: (reason: string) => Effect.Effect<void>
    /**
     * Repeats `checkForChanges` and `syncRuns` until a run is trained, on all ranks together. If there is none before
     * the deadline, fails with the reason, such as the error in the only config.
     */
    readonly awaitRun: Effect.Effect<void, RunsError | StoreError>
    /** Waits until the output folder may have changed, at most for the poll interval. */
    readonly pause: Effect.Effect<void>
    /**
     * Evicts a run at the next `syncRuns`, whichever rank asks. The reason is written into the run's folder, and while
     * it is there the run is not trained again. Nothing happens if no run is trained at the index.
     */
    readonly evict: (index: number, reason: string) => Effect.Effect<void>
    /**
     * Draws the consequence of a failure in the work for a run: evicts the run, as `evict` does with the message. If the
     * condition of the machine is to blame, the trainer ends instead, at the next `syncRuns`, and can be resumed.
     */
    readonly fail: (index: number, error: { readonly message: string }, reason?: string) => Effect.Effect<void>
    /**
     * Takes a run that has reached its last step, and has a checkpoint of it, from its index at the next `syncRuns`, so
     * that a waiting one can begin. Only the master does it.
     */
    readonly finish: (index: number) => Effect.Effect<void>
    readonly status: Effect.Effect<Status>
    /** The changes from now on. A subscriber that is slow delays nobody. */
    readonly changes: Stream.Stream<RunChange>
    /** Returns the trained runs in the order of their indices. */
    readonly slots: () => ReadonlyArray<RunSlot>
    readonly slot: (index: number) => RunSlot | undefined
    readonly idToIndex: (id: string) => number | undefined
    readonly indexToId: (index: number) => string | undefined
    readonly usedIndices: () => ReadonlyArray<number>
    readonly unusedIndices: () => ReadonlyArray<number>
    readonly readyToUpdateIndices: () => ReadonlyArray<number>
    /** Returns the progress of a run. The master's is sent to the other ranks by `syncRuns`, like `readyToUpdate`. */
    readonly progress: (index: number) => Progress | undefined
    readonly config: (index: number) => OrchestratorConfig | undefined
  }
>()("effect-rl/multirun/Runs") {
  /** Provides the runs of one rank. All ranks need the same options but for `rank`, and a `Store` that connects them. */
  static readonly layer = (
    options: RunsOptions,
  ): Layer.Layer<Runs, RunsError, Store | FileSystem.FileSystem | Path.Path> => Layer.effect(Runs, make(options))
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
 * Returns the folder without its repair. Only the master completes what a killed process left unfinished in a folder, and
 * does so before any rank loads a checkpoint: otherwise ranks could find different ones.
 */
const unrepaired = (folder: RunFolder): RunFolder => ({
  ...folder,
  tree: { ...folder.tree, repair: () => Effect.void },
})

/** Looks at all folders, on the master. */
const look = (state: RunsState): Effect.Effect<void, RunsError> => {
  if (!state.isMaster) return Effect.void
  return state.alone.withPermit(
    Effect.suspend(() => {
      state.isSettled = false
      return Effect.catchTag(state.discovery.scan, "MachineFault", (fault) => failWith(state, fault))
    }),
  )
}

/** Changes the runs on all ranks; fails if this rank has met a condition of the machine that ends the trainer. */
const sync = (state: RunsState) =>
  state.alone.withPermit(
    Effect.suspend(() => {
      const { fault, isMaster } = state
      state.isSettled = false
      // A rank that ends alone is missed by the others.
      return fault !== undefined && !isMaster ? failWith(state, fault) : changeTogether(state, fault?.message ?? null)
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

/** Evicts a run for a failure, unless the machine is to blame, which then ends the trainer. */
const fail = (state: RunsState, index: number, error: { readonly message: string }, reason: string) =>
  Effect.suspend(() => {
    if (!isMachineFault(error)) return evict(state, index, reason)
    const run = state.trained.get(index)?.run
    if (run !== undefined) state.fault ??= MachineFault.of(run.id, error)
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

/** Looks and changes until a run is trained; fails if there is none within the deadline. */
const awaitRun = Effect.fnUntraced(function* (state: RunsState, pause: Effect.Effect<void>, deadline: Duration.Input) {
  const start = yield* Clock.currentTimeMillis
  const time = Duration.fromInputUnsafe(deadline)
  for (;;) {
    // If the master cannot look, the other ranks must not wait for it.
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
  const { outputDirectory, maxConcurrentRuns, rank = 0, ranks = 1 } = options
  const failing = (problem: string) => new RunsError({ path: outputDirectory, message: problem })
  if (!Number.isSafeInteger(maxConcurrentRuns) || maxConcurrentRuns < 1)
    return yield* failing(`max_concurrent_runs: expected a whole number from 1, found ${maxConcurrentRuns}`)
  if (!Number.isSafeInteger(ranks) || ranks < 1)
    return yield* failing(`ranks: expected a whole number from 1, found ${ranks}`)
  if (!Number.isSafeInteger(rank) || rank < 0 || rank >= ranks)
    return yield* failing(`rank: expected a whole number from 0 to ${ranks - 1}, found ${rank}`)
})

const makeOutputDirectory = (outputDirectory: string) =>
  Effect.mapError(
    makeFolder(outputDirectory),
    ({ message }) =>
      new RunsError({ path: outputDirectory, message: `${outputDirectory}: cannot make it: ${message}` }),
  )
