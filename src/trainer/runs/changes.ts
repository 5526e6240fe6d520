/**
 * Holds the state of the runs on one rank, and changes the runs on all ranks together: the master collects the changes, and
 * every rank applies them in the same order.
 */
import { Effect, type Semaphore } from "effect"
import { type RunFolder, type RunFolderError } from "./guardedFolder.ts"
import type { makeDiscovery } from "./Discovery.ts"
import type { Difference, exchangeOf, Reasons } from "./exchange.ts"
import * as hooks from "./hooks.ts"
import { RunStoreError } from "../../run/store/RunStoreError.ts"
import type { DiscoveredRun, Hook, Hooks, RunSlot, RunChange } from "./RunSlot.ts"
import { makeTrainedRun } from "./TrainedRun.ts"
import { TrainerError } from "../TrainerError.ts"

/** A trained run, with the parts of the trainer that have prepared something for it and must release it. */
interface Trained {
  readonly run: RunSlot
  readonly prepared: Array<Hooks>
  /** Whether the run's creation failed because another process has locked its folder. */
  isLocked: boolean
}

/** The state of the runs on one rank. */
export interface RunsState {
  readonly outputDirectory: string
  readonly isMaster: boolean
  /** The number of runs that can be trained at once. */
  readonly maxRuns: number
  readonly exchange: ReturnType<typeof exchangeOf>
  readonly discovery: Effect.Success<ReturnType<typeof makeDiscovery>>
  readonly openFolder: (run: DiscoveredRun) => Effect.Effect<RunFolder, RunFolderError>
  readonly report: (change: RunChange) => Effect.Effect<void>
  /** Allows one scan or change at a time, even if several fibers of this rank call. */
  readonly alone: Semaphore.Semaphore
  /** The registered parts of the trainer. */
  readonly parts: Array<Hooks>
  /** The trained runs by their indices. */
  readonly trained: Map<number, Trained>
  /** The evictions that this rank will request at the next turn. */
  readonly wanted: Array<Reasons[number]>
  /** The number of times that the ranks changed their runs. */
  turn: number
  /** Whether all changes of the last scan have taken effect, and no run is trained or waits. */
  isSettled: boolean
  /** The fault of the machine that will end the trainer at the next turn. */
  fault: TrainerError | undefined
}

const indices = ({ maxRuns }: RunsState): ReadonlyArray<number> => Array.from({ length: maxRuns }, (_, index) => index)
export const usedIndices = (state: RunsState) => indices(state).filter((index) => state.trained.has(index))
export const unusedIndices = (state: RunsState) => indices(state).filter((index) => !state.trained.has(index))
/** Returns the trained runs in the order of their indices. */
export const slots = (state: RunsState) => usedIndices(state).flatMap((index) => state.trained.get(index)?.run ?? [])
const slotOf = (state: RunsState, generation: number) => slots(state).find((run) => run.generation === generation)

/** Removes a run from its index, and calls the deletion hooks of the parts that have prepared something for it. */
const drop = Effect.fnUntraced(function* (state: RunsState, run: RunSlot, reason: string | null) {
  const prepared = state.trained.get(run.index)?.prepared ?? []
  state.trained.delete(run.index)
  const present = state.parts.filter((part) => prepared.includes(part))
  yield* hooks.all(present, ({ deletion }) => deletion && ((left) => deletion(left, reason)), run, "deletion")
  yield* state.report({ _tag: "Deleted", run, reason })
})

/** Wraps a hook: records whether it fails because another process has locked the run. */
const notingLock =
  (trained: Trained, hook: Hook): Hook =>
  (run) =>
    Effect.tapError(hook(run), (error) =>
      Effect.sync(() => void (trained.isLocked ||= error instanceof RunStoreError && error.holder !== undefined)),
    )

/**
 * Creates a run: opens its folder, gives it its index, and runs the hooks until one fails. Returns the message of the
 * failure, if there is one.
 */
const create = Effect.fnUntraced(function* (state: RunsState, creation: Difference["creations"][number]) {
  const { progress, ...rest } = creation
  let folder: RunFolder | undefined
  const open = (run: DiscoveredRun) => Effect.map(state.openFolder(run), (opened) => void (folder = opened))
  const failure = yield* hooks.outcomeOf(open, rest)
  if (folder === undefined) return failure
  const run: RunSlot = { ...rest, progress: { ...progress }, readyToUpdate: false, own: makeTrainedRun(folder) }
  const trained: Trained = { run, prepared: [], isLocked: false }
  state.trained.set(run.index, trained)
  const present = [...state.parts]
  for (const part of present) {
    const problem = yield* hooks.outcomeOf(part.creation && notingLock(trained, part.creation), run)
    if (problem !== undefined) return problem
    trained.prepared.push(part)
  }
  return yield* hooks.untilFailure(present, ({ postCreation }) => postCreation, run)
})

