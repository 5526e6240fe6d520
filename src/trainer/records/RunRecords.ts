/**
 * Writes the files of each run of a trainer: a config that trains this run alone; a log, curves and scores while it is
 * trained; and its results when it has reached its last step. So commands and the page treat each of them like any other run.
 *
 * Each checkpoint saves the lengths of these files. A resumed run cuts its scores and curves to these lengths, so they become
 * the same as those of a run that was never stopped.
 *
 * @example
 * ```ts
 * const records = yield* makeRunRecords(recordsOptions)
 * yield* records.begin(run, undefined) // new, or with what `moment` returned when its checkpoint was saved
 * yield* records.updated(run, { "losses/loss": 0.4 })
 * yield* records.conclude(run)
 * ```
 */
import {
  Cause,
  Clock,
  type Context,
  Effect,
  Exit,
  type FileSystem,
  Option,
  type Path,
  Schema,
  Scope,
  Semaphore,
} from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import type { Plain } from "../../base/config/Config.ts"
import { messageOf } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { CurrentRun } from "../../run/CurrentRun.ts"
import { outcomeOf } from "../../run/evaluation.ts"
import * as life from "../../run/life.ts"
import type { Recorder } from "../../run/record/Recorder.ts"
import type { RunEnded, RunEvent } from "../../run/record/RunEvent.ts"
import { type RunSpec, startedOf } from "../../run/RunSpec.ts"
import { Appended } from "../../run/store/appended.ts"
import { makeRunFiles } from "../../run/store/RunFiles.ts"
import { RunStore } from "../../run/store/RunStore.ts"
import { episodesOf, readEnding, resultOf } from "../ending.ts"
import * as Layout from "../Layout.ts"
import type { MultiRunConfig } from "../config/MultiRunConfig.ts"
import { OrchestratorConfig } from "../config/OrchestratorConfig.ts"
import type { DiscoveredRun, RunSlot } from "../runs/RunSlot.ts"
import type { RunRecord } from "../runs/TrainedRun.ts"
import { type Failures, readStepReport, summaryOf, type Validation, validationsIn } from "./reports.ts"

/** The content of a checkpoint's file `recorded.json`, which describes the state of the recording. */
const Recorded = Schema.Struct({
  appended: Appended,
  /** The step of the last validation that was recorded; −1 if there was none. */
  validated: Schema.Int,
  /** The seconds for which the run had been trained. */
  seconds: Schema.Finite,
  /** The seconds for which its trainer had worked. */
  trainerSeconds: Schema.Finite,
})
const recordedJson = jsonText(Recorded)
const decodeRecorded = Schema.decodeUnknownEffect(recordedJson)
const encodeRecorded = Schema.encodeEffect(recordedJson)
const encodeConfig = Schema.encodeSync(OrchestratorConfig)

/** Returns the seconds for which a trainer had worked when it saved a file `recorded.json`; 0 if the text is damaged. */
export const trainerSecondsIn = (text: string): number =>
  Option.match(Schema.decodeOption(recordedJson)(text), {
    onNone: () => 0,
    onSome: ({ trainerSeconds }) => trainerSeconds,
  })

const warningsOf = (what: string, failures: Failures | undefined): ReadonlyArray<RunEvent> =>
  failures === undefined ? [] : [{ _tag: "Warning", message: summaryOf(what, failures) }]

type Problem = { readonly message: string }
type Eff<A = void> = Effect.Effect<A, Problem>

/** The trainer whose runs are recorded. */
interface RecordsOptions {
  readonly settings: Pick<MultiRunConfig, "name" | "output">
  /** The whole config of the trainer. The saved config of a run is the same with only this run. */
  readonly effective: Plain
  /** Called after a validation of a run was recorded. */
  readonly validated: (run: RunSlot, validation: Pick<Validation, "step" | "scores">) => Eff
  /** Called if episodes of a run failed, with a message that names the step and the tasks. */
  readonly failed: (run: RunSlot, message: string) => Eff
}

export interface RunRecords {
  /** Fails if another living process writes to a run's folder, which must then be left alone. */
  readonly check: (run: DiscoveredRun) => Eff
  /**
   * Begins to record a run, whose progress comes from its checkpoint. `saved` is what `moment` returned when that was saved;
   * undefined if the run starts without a checkpoint.
   */
  readonly begin: (run: RunSlot, saved: Uint8Array | undefined) => Eff
  /** Records an update with the orchestrator's report about its samples, and the validations before it. */
  readonly updated: (run: RunSlot, metrics: Readonly<Record<string, number>>) => Eff
  /** Returns the state of the recording for a checkpoint; undefined if the run has left. */
  readonly moment: (run: RunSlot) => Eff<Uint8Array | undefined>
  /** Writes the results of a run that has reached its last step, after its last validation. */
  readonly conclude: (run: RunSlot) => Eff
  /**
   * Ends the recording of a run that leaves its index. `reason` is why the run was evicted; null if its folder was deleted.
   */
  readonly end: (run: RunSlot, reason: string | null) => Effect.Effect<void>
}

