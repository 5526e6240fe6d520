/**
 * Executes a multi-run trainer as one run: the trainer, the engine that generates with its fresh weights, and an orchestrator
 * for each of its runs, all in this process. The runs are folders `run_*` in the trainer's folder, where runs can be added or
 * removed while it works. The trainer ends when all runs have reached their last step.
 */
import { Clock, Duration, Effect, type FileSystem, Layer, type Path, type Scope } from "effect"
import type { Backend } from "../tensor/backend/Backend.ts"
import type { ConfigError, DecodeOptions, Plain } from "../base/config/Config.ts"
import type * as Lms from "../agents/lm/Lms.ts"
import * as Adapter from "../decoder/huggingFace/Adapter.ts"
import * as LmDirectory from "../decoder/huggingFace/LmDirectory.ts"
import { modelFiles } from "../base/formats/modelFiles.ts"
import { onDisk } from "../run/store/FileTree.ts"
import { CurrentRun } from "../run/CurrentRun.ts"
import { derivedName } from "../run/identifier.ts"
import type { Recorder } from "../run/record/Recorder.ts"
import { type RunEvent, validationOfTrainer } from "../run/record/RunEvent.ts"
import * as Run from "../run/Run.ts"
import { RunResult } from "../run/RunResult.ts"
import type { RunSpec } from "../run/RunSpec.ts"
import type { RunFiles } from "../run/store/RunFiles.ts"
import type { RunStore } from "../run/store/RunStore.ts"
import { meanOf } from "../base/statistics/resampling.ts"
import type { RunOptions } from "../run/RunOptions.ts"
import { type BaseModel, modelToSave } from "./baseModel.ts"
import { readEnding, resultOf } from "./ending.ts"
import { checkEngine, startEngine } from "./engine/startEngine.ts"
import * as Layout from "./Layout.ts"
import type { MultiRunConfig } from "./config/MultiRunConfig.ts"
import { refuseMisfit, warningsOfAdded } from "./config/readConfig.ts"
import { TrainerError } from "./TrainerError.ts"
import { type Playing, playingInside, playingOutside } from "./orchestrator/playing.ts"
import { isOver, refuseOtherModel, refuseUnreachable, writeRuns } from "./namedRuns.ts"
import { checkPlacement, idleCluster, openPlacement } from "./placement/PlacedOrchestrators.ts"
import { positionOf, progressIn, secondsBefore } from "./progress.ts"
import { rankParts } from "./ranks/rankParts.ts"
import { checkReference, referencesFor } from "./reference/startReferences.ts"
import { resumeLost } from "./ranks/resumeLost.ts"
import { checkRanks, startRanks } from "./ranks/startRanks.ts"
import { makeRunRecords } from "./records/RunRecords.ts"
import { makeTokenRate } from "./tokenRate.ts"
import { evictionMessage } from "./runs/eviction.ts"
import { Runs } from "./runs/Runs.ts"
import type { RunSlot } from "./runs/RunSlot.ts"
import type { Progress } from "./runs/TrainedRun.ts"
import type { TrainedModel } from "./trainer/TrainedModel.ts"
import { makeTrainer } from "./trainer/Trainer.ts"
import { Broadcasts } from "./weights/Broadcasts.ts"

/** A multi-run trainer whose config is checked and whose model is open. */
interface Prepared {
  readonly settings: MultiRunConfig
  readonly base: BaseModel
  /** The config with all defaults, which is saved as `config.yaml`. */
  readonly effective: Plain
  readonly population: Readonly<Record<string, string>>
  /** Called with what identifies the run, before its folder is made. */
  readonly onPlanned: RunOptions["onPlanned"]
  /** The source of the config, for error messages, and the folder that relative paths start from. */
  readonly from: DecodeOptions
  readonly baseDir: string
  /** Settings that are allowed, but probably a mistake. */
  readonly warnings: ReadonlyArray<string>
}

