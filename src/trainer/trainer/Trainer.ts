/**
 * The training loop of a trainer of several runs, on one rank. In each turn, every rank computes the gradients of one
 * micro-batch, and the runs whose step is then complete are updated: the optimiser makes its step, the update is recorded, a
 * checkpoint is saved if one is due, and the new weights are published.
 *
 * All ranks add the gradients of all micro-batches in the same order, so their weights are equal bit for bit, whatever the
 * number of ranks. A run that fails, because of a gradient that is not finite or a damaged folder, is evicted with the
 * reason. This does not affect other runs.
 *
 * @example
 * ```ts
 * const trainer = yield* makeTrainer({ model, shape: { rows: 4, width: 256, block: 32, mixing: "one-run" }, seed: 1, ranks: 1, publish, report })
 * yield* Effect.forever(trainer.turn)
 * ```
 */
import { type Duration, Effect, type FileSystem, type Path, Result, Scope } from "effect"
import { Backend, type BackendError, type Compiling } from "../../tensor/backend/Backend.ts"
import { meanMetrics } from "../../rl/losses/Losses.ts"
import { DataLoader, type Turn } from "../batches/DataLoader.ts"
import { makeMicroBatch, type MicroBatch } from "../batches/MicroBatch.ts"
import { countTurn } from "../batches/Turn.ts"
import * as MultiLoRAOptimizer from "../optimisers/MultiLoRAOptimizer.ts"
import * as MultiLoRAScheduler from "../optimisers/MultiLoRAScheduler.ts"
import type { StepOutcome } from "../optimisers/MultiLoRAOptimizer.ts"
import { Runs } from "../runs/Runs.ts"
import type { References } from "../reference/references.ts"
import type { RunRecords } from "../records/RunRecords.ts"
import { isAtEnd, type RunSlot } from "../runs/RunSlot.ts"
import { Store } from "../store/Store.ts"
import { decodeGradients, encodeGradients } from "./gradientMessage.ts"
import type { GradientProgram, GradientShape } from "./gradientProgram.ts"
import { type ObjectivePrograms, prepareReferences, readyProgram, referencesOf } from "./objectivePrograms.ts"
import { addSums, gradientsOf, type RunGradient } from "./runGradients.ts"
import type { TrainedModel } from "./TrainedModel.ts"
import { beginRun, endRun, repairRun, saveRun, tidyRun, type TrainedRuns } from "./trainedRuns.ts"
import type { TrainerError } from "../TrainerError.ts"

/** Describes one update of a run. */
interface Updated {
  readonly run: RunSlot
  /** The number of updates of the run, including this one. */
  readonly step: number
  /** The loss, the learning rate, the norm of the gradient, and the metrics of the objective. */
  readonly metrics: Readonly<Record<string, number>>
}

interface TrainerOptions {
  readonly model: TrainedModel
  /** The size of micro-batches, as the `DataLoader` packs them. */
  readonly shape: Pick<GradientShape, "rows" | "width" | "block" | "mixing">
  /** The seed of new adapters, which are drawn by the ids of their runs. */
  readonly seed: number
  /** The number of ranks, 1 by default. */
  readonly ranks?: number
  /** The time limit for the gradients of a rank to reach the others. @default "30 minutes" */
  readonly rankDeadline?: Duration.Input
  /** Makes new weights of a run available, when the run begins and after each update. It is called only on the master. */
  readonly publish: (run: RunSlot) => Effect.Effect<void, { readonly message: string }>
  /** Receives each update, on every rank, before a checkpoint of its step is saved. */
  readonly report: (update: Updated) => Effect.Effect<void, { readonly message: string }>
  /** Records the runs; only on the master. Each checkpoint saves the state of the recording. */
  readonly records?: Pick<RunRecords, "check" | "begin" | "moment" | "end">
  /**
   * Starts a thread on a device that computes the reference model of an objective's KL term. By default, the gradient
   * programs compute it themselves.
   */
  readonly startReferences?: (device: string) => Effect.Effect<References, never, Scope.Scope>
  /** Runs at the end of each turn, with the runs that were updated. */
  readonly afterTurn?: (updated: ReadonlyArray<RunSlot>) => Effect.Effect<unknown>
}

interface Trainer {
  /** Waits for the next turn, and trains on it. An interruption never separates a run's update from its progress. */
  readonly turn: Effect.Effect<void, TrainerError | Effect.Error<Compiling<never>>>
  /** Saves a checkpoint of each run at its last complete step. Call it when the process ends. */
  readonly saveAll: Effect.Effect<void>
}