/** The services that a record needs. */
type Services = Recorder | RunStore | FileSystem.FileSystem | Path.Path

/** The state of all records, and what is needed to begin one. */
interface RecordsState {
  readonly options: RecordsOptions
  readonly trainerSeconds: CurrentRun["Service"]["seconds"]
  readonly services: Context.Context<Services>
  /** The runs whose records are open. A run may leave its slot before its record is closed. */
  readonly open: Set<RunSlot>
}

/** Makes the records of a trainer's runs. When the scope closes, all open records end as interrupted or failed. */
export const makeRunRecords = Effect.fnUntraced(function* (
  options: RecordsOptions,
): Effect.fn.Return<RunRecords, never, CurrentRun | Services | Scope.Scope> {
  const { refuseLocked } = yield* RunStore
  const state: RecordsState = {
    options,
    trainerSeconds: (yield* CurrentRun).seconds,
    services: yield* Effect.context<Services>(),
    open: new Set(),
  }
  yield* Effect.addFinalizer((exit) => closeAll(state, exit))
  return {
    check: ({ directory }) => refuseLocked(directory),
    begin: (run, saved) => Effect.provideContext(begin(state, run, saved), state.services),
    updated: (run, metrics) => updated(state, run, metrics),
    moment: (run) => moment(state, run),
    conclude: (run) => conclude(state, run),
    end: (run, reason) => close(state, run, { reason: "failed", message: reason ?? "the run's folder was deleted" }),
  }
})

/** Opens the record of a run: locks its folder, cuts its files back to the checkpoint, and starts its recording. */
const begin = Effect.fnUntraced(function* (state: RecordsState, run: RunSlot, saved: Uint8Array | undefined) {
  const { lock } = yield* RunStore
  const { folder } = run.own
  const recorded = saved === undefined ? undefined : yield* decodeRecorded(utf8.decode(saved))
  const { step } = run.progress
  const spec = specOf(run, state.options.settings, state.options.effective)
  const files = makeRunFiles(folder.tree, spec.identity, recorded !== undefined)
  const place = { name: Layout.stepName(step), folder: `${run.directory}/${Layout.checkpoints}` }
  const scope = yield* Scope.make()
  const alone = yield* Semaphore.make(1)
  const startedAtMillis = yield* Clock.currentTimeMillis
  const open = Effect.gen(function* () {
    yield* folder.guarded(Scope.provide(lock(run.directory), scope))
    const kept = { saved: recorded && { ...place, appended: recorded.appended } }
    const warnings = yield* life.prepare(files, spec, kept)
    const started = startedOf(spec, recorded === undefined ? null : step)
    const recording = yield* life.startRecording(files, started, { warnings })
    const [secondsBefore, validated] = [recorded?.seconds ?? 0, recorded?.validated ?? -1]
    run.own.record = { files, recording, scope, alone, startedAtMillis, secondsBefore, firstStep: step, validated }
    state.open.add(run)
  })
  yield* Effect.onError(Scope.provide(open, scope), (cause) => Scope.close(scope, Exit.failCause(cause)))
})

const secondsHere = ({ startedAtMillis }: RunRecord) =>
  Effect.map(Clock.currentTimeMillis, (now) => (now - startedAtMillis) / 1000)

/** Runs `use` with the record of a run. Does nothing if the run has left. */
const using = <A>({ own }: RunSlot, use: (record: RunRecord) => Eff<A>): Eff<A | undefined> =>
  Effect.suspend(() => {
    const { record, folder } = own
    return record === undefined ? Effect.undefined : record.alone.withPermit(folder.guarded(use(record)))
  })

/** Records the validations up to the step `upTo` that are not recorded yet. */
const recordValidations = Effect.fnUntraced(function* (
  state: RecordsState,
  run: RunSlot,
  record: RunRecord,
  upTo: number,
) {
  for (const validation of yield* validationsIn(run.own.folder, { after: record.validated, upTo })) {
    const { step, scores, transcripts, failures } = validation
    const lost = failures === undefined ? {} : { failed: failures.failed.length }
    const outcome = { ...outcomeOf(episodesOf(scores)), ...lost }
    const ended = { _tag: "ValidationEnded" as const, step, seenEpisodes: step, ...outcome }
    yield* Effect.uninterruptible(
      Effect.andThen(
        record.recording.emit([...warningsOf(`validation at step ${step}`, failures), ...transcripts, ended]),
        Effect.sync(() => void (record.validated = step)),
      ),
    )
    yield* state.options.validated(run, validation)
    if (failures !== undefined) yield* state.options.failed(run, summaryOf(`validation at step ${step}`, failures))
  }
})

