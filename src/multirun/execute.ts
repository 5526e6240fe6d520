/**
 * Executes a multi-run trainer as one run: the trainer, the engine that generates with its fresh weights, and an
 * orchestrator for each of its runs, all in this process. The runs are folders `run_*` in the run's own folder, where
 * others can be added or removed while it works. It ends when all runs have reached their last step.
 */
import { Clock, Effect, type FileSystem, Layer, type Path, type Scope } from "effect"
import { stringify } from "yaml"
import type { Backend } from "../backend/Backend.ts"
import { type DecodeOptions, type Plain, toSnakeCase } from "../config/Config.ts"
import { Engine, type EngineService } from "../inference/Engine.ts"
import type { NamedArray } from "../graph/Parameters.ts"
import type * as Lms from "../lm/Lms.ts"
import * as Adapter from "../model/huggingFace/Adapter.ts"
import * as LmDirectory from "../model/huggingFace/LmDirectory.ts"
import { modelFiles } from "../formats/modelFiles.ts"
import { onDisk } from "../run/store/FileTree.ts"
import { CurrentRun } from "../run/CurrentRun.ts"
import { digestOfArrays } from "../run/digest.ts"
import { type Evaluation, evaluationOf, summaryOf } from "../run/evaluation.ts"
import { derivedName } from "../run/identifier.ts"
import type { Recorder } from "../run/record/Recorder.ts"
import type { RunEvent } from "../run/record/RunEvent.ts"
import * as Run from "../run/Run.ts"
import { RunResult } from "../run/RunResult.ts"
import type { RunSpec } from "../run/RunSpec.ts"
import type { RunFiles } from "../run/store/RunFiles.ts"
import type { RunStore } from "../run/store/RunStore.ts"
import { deviationOf, meanOf } from "../statistics/resampling.ts"
import type { RunOptions } from "../train/RunOptions.ts"
import { type BaseModel, modelToSave } from "./baseModel.ts"
import { readEnding, writeValidation } from "./ending.ts"
import * as Layout from "./Layout.ts"
import type { MultiRunConfig } from "./MultiRunConfig.ts"
import { MultiRunError } from "./MultiRunError.ts"
import type { OrchestratorEvent } from "./orchestrator/Orchestrator.ts"
import { registerOrchestrators } from "./orchestrator/orchestrators.ts"
import { makePublished } from "./published.ts"
import { rankDeadline, rankParts } from "./ranks/rankParts.ts"
import { resumeLost } from "./ranks/resumeLost.ts"
import { checkRanks, startRanks } from "./ranks/startRanks.ts"
import { startingProgress } from "./resume.ts"
import { makeRunFolders } from "./runFolder.ts"
import { Runs } from "./Runs.ts"
import type { Progress, RunSlot } from "./RunSlot.ts"
import type { TrainedModel } from "./trainer/TrainedModel.ts"
import { makeTrainer } from "./trainer/Trainer.ts"
import { Broadcasts } from "./weights/Broadcasts.ts"

/** A multi-run trainer that is ready to start. */
export interface Prepared {
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
}

/** The progress of the trainer. The runs save themselves, in their own folders, where a resumed trainer finds them. */
interface State {
  /** How far each run is, also those that have left. */
  readonly progress: Map<string, Readonly<Progress>>
  /** The ids of the runs that have reached their last step. */
  finished: ReadonlyArray<string>
}

export type MultiRunNeeds = RunStore | Recorder | Backend | Lms.Needs | Scope.Scope

/** Trains all runs, and returns the result. */
export const execute = Effect.fnUntraced(function* (
  prepared: Prepared,
): Effect.fn.Return<RunResult, MultiRunError | Run.RunError, MultiRunNeeds> {
  const { settings, onPlanned } = prepared
  yield* checkRanks(settings)
  const spec = specOf(prepared)
  if (onPlanned !== undefined) yield* onPlanned(spec.identity, spec.config)
  return yield* Run.execute({
    spec,
    startedAtMillis: yield* Clock.currentTimeMillis,
    open: Effect.fnUntraced(function* (
      files: RunFiles,
    ): Effect.fn.Return<Run.Opened<State, RunResult>, MultiRunError | Run.RunError, FileSystem.FileSystem | Path.Path> {
      yield* writeRuns(settings, files)
      const state: State = { progress: yield* progressIn(files), finished: [] }
      return { state, resumedFromStep: files.resumed ? positionOf(state).step : null, isOver: () => true }
    }),
    loop: (state: State) =>
      Effect.mapError(
        resumeLost(train(prepared, state), () => positionOf(state).step),
        MultiRunError.from,
      ),
    position: positionOf,
    result: { schema: RunResult, of: resultOf },
  })
})

