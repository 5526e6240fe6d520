/**
 * The service that gives a trainer its turns. Each turn is one micro-batch for each rank: the master reads the samples
 * that orchestrators hand over (`rollouts/step_N`), waits until it is time to pack, brings all ranks to the same view of
 * the runs (`Runs.syncRuns`), and hands out the micro-batches. All ranks call `next` equally often.
 *
 * A run whose samples cannot be used is evicted, with the reason in its folder; the others continue.
 *
 * The master packs as soon as the micro-batches can be filled or all runs have samples; otherwise after `timeout`, with the
 * samples that exist. With one run in a micro-batch (`mixing: "one-run"`), the timeout only decides which runs share a turn,
 * and changes no results. With several runs in a micro-batch it changes the rounding: set `timeout: null` to make every turn
 * wait for all runs.
 *
 * @example
 * ```ts
 * const loader = yield* DataLoader
 * const turn = yield* loader.next
 * yield* train(turn.microBatch)
 * countTurn(runs.slot, turn) // the runs whose step is complete
 * ```
 */
import { Clock, Context, Duration, Effect, Layer, Queue } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import * as Layout from "../Layout.ts"
import { retried } from "../machine.ts"
import { objectiveAt } from "../config/OrchestratorConfig.ts"
import { Runs } from "../runs/Runs.ts"
import { isAtEnd, type RunSlot } from "../runs/RunSlot.ts"
import { Store } from "../store/Store.ts"
import { makePacker, type Pack, type Packer, type Upcoming } from "./Packer.ts"
import type { PackerOptions } from "./packUnits.ts"
import { readRollouts, rolloutsState } from "./rolloutFiles.ts"
import { validate } from "./TrainingSample.ts"
import { decodeTurn, encodeTurn, type Turn } from "./Turn.ts"
import { isGone, TrainerError } from "../TrainerError.ts"

export type { Turn } from "./Turn.ts"

export interface DataLoaderOptions extends Omit<PackerOptions, "maxRuns"> {
  /** The number of tokens in the model's vocabulary. A sample with another token evicts its run. */
  readonly vocabSize: number
  /**
   * How long samples wait for samples of runs that have none yet; null waits until all runs have some. @default "100 millis"
   */
  readonly timeout?: Duration.Input | null
  /**
   * The time between two searches for new samples of all runs. Between them, `wake` reports new samples of single runs.
   * @default "50 millis"
   */
  readonly pollInterval?: Duration.Input
  /** The longest time between two searches for new and deleted runs. @default "1 second" */
  readonly syncInterval?: Duration.Input
  /** The time without any samples after which the training fails; null waits for ever. @default "30 minutes" */
  readonly patience?: Duration.Input | null
  /** The time limit for the master's part of a turn to reach the other ranks. @default "1 minute" */
  readonly deadline?: Duration.Input
  /**
   * Wraps every wait for samples, for example to let the engine compute only during these waits. By default it only waits.
   */
  readonly waiting?: (wait: Effect.Effect<void>) => Effect.Effect<void>
  /** The number of steps to read before they are needed. @default 1 */
  readonly readAhead?: number
}

/** The turn that will come next if nothing changes. */
export interface UpcomingTurn extends Pick<Turn, "microBatch"> {
  readonly shares: Upcoming["shares"]
}

export class DataLoader extends Context.Service<
  DataLoader,
  {
    /** Waits for the next turn. Call `countTurn` with it when its gradients are computed. */
    readonly next: Effect.Effect<Turn, TrainerError>
    /**
     * Returns the turn that `next` would return now. Undefined if there are no samples, and on all ranks but the master. Its
     * micro-batch is valid until the next call.
     */
    readonly upcoming: () => UpcomingTurn | undefined
    /**
     * Looks for new samples of a run at once. An orchestrator in this process calls it after it has written samples. Samples
     * from other processes are found at the next search.
     */
    readonly wake: (run: Pick<RunSlot, "own">) => Effect.Effect<void>
    /** The number of runs that have samples to train on. It is 0 on other ranks. */
    readonly ready: () => number
    /** The runs that have no samples to train on, and the steps whose samples they lack. Empty on other ranks. */
    readonly waiting: () => ReadonlyArray<{ readonly id: string; readonly step: number }>
  }
>()("effect-rl/multirun/DataLoader") {
  static readonly layer = (options: DataLoaderOptions): Layer.Layer<DataLoader, TrainerError, Runs | Store> =>
    Layer.effect(DataLoader, make(options))
}

/** Returns the store's key for the turn of a rank in a round. */
const keyOf = (round: number, rank: number): string => `turn/${round}/${rank}`