/** The state of a trainer. */
interface TrainerState {
  readonly options: TrainerOptions
  readonly runs: Runs["Service"]
  readonly loader: DataLoader["Service"]
  readonly store: Store["Service"]
  readonly trained: TrainedRuns
  readonly programs: ObjectivePrograms
  readonly optimizer: MultiLoRAOptimizer.MultiLoRAOptimizer
  readonly scheduler: MultiLoRAScheduler.MultiLoRAScheduler
  /** A micro-batch for the samples of a single run, used when its gradients must be computed alone. */
  readonly scratch: MicroBatch
}

/** Registers the hooks that begin, record and end runs. */
const registerRuns = Effect.fnUntraced(function* (runs: Runs["Service"], trained: TrainedRuns) {
  const { records } = trained
  yield* runs.register({
    discovered: (run) => repairRun(trained, run),
    creation: (run) => beginRun(trained, run),
    deletion: (run) => endRun(trained, run),
  })
  if (!runs.isMaster) return
  if (records !== undefined)
    yield* runs.register({
      creation: (run) => records.begin(run, run.own.training?.recorded),
      deletion: records.end,
    })
  yield* runs.register({ creation: tidyRun })
})

/** Registers the hook that loads the optimiser's moments of a new run and publishes its first weights. */
const registerFirstWeights = ({ runs, optimizer, options }: TrainerState) =>
  runs.register({
    postCreation: Effect.fnUntraced(function* (run) {
      const { training } = run.own
      if (training?.moments !== undefined) yield* optimizer.loadStateDict(run, training.moments)
      if (training !== undefined) training.moments = undefined
      if (runs.isMaster) yield* options.publish(run)
    }),
  })

/** Makes the trainer of this rank. Its hooks stay registered with `Runs` until the scope closes. */
export const makeTrainer = Effect.fnUntraced(function* (
  options: TrainerOptions,
): Effect.fn.Return<
  Trainer,
  never,
  Backend | Runs | Store | DataLoader | FileSystem.FileSystem | Path.Path | Scope.Scope
> {
  const { model, shape, seed, records, startReferences } = options
  const runs = yield* Runs
  const files = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const trained: TrainedRuns = { isMaster: runs.isMaster, model, seed, records, files }
  yield* registerRuns(runs, trained)
  const optimizer = yield* MultiLoRAOptimizer.make({
    runs,
    parametersOf: ({ index }) => model.namedParametersOf(index),
  })
  const compiling = { backend: yield* Backend, scope: yield* Scope.Scope, runs, model, shape, startReferences }
  const state: TrainerState = {
    options,
    runs,
    loader: yield* DataLoader,
    store: yield* Store,
    trained,
    programs: { ...compiling, compiled: new Map(), references: new Map() },
    optimizer,
    scheduler: MultiLoRAScheduler.make(optimizer),
    scratch: makeMicroBatch({ ...shape, maxRuns: runs.maxRuns }),
  }
  yield* registerFirstWeights(state)
  return { turn: trainTurn(state), saveAll: Effect.suspend(() => saveAll(state)) }
})

/** Waits for the next turn, and trains on it. */
const trainTurn = Effect.fnUntraced(function* (state: TrainerState) {
  const turn = yield* take(state)
  const programs = yield* programsFor(state, turn)
  const shares = turn.shares.filter(({ index }) => programs.has(index))
  const gradients = yield* gather(state, turn, yield* compute(state, turn, programs))
  // Uninterruptible: a checkpoint must not hold weights and progress of different steps.
  yield* Effect.uninterruptible(apply(state, shares, gradients))
})

/** Waits for the next turn. Lets other threads begin to compute the reference model for it, and for the turn after it. */
const take = Effect.fnUntraced(function* ({ loader, programs }: TrainerState) {
  const next = yield* loader.next
  yield* prepareReferences(programs, next)
  const upcoming = programs.references.size === 0 ? undefined : loader.upcoming()
  if (upcoming !== undefined) yield* prepareReferences(programs, upcoming)
  return next
})

/**
 * Returns the gradient programs of the runs in a turn, by the runs' indices. A run whose objective cannot be compiled is
 * evicted.
 */
const programsFor = Effect.fnUntraced(function* ({ runs, programs }: TrainerState, { shares }: Turn) {
  const byRun = new Map<number, GradientProgram>()
  for (const { index, step } of shares) {
    const run = runs.slot(index)
    if (run === undefined) continue
    const program = yield* Effect.result(readyProgram(programs, run, step))
    if (Result.isSuccess(program)) byRun.set(index, program.success)
    else yield* runs.evict(index, `its objective cannot be compiled: ${program.failure.message}`)
  }
  return byRun
})

/** Computes the gradients of a turn's micro-batch on this rank. */
const compute = Effect.fnUntraced(function* (
  { programs, scratch }: TrainerState,
  { microBatch }: Turn,
  byRun: ReadonlyMap<number, GradientProgram>,
) {
  const [anyProgram] = byRun.values()
  if (anyProgram === undefined) return []
  const gradients = yield* gradientsOf(
    (run) => byRun.get(run) ?? anyProgram,
    microBatch,
    scratch,
    (program) => referencesOf(programs, program),
  )
  return gradients.filter(({ index }) => byRun.has(index))
})