/** Collects the changes since the last turn, on the master. */
const collect = Effect.fnUntraced(function* (state: RunsState, requests: ReadonlyArray<Reasons>) {
  for (const { generation, reason } of requests.flat()) yield* state.discovery.evictTrained(generation, reason)
  const leaving = yield* state.discovery.takeLeaving
  const deletions = slots(state).flatMap((run) => leaving.find(({ generation }) => generation === run.generation) ?? [])
  const freed = deletions.flatMap(({ generation }) => slotOf(state, generation)?.index ?? [])
  const free = indices(state).filter((index) => !state.trained.has(index) || freed.includes(index))
  const starting = yield* state.discovery.start(free.length)
  return {
    deletions,
    creations: starting.map(({ run, progress }, place) => ({ ...run, index: free[place], progress })),
    trained: slots(state).map(({ generation, progress, readyToUpdate }) => ({ generation, progress, readyToUpdate })),
    failure: null,
  } satisfies Difference
})

/** Applies the changes of a turn on this rank. */
const apply = Effect.fnUntraced(function* (state: RunsState, changes: Difference) {
  for (const { generation, progress, readyToUpdate } of state.isMaster ? [] : changes.trained) {
    const run = slotOf(state, generation)
    if (run !== undefined) Object.assign(run.progress, progress)
    if (run !== undefined) run.readyToUpdate = readyToUpdate
  }
  for (const { generation, reason } of changes.deletions) {
    const run = slotOf(state, generation)
    if (run !== undefined) yield* drop(state, run, reason)
  }
  if (changes.creations.length === 0) return
  const failed: Array<Reasons[number]> = []
  for (const creation of changes.creations) {
    const problem = yield* create(state, creation)
    if (problem !== undefined) failed.push({ generation: creation.generation, reason: problem })
  }
  const outcomes = yield* state.exchange.outcomes(state.turn, failed)
  for (const { generation } of changes.creations) yield* settle(state, generation, outcomes)
})

/**
 * Keeps a new run if all ranks have created it. Otherwise evicts it on all ranks, with the reason of the first rank that
 * failed. A run that another process has locked is not evicted but left alone.
 */
const settle = Effect.fnUntraced(function* (state: RunsState, generation: number, outcomes: ReadonlyArray<Reasons>) {
  const run = slotOf(state, generation)
  const failures = outcomes.flatMap((reasons, failedRank) =>
    reasons.flatMap((one) => (one.generation === generation ? [{ failedRank, reason: one.reason }] : [])),
  )
  const failure = failures.at(0)
  if (failure === undefined) return run === undefined ? undefined : yield* state.report({ _tag: "Created", run })
  const reason = `its creation failed on rank ${failure.failedRank}: ${failure.reason}`
  const isLocked = run !== undefined && state.trained.get(run.index)?.isLocked === true
  if (state.isMaster)
    yield* isLocked
      ? state.discovery.leaveTrained(generation, failure.reason)
      : state.discovery.evictTrained(generation, reason)
  if (run !== undefined) yield* drop(state, run, reason)
})

/** Returns the changes of a turn: the master computes them, the other ranks receive them. */
const changesOf = Effect.fnUntraced(function* (
  state: RunsState,
  requests: ReadonlyArray<Reasons>,
  failure: string | null,
) {
  if (!state.isMaster) return yield* state.exchange.receive(state.turn)
  if (failure !== null) return { deletions: [], creations: [], trained: [], failure } satisfies Difference
  return yield* collect(state, requests)
})

/** Changes the runs on all ranks. If the master passes a `failure`, all ranks fail with it. */
export const changeTogether = Effect.fnUntraced(function* (state: RunsState, failure: string | null) {
  state.turn += 1
  const requests = yield* state.exchange.requests(state.turn, state.wanted.splice(0))
  // All ranks have reached this turn, so none needs the messages of the last one.
  if (state.isMaster && state.turn > 1) yield* state.exchange.forget(state.turn - 1)
  const changes = yield* changesOf(state, requests, failure)
  if (state.isMaster) yield* state.exchange.publish(state.turn, changes)
  if (changes.failure !== null) return yield* new TrainerError({ reason: "stopped", message: changes.failure })
  yield* apply(state, changes)
  state.isSettled = state.trained.size === 0 && state.discovery.status().waiting.length === 0
})
