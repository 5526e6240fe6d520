/**
 * Trains the runs of a config until all have ended: connects a trainer, wherever it computes gradients, with the runs' records
 * and orchestrators.
 */
import { Effect } from "effect"
import type { DecodeOptions, Plain } from "../base/config/Config.ts"
import { meanOf } from "../base/statistics/resampling.ts"
import type * as Lms from "../agents/lm/Lms.ts"
import { CurrentRun } from "../run/CurrentRun.ts"
import { type RunEvent, validationOfTrainer } from "../run/record/RunEvent.ts"
import type { RunOptions } from "../run/RunOptions.ts"
import type { BaseModel } from "./baseModel.ts"
import type { MultiRunConfig } from "./config/MultiRunConfig.ts"
import { refuseMisfit, warningsOfAdded } from "./config/readConfig.ts"
import type { Playing } from "./orchestrator/playing.ts"
import { positionOf } from "./progress.ts"
import { makeRunRecords } from "./records/RunRecords.ts"
import { evictionMessage } from "./runs/eviction.ts"
import { Runs } from "./runs/Runs.ts"
import type { Progress } from "./runs/TrainedRun.ts"
import { makeTokenRate } from "./tokenRate.ts"
import type { Trainer, TrainerOptions } from "./trainer/Trainer.ts"
import { TrainerError } from "./TrainerError.ts"
import { Broadcasts } from "./weights/Broadcasts.ts"

/** A multi-run trainer whose config is checked and whose model is open. */
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
  /** Settings that are allowed, but probably a mistake. */
  readonly warnings: ReadonlyArray<string>
}

/** The progress of the trainer. The runs are saved in their own folders, where a resumed trainer finds them. */
export interface State {
  /** The progress of each run, including those that have left. */
  readonly progress: Map<string, Readonly<Progress>>
  /** The ids of the runs that have reached their last step. */
  finished: ReadonlyArray<string>
  /** The reasons why runs were not trained to the end. */
  reasons: ReadonlyArray<string>
  /** The number of updates of all runs that earlier processes made. */
  readonly firstStep: number
}

/** The parts of a trainer that are told what happens to the runs. */
export type TrainerEvents = Required<Pick<TrainerOptions, "publish" | "report" | "records" | "afterTurn">>

/** The trainer of a config, and the orchestrators that play for it. */
interface Working<E, R> {
  readonly playing: Playing
  readonly trainerOf: (events: TrainerEvents) => Effect.Effect<Trainer, E, R>
}

/** Trains until all runs have ended. Saves all runs if it is interrupted. */
export const work = Effect.fnUntraced(function* <E, R>(
  prepared: Prepared,
  state: State,
  { playing, trainerOf }: Working<E, R>,
) {
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

  const trainer = yield* trainerOf({
    publish: Effect.fnUntraced(function* (run) {
      yield* playing.publish(run)
      run.own.completed.reach(run.progress.step)
    }),
    records,
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
