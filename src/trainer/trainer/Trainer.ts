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
import { attempt } from "../../base/config/attempt.ts"
import { meanMetrics, type MetricSums, type TokenObjective } from "../../rl/losses/Losses.ts"
import * as Decoder from "../../decoder/networks/Decoder.ts"
import { stream } from "../../base/rng/Rng.ts"
import { DataLoader, type Turn, type TurnError, type UpcomingTurn } from "../batches/DataLoader.ts"
import { makeMicroBatch } from "../batches/MicroBatch.ts"
import { removeAfter, removeUnreachable } from "../batches/rolloutFiles.ts"
import { openRunFolder, type RunFolder } from "../runs/guardedFolder.ts"
import * as Layout from "../Layout.ts"
import { retried } from "../machine.ts"
import * as MultiLoRAOptimizer from "../optimisers/MultiLoRAOptimizer.ts"
import * as MultiLoRAScheduler from "../optimisers/MultiLoRAScheduler.ts"
import { objectiveAt } from "../config/OrchestratorConfig.ts"
import { Runs } from "../runs/Runs.ts"
import { inCheckpoint } from "../Layout.ts"
import type { References } from "../reference/references.ts"
import type { RunRecords } from "../records/RunRecords.ts"
import { type DiscoveredRun, isAtEnd, type Progress, type RunSlot } from "../runs/RunSlot.ts"
import { removeOlder } from "../runs/stepFolders.ts"
import { Store, type StoreError } from "../store/Store.ts"
import { goBackTo, loadCheckpoint, saveCheckpoint, settleCheckpoint } from "../weights/checkpoints.ts"
import { checkpointParts, type RunState, runStateIn } from "./checkpointParts.ts"
import { decodeGradients, encodeGradients } from "./gradientMessage.ts"
import { compileGradients, type GradientProgram, type GradientShape } from "./gradientProgram.ts"
import { addSums, gradientsOf, type RunGradient } from "./runGradients.ts"
import type { TrainedModel } from "./TrainedModel.ts"

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

/** The trainer's own data about a run that is trained. */
interface Trained {
  readonly folder: RunFolder
  /** The progress at the last complete step, which is what a checkpoint holds. */
  boundary: Progress
  /** The step of the newest checkpoint; −1 if there is none. */
  saved: number
  /** The step that the run has gone back to, until it saves a checkpoint; null if it began at its newest one. */
  backAt: number | null
  /** The moments of the optimiser in the checkpoint that the run began with. */
  moments: RunState["moments"] | undefined
  /** The checkpoint's description of the recording. */
  readonly recorded: Uint8Array | undefined
  loss: number
  sums: MetricSums<number>
}

