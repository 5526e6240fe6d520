/**
 * Executes a training of a language-model agent as a run, and writes its folder: checks the settings, restores the
 * state, runs the loop and makes the result. `Runtime.ts` and `fromConfig.ts` call it.
 */
import { Clock, Effect, type FileSystem, type Path, References, type Scope } from "effect"
import type { WorkerError } from "../../spread/workers/WorkerError.ts"
import type { AgentError } from "../agent/AgentError.ts"
import { ConfigError, type Plain } from "../../base/config/Config.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { sha256 } from "../../base/text/sha256.ts"
import { Dispatcher } from "../../spread/cluster/Dispatcher.ts"
import type { EpisodeFailure } from "../episode/Protocol.ts"
import { CallSink } from "../lm/middleware/logged.ts"
import { CurrentRun } from "../../run/CurrentRun.ts"
import { digestOf } from "../../run/digest.ts"
import { summaryOf } from "../../run/evaluation.ts"
import { derivedName } from "../../run/identifier.ts"
import { callFiles } from "../lm/callFiles.ts"
import { reportingFirstRetry } from "../lm/firstRetry.ts"
import { effectLevels } from "../../run/record/logLevel.ts"
import * as Layout from "../../run/Layout.ts"
import type { Recorder } from "../../run/record/Recorder.ts"
import * as Run from "../../run/Run.ts"
import type { RunSpec } from "../../run/RunSpec.ts"
import { speedOf } from "../../run/RunResult.ts"
import { episodesOf, RuntimeResult } from "./RuntimeResult.ts"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import { Serving } from "../../run/spread/Serving.ts"
import { RunStore } from "../../run/store/RunStore.ts"
import type { RunIdentity } from "../../run/identifier.ts"
import { RunStoreError } from "../../run/store/RunStoreError.ts"
import { isSpent } from "../lm/LmError.ts"
import { ValidationRequest } from "../../run/ValidationRequest.ts"
import { reportingFailures } from "../task/feedbackFailures.ts"
import type { DatasetError } from "../task/TaskSet.ts"
import { RunOptions } from "../../run/RunOptions.ts"
import { type AgentTraining, totalEpisodesOf } from "./AgentTraining.ts"
import { restoreMemory, restoreOther } from "./checkpointing.ts"
import { isSaved, loop, owesValidation, saveBoundary } from "./loop.ts"
import { logsDir } from "./logsDir.ts"
import { checkpointAt } from "./resumeFrom.ts"
import { strategyOf } from "./RuntimeConfig.ts"
import { RuntimeState } from "./RuntimeState.ts"
import { begin, readSource } from "./start.ts"
import { checked, permitPlaces, refuseTaken } from "./settings.ts"
import { handlersOf } from "./spread/play.ts"
import { playAll } from "./validate.ts"

export type RuntimeError = EpisodeFailure | WorkerError | AgentError | DatasetError | ConfigError | Run.RunError

export type AgentTrainingNeeds = RunStore | Recorder | FileSystem.FileSystem | Path.Path

