/**
 * Executes runs of every kind: trainings, trainings of language-model agents, and evaluations of such agents. Each kind
 * describes itself by a `Program`. `execute` opens the run's folder, writes the config, makes a new state or restores it from
 * a checkpoint, and starts recording. Then it runs the program's `loop`. If the loop is interrupted,
 * it saves a checkpoint; if the loop ends, it writes the results. `inspect` only restores a checkpoint, and writes
 * nothing.
 *
 * @example
 * ```text
 * Run.execute({
 *   spec,                                        // what the run is
 *   startedAtMillis,
 *   open: (files, saved) => …,                   // the state, new or as it was saved
 *   loop: (state) => …,                          // the work, which may use the service `CurrentRun`
 *   saving: { schema: State, save, … },          // how the state is saved
 *   position: (state) => state,                  // how far it is
 *   result: { schema: Result, of: (state) => … } // what metrics.json and return.json hold
 * })
 * ```
 */
import { Cause, Clock, Effect, Exit, Fiber, Option, type Scope } from "effect"
import * as Schema from "effect/Schema"
import { jsonText } from "../base/text/jsonText.ts"
import { display, type Plain } from "../base/config/Config.ts"
import { type ConfigDifference, differences, refusalOf } from "../base/config/difference.ts"
import { oneLine, prettyJson } from "../base/text/text.ts"
import { utf8 } from "../base/text/utf8.ts"
import { Backend } from "../tensor/backend/Backend.ts"
import { CheckpointError, type Loaded, type RetentionStrategy } from "./Checkpoint.ts"
import { Checkpoints, type RunCheckpoints } from "./Checkpoints.ts"
import { CurrentRun, type Parts } from "./CurrentRun.ts"
import { refuseChanged, type Target } from "./cutBack.ts"
import { finishedResult } from "./finishedResult.ts"
import * as Layout from "./Layout.ts"
import * as life from "./life.ts"
import { withLogs } from "./record/logging.ts"
import { type Recorder, type Recording, silent } from "./record/Recorder.ts"
import type { RunEnded } from "./record/RunEvent.ts"
import { type RunSpec, startedOf } from "./RunSpec.ts"
import { Appended } from "./store/appended.ts"
import { refuseIfMoved, type RunFiles } from "./store/RunFiles.ts"
import { type OwnPlace, RunStore } from "./store/RunStore.ts"
import { RunStoreError } from "./store/RunStoreError.ts"

export type RunError = CheckpointError | RunStoreError

/** Describes how to execute one kind of run: how it starts, what it does, how it is saved, and what its result is. */
interface Program<S, A, E, R> {
  readonly spec: RunSpec
  /** The time, in milliseconds since 1970, from which the duration of this process's part of the run is counted. */
  readonly startedAtMillis: number
  /** The results folder that the config chooses; if left out, the results folder of the service `RunStore`. */
  readonly place?: OwnPlace | undefined
  /** The actual paths of files and folders that the config moves away from their usual paths in the run's folder. */
  readonly places?: Layout.Places
  /** Result files of an earlier process to remove, in addition to metrics.json and return.json. */
  readonly results?: ReadonlyArray<string>
  /**
   * Makes the state of a new run, or restores `saved`, the checkpoint of a resumed run. The run's files are still as an
   * earlier process left them.
   */
  readonly open: (files: RunFiles, saved: Saved<S> | undefined) => Effect.Effect<Opened<S, A>, E, R>
  /** Does the work of the run until it has ended. */
  readonly loop: (state: S) => Effect.Effect<void, E, CurrentRun | R>
  /** Whether the backend may make its programs faster beside the loop; true if left out. */
  readonly improves?: boolean | undefined
  /** How the state is saved. An evaluation has no checkpoints, so it leaves this out and keeps a journal instead. */
  readonly saving?: Saving<S, E, R>
  /**
   * Returns the progress of a state, for the event `RunEnded`. A run that counts only episodes returns their number as
   * `step`, too.
   */
  readonly position: (state: S) => { readonly step: number; readonly episodes: number }
  /**
   * Returns the reason if a finished run ended early; null if it did all its work. Leave it out for runs that never end
   * early.
   */
  readonly earlyEndOf?: (state: S) => string | null
  /** Whether an interruption is the usual end of the run, as of a server's; false if left out. */
  readonly endsUponInterrupt?: boolean
  /**
   * Tells whether an error only stops the run, without counting as a failure, as when a budget is used up. If left out, every
   * error is a failure.
   */
  readonly stopsUpon?: (error: E | RunError) => boolean
  /** The result. `of` makes it when the loop has ended; `schema` decodes it from the files of a finished run. */
  readonly result: {
    readonly schema: Schema.Codec<A, unknown>
    readonly of: (state: S) => Effect.Effect<life.Result<A>, E, CurrentRun | R>
    /** Runs after all results are written, e.g. to remove a file that only an unfinished run needs. It may fail. */
    readonly after?: (files: RunFiles, state: S) => Effect.Effect<void, E>
  }
}

