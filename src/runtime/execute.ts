import { Clock, Effect, type FileSystem, type Path, References, type Scope } from "effect"
import { stringify } from "yaml"
import type { Agent } from "../agent/Agent.ts"
import type { AgentError } from "../agent/AgentError.ts"
import * as Checkpoints from "../run/Checkpoint.ts"
import { ConfigError, type DecodeOptions, isPlain, type Plain, toSnakeCase } from "../config/Config.ts"
import { sha256 } from "../config/sha256.ts"
import type { DatasetError, TaskSet } from "../task/TaskSet.ts"
import type { EpisodeFailure } from "../episode/Protocol.ts"
import { encodeReturnFile, spreadOf } from "../run/evaluation.ts"
import { finishedResult } from "../run/finishedResult.ts"
import { derivedName } from "../run/identifier.ts"
import type { RunFiles } from "../run/store/RunFiles.ts"
import { RunStore } from "../run/store/RunStore.ts"
import type { RunStoreError } from "../run/store/RunStoreError.ts"
import type { Spent } from "../lm/middleware/budgeted.ts"
import { CallSink } from "../lm/middleware/logged.ts"
import { RetrySink, type Retry } from "../lm/middleware/retrying.ts"
import { callFiles } from "../run/record/callFiles.ts"
import { withLogs } from "../run/record/logging.ts"
import { inEffect } from "../run/record/logLevel.ts"
import { Recorder } from "../run/record/Recorder.ts"
import type { RunStarted } from "../run/record/RunEvent.ts"
import { startOver } from "../train/checkpointing.ts"
import { cutBack, refuseChanged, type Target } from "../train/cutBack.ts"
import { digestOf } from "../train/digest.ts"
import { type Evaluate, RunOptions } from "../train/RunOptions.ts"
import * as checkpointing from "./checkpointing.ts"
import { owesValidation, type Running, supervise } from "./loop.ts"
import { logsDir } from "./logsDir.ts"
import { checkpointAt } from "./resumeFrom.ts"
import { type RunSettings, strategyOf } from "./RuntimeConfig.ts"
import { episodesOf, RuntimeResult } from "../run/RuntimeResult.ts"
import { RuntimeState } from "./RuntimeState.ts"
import { checked, refuseTaken } from "./settings.ts"
import { playAll } from "./validate.ts"
import * as Layout from "../run/Layout.ts"
import { utf8 } from "../config/utf8.ts"
import { prettyJson } from "../config/text.ts"

export type RuntimeError =
  | EpisodeFailure
  | AgentError
  | DatasetError
  | ConfigError
  | Checkpoints.CheckpointError
  | RunStoreError

export type Needs = RunStore | Recorder | FileSystem.FileSystem | Path.Path

/** A run with everything that is in it made. */
export interface Prepared {
  readonly settings: RunSettings
  readonly agent: Agent
  readonly train: TaskSet | null
  readonly validation: TaskSet | null
  /** What `config.yaml` says of agent and data sets. */
  readonly described: {
    readonly agent: Plain
    readonly trainDataset: Plain | null
    readonly validationDataset: Plain | null
  }
  /** Of the agent, what a run that is gone on with must have had, too. */
  readonly agentIdentity: Plain
  /** What is worth saying of how it was made. */
  readonly warnings?: ReadonlyArray<string>
  /** Every call of the model becomes a file. */
  readonly logCalls: boolean
  /** What the budget counts, where there is one; a run that is gone on with goes on counting. */
  readonly spent?: Spent
  readonly from: DecodeOptions
}

/** Opens the run's folder, and trains in it, or validates what is there. */
export const execute = Effect.fnUntraced(function* (
  prepared: Prepared,
): Effect.fn.Return<RuntimeResult, RuntimeError, Needs | Scope.Scope> {
  const { settings, agent, train, validation, described, from } = prepared
  const { runtime } = settings
  const options = yield* RunOptions
  const warnings = [...(prepared.warnings ?? []), ...(yield* checked(settings, train, validation, from))]
  const environment = (train ?? validation)?.name ?? "none"
  const identity = {
    name: settings.name,
    population: {
      environment: derivedName(environment),
      algorithm: derivedName(agent.type),
      ...options.population,
    },
    seed: settings.seed,
  }
  const effective: Plain = { ...settings, ...described }
  if (options.onPlanned !== undefined) yield* options.onPlanned(identity, effective)
  // Before there is a folder: what is refused leaves none.
  const store = yield* RunStore
  if (!store.resumes) yield* refuseTaken(settings, from)
  const shared: Plain = {
    seed: settings.seed,
    agent: prepared.agentIdentity,
    trainDataset: train === null ? null : yield* sha256(utf8.encode(train.digest)),
    maxStepsPerEpisode: runtime.maxStepsPerEpisode,
  }
  const earlier = store.resumes ? undefined : yield* elsewhere(prepared, shared)
  const { resultsDir } = settings.output
  const opened = yield* store.open(
    identity,
    resultsDir === null ? undefined : { resultsDir: yield* logsDir(resultsDir) },
  )
  const run = opened.placed(Layout.places({ checkpoints: runtime.checkpointDir, scores: runtime.scoresPath }))
  const ready: Ready = {
    prepared,
    run,
    effective,
    shared,
    warnings,
    earlier,
    environment,
  }
  if (options.evaluate === undefined) return yield* trained(ready)
  const level = inEffect[settings.output.logLevel]
  return yield* Effect.provideService(evaluated(ready, options.evaluate), References.MinimumLogLevel, level)
})