const folderOf = (name: string): string => `run_${name}`

/** Returns how far the runs of a resumed trainer are. */
const progressIn = Effect.fnUntraced(function* (files: RunFiles) {
  const all = new Map<string, Progress>()
  if (!files.resumed) return all
  const folders = yield* makeRunFolders
  for (const id of yield* Effect.mapError(folders.list(files.directory), MultiRunError.from)) {
    const progress = startingProgress(folders, folders.at(files.directory, id), { resumeStep: -1 })
    // `Runs` tells why a run cannot be resumed.
    yield* Effect.match(progress, { onSuccess: (found) => void all.set(id, found), onFailure: () => undefined })
  }
  return all
})

/** Returns the number of updates and of samples of all runs together. */
const positionOf = ({ progress }: State): { readonly step: number; readonly episodes: number } => {
  const all = [...progress.values()]
  return {
    step: all.reduce((sum, { step }) => sum + step, 0),
    episodes: all.reduce((sum, { totalSamples }) => sum + totalSamples, 0),
  }
}

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

/**
 * Writes the configs of the runs that the config names, unless their folders exist from before. A run without a seed gets
 * the trainer's.
 */
const writeRuns = ({ runs, seed }: MultiRunConfig, files: RunFiles) =>
  Effect.forEach(
    Object.entries(runs),
    Effect.fnUntraced(function* ([name, config]) {
      const path = `${folderOf(name)}/${Layout.configFiles.yaml}`
      if (!(yield* files.exists(path))) yield* files.write(path, stringify(toSnakeCase({ seed, ...config })))
    }),
    { discard: true },
  )

/** Saves a model from scratch in the run's folder, if adapters are trained, because they are of no use without it. */
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
  const { trainer: sizes, inference, broadcast } = settings
  const outputDirectory = files.directory
  const { store, untilOneEnds } = yield* startRanks({ settings, baseDir: prepared.baseDir, outputDirectory })
  const { model, services } = rankParts({ settings, base, outputDirectory, rank: 0, store })
  const ofMaster = Broadcasts.layer({ keep: broadcast.keep, contents: (run) => contentsOf(model, base, run) }).pipe(
    Layer.provideMerge(services),
    Layer.provideMerge(
      Engine.layer({
        ...inference,
        ...base,
        config: base.decoder,
        maxLength: Math.min(base.decoder.maxPositions, sizes.width),
        ...(model.lora === null ? {} : { adapters: { slots: sizes.maxRuns + 1, shape: model.lora.shape } }),
      }),
    ),
  )
  yield* Effect.raceFirst(Effect.provide(work(prepared, state, model), ofMaster), untilOneEnds)
}, Effect.scoped)

const work = Effect.fnUntraced(function* (prepared: Prepared, state: State, model: TrainedModel) {
  const { settings } = prepared
  const runs = yield* Runs
  const engine = yield* Engine
  const broadcasts = yield* Broadcasts
  const { recording } = yield* CurrentRun
  const published = makePublished()
  const emit = (events: ReadonlyArray<RunEvent>) => Effect.orDie(recording.emit(events))
  /** With one run, metrics have their usual names; with several, the run comes first. */
  const named = (id: string, metrics: Readonly<Record<string, number>>) =>
    Object.keys(settings.runs).length === 1
      ? metrics
      : Object.fromEntries(Object.entries(metrics).map(([name, value]) => [`${id}/${name}`, value]))

  const sampled = new Map<string, Readonly<Record<string, number>>>()
  const files = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const report = (run: RunSlot) =>
    Effect.fnUntraced(function* (event: OrchestratorEvent) {
      const { id } = run
      if (event._tag === "Sampled") {
        sampled.set(`${id}/${event.step}`, event.metrics)
        return
      }
      yield* Effect.provideContext(writeValidation(run, event), files)
      const { step, scores } = event
      const spread = { meanReturn: meanOf(scores), stdReturn: deviationOf(scores) }
      const episodes = episodesOf(scores)
      const { step: updates, episodes: samples } = positionOf(state)
      yield* emit([
        { _tag: "Note", message: `${id}: validation after ${step} steps: ${spread.meanReturn.toFixed(3)}` },
        { _tag: "ValidationEnded", step: updates, seenEpisodes: samples, episodes, ...spread },
      ])
    })

  const trainer = yield* makeTrainer({
    model,
    shape: settings.trainer,
    seed: settings.seed,
    ranks: settings.trainer.ranks,
    rankDeadline,
    publish: Effect.fnUntraced(function* (run) {
      yield* load(engine, model, run)
      published.reach(run.generation, run.progress.step)
    }),
    report: ({ run, step, metrics }) =>
      Effect.suspend(() => {
        state.progress.set(run.id, { ...run.progress })
        const key = `${run.id}/${step - 1}`
        const all = { ...sampled.get(key), ...metrics }
        sampled.delete(key)
        const update = positionOf(state).step
        return emit([{ _tag: "UpdateApplied", step: update, update, metrics: named(run.id, all) }])
      }),
    afterTurn: broadcasts.publish,
  })
  yield* registerOrchestrators(prepared, published.forget, (run, parts) => ({
    run,
    ...parts,
    awaitWeights: (step) => published.await(run.generation, step),
    report: report(run),
  }))
  const training = Effect.forever(trainer.turn)
  const { finished, reasons } = yield* Effect.raceFirst(training, untilNoneIsLeft(runs)).pipe(
    Effect.onError(() => trainer.saveAll),
  )
  state.finished = finished
  yield* emit(reasons.map((message) => ({ _tag: "Warning", message })))
}, Effect.scoped)