/** Trains an agent and returns the result; if `Runtime.validate` requests it, only validates a checkpoint. */
export const execute = Effect.fnUntraced(function* (
  prepared: AgentTraining,
): Effect.fn.Return<RuntimeResult, RuntimeError, AgentTrainingNeeds | Scope.Scope> {
  const { settings, agent, train, validation, described, from } = prepared
  const { runtime, output } = settings
  const warnings = [...(prepared.warnings ?? []), ...(yield* checked(settings, train, validation, from))]
  const { population, onPlanned } = yield* RunOptions
  const environment = (train ?? validation)?.name ?? "none"
  const identity = {
    name: settings.name,
    population: { environment: derivedName(environment), algorithm: derivedName(agent.type), ...population },
    seed: settings.seed,
  }
  const isNew = !(yield* RunStore).resumes
  // Check this before the run's folder is created. The saved config names the checkpoint, because `latest` may change.
  const source = isNew ? yield* readSource(prepared) : undefined
  const start = source === undefined ? settings.start : { memory: source.path }
  const config: Plain = { ...settings, start, ...described }
  if (onPlanned !== undefined) yield* onPlanned(identity, config)
  const startedAtMillis = yield* Clock.currentTimeMillis
  // The settings that must be the same as in the checkpoint when the run is resumed.
  const shared: Plain = {
    seed: settings.seed,
    agent: prepared.agentIdentity,
    trainDataset: train === null ? null : yield* sha256(utf8.encode(train.digest)),
    maxStepsPerEpisode: runtime.maxStepsPerEpisode,
  }
  const validationDataset = validation === null ? null : yield* sha256(utf8.encode(validation.digest))
  const jobs: Plain = { ...shared, validationDataset }
  const serving = yield* Serving
  if (serving !== undefined) {
    return yield* serving.offer({ identity: jobs, handlers: handlersOf(prepared, serving.read) })
  }
  const training: AgentTraining = {
    ...prepared,
    sendable: prepared.sent === undefined ? undefined : { training: prepared.sent, identity: jobs },
  }
  if ((yield* Dispatcher).inFlight !== undefined) {
    const hasJobs = validation !== null || (train !== null && agent.memory === null)
    if (!hasJobs) warnings.push(nothingToSend)
    else if (prepared.sent === undefined) warnings.push(notSent)
  }
  // Check this before the run's folder is created, so that a refused run leaves no folder.
  const store = yield* RunStore
  const request = yield* ValidationRequest
  if (request === undefined) yield* permitPlaces(settings, from)
  if (!store.resumes) yield* refuseTaken(settings, from)
  const continued = store.resumes ? undefined : yield* otherRun(training, shared)
  const program = {
    spec: specOf(training, identity, { environment, config }),
    startedAtMillis,
    place: output.resultsDir === null ? undefined : { resultsDir: yield* logsDir(output.resultsDir) },
    places: Layout.places({ checkpoints: runtime.checkpointDir, scores: runtime.scoresPath }),
    open: openState({ training, shared, source, continued, warnings }),
    loop: (state: RuntimeState) => recordedLoop(training, state),
    saving: {
      schema: RuntimeState,
      settings: shared,
      strategy: strategyOf(runtime),
      save: (state: RuntimeState) => saveBoundary(training, state),
      isSaved: (state: RuntimeState) => isSaved(training, state),
      savesOnFailure: true,
    },
    position: ({ seen }: RuntimeState) => ({ step: seen, episodes: seen }),
    stopsUpon: isSpent,
    result: { schema: RuntimeResult, of: (state: RuntimeState) => resultOf(training, state) },
  }
  if (request === undefined) return yield* Run.execute(program)
  return yield* Run.inspect(program, request.checkpoint, (state) => validated(training, state, request)).pipe(
    Effect.provideService(References.MinimumLogLevel, effectLevels[output.logLevel]),
  )
})

/** A training whose settings are checked, with the checkpoints of other runs that were read before its folder was created. */
interface PlannedTraining {
  readonly training: AgentTraining
  /** The settings that must be the same as in the checkpoint when the run is resumed. */
  readonly shared: Plain
  /** The checkpoint whose memory a new run begins with. */
  readonly source: Effect.Success<ReturnType<typeof readSource>>
  /** The run that a new one continues. */
  readonly continued: Effect.Success<ReturnType<typeof otherRun>>
  readonly warnings: ReadonlyArray<string>
}

/** Restores the state from the run's own checkpoint or from the run that it continues; otherwise makes a new state. */
const openState = ({ training, shared, source, continued, warnings }: PlannedTraining) =>
  Effect.fnUntraced(function* (
    files: RunFiles,
    saved: Run.Saved<RuntimeState> | undefined,
  ): Effect.fn.Return<Run.Opened<RuntimeState, RuntimeResult>, RuntimeError, FileSystem.FileSystem | Path.Path> {
    const { runtime } = training.settings
    // If the run to resume has no checkpoint and had continued another run, start again from that other run.
    const begun = saved ?? continued ?? (yield* otherRun(training, shared))
    if (saved !== undefined) {
      const checkpoint = { ...saved, path: `${files.directory}/${Layout.checkpoint(saved.name)}` }
      yield* restoreMemory(training, checkpoint, Layout.inCheckpoint.memory(saved.state.seen))
    }
    // A run that stopped before its first checkpoint starts over, so it reads the other run again.
    const origin = saved === undefined ? (source ?? (yield* readSource(training))) : undefined
    const notes = origin === undefined ? [] : [yield* begin(training, origin)]
    const state = begun?.state ?? RuntimeState.after(runtime.startEpisodeIndex)
    if (saved === undefined) state.beginFolder()
    if (state.spent !== null) Object.assign(training.spent ?? {}, state.spent)
    return {
      state,
      resumedFromStep: begun === undefined ? null : state.seen,
      // The state lacks a validation after the last checkpoint, but the result of the finished run has it.
      isOver: ({ validation }: RuntimeResult) =>
        state.seen >= totalEpisodesOf(training) && (!owesValidation(runtime, state) || validation?.step === state.seen),
      notes,
      warnings: [
        ...warnings,
        ...(saved === undefined ? [...(begun?.warnings ?? []), ...(origin?.warnings ?? [])] : []),
      ],
    }
  })

