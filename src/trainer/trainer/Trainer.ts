/**
 * The loop of a trainer of several runs, on one rank. A turn takes one micro-batch of each rank, adds its gradients to
 * those of its runs, and updates the runs whose step is complete: their optimiser and learning rate step, their weights
 * are published, and a checkpoint is saved if one is due.
 *
 * All ranks add up the same gradients in the order of the micro-batches, so their weights are the same bits, whatever
 * the number of ranks. A run that fails, by a gradient that is not finite or a broken folder, is evicted with the reason;
 * no other run notices.
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
import { DataLoader, type Turn, type TurnError } from "../batches/DataLoader.ts"
import { makeMicroBatch, type MicroBatch } from "../batches/MicroBatch.ts"
import * as MultiLoRAOptimizer from "../optimisers/MultiLoRAOptimizer.ts"
import * as MultiLoRAScheduler from "../optimisers/MultiLoRAScheduler.ts"
import type { StepOutcome } from "../optimisers/MultiLoRAOptimizer.ts"
import { Runs } from "../runs/Runs.ts"
import type { References } from "../reference/references.ts"
import type { RunRecords } from "../records/RunRecords.ts"
import { isAtEnd, type RunSlot } from "../runs/RunSlot.ts"
import { Store, type StoreError } from "../store/Store.ts"
import { decodeGradients, encodeGradients } from "./gradientMessage.ts"
import type { GradientProgram, GradientShape } from "./gradientProgram.ts"
import { type ObjectivePrograms, prepareReferences, readyProgram, referencesOf } from "./objectivePrograms.ts"
import { addSums, gradientsOf, type RunGradient } from "./runGradients.ts"
import type { TrainedModel } from "./TrainedModel.ts"
import { beginRun, endRun, repairRun, saveRun, type TrainedRuns } from "./trainedRuns.ts"

/** The report of one update of a run. */
interface Updated {
  readonly run: RunSlot
  /** The number of updates of the run, with this one. */
  readonly step: number
  /** The loss, the learning rate, the norm of the gradient, and the metrics of the objective. */
  readonly metrics: Readonly<Record<string, number>>
}

interface TrainerOptions {
  readonly model: TrainedModel
  /** The size of micro-batches, as the `DataLoader` packs them. */
  readonly shape: Pick<GradientShape, "rows" | "width" | "block" | "mixing">
  /** The seed from which new adapters are drawn, each by the id of its run. */
  readonly seed: number
  /** The number of ranks, 1 by default. */
  readonly ranks?: number
  /** The time within which the gradients of a rank must reach the others. @default "30 minutes" */
  readonly rankDeadline?: Duration.Input
  /** Makes the weights of a run known, when it begins and after each update. It runs on the master only. */
  readonly publish: (run: RunSlot) => Effect.Effect<void, { readonly message: string }>
  /** Takes each update, on every rank, before a checkpoint of its step is saved. */
  readonly report: (update: Updated) => Effect.Effect<void, { readonly message: string }>
  /** Records the runs, on the master only. Each checkpoint saves how far the run was recorded. */
  readonly records?: Pick<RunRecords, "begin" | "moment" | "end">
  /**
   * Starts what computes the reference model of an objective's KL term in another thread, for programs of a device. By
   * default the programs compute it themselves.
   */
  readonly startReferences?: (device: string) => Effect.Effect<References, never, Scope.Scope>
  /** Runs at the end of each turn, when the runs that were updated are still `readyToUpdate`; see `Broadcasts`. */
  readonly afterTurn?: Effect.Effect<unknown>
}

type TrainerError = TurnError | StoreError | Effect.Error<Compiling<never>>

interface Trainer {
  /** Waits for the next turn, and trains on it. An interruption leaves no run between its update and the count of it. */
  readonly turn: Effect.Effect<void, TrainerError>
  /** Saves a checkpoint of each run at its last complete step, for the end of the process. */
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
  /** A micro-batch that holds the samples of one run while its gradients are computed alone. */
  readonly scratch: MicroBatch
}

/** Registers the hooks by which runs begin and end in `trained`, and are recorded. */
const registerRuns = Effect.fnUntraced(function* (runs: Runs["Service"], trained: TrainedRuns) {
  const { records } = trained
  yield* runs.register({
    discovered: (run) => repairRun(trained, run),
    creation: (run) => beginRun(trained, run),
    deletion: (run) => endRun(trained, run),
  })
  if (!runs.isMaster || records === undefined) return
  yield* runs.register({
    creation: (run) => records.begin(run, trained.byGeneration.get(run.generation)?.recorded),
    deletion: records.end,
  })
})

/** Registers the hook that loads the moments of a new run, when its optimiser is made, and publishes its weights. */
const registerFirstWeights = ({ runs, trained, optimizer, options }: TrainerState) =>
  runs.register({
    postCreation: Effect.fnUntraced(function* (run) {
      const own = trained.byGeneration.get(run.generation)
      if (own?.moments !== undefined) yield* optimizer.loadStateDict(run, own.moments)
      if (own !== undefined) own.moments = undefined
      if (runs.isMaster) yield* options.publish(run)
    }),
  })