/** The state of the loader of one rank. Times are in milliseconds. */
interface LoaderState {
  readonly options: DataLoaderOptions
  readonly runs: Runs["Service"]
  readonly store: Store["Service"]
  readonly packer: Packer
  readonly timeout: number
  readonly patience: number
  readonly syncInterval: number
  readonly pollInterval: number
  /** Receives a signal when new samples exist, which ends the wait for them. */
  readonly signals: Queue.Queue<void>
  /** The time of the last search for samples of all runs. */
  lookedAt: number
  /** The number of rounds; in each, the ranks change their runs together. */
  round: number
  /** The time at which the packer first had samples since the last turn; undefined if it has none. */
  since: number | undefined
  /** The time of the last turn, or of the first call. */
  lastTurn: number | undefined
}

const makeLoaderState = Effect.fnUntraced(function* (options: DataLoaderOptions) {
  const runs = yield* Runs
  const millis = (duration: Duration.Input | null) => (duration === null ? Infinity : Duration.toMillis(duration))
  const state: LoaderState = {
    options,
    runs,
    store: yield* Store,
    packer: yield* attempt(() => makePacker({ ...options, maxRuns: runs.maxRuns }), TrainerError),
    timeout: millis(options.timeout === undefined ? "100 millis" : options.timeout),
    patience: millis(options.patience === undefined ? "30 minutes" : options.patience),
    syncInterval: millis(options.syncInterval ?? "1 second"),
    pollInterval: millis(options.pollInterval ?? "50 millis"),
    signals: yield* Effect.acquireRelease(Queue.sliding<void>(1), Queue.shutdown),
    lookedAt: -Infinity,
    round: 0,
    since: undefined,
    lastTurn: undefined,
  }
  return state
})

/** Opens the queues of the runs that begin, and closes those of the runs that end, on the master. */
const registerRuns = (state: LoaderState) =>
  state.runs.register({
    // This hook comes last because another one may load a checkpoint, and with it the run's progress.
    postCreation: (run) => Effect.sync(() => open(state, run)),
    deletion: (run) => Effect.sync(() => close(state, run)),
  })

const make = Effect.fnUntraced(function* (options: DataLoaderOptions) {
  const state = yield* makeLoaderState(options)
  const { runs, packer, signals } = state
  if (runs.isMaster) yield* registerRuns(state)
  return {
    next: next(state),
    upcoming: (): UpcomingTurn | undefined => {
      const pack = packer.upcoming()
      return pack && { microBatch: pack.microBatches[runs.rank], shares: pack.shares }
    },
    wake: ({ own }: Pick<RunSlot, "own">) =>
      Effect.suspend(() => {
        if (own.samples === "read") own.samples = "unread"
        return Effect.asVoid(Queue.offer(signals, undefined))
      }),
    ready: () => runs.slots().filter(({ index }) => packer.queued(index) > 0).length,
    waiting: () => waiting(state),
  }
})

/** Opens the queue of a run. */
const open = (state: LoaderState, run: RunSlot) => {
  if (isAtEnd(run)) return
  const { index, id, progress, config, own } = run
  const rulesAt = (step: number) => {
    const { type, normalisation } = objectiveAt(config, step)
    return { normalisation, arePairs: type === "dpo" }
  }
  own.samples = "unread"
  state.packer.open(index, { id, step: progress.step, rulesAt })
}

/** Stops reading and packing the samples of a run. */
const close = (state: LoaderState, run: RunSlot) => {
  run.own.samples = "closed"
  state.packer.close(run.index)
}

/** Reads the samples of a run's next steps, as far as they are written and its queue needs them. */
const read = (state: LoaderState, run: RunSlot) =>
  Effect.gen(function* () {
    const { own } = run
    const { folder } = own
    for (let ahead = state.packer.queued(run.index); ahead <= (state.options.readAhead ?? 1); ahead++) {
      const step = state.packer.wanted(run.index)
      // Set this first: samples that are written while we look set it to "unread" again.
      own.samples = "read"
      if (step === undefined || (yield* folder.guarded(rolloutsState(folder, step))) === "waiting") return
      own.samples = "unread"
      const batch = yield* folder.guarded(readRollouts(folder, step))
      yield* validate(batch.samples, state.options, { run: run.id, step })
      yield* attempt(() => state.packer.offer(run.index, batch), TrainerError)
    }
  }).pipe(
    (reading) => retried(run.id, reading),
    // A run whose folder is gone is not failed here: `Runs` notices that by itself.
    Effect.catchIf(isGone, () => Effect.void),
    Effect.catch((error) => {
      close(state, run)
      return state.runs.fail(run.index, error)
    }),
  )