/** Makes the trainer of this rank, and registers its hooks with `Runs`, until the scope closes. */
export const makeTrainer = Effect.fnUntraced(function* ({
  model,
  shape,
  seed,
  ranks = 1,
  rankDeadline = "30 minutes",
  publish,
  report,
  records,
  startReferences,
  afterTurn = Effect.void,
}: TrainerOptions): Effect.fn.Return<
  Trainer,
  never,
  Backend | Runs | Store | DataLoader | FileSystem.FileSystem | Path.Path | Scope.Scope
> {
  const backend = yield* Backend
  const runs = yield* Runs
  const store = yield* Store
  const loader = yield* DataLoader
  const scope = yield* Scope.Scope
  const files = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const { isMaster, maxRuns, rank } = runs
  /** The trained runs by generation. */
  const trained = new Map<number, Trained>()

  /**
   * Opens the folder of a run. Only the master completes what a killed process left unfinished in it, and does so before
   * any rank loads a checkpoint: otherwise ranks could find different ones.
   */
  const openFolder = Effect.fnUntraced(function* (run: DiscoveredRun) {
    const folder = yield* Effect.provideContext(openRunFolder(run), files)
    return isMaster ? folder : { ...folder, tree: { ...folder.tree, repair: () => Effect.void } }
  })
  const repair = Effect.fnUntraced(function* (run: DiscoveredRun) {
    const { tree, guarded } = yield* openFolder(run)
    yield* guarded(tree.repair(Layout.checkpoints))
  })
  const begin = Effect.fnUntraced(function* (run: RunSlot) {
    const { index, id, config, progress, generation } = run
    const folder = yield* openFolder(run)
    const checkpoint = yield* loadCheckpoint(folder, config.resumeStep)
    const state = checkpoint === undefined ? undefined : yield* runStateIn(checkpoint.parts)
    if (isMaster && checkpoint !== undefined && config.resumeStep === -1)
      yield* settleCheckpoint(folder, { step: checkpoint.progress.step, keep: config.checkpoint.keep })
    Object.assign(progress, checkpoint?.progress ?? { step: 0, totalTokens: 0, totalSamples: 0 })
    yield* attempt(() => {
      if (state === undefined) model.begin(index, config.lora, stream(seed, "adapter", id))
      else model.load(index, config.lora, state.weights)
    }, Decoder.AdapterError)
    const backAt = config.resumeStep === -1 ? null : progress.step
    // The weights of a run that went back, perhaps with other settings, are not those that made the later samples.
    if (isMaster) yield* (backAt === null ? removeUnreachable : removeAfter)(folder, progress.step)
    const saved = checkpoint === undefined ? -1 : progress.step
    const fresh = { recorded: checkpoint?.parts[inCheckpoint.recorded], loss: 0, sums: { tokens: 0 } }
    trained.set(generation, { folder, boundary: { ...progress }, saved, backAt, moments: state?.moments, ...fresh })
  })
  const end = ({ index, generation }: RunSlot): Effect.Effect<void> =>
    Effect.sync(() => {
      trained.delete(generation)
      model.end(index)
    })
  yield* runs.register({ discovered: repair, creation: begin, deletion: end })
  if (isMaster && records !== undefined)
    yield* runs.register({
      creation: (run) => records.begin(run, trained.get(run.generation)?.recorded),
      deletion: records.end,
    })
  const optimizer = yield* MultiLoRAOptimizer.make({
    runs,
    parametersOf: ({ index }) => model.namedParametersOf(index),
  })
  const scheduler = MultiLoRAScheduler.make(optimizer)
  yield* runs.register({
    postCreation: Effect.fnUntraced(function* (run) {
      const own = trained.get(run.generation)
      if (own?.moments !== undefined) yield* optimizer.loadStateDict(run, own.moments)
      if (own !== undefined) own.moments = undefined
      if (isMaster) yield* publish(run)
    }),
  })

  const programs = new Map<string, GradientProgram>()
  /** The references in other threads, by their devices. */
  const references = new Map<string, References>()
  const keyOf = (objective: TokenObjective): string => JSON.stringify(objective)
  /** Compiles the programs of some objectives, which then share the weights of the model. */
  const compile = Effect.fnUntraced(function* (objectives: ReadonlyArray<TokenObjective>) {
    const adapters = model.lora === null ? null : { shape: model.lora.shape, maxRuns }
    const compiled = yield* compileGradients({ ...shape, config: model.config, adapters }, objectives).pipe(
      Effect.provideService(Backend, backend),
      Effect.provideService(Scope.Scope, scope),
    )
    for (const [at, program] of compiled.entries()) {
      programs.set(keyOf(objectives[at]), program)
      if (isMaster) yield* Effect.logInfo(`the program ${program.name} runs on ${program.device}`)
      const device = program.referenceDevice
      if (device === undefined || startReferences === undefined || references.has(device)) continue
      references.set(device, yield* Effect.provideService(startReferences(device), Scope.Scope, scope))
    }
    return compiled[0]
  })
  /** Returns the program of an objective. When it is compiled, those that the runs will need later are compiled with it. */
  const programOf = Effect.fnUntraced(function* (objective: TokenObjective) {
    const known = programs.get(keyOf(objective))
    if (known !== undefined) return known
    const all = [
      objective,
      ...runs.slots().flatMap(({ config, progress }) => [objectiveAt(config, progress.step), config.objective]),
    ]
    const missing = [...new Map(all.map((one) => [keyOf(one), one])).values()].filter(
      (one) => !programs.has(keyOf(one)),
    )
    // If one of them cannot be compiled, that is a matter of the runs that need it.
    return yield* model.lora === null
      ? compile([objective])
      : Effect.catch(compile(missing), () => compile([objective]))
  })

  /** Returns the program for a step of a run, with the current weights. */
  const readyProgram = ({ config }: RunSlot, step: number) =>
    Effect.tap(programOf(objectiveAt(config, step)), model.writeTo)

  const referencesOf = ({ referenceDevice }: GradientProgram) =>
    referenceDevice === undefined ? undefined : references.get(referenceDevice)

  /** Lets other threads compute what a turn needs of the reference model, if one program computes all of the turn. */
  const prepare = Effect.fnUntraced(function* ({ microBatch, shares }: UpcomingTurn) {
    if (references.size === 0) return
    const all = new Set(
      shares.map(({ index, step }) => {
        const run = runs.slot(index)
        return run === undefined ? undefined : programs.get(keyOf(objectiveAt(run.config, step)))
      }),
    )
    const [program] = all
    if (program !== undefined && all.size === 1) yield* referencesOf(program)?.prepare(microBatch) ?? Effect.void
  })

  const scratch = makeMicroBatch({ ...shape, maxRuns })
  const compute = Effect.fnUntraced(function* ({ microBatch, shares }: Turn) {
    const byRun = new Map<number, GradientProgram>()
    for (const { index, step } of shares) {
      const run = runs.slot(index)
      if (run === undefined) continue
      const program = yield* Effect.result(readyProgram(run, step))
      if (Result.isSuccess(program)) byRun.set(index, program.success)
      else {
        run.readyToUpdate = false
        yield* runs.evict(index, `its objective cannot be compiled: ${program.failure.message}`)
      }
    }
    const [anyProgram] = byRun.values()
    if (anyProgram === undefined) return []
    const gradients = yield* gradientsOf((run) => byRun.get(run) ?? anyProgram, microBatch, scratch, referencesOf)
    return gradients.filter(({ index }) => byRun.has(index))
  })

  /** Returns the gradients of all ranks, in the order of the ranks. */
  const gather = Effect.fnUntraced(function* (turn: Turn, own: ReadonlyArray<RunGradient>) {
    if (ranks === 1) return own
    const name = (number: number): string => `gradients/${number}`
    const meeting = { name: name(turn.number), rank, ranks, deadline: rankDeadline }
    const all = yield* store.gather(meeting, encodeGradients(own))
    // All ranks are in this turn, so they have read those of the turn before.
    if (isMaster && turn.number > 0) yield* store.forget({ name: name(turn.number - 1), ranks })
    return all.flatMap((bytes, other) => (other === rank ? own : decodeGradients(bytes)))
  })

  /** Returns the run of a share, unless it left its index while the turn was computed. */
  const runOf = ({ index, id }: Turn["shares"][number]): RunSlot | undefined => {
    const run = runs.slot(index)
    return run?.id === id ? run : undefined
  }

  const add = (turn: Turn, gradients: ReadonlyArray<RunGradient>): void => {
    for (const share of turn.shares) {
      const run = runOf(share)
      const own = run && trained.get(run.generation)
      if (run === undefined || own === undefined) continue
      for (const { gradient, loss, sums } of gradients.filter(({ index }) => index === run.index)) {
        optimizer.accumulate(run, gradient)
        own.loss += loss
        own.sums = addSums(own.sums, sums)
      }
    }
  }

  const save = Effect.fnUntraced(function* (run: RunSlot, own: Trained) {
    if (!isMaster || own.saved === own.boundary.step) return
    const state = { weights: model.stateDictOf(run.index), moments: yield* optimizer.stateDictOf(run) }
    const moment = yield* records?.moment(run) ?? Effect.undefined
    const recorded: Record<string, Uint8Array> = moment === undefined ? {} : { [inCheckpoint.recorded]: moment }
    if (own.backAt !== null) yield* goBackTo(own.folder, own.backAt)
    own.backAt = null
    yield* retried(
      `${run.id}: its checkpoint`,
      saveCheckpoint(own.folder, {
        progress: own.boundary,
        parts: { ...checkpointParts(state), ...recorded },
        keep: run.config.checkpoint.keep,
      }),
    )
    own.saved = own.boundary.step
    yield* removeTrained(run, own)
  })

  /** Removes samples that no new checkpoint needs. The checkpoint is complete, so a failure is only reported. */
  const removeTrained = ({ id, config: { rollouts } }: RunSlot, { folder, saved }: Trained) =>
    rollouts.keep === null
      ? Effect.void
      : folder
          .guarded(removeOlder(folder.tree, Layout.rollouts, saved - rollouts.keep))
          .pipe(Effect.catch(({ message }) => Effect.logWarning(`${id}: old samples are kept: ${message}`)))

  /** Ends the step of a run whose weights were updated. */
  const conclude = Effect.fnUntraced(function* (run: RunSlot, figures: Readonly<Record<string, number>>) {
    const own = trained.get(run.generation)
    if (own === undefined) return
    const { progress, config } = run
    own.boundary = { ...progress }
    const metrics = { ...figures, "losses/loss": own.loss, ...meanMetrics(own.sums) }
    own.loss = 0
    own.sums = { tokens: 0 }
    yield* report({ run, step: progress.step, metrics })
    const { every } = config.checkpoint
    if (isAtEnd(run) || (every > 0 && progress.step % every === 0)) yield* save(run, own)
    // Publishing the last weights lets the run end, so everything of its last step is written before that; see `apply`.
    if (isMaster && !isAtEnd(run)) yield* publish(run)
  })

  const turn = Effect.gen(function* () {
    const next = yield* loader.next
    yield* prepare(next)
    const upcoming = references.size === 0 ? undefined : loader.upcoming()
    if (upcoming !== undefined) yield* prepare(upcoming)
    const gradients = yield* gather(next, yield* compute(next))
    // A checkpoint after an interruption must find weights and progress of the same step.
    yield* Effect.uninterruptible(apply(next, gradients))
  })

  const apply = Effect.fnUntraced(function* (turn: Turn, gradients: ReadonlyArray<RunGradient>) {
    add(turn, gradients)
    const ready = runs.slots().filter(({ readyToUpdate }) => readyToUpdate)
    const outcomes = yield* optimizer.step
    scheduler.step()
    model.touch()
    for (const outcome of outcomes) {
      const { slot } = outcome
      const failure =
        outcome._tag === "Failed"
          ? outcome.error
          : yield* Effect.match(
              conclude(slot, {
                "charts/learning_rate": outcome.learningRate,
                "losses/gradient_norm": outcome.gradientNorm,
              }),
              { onSuccess: () => undefined, onFailure: (error) => error },
            )
      if (failure === undefined) continue
      // Its weights are those of no step, so they are neither made known nor saved.
      slot.readyToUpdate = false
      trained.delete(slot.generation)
      yield* runs.fail(slot.index, failure)
    }
    const ended = runs.slots().filter((run) => run.readyToUpdate && isAtEnd(run))
    yield* afterTurn
    for (const run of isMaster ? ended : []) yield* Effect.catch(publish(run), (error) => runs.fail(run.index, error))
    for (const run of ready) run.readyToUpdate = false
  })

  const saveAll = Effect.suspend(() =>
    Effect.forEach(
      runs.slots(),
      (run) => {
        const own = trained.get(run.generation)
        if (own === undefined) return Effect.void
        return Effect.catch(save(run, own), (error: BackendError | { readonly message: string }) =>
          Effect.logWarning(`${run.id}: its checkpoint cannot be saved: ${error.message}`),
        )
      },
      { discard: true },
    ),
  )

  return { turn, saveAll }
})
