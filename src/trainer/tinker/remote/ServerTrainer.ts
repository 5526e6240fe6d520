/**
 * The training loop of a trainer whose models are on a server of Tinker's protocol. The server computes log-probabilities and
 * gradients, and makes the optimiser's steps; tasks, advantages, objectives, metrics and schedules are computed here.
 *
 * In each turn, the samples of a micro-batch are sent twice: `forward` returns log-probabilities, from which the objective and its
 * slopes follow, and `forward_backward` computes the gradient from the slopes. A supervised step needs only the second.
 */
import { Effect, type FileSystem, type Path, Result, Scope } from "effect"
import { Backend } from "../../../tensor/backend/Backend.ts"
import type { TokenObjective } from "../../../rl/losses/Losses.ts"
import { DataLoader, type Turn } from "../../batches/DataLoader.ts"
import type { MicroBatch } from "../../batches/MicroBatch.ts"
import { countTurn } from "../../batches/Turn.ts"
import { learningRateOf, objectiveAt } from "../../config/OrchestratorConfig.ts"
import { Runs } from "../../runs/Runs.ts"
import type { RunSlot } from "../../runs/RunSlot.ts"
import { conclude, publishLast, registerRuns, saveAll } from "../../trainer/concluding.ts"
import { addSums } from "../../trainer/runGradients.ts"
import type { Trainer } from "../../trainer/Trainer.ts"
import type { TrainedRuns } from "../../trainer/trainedRuns.ts"
import type { TrainerEvents } from "../../work.ts"
import type { TinkerError } from "../client/TinkerError.ts"
import { columnOf, type Example, examplesOf, scattered } from "./examples.ts"
import { compileObjective, type ObjectiveProgram } from "./objectiveProgram.ts"
import { fromClient, type ServerRuns } from "./ServerRuns.ts"

interface ServerTrainerOptions extends TrainerEvents {
  readonly serverRuns: ServerRuns
  /** The size of micro-batches, as the `DataLoader` packs them. */
  readonly shape: { readonly rows: number; readonly width: number }
}

/** The state of the trainer. */
interface TrainerState {
  readonly options: ServerTrainerOptions
  readonly runs: Runs["Service"]
  readonly loader: DataLoader["Service"]
  readonly trained: TrainedRuns
  readonly backend: Backend["Service"]
  readonly scope: Scope.Scope
  /** The compiled objectives by their settings. */
  readonly programs: Map<string, ObjectiveProgram>
}

type Share = Turn["shares"][number]

/** Makes the trainer. Its hooks stay registered with `Runs` until the scope closes. */
export const makeServerTrainer = Effect.fnUntraced(function* (
  options: ServerTrainerOptions,
): Effect.fn.Return<Trainer, never, Backend | Runs | DataLoader | FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const { serverRuns, publish, records } = options
  const runs = yield* Runs
  const files = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const trained: TrainedRuns = { isMaster: true, weights: serverRuns.weights, records, files }
  yield* registerRuns(runs, trained)
  yield* runs.register({ postCreation: publish })
  const state: TrainerState = {
    options,
    runs,
    loader: yield* DataLoader,
    trained,
    backend: yield* Backend,
    scope: yield* Scope.Scope,
    programs: new Map(),
  }
  return { turn: trainTurn(state), saveAll: saveAll(runs, trained) }
})

/** Waits for the next turn, and trains on it. */
const trainTurn = Effect.fnUntraced(function* (state: TrainerState) {
  const turn = yield* state.loader.next
  const done = yield* Effect.filter(turn.shares, (share) => computeOrFail(state, share, turn.microBatch))
  // Uninterruptible: a checkpoint must not hold weights and progress of different steps.
  yield* Effect.uninterruptible(apply(state, done))
})

/** Returns the program of an objective. */
const programOf = Effect.fnUntraced(function* (
  { programs, options: { shape }, backend, scope }: TrainerState,
  objective: TokenObjective,
) {
  const key = JSON.stringify(objective)
  const known = programs.get(key)
  if (known !== undefined) return known
  const program = yield* compileObjective(objective, shape).pipe(
    Effect.provideService(Backend, backend),
    Effect.provideService(Scope.Scope, scope),
  )
  programs.set(key, program)
  return program
})