/** Makes the trainer of this rank, and registers its hooks with `Runs`, until the scope closes. */
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
  const trained: TrainedRuns = { isMaster: runs.isMaster, model, seed, records, files, byGeneration: new Map() }
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
  const { loader, programs } = state
  const next = yield* loader.next
  yield* prepareReferences(programs, next)
  const upcoming = programs.references.size === 0 ? undefined : loader.upcoming()
  if (upcoming !== undefined) yield* prepareReferences(programs, upcoming)
  const gradients = yield* gather(state, next, yield* compute(state, next))
  // A checkpoint after an interruption must find weights and progress of the same step.
  yield* Effect.uninterruptible(apply(state, next, gradients))
})

/** Computes the gradients of a turn's micro-batch on this rank. A run whose objective cannot be compiled is evicted. */
const compute = Effect.fnUntraced(function* ({ runs, programs, scratch }: TrainerState, { microBatch, shares }: Turn) {
  const byRun = new Map<number, GradientProgram>()
  for (const { index, step } of shares) {
    const run = runs.slot(index)
    if (run === undefined) continue
    const program = yield* Effect.result(readyProgram(programs, run, step))
    if (Result.isSuccess(program)) byRun.set(index, program.success)
    else {
      run.readyToUpdate = false
      yield* runs.evict(index, `its objective cannot be compiled: ${program.failure.message}`)
    }
  }
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
  // All ranks are in this turn, so they have read those of the turn before.
  if (isMaster && turn.number > 0) yield* store.forget({ name: name(turn.number - 1), ranks })
  return all.flatMap((bytes, other) => (other === rank ? own : decodeGradients(bytes)))
})

/** Returns the run of a share, unless it left its index while the turn was computed. */
const runOf = ({ runs }: TrainerState, { index, id }: Turn["shares"][number]): RunSlot | undefined => {
  const run = runs.slot(index)
  return run?.id === id ? run : undefined
}

/** Adds the gradients of a turn to those of its runs. */
const accumulate = (state: TrainerState, turn: Turn, gradients: ReadonlyArray<RunGradient>): void => {
  for (const share of turn.shares) {
    const run = runOf(state, share)
    const own = run && state.trained.byGeneration.get(run.generation)
    if (run === undefined || own === undefined) continue
    for (const { gradient, loss, sums } of gradients.filter(({ index }) => index === run.index)) {
      state.optimizer.accumulate(run, gradient)
      own.loss += loss
      own.sums = addSums(own.sums, sums)
    }
  }
}

/** Ends the step of a run whose weights were updated. */
const conclude = Effect.fnUntraced(function* (
  { runs, trained, optimizer, options }: TrainerState,
  run: RunSlot,
  figures: Readonly<Record<string, number>>,
) {
  const own = trained.byGeneration.get(run.generation)
  if (own === undefined) return
  const { progress, config } = run
  own.boundary = { ...progress }
  const metrics = { ...figures, "losses/loss": own.loss, ...meanMetrics(own.sums) }
  own.loss = 0
  own.sums = { tokens: 0 }
  yield* options.report({ run, step: progress.step, metrics })
  const { every } = config.checkpoint
  if (isAtEnd(run) || (every > 0 && progress.step % every === 0)) yield* saveRun(trained, optimizer, run, own)
  // Publishing the last weights lets the run end, so everything of its last step is written before that; see `apply`.
  if (runs.isMaster && !isAtEnd(run)) yield* options.publish(run)
})

/** Ends the step of each run that the optimiser updated. A run that fails is evicted. */
const concludeAll = Effect.fnUntraced(function* (state: TrainerState, outcomes: ReadonlyArray<StepOutcome>) {
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
    if (failure === undefined) continue
    // Its weights are those of no step, so they are neither made known nor saved.
    slot.readyToUpdate = false
    state.trained.byGeneration.delete(slot.generation)
    yield* state.runs.fail(slot.index, failure)
  }
})

/** Updates the runs whose step is complete with a turn. */
const apply = Effect.fnUntraced(function* (state: TrainerState, turn: Turn, gradients: ReadonlyArray<RunGradient>) {
  const { runs, optimizer, scheduler, options } = state
  accumulate(state, turn, gradients)
  const ready = runs.slots().filter(({ readyToUpdate }) => readyToUpdate)
  const outcomes = yield* optimizer.step
  scheduler.step()
  options.model.touch()
  yield* concludeAll(state, outcomes)
  const ended = runs.slots().filter((run) => run.readyToUpdate && isAtEnd(run))
  yield* options.afterTurn ?? Effect.void
  for (const run of runs.isMaster ? ended : [])
    yield* Effect.catch(options.publish(run), (error) => runs.fail(run.index, error))
  for (const run of ready) run.readyToUpdate = false
})

/** Saves a checkpoint of each run. A failure is only reported, so that the other runs are saved. */
const saveAll = ({ runs, trained, optimizer }: TrainerState) =>
  Effect.forEach(
    runs.slots(),
    (run) => {
      const own = trained.byGeneration.get(run.generation)
      if (own === undefined) return Effect.void
      return Effect.catch(saveRun(trained, optimizer, run, own), (error: BackendError | { readonly message: string }) =>
        Effect.logWarning(`${run.id}: its checkpoint cannot be saved: ${error.message}`),
      )
    },
    { discard: true },
  )
