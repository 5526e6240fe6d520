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
import { Backend, type Compiling } from "../../tensor/backend/Backend.ts"
import { attempt } from "../../base/config/attempt.ts"
import { stream } from "../../base/rng/Rng.ts"
import { EngineError } from "../../decoder/inference/EngineError.ts"
import { DataLoader, type Turn } from "../batches/DataLoader.ts"
import { makeMicroBatch, type MicroBatch } from "../batches/MicroBatch.ts"
import { countTurn } from "../batches/Turn.ts"
import * as MultiLoRAOptimizer from "../optimisers/MultiLoRAOptimizer.ts"
import * as MultiLoRAScheduler from "../optimisers/MultiLoRAScheduler.ts"
import type { StepOutcome } from "../optimisers/MultiLoRAOptimizer.ts"
import { Runs } from "../runs/Runs.ts"
import type { References } from "../reference/references.ts"
import type { RunRecords } from "../records/RunRecords.ts"
import type { RunSlot } from "../runs/RunSlot.ts"
import { Store } from "../store/Store.ts"
import { checkpointParts, runStateIn } from "./checkpointParts.ts"
import { conclude, publishLast, registerRuns, saveAll, type Updated } from "./concluding.ts"
import { decodeGradients, encodeGradients } from "./gradientMessage.ts"
import type { GradientProgram, GradientShape } from "./gradientProgram.ts"
import { type ObjectivePrograms, prepareReferences, readyProgram, referencesOf } from "./objectivePrograms.ts"
import { addSums, gradientsOf, type RunGradient } from "./runGradients.ts"
import type { TrainedModel } from "./TrainedModel.ts"
import type { RunWeights, TrainedRuns } from "./trainedRuns.ts"
import type { TrainerError } from "../TrainerError.ts"

export interface TrainerOptions {
  readonly model: TrainedModel
  /** The size of micro-batches, as the `DataLoader` packs them. */
  readonly shape: Pick<GradientShape, "rows" | "width" | "block" | "mixing" | "replayed">
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

export interface Trainer {
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

/** Returns the weights of this process. `optimizerOf` returns the optimisers, which are made after the hooks of the runs. */
const localWeights = (
  { model, seed }: Pick<TrainerOptions, "model" | "seed">,
  optimizerOf: () => MultiLoRAOptimizer.MultiLoRAOptimizer,
): RunWeights => ({
  begin: Effect.fnUntraced(function* ({ index, id, config }, files) {
    const state = files === undefined ? undefined : yield* runStateIn(files)
    yield* attempt(() => {
      if (state === undefined) model.begin(index, config.lora, stream(seed, "adapter", id))
      else model.load(index, config.lora, state.weights)
    }, EngineError)
    return state?.moments
  }),
  files: (run) =>
    Effect.map(optimizerOf().stateDictOf(run), (moments) =>
      checkpointParts({ weights: model.stateDictOf(run.index), moments }),
    ),
  end: ({ index }) => Effect.sync(() => model.end(index)),
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
  const weights = localWeights({ model, seed }, () => optimizer)
  const trained: TrainedRuns = { isMaster: runs.isMaster, weights, records, files }
  yield* registerRuns(runs, trained)
  const optimizer: MultiLoRAOptimizer.MultiLoRAOptimizer = yield* MultiLoRAOptimizer.make({
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
  return { turn: trainTurn(state), saveAll: saveAll(runs, trained) }
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

/** Ends the step of each run whose optimiser made a step, and returns the updated runs. A run that fails is evicted. */
const concludeAll = Effect.fnUntraced(function* (state: TrainerState, outcomes: ReadonlyArray<StepOutcome>) {
  const updated: Array<RunSlot> = []
  for (const outcome of outcomes) {
    const { slot } = outcome
    const failure =
      outcome._tag === "Failed"
        ? outcome.error
        : yield* Effect.match(
            conclude({ ...state.options, isMaster: state.runs.isMaster, trained: state.trained }, slot, {
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
  yield* publishLast(runs, updated, options.publish)
  for (const run of ready) run.readyToUpdate = false
})