/** Where another run's checkpoint leaves this one, if it goes on from one. */
const elsewhere = ({ agent, settings }: Prepared, shared: Plain) =>
  settings.runtime.resumeFrom === null
    ? Effect.succeed(undefined)
    : Effect.flatMap(checkpointAt(settings.runtime.resumeFrom), (files) => checkpointing.restore(agent, shared, files))

interface Ready {
  readonly prepared: Prepared
  readonly run: RunFiles
  readonly effective: Plain
  readonly shared: Plain
  readonly warnings: ReadonlyArray<string>
  readonly earlier: checkpointing.Restored | undefined
  readonly environment: string
}

const trained = Effect.fnUntraced(function* (
  ready: Ready,
): Effect.fn.Return<RuntimeResult, RuntimeError, Needs | Scope.Scope> {
  const { run, effective, shared, environment } = ready
  const { settings, agent, train, validation, described, logCalls, spent } = ready.prepared
  const { runtime } = settings
  const startedAtMillis = yield* Clock.currentTimeMillis
  const totalEpisodes = Math.min(train?.size ?? 0, runtime.maxEnvsToVisit ?? Infinity)

  const startsOver = run.resumed && (yield* startOver(run))
  const goesOn = run.resumed && !startsOver
  // A run that continued another run, and starts over, continues that other run once more.
  const again = startsOver ? elsewhere(ready.prepared, shared) : Effect.succeed(ready.earlier)
  const resumed = goesOn ? yield* latest(ready) : undefined
  const restored = resumed?.restored ?? (yield* again)
  const state = restored?.state ?? new RuntimeState(runtime.startEpisodeIndex)
  if (resumed !== undefined && state.seen >= totalEpisodes) {
    const finished = yield* finishedResult(run, RuntimeResult)
    // The last checkpoint may have been saved before the last validation.
    const isValidated = !owesValidation({ settings, state }) || finished?.validation?.step === state.seen
    if (finished !== undefined && isValidated) {
      yield* refuseChanged(run, resumed)
      return { ...finished, runDir: run.directory }
    }
  }
  const logWarnings = resumed === undefined ? [] : yield* cutBack(run, resumed)
  if (!goesOn) state.beginFolder()
  if (spent !== undefined) Object.assign(spent, restored?.spent)
  for (const stale of Layout.results) yield* run.remove(stale)
  yield* run.write(Layout.config, stringify(toSnakeCase(effective)))
  yield* run.write(Layout.configJson, prettyJson(toSnakeCase(effective)))
  const line = `${agent.type} on ${environment}, ${totalEpisodes} episodes, seed ${settings.seed}`
  yield* run.write(Layout.description, `${settings.description ?? line}\n`)

  const started: RunStarted = {
    _tag: "RunStarted",
    unit: "episodes",
    name: settings.name,
    env: environment,
    algorithm: agent.type,
    devices: agent.model === null ? {} : { model: agent.model },
    seed: settings.seed,
    totalSteps: totalEpisodes,
    numEnvs: 1,
    resumedFromStep: restored === undefined ? null : state.seen,
    config: effective,
    logLevel: settings.output.logLevel,
    ...(runtime.verbose ? {} : { quiet: true }),
  }
  const recording = yield* (yield* Recorder).start(run, started)
  const notes = startsOver ? ["it had not saved anything yet, so it starts over"] : []
  yield* recording.emit([
    started,
    ...notes.map((message) => ({ _tag: "Note" as const, message })),
    ...[...ready.warnings, ...(restored?.warnings ?? []), ...logWarnings].map((message) => ({
      _tag: "Warning" as const,
      message,
    })),
  ])

  const secondsHere = Effect.map(Clock.currentTimeMillis, (now) => (now - startedAtMillis) / 1000)
  const wallSeconds = Effect.map(secondsHere, (seconds) => state.earlierSeconds + seconds)
  const saving = {
    run,
    agent,
    agentConfig: described.agent,
    state,
    strategy: strategyOf(runtime),
    settings: shared,
    wallSeconds,
    spent,
  }
  const running: Running = {
    settings,
    agent,
    train,
    validation,
    totalEpisodes,
    state,
    run,
    recording,
    checkpointEvery: runtime.checkpointEveryEpisodes ?? Math.ceil(totalEpisodes / 10),
    save: checkpointing.save(saving),
    unfinished: { doing: null, entries: null, usage: state.usage },
  }
  const stepsBefore = state.steps
  let isTold = false
  /** The first one alone: who watches knows then why nothing happens. */
  const waits = ({ error, seconds, triesLeft }: Retry): Effect.Effect<void> => {
    if (isTold) return Effect.void
    isTold = true
    const times = triesLeft === 1 ? "once" : `up to ${triesLeft} times`
    const message = `${error.message}; it is asked again in ${seconds.toFixed(1)} s, ${times}; further waits are not told`
    // What can't be recorded ends the run.
    return Effect.orDie(recording.emit([{ _tag: "Warning", message }]))
  }
  const working = (restore: Parameters<typeof supervise>[1]) =>
    withLogs(recording, settings.output.logLevel, (recording) => supervise({ ...running, recording }, restore)).pipe(
      Effect.provideService(CallSink, logCalls ? callFiles(run) : null),
      Effect.provideService(RetrySink, waits),
    )
  const conclude = Effect.gen(function* () {
    const seconds = yield* secondsHere
    const result = yield* resultOf(ready, state, {
      episodes: yield* episodesOf(run),
      wallSeconds: yield* wallSeconds,
      stepsPerSecond: seconds > 0 ? (state.steps - stepsBefore) / seconds : 0,
    })
    const { episodes, ...rest } = result
    const metrics = toSnakeCase(rest)
    // What is in episodes is the envs' own, as it was said.
    yield* run.write(Layout.metrics, prettyJson(isPlain(metrics) ? { ...metrics, episodes } : metrics))
    yield* recording.flush
    // Last: its existence says that the run is finished.
    yield* run.write(Layout.returns, encodeReturnFile(state.evaluations))
    return result
  })
  // A run that has done its work is finished, also when a signal comes now.
  return yield* Effect.uninterruptibleMask((restore) => Effect.andThen(working(restore), conclude))
})