/** The progress of the trainer. The runs are saved in their own folders, where a resumed trainer finds them. */
interface State {
  /** The progress of each run, including those that have left. */
  readonly progress: Map<string, Readonly<Progress>>
  /** The ids of the runs that have reached their last step. */
  finished: ReadonlyArray<string>
  /** The reasons why runs were not trained to the end. */
  reasons: ReadonlyArray<string>
  /** The number of updates of all runs that earlier processes made. */
  readonly firstStep: number
}

export type MultiRunNeeds = RunStore | Recorder | Backend | Lms.LmNeeds | Scope.Scope

/** Trains all runs, and returns the result. */
export const execute = Effect.fnUntraced(function* (
  prepared: Prepared,
): Effect.fn.Return<RunResult, ConfigError | TrainerError | Run.RunError, MultiRunNeeds> {
  const { settings, onPlanned } = prepared
  yield* checkRanks(settings)
  yield* checkEngine(settings)
  yield* checkReference(settings)
  yield* checkPlacement(settings)
  const spec = specOf(prepared)
  if (onPlanned !== undefined) yield* onPlanned(spec.identity, spec.config)
  return yield* Run.execute({
    spec,
    startedAtMillis: yield* Clock.currentTimeMillis,
    open: Effect.fnUntraced(function* (
      files: RunFiles,
    ): Effect.fn.Return<
      Run.Opened<State, RunResult>,
      ConfigError | TrainerError | Run.RunError,
      FileSystem.FileSystem | Path.Path
    > {
      yield* refuseOtherModel(prepared, files)
      yield* refuseUnreachable(prepared, files)
      const warnings = yield* writeRuns(prepared, files)
      const progress = yield* progressIn(files)
      const firstStep = positionOf({ progress }).step
      const isEnded = yield* isOver(files)
      return {
        state: { progress, finished: [], reasons: [], firstStep },
        resumedFromStep: files.resumed ? firstStep : null,
        isOver: () => isEnded,
        logsUntil: firstStep,
        seconds: yield* secondsBefore(files, progress),
        warnings: [...prepared.warnings, ...warnings, ...(yield* idleCluster(settings))],
      }
    }),
    loop: (state: State) =>
      Effect.mapError(
        resumeLost(train(prepared, state), () => positionOf(state).step),
        TrainerError.from,
      ),
    position: positionOf,
    result: { schema: RunResult, of: resultOfAll, after: failIfIncomplete },
  })
})

const specOf = ({ settings, base, effective, population }: Prepared): RunSpec => {
  const names = Object.keys(settings.runs)
  const lengths = Object.values(settings.runs).map(({ maxSteps }) => Number(maxSteps ?? 0))
  const { layers, hiddenSize } = base.decoder
  return {
    kind: "multirun",
    identity: {
      name: settings.name,
      population: { environment: derivedName(names.join("+")), algorithm: "multirun", ...population },
      seed: settings.seed,
    },
    config: effective,
    description:
      settings.description ?? `a model of ${layers} layers of ${hiddenSize} units, trained by ${names.length} runs`,
    env: names.join("+"),
    algorithm: "multirun",
    devices: {},
    total: lengths.reduce((sum, steps) => sum + steps, 0),
    logLevel: settings.output.logLevel,
    quiet: false,
  }
}

/** Saves a model from scratch in the trainer's folder if adapters are trained, because adapters are useless without it. */
const baseInFolder = Effect.fnUntraced(function* ({ base, settings }: Prepared, files: RunFiles) {
  if (settings.model.type === "folder" || settings.trainer.lora === null) return base
  if (!(yield* files.exists(`${Layout.base}/${modelFiles.config}`)))
    yield* LmDirectory.save(yield* onDisk(files.directory), Layout.base, modelToSave(base))
  return { ...base, name: `${files.directory}/${Layout.base}` }
})