/** Records an update of a run, the report about its samples, and the validations before it. */
const updated = (state: RecordsState, run: RunSlot, metrics: Readonly<Record<string, number>>) =>
  using(run, (record) =>
    Effect.gen(function* () {
      const { step } = run.progress
      yield* recordValidations(state, run, record, step - 1)
      const report = yield* readStepReport(run.own.folder, step - 1)
      const failures = report?.failures
      if (failures !== undefined) yield* state.options.failed(run, summaryOf(`step ${step - 1}`, failures))
      yield* record.recording.emit([
        ...warningsOf(`step ${step - 1}`, failures),
        ...(report?.transcripts ?? []),
        { _tag: "UpdateApplied", step, update: step, metrics: { ...report?.metrics, ...metrics } },
      ])
    }),
  )

/** Returns the state of a run's recording, as bytes for a checkpoint. */
const moment = (state: RecordsState, run: RunSlot) =>
  using(run, (record) =>
    Effect.gen(function* () {
      yield* record.recording.flush
      const { validated, files, secondsBefore } = record
      const seconds = secondsBefore + (yield* secondsHere(record))
      const appended = yield* files.appendedAt(yield* files.sizes)
      const recorded = { appended, validated, seconds, trainerSeconds: yield* state.trainerSeconds }
      return utf8.encode(yield* encodeRecorded(recorded))
    }),
  )

/** Records the end of a run. Failures are ignored, because the run's folder may be gone. */
const recordEnd = (
  { progress: { step, totalSamples } }: RunSlot,
  { recording, firstStep }: RunRecord,
  ended: Pick<RunEnded, "reason" | "message">,
) =>
  Effect.ignore(
    recording.emit([{ _tag: "RunEnded", step: Math.max(firstStep, step), episodes: totalSamples, ...ended }]),
  )

/**
 * Removes the record from a run, does the last work with it, and closes it, even after an interruption. Does nothing if the
 * record is not open.
 */
const taking = <A, E>(
  { open }: RecordsState,
  run: RunSlot,
  last: (record: RunRecord) => Effect.Effect<A, E>,
): Effect.Effect<A | undefined, E> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.suspend((): Effect.Effect<A | undefined, E> => {
      const { record } = run.own
      if (record === undefined) return Effect.undefined
      run.own.record = undefined
      open.delete(run)
      return Effect.ensuring(restore(last(record)), Scope.close(record.scope, Exit.void))
    }),
  )

/** Ends the record of a run, if it is open. */
const close = (state: RecordsState, run: RunSlot, ended: Pick<RunEnded, "reason" | "message">): Effect.Effect<void> =>
  taking(state, run, (record) => recordEnd(run, record, ended))

/** Ends the record of a run that has reached its last step, and writes its result. */
const conclude = Effect.fnUntraced(function* (state: RecordsState, run: RunSlot) {
  const { record, folder } = run.own
  if (record === undefined) return
  yield* using(run, () => recordValidations(state, run, record, run.progress.step))
  const { files, recording, firstStep, secondsBefore } = record
  const secondsOfWork = yield* secondsHere(record)
  const last = Effect.gen(function* () {
    yield* recordEnd(run, record, { reason: "finished", message: null })
    const ending = yield* Effect.provideContext(readEnding(run, run.progress.step), state.services)
    const spent = { directory: run.directory, firstStep, seconds: secondsBefore + secondsOfWork, secondsOfWork }
    yield* folder.guarded(life.conclude({ files, recording }, yield* resultOf([ending], spent)))
  })
  yield* taking(state, run, () => last)
})

/** Ends all open records when the trainer ends. */
const closeAll = (state: RecordsState, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> => {
  const isFailure = Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)
  const ended = isFailure
    ? { reason: "failed" as const, message: messageOf(Cause.squash(exit.cause)) }
    : { reason: "interrupted" as const, message: null }
  return Effect.forEach([...state.open], (run) => close(state, run, ended), { discard: true })
}

/** Describes a run for its record. The saved config trains this run alone, with the settings of the trainer. */
const specOf = ({ id, config }: RunSlot, { name, output }: RecordsOptions["settings"], effective: Plain): RunSpec => {
  const own = Layout.nameOf(id)
  return {
    kind: "multirun",
    identity: { name, population: { environment: own, algorithm: "multirun" }, seed: config.seed },
    config: { ...effective, runs: { [own]: encodeConfig(config) } },
    description: `${own}, a run of a trainer of several; its config trains it alone`,
    env: own,
    algorithm: "multirun",
    devices: {},
    total: config.maxSteps ?? 0,
    logLevel: output.logLevel,
    quiet: true,
  }
}