const nothingToSend =
  "the cluster has nothing to do: the agent has a memory, so it plays its training episodes in this process, and there is no validation_dataset"

const notSent =
  "the episodes are played in this process, because other machines can only load an agent that is made in code from its program: start it with effect run PROGRAM.ts --cluster"

const specOf = (
  training: AgentTraining,
  identity: RunIdentity,
  { environment, config }: { readonly environment: string; readonly config: Plain },
): RunSpec => {
  const { settings, agent } = training
  const total = totalEpisodesOf(training)
  return {
    kind: "agents",
    identity,
    config,
    description: settings.description ?? `${agent.type} on ${environment}, ${total} episodes, seed ${settings.seed}`,
    env: environment,
    algorithm: agent.type,
    devices: agent.model === null ? {} : { model: agent.model },
    total,
    logLevel: settings.output.logLevel,
    quiet: !settings.runtime.verbose,
  }
}

/** Restores the state from another run's checkpoint if the config sets `resume_from`; otherwise returns undefined. */
const otherRun = Effect.fnUntraced(function* (training: AgentTraining, shared: Plain) {
  const { resumeFrom } = training.settings.runtime
  if (resumeFrom === null) return undefined
  const checkpoint = yield* checkpointAt(resumeFrom, { setting: "resume_from" })
  return { state: yield* restoreOther(training, shared, checkpoint), warnings: checkpoint.warnings }
})

/** Runs the loop. Writes every call of the model to a file if `logCalls` is set, and logs a warning at the first retry. */
const recordedLoop = Effect.fnUntraced(function* (training: AgentTraining, state: RuntimeState) {
  const { files, recording } = yield* CurrentRun
  const warn = (message: string) => recording.emit([{ _tag: "Warning", message }])
  const recorded = reportingFailures(loop(training, state), warn).pipe(
    // The callbacks of an episode cannot fail, so `loop` converts a failed recording to a defect. Convert it back to an
    // error.
    Effect.catchDefect((defect): Effect.Effect<never, RunStoreError> =>
      defect instanceof RunStoreError ? Effect.fail(defect) : Effect.die(defect),
    ),
    Effect.provideService(CallSink, training.logCalls ? callFiles(files, training.settings.output.llmCalls) : null),
  )
  yield* reportingFirstRetry(recorded, warn)
})

/**
 * Plays the validation tasks at a checkpoint. Returns the run's result at that checkpoint, with the duration of this
 * validation.
 */
const validated = Effect.fnUntraced(function* (
  training: AgentTraining,
  state: RuntimeState,
  { onPlayed }: NonNullable<typeof ValidationRequest.Service>,
): Effect.fn.Return<RuntimeResult, RuntimeError, CurrentRun> {
  const { validation, from } = training
  if (validation === null) {
    const problem = "expected a data set to evaluate on, found none"
    return yield* ConfigError.at({ source: from.source }, "validation_dataset", problem)
  }
  const startedAtMillis = yield* Clock.currentTimeMillis
  const outcome = yield* playAll(training, state, () => Effect.void)
  const wallSeconds = ((yield* Clock.currentTimeMillis) - startedAtMillis) / 1000
  onPlayed(outcome)
  const steps = outcome.episodes.reduce((sum, { length }) => sum + length, 0)
  const { metrics } = yield* resultOf(training, state)
  return { ...metrics, episodes: null, wallSeconds, stepsPerSecond: speedOf(steps, wallSeconds) }
})

/** Makes the contents of `metrics.json` and the validations for `return.json` from the state. */
const resultOf = Effect.fnUntraced(function* ({ agent }: AgentTraining, state: RuntimeState) {
  const { files, seconds, secondsOfWork } = yield* CurrentRun
  const memory = agent.memory === null ? "" : yield* agent.memory.snapshot
  const { seen, steps, stepsBefore, meanScore, meanReturn, failedValidationEpisodes, usage, evaluations } = state
  const stepsPerSecond = speedOf(steps - stepsBefore, yield* secondsOfWork)
  const metrics: RuntimeResult = {
    runDir: files.directory,
    meanScore,
    trainSteps: steps,
    trainEpisodes: seen,
    meanReturn,
    validation: summaryOf(evaluations.at(-1)),
    failedValidationEpisodes,
    usage,
    digest: yield* digestOf({}, state.scoreHash, utf8.encode(memory)),
    wallSeconds: yield* seconds,
    stepsPerSecond,
    episodes: yield* episodesOf(files),
  }
  return { metrics, evaluations }
})