/** Builds the services of the trainer, and trains until all runs have ended. Saves all runs if it is interrupted. */
const train = Effect.fnUntraced(function* (given: Prepared, state: State) {
  const { files } = yield* CurrentRun
  const prepared = { ...given, base: yield* baseInFolder(given, files) }
  const { settings, base } = prepared
  const { broadcast, orchestrators } = settings
  const outputDirectory = files.directory
  const { baseDir } = prepared
  const { store, untilOneEnds } = yield* startRanks({ settings, baseDir, outputDirectory })
  const trainerEngine = orchestrators === "outside" ? undefined : yield* startEngine({ settings, base, baseDir })
  // Orchestrators in this process report new samples by `wake`, so their folders need not be polled often.
  const pollInterval = orchestrators === "outside" ? "20 millis" : "1 second"
  const { model, services } = rankParts({
    settings,
    base,
    outputDirectory,
    rank: 0,
    store,
    ...trainerEngine,
    pollInterval,
  })
  const ofMaster = Broadcasts.layer({
    keep: broadcast.keep,
    atOnce: trainerEngine === undefined,
    contents: (run) => contentsOf(model, base, run),
  }).pipe(Layer.provideMerge(services))
  const untilLost = Effect.raceFirst(untilOneEnds, trainerEngine?.untilLost ?? Effect.never)
  const deadlineSeconds = settings.trainer.rankDeadline
  const { play, failed } = yield* openPlacement({ outputDirectory, deadlineSeconds })
  const playing =
    trainerEngine === undefined ? playingOutside(prepared, play) : playingInside(prepared, model, trainerEngine)
  const untilOver = Effect.flatMap(playing, (parts) => work(prepared, state, model, parts))
  yield* Effect.raceAllFirst([Effect.provide(untilOver, ofMaster), untilLost, failed])
}, Effect.scoped)

const work = Effect.fnUntraced(function* (prepared: Prepared, state: State, model: TrainedModel, playing: Playing) {
  const { settings } = prepared
  const runs = yield* Runs
  const broadcasts = yield* Broadcasts
  const context = yield* Effect.context<Lms.LmNeeds>()
  const {
    recording,
    files: { directory },
  } = yield* CurrentRun
  const emit = (events: ReadonlyArray<RunEvent>) => recording.emit(events)
  const warn = (message: string) => emit([{ _tag: "Warning", message }])
  /** The scores of the last validation of each run. The trainer's own score is their mean, as in its result. */
  const scores = new Map<string, ReadonlyArray<number>>()
  const records = yield* makeRunRecords({
    settings,
    effective: prepared.effective,
    validated: ({ id }, { step, scores: all }) => {
      scores.set(id, all)
      return emit([{ _tag: "Note", message: `${id}: validation after ${step} steps: ${meanOf(all).toFixed(3)}` }])
    },
    failed: ({ id }, message) => warn(`${id}: ${message}`),
  })
  const tokens = Effect.map(playing.generatedTokens, (generated) => ({ trained: positionOf(state).tokens, generated }))
  const tokenRate = yield* makeTokenRate(yield* tokens)

  const startReferences = yield* referencesFor(prepared)
  const trainer = yield* makeTrainer({
    model,
    shape: settings.trainer,
    seed: settings.seed,
    ranks: settings.trainer.ranks,
    rankDeadline: Duration.seconds(settings.trainer.rankDeadline),
    publish: Effect.fnUntraced(function* (run) {
      yield* playing.publish(run)
      run.own.completed.reach(run.progress.step)
    }),
    records,
    ...(startReferences === undefined ? {} : { startReferences }),
    report: Effect.fnUntraced(function* ({ run, metrics }) {
      yield* broadcasts.settled(run)
      yield* records.updated(run, metrics)
      state.progress.set(run.id, { ...run.progress })
      const { step } = positionOf(state)
      const { waiting } = yield* runs.status
      const figures = {
        "trainer/runs": runs.slots().length,
        "trainer/waiting": waiting.length,
        ...(scores.size === 0 ? {} : { [validationOfTrainer]: meanOf([...scores.values()].flat()) }),
        ...(yield* tokenRate(yield* tokens)),
      }
      yield* emit([{ _tag: "UpdateApplied", step, update: step, metrics: figures }])
    }),
    afterTurn: (updated) => playing.afterTurn(updated, broadcasts, runs),
  })
  yield* runs.register({
    unlocked: records.check,
    validation: (run) => refuseMisfit(settings, run),
    discovered: Effect.fnUntraced(function* (run) {
      const { id, config } = run
      const found = `${id}: found, with seed ${config.seed}; it is trained as soon as an index is free`
      yield* emit([{ _tag: "Note", message: found }])
      const warnings = yield* Effect.provideContext(warningsOfAdded(prepared, run), context)
      yield* Effect.forEach(warnings, warn, { discard: true })
    }),
    invalid: ({ message }) => warn(message),
    evicted: (run) => warn(evictionMessage(directory, run)),
    vanished: ({ id }) => warn(`${id}: its folder was deleted or replaced, so it is not trained any more`),
  })
  yield* playing.register((run) =>
    Effect.andThen(run.own.completed.await(run.config.maxSteps ?? Infinity), records.conclude(run)),
  )
  const training = Effect.forever(trainer.turn)
  const { finished, reasons } = yield* Effect.raceFirst(training, untilNoneIsLeft(runs, directory)).pipe(
    Effect.onError(() => trainer.saveAll),
  )
  state.finished = finished
  state.reasons = reasons
}, Effect.scoped)