/** Returns the gradients of all ranks, in the order of the ranks. */
const gather = Effect.fnUntraced(function* (
  { runs: { isMaster, rank }, store, options: { ranks = 1, rankDeadline = "30 minutes" } }: TrainerState,
  turn: Turn,
  own: ReadonlyArray<RunGradient>,
) {
  if (ranks === 1) return own
  const name = (number: number): string => `gradients/${number}`
  const meeting = { name: name(turn.number), rank, ranks, deadline: rankDeadline }
  const all = yield* store.gather(meeting, encodeGradients(own))
  // All ranks are in this turn, so they have read the gradients of the last one.
  if (isMaster && turn.number > 0) yield* store.forget({ name: name(turn.number - 1), ranks })
  return all.flatMap((bytes, other) => (other === rank ? own : decodeGradients(bytes)))
})

/** Adds the gradients of a turn to the sums of its runs. */
const accumulate = (state: TrainerState, shares: Turn["shares"], gradients: ReadonlyArray<RunGradient>): void => {
  for (const { index, id } of shares) {
    // The run may have left while its gradients were computed.
    const run = state.runs.slot(index)
    const training = run?.own.training
    if (run?.id !== id || training === undefined) continue
    for (const { gradient, loss, sums } of gradients.filter((one) => one.index === index)) {
      state.optimizer.accumulate(run, gradient)
      training.loss += loss
      training.sums = addSums(training.sums, sums)
    }
  }
}

/** Ends the step of a run after its update: reports it, and saves a checkpoint if one is due. */
const conclude = Effect.fnUntraced(function* (
  { runs, trained, optimizer, options }: TrainerState,
  run: RunSlot,
  figures: Readonly<Record<string, number>>,
) {
  const { progress, config, own } = run
  const { training } = own
  if (training === undefined) return
  training.boundary = { ...progress }
  const metrics = { ...figures, "losses/loss": training.loss, ...meanMetrics(training.sums) }
  training.loss = 0
  training.sums = { tokens: 0 }
  yield* options.report({ run, step: progress.step, metrics })
  const { every } = config.checkpoint
  if (isAtEnd(run) || (every > 0 && progress.step % every === 0)) yield* saveRun(trained, optimizer, run)
  // The last weights are published later, at the end of `apply`: publishing them ends the run, so all files of the last step
  // must be written before.
  if (runs.isMaster && !isAtEnd(run)) yield* options.publish(run)
})

/** Ends the step of each run whose optimiser made a step, and returns the updated runs. A run that fails is evicted. */
const concludeAll = Effect.fnUntraced(function* (state: TrainerState, outcomes: ReadonlyArray<StepOutcome>) {
  const updated: Array<RunSlot> = []
  for (const outcome of outcomes) {
    const { slot } = outcome
    const failure =
      outcome._tag === "Failed"
        ? outcome.error
        : yield* Effect.match(
            conclude(state, slot, {
              "charts/learning_rate": outcome.learningRate,
              "losses/gradient_norm": outcome.gradientNorm,
            }),
            { onSuccess: () => undefined, onFailure: (error) => error },
          )
    if (failure === undefined) updated.push(slot)
    else {
      // The weights do not belong to any step, so they must not be published or saved.
      slot.own.training = undefined
      yield* state.runs.fail(slot.index, failure)
    }
  }
  return updated
})

/** Counts a turn, updates the runs whose step is complete, and publishes their weights. */
const apply = Effect.fnUntraced(function* (
  state: TrainerState,
  shares: Turn["shares"],
  gradients: ReadonlyArray<RunGradient>,
) {
  const { runs, optimizer, scheduler, options } = state
  accumulate(state, shares, gradients)
  const ready = countTurn(runs.slot, { shares })
  for (const run of ready) run.readyToUpdate = true
  const outcomes = yield* optimizer.step(ready)
  scheduler.step(ready)
  options.model.touch()
  const updated = yield* concludeAll(state, outcomes)
  yield* options.afterTurn?.(updated) ?? Effect.void
  for (const run of runs.isMaster ? updated.filter(isAtEnd) : [])
    yield* Effect.catch(options.publish(run), (error) => runs.fail(run.index, error))
  for (const run of ready) run.readyToUpdate = false
})

/** Saves a checkpoint of each run. A failure is only logged, so that the other runs are saved. */
const saveAll = ({ runs, trained, optimizer }: TrainerState) =>
  Effect.forEach(
    runs.slots(),
    (run) =>
      Effect.catch(saveRun(trained, optimizer, run), (error: BackendError | { readonly message: string }) =>
        Effect.logWarning(`${run.id}: its checkpoint cannot be saved: ${error.message}`),
      ),
    { discard: true },
  )