interface Latest extends Target {
  readonly restored: checkpointing.Restored
}

/** The newest whole checkpoint of this run, or another one. */
const latest = Effect.fnUntraced(function* (
  { run, prepared, shared }: Ready,
  wanted = "latest",
): Effect.fn.Return<Latest, checkpointing.RestoreError> {
  const { name, files, skipped } = yield* Checkpoints.load(run, wanted)
  const warnings = skipped.map((one) => `checkpoint ${one.name} is damaged (${one.reason}); going on from ${name}`)
  const path = `${run.directory}/${Layout.checkpoint(name)}`
  const restored = yield* checkpointing.restore(prepared.agent, shared, { path, files, warnings })
  const { checkpointDir } = prepared.settings.runtime
  const folder =
    checkpointDir?.startsWith("/") === true ? checkpointDir : `${run.directory}/${checkpointDir ?? Layout.checkpoints}`
  return {
    restored,
    name,
    folder,
    appended: restored.appended ?? { sizes: {}, digests: {} },
    appendedIn: checkpointing.appendedIn,
  }
})

/** Validates what one of a run's checkpoints holds, and writes nothing. */
const evaluated = Effect.fnUntraced(function* (
  ready: Ready,
  { checkpoint, onPlayed }: Evaluate,
): Effect.fn.Return<RuntimeResult, RuntimeError> {
  const { settings, agent, validation, from } = ready.prepared
  if (validation === null) {
    const problem = "expected a data set to evaluate on, found none"
    return yield* ConfigError.at({ source: from.source }, "validation_dataset", problem)
  }
  const {
    restored: { state },
  } = yield* latest(ready, checkpoint)
  const startedAtMillis = yield* Clock.currentTimeMillis
  const { outcome } = yield* playAll({ settings, agent, validation, state }, () => Effect.void)
  const seconds = ((yield* Clock.currentTimeMillis) - startedAtMillis) / 1000
  if (onPlayed !== undefined) yield* onPlayed(outcome)
  const steps = outcome.episodes.reduce((sum, { length }) => sum + length, 0)
  const stepsPerSecond = seconds > 0 ? steps / seconds : 0
  return yield* resultOf(ready, state, { episodes: null, wallSeconds: seconds, stepsPerSecond })
})

const resultOf = Effect.fnUntraced(function* (
  { run, prepared: { agent } }: Ready,
  state: RuntimeState,
  more: Pick<RuntimeResult, "episodes" | "wallSeconds" | "stepsPerSecond">,
): Effect.fn.Return<RuntimeResult> {
  const last = state.evaluations.at(-1)
  const memory = agent.memory === null ? "" : yield* agent.memory.snapshot
  const { seen, steps, meanScore, meanReturn, failedValidationEpisodes, usage } = state
  return {
    runDir: run.directory,
    meanScore,
    trainSteps: steps,
    trainEpisodes: seen,
    meanReturn,
    validation:
      last === undefined || last.returns.length === 0
        ? null
        : { step: last.step, episodes: last.returns.length, ...spreadOf(last.returns) },
    failedValidationEpisodes,
    usage,
    digest: yield* digestOf({}, state.scoreHash, utf8.encode(memory)),
    ...more,
  }
})