/** The result of `Program.open`: the state with which the loop begins, and facts about the run so far. */
export interface Opened<S, A> {
  readonly state: S
  /** The step at which the run resumes; null for a new run. */
  readonly resumedFromStep: number | null
  /**
   * Tells whether the result that an earlier process wrote is final: then `execute` returns it without running the
   * loop. It is not final if, for example, the config now asks for more steps. If left out, the loop always runs.
   */
  readonly isOver?: (finished: A) => boolean
  /** The step up to which a resumed run without checkpoints keeps its logs. If left out, the logs begin again. */
  readonly logsUntil?: number
  /** The seconds that earlier processes spent on the run, for runs without checkpoints. */
  readonly seconds?: number
  readonly notes?: ReadonlyArray<string>
  readonly warnings?: ReadonlyArray<string>
}

/** Describes how the state of a run is saved in checkpoints. */
interface Saving<S, E, R> {
  /** The Schema that encodes the state for saving and decodes it for restoring. */
  readonly schema: Schema.Codec<S, unknown>
  /** The settings that are compared when the run is resumed. */
  readonly settings: Plain
  /** Tells which of these settings a resumed run may change; none if left out. */
  readonly changes?: {
    readonly isAllowed: (key: string) => boolean
    /**
     * Returns advice for a change that is not allowed, which becomes the end of the error message. `checkpoint` is a path.
     */
    readonly instead: (checkpoint: string) => string
  }
  readonly strategy: RetentionStrategy
  /** Checks the folder of a run to resume, before anything else is read from it or changed. */
  readonly check?: (files: RunFiles) => Effect.Effect<void, E>
  /** Saves a checkpoint through `CurrentRun`. First undoes any work that an interruption left incomplete. */
  readonly save: (state: S) => Effect.Effect<void, E, CurrentRun | R>
  /** Tells whether the run is over and its last checkpoint is saved. */
  readonly isSaved: (state: S) => boolean
  /** Whether a checkpoint is also saved after the loop failed. */
  readonly savesOnFailure: boolean
}

/** The content of a checkpoint that was read and checked. */
export interface Saved<S> extends Target {
  readonly state: S
  /** The seconds that the run had taken when the checkpoint was saved. */
  readonly seconds: number
  readonly files: Loaded["files"]
  /** The settings that differ from those of the checkpoint. */
  readonly changes: ReadonlyArray<ConfigDifference>
  readonly warnings: ReadonlyArray<string>
}

/** Returns the Schemas of the fields that every `runtime.json` in a checkpoint has, given the Schema of the state. */
export const savedFields = <S>(state: Schema.Codec<S, unknown>) => ({
  progress: state,
  /** The seconds that the run had taken when the checkpoint was saved. */
  seconds: Schema.Finite,
  appended: Appended,
  /** The settings that a resumed run must share with this one. */
  settings: Schema.Record(Schema.String, Schema.Unknown),
})