/** Waits until all runs have ended, and returns why some were not trained to the end. If none was, it fails with that. */
const untilNoneIsLeft = Effect.fnUntraced(function* (runs: Runs["Service"]) {
  while (true) {
    yield* Effect.sleep("50 millis")
    const { evicted, invalid, finished, isSettled } = yield* runs.status
    if (!isSettled || evicted.length + invalid.length + finished.length === 0) continue
    const reasons = [
      ...evicted.map(({ id, reason }) => `${id} was evicted: ${reason}`),
      ...invalid.map(({ message }) => message),
    ]
    if (finished.length === 0)
      return yield* new MultiRunError({ message: `no run is left to train: ${reasons.join("; ")}` })
    return { finished, reasons }
  }
})

/** Gives the engine the current weights of a run: its adapter, or all weights of the model. */
const load = (engine: EngineService, model: TrainedModel, { id, index, progress: { step } }: RunSlot) =>
  Effect.suspend(() => {
    const options = model.adapterOf(index)
    const numbers = model.stateDictOf(index)
    return options === undefined
      ? engine.loadWeights({ step, weights: numbers })
      : engine.loadAdapter({ name: id, step, adapter: { ...options, tensors: numbers } })
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

const episodesOf = (scores: ReadonlyArray<number>) =>
  scores.map((score) => ({ return: score, length: 1, terminated: true, truncated: false }))

/** Joins the validations that several runs had at the same step, so that there is one learning curve. */
const joined = (evaluations: ReadonlyArray<Evaluation>): ReadonlyArray<Evaluation> =>
  [...Map.groupBy(evaluations, ({ step }) => step)]
    .map(([step, group]) => ({
      step,
      returns: group.flatMap(({ returns }) => returns),
      lengths: group.flatMap(({ lengths }) => lengths),
      terminated: group.reduce((sum, { terminated }) => sum + terminated, 0),
    }))
    .sort((a, b) => a.step - b.step)

/** Makes the result of what the folders of the runs hold that have reached their last step. */
const resultOf = Effect.fnUntraced(function* (state: State) {
  const { files, seconds, secondsHere } = yield* CurrentRun
  const all: Array<Evaluation> = []
  const weights: Record<string, NamedArray> = {}
  for (const id of state.finished) {
    const ending = yield* Effect.mapError(readEnding({ id, directory: `${files.directory}/${id}` }), MultiRunError.from)
    state.progress.set(id, ending.progress)
    for (const [name, array] of Object.entries(ending.weights)) weights[`${id}/${name}`] = array
    for (const { step, scores } of ending.validations) all.push(evaluationOf(step, { episodes: episodesOf(scores) }))
  }
  const evaluations = joined(all)
  const returns = evaluations.flatMap(({ returns }) => returns)
  const { step, episodes } = positionOf(state)
  const here = yield* secondsHere
  const metrics: RunResult = {
    runDir: files.directory,
    steps: step,
    episodes,
    meanScore: null,
    meanReturn: null,
    validation: summaryOf(evaluations.at(-1)),
    failedValidations: 0,
    digest: yield* digestOfArrays({
      ...weights,
      validation: { shape: [returns.length], data: Float32Array.from(returns) },
    }),
    wallSeconds: yield* seconds,
    stepsPerSecond: here > 0 ? step / here : 0,
  }
  return { metrics, evaluations }
})
