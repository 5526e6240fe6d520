/**
 * Executes a multi-run trainer as one run: the trainer, the engine that generates with its fresh weights, and an orchestrator
 * for each of its runs, all in this process. The runs are folders `run_*` in the trainer's folder, where runs can be added or
 * removed while it works. The trainer ends when all runs have reached their last step.
 */
import { Clock, Duration, Effect, type FileSystem, Layer, type Path, type Scope } from "effect"
import type { Backend } from "../tensor/backend/Backend.ts"
import type { ConfigError } from "../base/config/Config.ts"
import type * as Lms from "../agents/lm/Lms.ts"
import * as Adapter from "../decoder/huggingFace/Adapter.ts"
import * as LmDirectory from "../decoder/huggingFace/LmDirectory.ts"
import { modelFiles } from "../base/formats/modelFiles.ts"
import { onDisk } from "../run/store/FileTree.ts"
import { CurrentRun } from "../run/CurrentRun.ts"
import { derivedName } from "../run/identifier.ts"
import type { Recorder } from "../run/record/Recorder.ts"
import * as Run from "../run/Run.ts"
import { RunResult } from "../run/RunResult.ts"
import type { RunSpec } from "../run/RunSpec.ts"
import type { RunFiles } from "../run/store/RunFiles.ts"
import type { RunStore } from "../run/store/RunStore.ts"
import { type BaseModel, modelToSave } from "./baseModel.ts"
import { replayedExperts } from "./batches/routerReplay.ts"
import { readEnding, resultOf } from "./ending.ts"
import { checkEngine, startEngine } from "./engine/startEngine.ts"
import * as Layout from "./Layout.ts"
import { TrainerError } from "./TrainerError.ts"
import { playingInside, playingOutside } from "./orchestrator/playing.ts"
import { isOver, refuseOtherModel, refuseUnreachable, writeRuns } from "./namedRuns.ts"
import { checkPlacement, idleCluster, openPlacement } from "./placement/PlacedOrchestrators.ts"
import { positionOf, progressIn, secondsBefore } from "./progress.ts"
import { rankParts } from "./ranks/rankParts.ts"
import { checkReference, referencesFor } from "./reference/startReferences.ts"
import { resumeLost } from "./ranks/resumeLost.ts"
import { checkRanks, startRanks } from "./ranks/startRanks.ts"
import type { RunSlot } from "./runs/RunSlot.ts"
import type { TrainedModel } from "./trainer/TrainedModel.ts"
import { trainOnServer } from "./tinker/remote/trainOnServer.ts"
import { makeTrainer } from "./trainer/Trainer.ts"
import { type Prepared, type State, type TrainerEvents, work } from "./work.ts"
import { Broadcasts } from "./weights/Broadcasts.ts"

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
        resumeLost(trainingOf(prepared)(prepared, state), () => positionOf(state).step),
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

/** Returns the function that trains where the config says. */
const trainingOf = ({ settings }: Prepared) => (settings.trainer.type === "tinker" ? trainOnServer : train)

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
  const startReferences = yield* referencesFor(prepared)
  const trainerOf = (events: TrainerEvents) =>
    makeTrainer({
      ...events,
      model,
      shape: { ...settings.trainer, replayed: replayedExperts(settings.trainer, base.decoder) },
      seed: settings.seed,
      ranks: settings.trainer.ranks,
      rankDeadline: Duration.seconds(settings.trainer.rankDeadline),
      ...(startReferences === undefined ? {} : { startReferences }),
    })
  const untilOver = Effect.flatMap(playing, (parts) => work(prepared, state, { playing: parts, trainerOf }))
  yield* Effect.raceAllFirst([Effect.provide(untilOver, ofMaster), untilLost, failed])
}, Effect.scoped)

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