/** Executes a run from its start, or from the last checkpoint of an earlier process, and returns its result. */
export const execute = Effect.fn("effect-rl.run")(function* <
  S,
  A extends { readonly runDir: string },
  E extends { readonly message: string },
  R,
>(
  program: Program<S, A, E, R>,
): Effect.fn.Return<A, E | RunError, RunStore | Recorder | Scope.Scope | R | Exclude<R, CurrentRun>> {
  const { spec, saving } = program
  const files = yield* openFiles(program)
  const isUnsaved = saving !== undefined && files.resumed && (yield* (yield* Checkpoints)(files).list).length === 0
  const saved = saving !== undefined && files.resumed && !isUnsaved ? yield* restore(program, saving, files) : undefined
  // Write the config of a new run first, so that the run can be resumed even if it is interrupted while it is opened.
  if (!files.resumed) yield* life.writeSpec(files, spec)
  const opened = yield* Effect.onError(program.open(files, saved), (cause) =>
    files.resumed ? Effect.void : Effect.ignore(recordUnopened(files, spec, cause)),
  )
  const finished = files.resumed ? yield* finishedResult(files, program.result.schema) : undefined
  if (finished !== undefined && opened.isOver?.(finished) === true) {
    if (saved !== undefined) yield* refuseChanged(files, saved)
    return { ...finished, runDir: files.directory }
  }
  const { state, resumedFromStep, notes = [], warnings = [] } = opened
  const kept = { saved, logsUntil: opened.logsUntil, results: program.results }
  const logWarnings = files.resumed ? yield* life.prepare(files, spec, kept) : []
  const recording = yield* life.startRecording(files, startedOf(spec, resumedFromStep), {
    notes: [
      ...files.notes,
      ...notes,
      ...(saved?.changes ?? []).map(changeOf),
      ...(isUnsaved ? ["the run had not saved anything, so it starts over"] : []),
    ],
    warnings: [...warnings, ...(saved?.warnings ?? []), ...logWarnings],
  })
  const secondsBefore = saved?.seconds ?? opened.seconds ?? 0
  const workBeganAt = yield* Clock.currentTimeNanos
  const current = (recording: Recording) => currentRun(program, { state, files, recording, secondsBefore, workBeganAt })
  // Only the loop can be interrupted: once it has ended, the results are written even if a signal arrives.
  return yield* Effect.uninterruptibleMask((restore) =>
    withLogs(recording, spec.logLevel, (recording) =>
      Effect.provideService(
        work(
          program,
          state,
          restore(program.improves === false ? program.loop(state) : whileImproving(program.loop(state))),
        ),
        CurrentRun,
        current(recording),
      ),
    ).pipe(Effect.andThen(Effect.provideService(conclude(program, state), CurrentRun, current(recording)))),
  )
})

/**
 * Records why a new run could not be opened, so that it counts as failed. An interruption is not recorded, because the run
 * can begin again.
 */
const recordUnopened = Effect.fnUntraced(function* (files: RunFiles, spec: RunSpec, cause: Cause.Cause<unknown>) {
  if (Cause.hasInterruptsOnly(cause)) return
  const recording = yield* life.startRecording(files, startedOf(spec, null), {})
  const message = Cause.pretty(cause)
  yield* recording.emit([{ _tag: "RunEnded", step: 0, episodes: 0, reason: "failed", message }])
})

/** Restores a run's state from `checkpoint`, and passes it to `use`. Writes nothing to the run's folder. */
export const inspect = Effect.fnUntraced(function* <S, A, B, E extends { readonly message: string }, R>(
  program: Program<S, A, E, R> & { readonly saving: Saving<S, E, R> },
  checkpoint: string,
  use: (state: S) => Effect.Effect<B, E, CurrentRun | R>,
): Effect.fn.Return<B, E | RunError, RunStore | Scope.Scope | R | Exclude<R, CurrentRun>> {
  const files = yield* openFiles(program)
  const saved = yield* restore(program, program.saving, files, checkpoint)
  const { state } = yield* program.open(files, saved)
  const workBeganAt = yield* Clock.currentTimeNanos
  const current = currentRun(program, { state, files, recording: silent, secondsBefore: 0, workBeganAt })
  return yield* Effect.provideService(use(state), CurrentRun, current)
})

