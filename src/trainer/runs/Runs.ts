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
import { type Difference, exchangeOf, type Reasons } from "./exchange.ts"
import * as hooks from "./hooks.ts"
import type { OrchestratorConfig } from "../config/OrchestratorConfig.ts"
import { makePause } from "./pause.ts"
import { makeRunFolders } from "./runFolder.ts"
import { RunsError } from "./RunsError.ts"
import type { DiscoveredRun, Hooks, InvalidRun, Progress, RunChange, RunSlot } from "./RunSlot.ts"
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

/** A trained run with the parts that have to release what they prepared for it. */
interface Trained {
  readonly run: RunSlot
  readonly prepared: Array<Hooks>
}

const make = Effect.fnUntraced(function* (options: RunsOptions) {
  const { outputDirectory, maxConcurrentRuns: maxRuns, rank = 0, ranks = 1 } = options
  const { rankDeadline = "30 minutes", firstRunDeadline = "10 minutes", pollInterval = "1 second" } = options
  const isMaster = rank === 0
  yield* checkOptions(options)
  const exchange = exchangeOf(yield* Store, { rank, ranks, deadline: rankDeadline })
  const published = yield* Effect.acquireRelease(PubSub.unbounded<RunChange>(), PubSub.shutdown)
  const report = (change: RunChange): Effect.Effect<void> => Effect.asVoid(PubSub.publish(published, change))
  /** One look and one change at a time, also if several fibers of this rank ask. */
  const alone = yield* Semaphore.make(1)

  const parts: Array<Hooks> = []
  const trained = new Map<number, Trained>()
  const wanted: Array<Reasons[number]> = []
  let turn = 0
  let isSettled = false
  /** The condition of the machine that ends the trainer at the next turn. */
  let fault: MachineFault | undefined

  if (isMaster) yield* makeOutputDirectory(outputDirectory)
  const discovery = yield* makeDiscovery({
    outputDirectory,
    folders: yield* makeRunFolders,
    parts: () => parts,
    report,
  })
  const pause = yield* makePause(outputDirectory, pollInterval, isMaster && options.watch !== false)

  const indices = (): ReadonlyArray<number> => Array.from({ length: maxRuns }, (_, index) => index)
  const usedIndices = () => indices().filter((index) => trained.has(index))
  const unusedIndices = () => indices().filter((index) => !trained.has(index))
  const slots = () => usedIndices().flatMap((index) => trained.get(index)?.run ?? [])
  const slotOf = (generation: number) => slots().find((run) => run.generation === generation)

  /** Takes a run from its index, and lets the parts release what they prepared for it. */
  const drop = Effect.fnUntraced(function* (run: RunSlot, reason: string | null) {
    const prepared = trained.get(run.index)?.prepared ?? []
    trained.delete(run.index)
    const present = parts.filter((part) => prepared.includes(part))
    yield* hooks.all(present, ({ deletion }) => deletion && ((left) => deletion(left, reason)), run, "deletion")
    yield* report({ _tag: "Deleted", run, reason })
  })

  /** Gives a run its index, and runs the hooks until one fails; returns the failure's message. */
  const create = Effect.fnUntraced(function* (creation: Difference["creations"][number]) {
    const { progress, ...rest } = creation
    const run: RunSlot = { ...rest, progress: { ...progress }, readyToUpdate: false }
    const prepared: Array<Hooks> = []
    trained.set(run.index, { run, prepared })
    const present = [...parts]
    for (const part of present) {
      const problem = yield* hooks.outcomeOf(part.creation, run)
      if (problem !== undefined) return problem
      prepared.push(part)
    }
    return yield* hooks.untilFailure(present, ({ postCreation }) => postCreation, run)
  })

  /** Collects the changes since the last turn, on the master. */
  const collect = Effect.fnUntraced(function* (requests: ReadonlyArray<Reasons>) {
    for (const { generation, reason } of requests.flat()) yield* discovery.evictTrained(generation, reason)
    const leaving = yield* discovery.takeLeaving
    const deletions = slots().flatMap((run) => leaving.find(({ generation }) => generation === run.generation) ?? [])
    const freed = deletions.flatMap(({ generation }) => slotOf(generation)?.index ?? [])
    const free = indices().filter((index) => !trained.has(index) || freed.includes(index))
    const starting = yield* discovery.start(free.length)
    return {
      deletions,
      creations: starting.map(({ run, progress }, place) => ({ ...run, index: free[place], progress })),
      trained: slots().map(({ generation, progress, readyToUpdate }) => ({ generation, progress, readyToUpdate })),
      failure: null,
    } satisfies Difference
  })

  const apply = Effect.fnUntraced(function* (changes: Difference) {
    for (const { generation, progress, readyToUpdate } of isMaster ? [] : changes.trained) {
      const run = slotOf(generation)
      if (run !== undefined) Object.assign(run.progress, progress)
      if (run !== undefined) run.readyToUpdate = readyToUpdate
    }
    for (const { generation, reason } of changes.deletions) {
      const run = slotOf(generation)
      if (run !== undefined) yield* drop(run, reason)
    }
    if (changes.creations.length === 0) return
    const failed: Array<Reasons[number]> = []
    for (const creation of changes.creations) {
      const problem = yield* create(creation)
      if (problem !== undefined) failed.push({ generation: creation.generation, reason: problem })
    }
    const outcomes = yield* exchange.outcomes(turn, failed)
    for (const { generation } of changes.creations) {
      const run = slotOf(generation)
      if (run !== undefined) yield* settle(run, outcomes)
    }
  })

  /** Keeps a new run if all ranks created it; otherwise evicts it on all ranks, for the reason of the first that failed. */
  const settle = Effect.fnUntraced(function* (run: RunSlot, outcomes: ReadonlyArray<Reasons>) {
    const failures = outcomes.flatMap((reasons, failedRank) =>
      reasons.flatMap(({ generation, reason }) => (generation === run.generation ? [{ failedRank, reason }] : [])),
    )
    const failure = failures.at(0)
    if (failure === undefined) return yield* report({ _tag: "Created", run })
    const reason = `its creation failed on rank ${failure.failedRank}: ${failure.reason}`
    if (isMaster) yield* discovery.evictTrained(run.generation, reason)
    yield* drop(run, reason)
  })

  /** Changes the runs on all ranks. `failure`, if the master has one, ends all ranks with the same error. */
  const changeTogether = Effect.fnUntraced(function* (failure: string | null) {
    turn += 1
    const requests = yield* exchange.requests(turn, wanted.splice(0))
    // All ranks are here, so they have left the turn before.
    if (isMaster && turn > 1) yield* exchange.forget(turn - 1)
    const changes: Difference = isMaster
      ? failure === null
        ? yield* collect(requests)
        : { deletions: [], creations: [], trained: [], failure }
      : yield* exchange.receive(turn)
    if (isMaster) yield* exchange.publish(turn, changes)
    if (changes.failure !== null) return yield* new RunsError({ path: outputDirectory, message: changes.failure })
    yield* Effect.catchTag(apply(changes), "MachineFault", failWith)
    isSettled = trained.size === 0 && discovery.status().waiting.length === 0
  })

  const failWith = ({ message }: MachineFault) => Effect.fail(new RunsError({ path: outputDirectory, message }))
  const unsettle = Effect.sync(() => {
    isSettled = false
  })
  const checkForChanges = isMaster
    ? alone.withPermit(Effect.andThen(unsettle, Effect.catchTag(discovery.scan, "MachineFault", failWith)))
    : Effect.void
  const syncRuns = alone.withPermit(
    Effect.andThen(
      unsettle,
      // A rank that ends alone is missed by the others.
      Effect.suspend(() =>
        fault !== undefined && !isMaster ? failWith(fault) : changeTogether(fault?.message ?? null),
      ),
    ),
  )
  const stopRanks = (reason: string) =>
    isMaster && ranks > 1 ? Effect.ignore(alone.withPermit(changeTogether(reason))) : Effect.void

  /** Explains why no run is trained. */
  const cause = (): string => {
    const { invalid, evicted, unconfigured, waiting, finished } = discovery.status()
    const reasons = [
      ...invalid.map(({ message }) => message),
      ...evicted.map((run) => evictionMessage(outputDirectory, run)),
      ...unconfigured.map((id) => `${id} has no config`),
      ...waiting.map(({ id }) => `${id} waits`),
      ...finished.map((id) => `${id} has reached its last step`),
    ]
    return reasons.length === 0 ? "it holds no folder run_*" : reasons.join("; ")
  }

  const evict = (index: number, reason: string) =>
    Effect.sync(() => {
      const run = trained.get(index)?.run
      if (run !== undefined) wanted.push({ generation: run.generation, reason })
    })

  const awaitRun = Effect.gen(function* () {
    const start = yield* Clock.currentTimeMillis
    const time = Duration.fromInputUnsafe(firstRunDeadline)
    for (;;) {
      // If the master cannot look, the other ranks must not wait for it.
      const failure = yield* Effect.match(checkForChanges, {
        onSuccess: () => null,
        onFailure: ({ message }) => message,
      })
      const isLate = (yield* Clock.currentTimeMillis) - start >= Duration.toMillis(time)
      const hasRun = discovery.status().waiting.length > 0
      const late = `${outputDirectory}: found no run to train within ${Duration.format(time)}: ${cause()}`
      yield* alone.withPermit(changeTogether(failure ?? (isLate && !hasRun ? late : null)))
      if (trained.size > 0) return
      if (isMaster) yield* pause
    }
  })

  return Runs.of({
    rank,
    isMaster,
    maxRuns,
    register: (part) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => void parts.push(part)),
          () => Effect.sync(() => void parts.splice(parts.indexOf(part), 1)),
        ),
      ),
    checkForChanges,
    syncRuns,
    stopRanks,
    awaitRun,
    pause,
    evict,
    fail: (index, error, reason = error.message) =>
      Effect.suspend(() => {
        if (!isMachineFault(error)) return evict(index, reason)
        const run = trained.get(index)?.run
        if (run !== undefined) fault ??= MachineFault.of(run.id, error)
        return Effect.void
      }),
    finish: (index) =>
      Effect.suspend(() => {
        const run = trained.get(index)?.run
        return run === undefined || !isMaster ? Effect.void : alone.withPermit(discovery.finishTrained(run.generation))
      }),
    status: Effect.sync(() => ({ ...discovery.status(), isSettled })),
    changes: Stream.fromPubSub(published),
    slots,
    slot: (index) => trained.get(index)?.run,
    idToIndex: (id) => slots().find((run) => run.id === id)?.index,
    indexToId: (index) => trained.get(index)?.run.id,
    usedIndices,
    unusedIndices,
    readyToUpdateIndices: () => usedIndices().filter((index) => trained.get(index)?.run.readyToUpdate),
    progress: (index) => trained.get(index)?.run.progress,
    config: (index) => trained.get(index)?.run.config,
  })
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