/**
 * Waits until all runs have ended. Returns the ids of the finished runs, and the reasons why others were not trained to the
 * end. Fails if no run was finished.
 */
const untilNoneIsLeft = Effect.fnUntraced(function* (runs: Runs["Service"], directory: string) {
  while (true) {
    yield* Effect.sleep("50 millis")
    const { evicted, invalid, finished, isSettled } = yield* runs.status
    if (!isSettled || evicted.length + invalid.length + finished.length === 0) continue
    const reasons = [...evicted.map((run) => evictionMessage(directory, run)), ...invalid.map(({ message }) => message)]
    if (finished.length === 0)
      return yield* new TrainerError({ message: `no run is left to train: ${reasons.join("; ")}` })
    return { finished, reasons }
  }
})

/** Returns the files of a run's weights: an adapter as peft writes it, or a model's folder. */
const contentsOf = (model: TrainedModel, base: BaseModel, { index }: RunSlot) =>
  Effect.gen(function* () {
    const { name, decoder } = base
    const numbers = model.stateDictOf(index)
    const options = model.adapterOf(index)
    if (options === undefined || model.lora === null) return yield* LmDirectory.filesOf(modelToSave(base, numbers))
    const config = { ...options, rankStabilised: false, targets: model.lora.shape.targets, base: name }
    return yield* Adapter.filesOf(Adapter.make(config, numbers), decoder)
  })

/** Fails if some runs were not trained to the end, after the results of the others are written. */
const failIfIncomplete = ({ directory }: RunFiles, { reasons }: State): Effect.Effect<void, TrainerError> =>
  reasons.length === 0
    ? Effect.void
    : Effect.fail(new TrainerError({ message: `${reasons.join("; ")}; the other runs are finished, in ${directory}` }))

/** Makes the result of all finished runs from their folders. */
const resultOfAll = Effect.fnUntraced(function* (state: State) {
  const { files, ...run } = yield* CurrentRun
  const [endings, damaged] = yield* Effect.partition(state.finished, (id) =>
    readEnding({ id, directory: `${files.directory}/${id}` }),
  )
  state.reasons = [...state.reasons, ...damaged.map(({ message }) => message)]
  if (endings.length === 0) return yield* new TrainerError({ message: state.reasons.join("; ") })
  for (const { id, progress } of endings) state.progress.set(id, progress)
  const { seconds, secondsOfWork } = yield* Effect.all({ seconds: run.seconds, secondsOfWork: run.secondsOfWork })
  return yield* resultOf(endings, { directory: files.directory, firstStep: state.firstStep, seconds, secondsOfWork })
})