/** Reads new samples: of all runs if the poll interval is over, otherwise only of runs that were reported by `wake`. */
const readAll = Effect.fnUntraced(function* (state: LoaderState) {
  const now = yield* Clock.currentTimeMillis
  const isDue = now - state.lookedAt >= state.pollInterval
  if (isDue) state.lookedAt = now
  for (const run of state.runs.slots()) {
    const { samples } = run.own
    if (samples === "unread" || (isDue && samples === "read")) yield* read(state, run)
  }
})

/** Lists the runs that have no samples in the packer, with their next steps. */
const waiting = (state: LoaderState) =>
  state.runs.slots().flatMap(({ index, id, own }) => {
    const step = state.packer.wanted(index)
    return step === undefined || own.samples === "closed" || state.packer.queued(index) > 0 ? [] : [{ id, step }]
  })

/** Tells whether it is time to pack. */
const isTime = (state: LoaderState, now: number): boolean => {
  const level = state.packer.level()
  if (level === "empty") state.since = undefined
  else state.since ??= now
  return level === "full" || (state.since !== undefined && now - state.since >= state.timeout)
}

const impatient = (state: LoaderState): TrainerError => {
  const lacking = waiting(state).map(({ id, step }) => `${id}/${Layout.rolloutsOf(step)}`)
  const awaited = lacking.length === 0 ? "there is no run" : `waiting for ${lacking.join(", ")}`
  return new TrainerError({
    message: `no run got samples for ${Duration.format(Duration.millis(state.patience))}: ${awaited}; look at their orchestrators`,
  })
}

/** Waits until it is time to pack, or to search for changes of the runs. */
const wait = Effect.fnUntraced(function* (state: LoaderState) {
  const { waiting: whileWaiting = (wait) => wait } = state.options
  const begin = yield* Clock.currentTimeMillis
  state.lastTurn ??= begin
  while (true) {
    yield* readAll(state)
    const now = yield* Clock.currentTimeMillis
    if (isTime(state, now) || now - begin >= state.syncInterval) return
    if (now - state.lastTurn >= state.patience) return yield* impatient(state)
    yield* whileWaiting(
      Effect.timeoutOption(Queue.take(state.signals), Math.min(state.pollInterval, state.syncInterval)),
    )
  }
})

/** Does the master's part of a round: sends each rank its turn, or none if only the runs changed. */
const lead = Effect.fnUntraced(function* (state: LoaderState) {
  // The first round does not wait, because it only finds the runs.
  yield* Effect.andThen(state.round > 0 ? wait(state) : Effect.void, state.runs.checkForChanges).pipe(
    Effect.tapError(({ message }) => state.runs.stopRanks(message)),
  )
  yield* state.runs.syncRuns
  yield* readAll(state)
  const now = yield* Clock.currentTimeMillis
  const pack = isTime(state, now) ? state.packer.pack() : undefined
  if (pack !== undefined) {
    state.since = undefined
    state.lastTurn = now
  }
  for (let rank = 0; rank < state.options.ranks; rank++) {
    if (rank !== state.runs.rank) yield* state.store.set(keyOf(state.round, rank), encodeTurn(turnOf(pack, rank)))
  }
  return turnOf(pack, state.runs.rank)
})

const turnOf = (pack: Pack | undefined, rank: number): Turn | undefined =>
  pack && { number: pack.number, microBatch: pack.microBatches[rank], shares: pack.shares }

/** Does the part of another rank in a round: waits for the turn that the master sends. */
const follow = Effect.fnUntraced(function* (state: LoaderState) {
  yield* state.runs.syncRuns
  const key = keyOf(state.round, state.runs.rank)
  const bytes = yield* state.store.wait(key, state.options.deadline ?? "1 minute")
  yield* state.store.remove(key)
  return decodeTurn(bytes)
})

/** Stops reading the samples of runs whose last step is complete in this turn. */
const closeAtEnd = (state: LoaderState, { shares }: Turn): void => {
  for (const { index, id, step, done } of shares) {
    const run = state.runs.slot(index)
    if (run?.id === id && done && step + 1 === run.config.maxSteps) close(state, run)
  }
}

/** Waits for the next turn of this rank. */
const next = Effect.fnUntraced(function* (state: LoaderState) {
  while (true) {
    const turn = yield* state.runs.isMaster ? lead(state) : follow(state)
    state.round++
    if (turn === undefined) continue
    closeAtEnd(state, turn)
    return turn
  }
})