/** Opens the run's folder. In the result, usual paths lead to the actual places that the config chooses. */
const openFiles = Effect.fnUntraced(function* <S, A, E, R>({ spec, place, places = {}, saving }: Program<S, A, E, R>) {
  const opened = yield* (yield* RunStore).open(spec.identity, place)
  if (opened.resumed && saving?.check !== undefined) yield* saving.check(opened)
  return opened.placed(places)
})

/** Loads the checkpoint `wanted` (a name or `latest`), with its state. Fails if it was saved with other settings. */
const restore = Effect.fnUntraced(function* <S, A, E, R>(
  { places }: Program<S, A, E, R>,
  { schema, settings, changes }: Saving<S, E, R>,
  run: RunFiles,
  wanted = "latest",
) {
  const checkpoints = (yield* Checkpoints)(run)
  const { name, files, skipped } = yield* wanted === "latest" ? checkpoints.latest : checkpoints.at(wanted)
  const path = Layout.checkpointFile(name, Layout.inCheckpoint.runtime)
  const refuse = (problem: string) => new CheckpointError({ path, message: `${run.pathOf(path)}: ${problem}` })
  const decode = Schema.decodeUnknownEffect(jsonText(Schema.Struct(savedFields(schema))))
  const saved = yield* Effect.mapError(decode(utf8.decode(files[Layout.inCheckpoint.runtime])), (error) =>
    refuse(oneLine(error.message)),
  )
  const located = Layout.locate(places ?? {}, Layout.checkpoints)
  const folder = located.startsWith("/") ? located : `${run.directory}/${located}`
  const changed = differences(settings, saved.settings)
  const forbidden = changed.find(({ key }) => changes?.isAllowed(key) !== true)
  if (forbidden !== undefined) {
    const instead = changes === undefined ? "" : `, or ${changes.instead(`${folder}/${name}`)}`
    return yield* refuse(`${refusalOf(forbidden)}${instead}`)
  }
  return {
    name,
    folder,
    changes: changed,
    files,
    state: saved.progress,
    seconds: saved.seconds,
    appended: saved.appended,
    warnings: skipped.map((one) => `checkpoint ${one.name} is damaged (${one.reason}); resuming from ${name}`),
  }
})

/** A run that is ready for its work. */
interface Begun<S> {
  readonly state: S
  readonly files: RunFiles
  readonly recording: Recording
  /** The seconds that earlier processes spent on the run. */
  readonly secondsBefore: number
  /** The time, in nanoseconds, at which this process began with the work: small validations take less than a millisecond. */
  readonly workBeganAt: bigint
}

/** Makes the service `CurrentRun` for the loop. */
const currentRun = <S, A, E, R>(
  { saving, startedAtMillis }: Program<S, A, E, R>,
  { state, files, recording, secondsBefore, workBeganAt }: Begun<S>,
): CurrentRun["Service"] => {
  const secondsOfWork = Effect.map(Clock.currentTimeNanos, (now) => Number(now - workBeganAt) / 1e9)
  const seconds = Effect.map(Clock.currentTimeMillis, (now) => secondsBefore + (now - startedAtMillis) / 1000)
  let checkpoints: RunCheckpoints | undefined
  /** The fiber that writes the last checkpoint; undefined after it has succeeded. */
  let writing: Fiber.Fiber<void, RunError> | undefined
  const saved = Effect.suspend(() => (writing === undefined ? Effect.void : Fiber.join(writing))).pipe(
    // If the folder was moved or deleted, the error must say so.
    Effect.tapErrorTag("RunStoreError", () => refuseIfMoved(files)),
  )
  const letSave = Effect.suspend(() => (writing?.pollUnsafe() === undefined ? Effect.yieldNow : saved))
  const save = Effect.fnUntraced(function* ({ path, runtime, ...parts }: Parts) {
    if (saving === undefined) return
    yield* saved
    yield* refuseIfMoved(files)
    yield* recording.flush
    const sizes = yield* files.sizes
    // Copy the state, because the loop changes it while the checkpoint is written.
    const progress = structuredClone(yield* Effect.orDie(Schema.encodeEffect(saving.schema)(state)))
    const moment = { progress, seconds: yield* seconds }
    checkpoints ??= (yield* Checkpoints)(files)
    const { save } = checkpoints
    const write = Effect.gen(function* () {
      const all = { ...runtime, ...moment, appended: yield* files.appendedAt(sizes), settings: saving.settings }
      yield* save({
        ...parts,
        strategy: saving.strategy,
        files: { ...parts.files, [Layout.inCheckpoint.runtime]: utf8.encode(prettyJson(all)) },
      })
      yield* recording.emit([{ _tag: "CheckpointSaved", step: parts.step, path }])
      writing = undefined
    })
    if (Object.values(parts.files).some((content) => !(content instanceof Uint8Array))) return yield* write
    writing = yield* Effect.forkChild(write, { uninterruptible: true })
  }, Effect.uninterruptible)
  return { files, recording, secondsOfWork, seconds, save, isSaving: () => writing !== undefined, letSave, saved }
}