/** Computes a run's gradient, which the server adds up. If that fails, the run is evicted, and false is returned. */
const computeOrFail = Effect.fnUntraced(function* (state: TrainerState, share: Share, microBatch: MicroBatch) {
  const run = state.runs.slot(share.index)
  if (run?.id !== share.id || run.own.training === undefined) return false
  const result = yield* Effect.result(compute(state, run, share.step, microBatch))
  if (Result.isSuccess(result)) return true
  // The server may have added a part of the gradient, so this step cannot be completed.
  run.own.training = undefined
  yield* state.runs.fail(run.index, result.failure)
  return false
})

const asTrainerError = (run: RunSlot) => (error: TinkerError) => fromClient(run.id, error)

/** Makes the examples of a request: `weights` has the number of each token of the micro-batch. */
const withWeights = (examples: ReadonlyArray<Example>, weights: ArrayLike<number>) =>
  examples.map((example) => ({ ...example, columns: { weights: columnOf(example, weights) } }))

const loss = "cross_entropy"

const compute = Effect.fnUntraced(function* (state: TrainerState, run: RunSlot, step: number, microBatch: MicroBatch) {
  const { training } = run.own
  const examples = examplesOf(microBatch)
  if (examples.length === 0 || training === undefined) return
  const model = yield* state.options.serverRuns.modelOf(run)
  const objective = objectiveAt(run.config, step)
  const program = yield* programOf(state, objective)
  const size = microBatch.tokens.length
  const request = (kind: "forward" | "forwardBackward", weights: ArrayLike<number>) =>
    Effect.mapBoth(model[kind]({ data: withWeights(examples, weights), loss }), {
      onFailure: asTrainerError(run),
      onSuccess: ({ logProbabilities }) => scattered(examples, logProbabilities, size),
    })
  const isSupervised = objective.type === "sft"
  const first = yield* request(isSupervised ? "forwardBackward" : "forward", microBatch.weights)
  const values = yield* program.run(microBatch, first)
  if (!isSupervised) {
    // The loss of the request is −Σ weight · log π, so these weights give it the slopes of the objective.
    yield* request(
      "forwardBackward",
      Float32Array.from(values.slopes, (slope) => -slope),
    )
  }
  training.loss += values.loss
  training.sums = addSums(training.sums, values.sums)
})

/** Updates a run, and returns the figures of the update. */
const update = Effect.fnUntraced(function* ({ options: { serverRuns } }: TrainerState, run: RunSlot) {
  const { config, progress } = run
  const { betas, epsilon, weightDecay, maxNorm } = config.optimiser
  const learningRate = learningRateOf(config)(progress.step - 1)
  const model = yield* serverRuns.modelOf(run)
  const adam = { learningRate, beta1: betas[0], beta2: betas[1], epsilon, weightDecay, maxNorm }
  const metrics = yield* Effect.mapError(model.optimStep(adam), asTrainerError(run))
  const norm = metrics["grad_norm:mean"]
  return { "charts/learning_rate": learningRate, ...(norm === undefined ? {} : { "losses/gradient_norm": norm }) }
})

/** Counts a turn, updates the runs whose step is complete, and publishes their weights. */
const apply = Effect.fnUntraced(function* (state: TrainerState, shares: ReadonlyArray<Share>) {
  const { runs, options, trained } = state
  const ready = countTurn(runs.slot, { shares })
  const updated = yield* Effect.filter(
    ready,
    Effect.fnUntraced(function* (run) {
      const concluding = Effect.flatMap(update(state, run), (figures) =>
        conclude({ ...options, isMaster: true, trained }, run, figures),
      )
      const result = yield* Effect.result(concluding)
      if (Result.isSuccess(result)) return true
      // The weights may not belong to any step, so they must not be published or saved.
      run.own.training = undefined
      yield* runs.fail(run.index, result.failure)
      return false
    }),
  )
  yield* options.afterTurn(updated)
  yield* publishLast(runs, updated, options.publish)
})