/**
 * Runs the loop and records how it ended. If it was interrupted, saves a checkpoint. Only the loop is interruptible.
 */
const work = Effect.fnUntraced(function* <S, A, E extends { readonly message: string }, R>(
  program: Program<S, A, E, R>,
  state: S,
  loop: Effect.Effect<void, E, CurrentRun | R>,
) {
  const { saving, position } = program
  const { recording, saved } = yield* CurrentRun
  const ended = (reason: RunEnded["reason"], message: string | null) =>
    recording.emit([{ _tag: "RunEnded", ...position(state), reason, message }])

  const looped = yield* Effect.exit(loop)
  const written = yield* Effect.exit(saved)
  const isCut = Exit.isSuccess(looped) || Cause.hasInterruptsOnly(looped.cause)
  // The error of the loop is reported rather than an error of the last checkpoint.
  const exit: Exit.Exit<void, E | RunError> = isCut && Exit.isFailure(written) ? written : looped
  const isInterrupted = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
  // Ignore an interruption that comes after the last checkpoint: all work is done and saved.
  const isDone = saving?.isSaved(state) === true || program.endsUponInterrupt === true
  if (Exit.isSuccess(exit) || (isInterrupted && isDone))
    return yield* ended("finished", program.earlyEndOf?.(state) ?? null)
  if (isInterrupted) {
    // The event `interrupted` tells the user that the run can be resumed, so save the state before it is emitted.
    const save = saving === undefined ? Effect.void : saving.save(state)
    yield* Effect.tapError(Effect.andThen(save, saved), (error) => Effect.ignore(ended("failed", error.message)))
    yield* ended("interrupted", null)
    return yield* exit
  }
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  // If a file could not be read or written, a new checkpoint may be damaged, too, so keep the previous one.
  if (saving?.savesOnFailure === true && !(error instanceof RunStoreError))
    yield* Effect.ignore(Effect.andThen(saving.save(state), saved))
  const isStopped = error !== undefined && program.stopsUpon?.(error) === true
  // If recording the end fails too (the disk is full), report the first error.
  yield* Effect.ignore(isStopped ? ended("stopped", error.message) : ended("failed", Cause.pretty(exit.cause)))
  return yield* exit
})

/** Writes the results of a finished run, and returns them. */
const conclude = Effect.fnUntraced(function* <S, A extends object, E, R>({ result }: Program<S, A, E, R>, state: S) {
  const current = yield* CurrentRun
  const results = yield* result.of(state)
  yield* life.conclude(current, results)
  if (result.after !== undefined) yield* result.after(current.files, state)
  return results.metrics
})

/** Runs the loop, while the backend makes its programs faster. */
const whileImproving = Effect.fnUntraced(function* <A, E, R>(loop: Effect.Effect<A, E, R>) {
  const { improve } = Option.getOrElse(yield* Effect.serviceOption(Backend), () => ({ improve: undefined }))
  if (improve === undefined) return yield* loop
  const improving = yield* Effect.forkChild(improve)
  return yield* Effect.ensuring(loop, Fiber.interrupt(improving))
})

/** Describes a setting that a resumed run has changed. */
const changeOf = ({ key, now, then }: ConfigDifference): string =>
  `${key} is ${display(now)} from here on, and was ${display(then)} when the checkpoint was saved`
