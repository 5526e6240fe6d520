/** Holds the counters of a training, which checkpoints save. The loop in `Trainer.ts` changes them. */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { Evaluation, evaluationOf, type ValidationOutcome } from "../../run/evaluation.ts"
import { count, list, recent, scoreHash, total } from "../../run/Progress.ts"
import { meanOrNull } from "../../base/statistics/resampling.ts"

/** Numbers by name. They may be infinite, which plain JSON cannot hold. */
const numbers = Schema.toCodecJson(Schema.Record(Schema.String, Schema.mutableKey(Schema.Number)))

/** The state of a training, except for its learner and its envs, which checkpoints save in files of their own. */
export class TrainingState extends Schema.Class<TrainingState>("TrainingState")({
  step: count(),
  iteration: count(),
  episodes: count(),
  scoreSum: total,
  recentReturns: list(Schema.Finite),
  recentLengths: list(Schema.Int),
  /** How many episodes were cut off because their simulation diverged. Missing if none was. */
  divergedEpisodes: Schema.mutableKey(Schema.optionalKey(Schema.Int)),
  /** A hash of all returns and lengths so far, for the digest of the run's result. */
  scoreHash,
  lastValidationStep: count(),
  failedValidations: count(),
  lastCheckpointStep: count(),
  lastCheckpointEpisode: count(),
  lastRenderStep: count(),
  /** The number of episodes at the last rendering by `render.everyEpisodes`. Missing before the first one. */
  lastRenderEpisode: Schema.mutableKey(Schema.optionalKey(Schema.Int)),
  evaluations: list(Evaluation),
  /** The callback that has ended the training, and why; null if none has. */
  stopped: Schema.mutableKey(
    Schema.NullOr(Schema.Struct({ by: Schema.String, reason: Schema.String })).pipe(
      Schema.withConstructorDefault(Effect.succeed(null)),
    ),
  ),
  /** The learning rate that a callback has set in place of the scheduled one; null if none has. */
  learningRate: Schema.mutableKey(
    Schema.NullOr(Schema.Finite).pipe(Schema.withConstructorDefault(Effect.succeed(null))),
  ),
  /** The product of all factors by which callbacks have scaled the learning rate. */
  learningRateFactor: Schema.mutableKey(Schema.Finite.pipe(Schema.withConstructorDefault(Effect.succeed(1)))),
  /** The numbers that callbacks keep, by the callback's name. */
  callbacks: Schema.mutableKey(
    Schema.Record(Schema.String, numbers).pipe(Schema.withConstructorDefault(Effect.succeed({}))),
  ),
  /** The last metrics that callbacks have seen; none in a training without callbacks. */
  metrics: Schema.mutableKey(numbers.pipe(Schema.withConstructorDefault(Effect.succeed({})))),
  /** The device of each compiled program, by name. A resume on another device changes the last bits of results. */
  devices: Schema.mutableKey(
    Schema.Record(Schema.String, Schema.String).pipe(Schema.withConstructorDefault(Effect.succeed({}))),
  ),
}) {
  /** The number of env steps that earlier processes of this run did. */
  readonly stepsBefore = this.step

  /** Counts an ended episode with its return `score`, and returns the episode's index, counted from 0. */
  addEpisode(score: number, length: number): number {
    this.scoreSum += score
    this.recentReturns.push(score)
    this.recentLengths.push(length)
    this.scoreHash.add(score)
    this.scoreHash.add(length)
    return this.episodes++
  }

  /** Keeps only the last hundred returns and lengths. Called once per iteration, since once per episode costs more. */
  trim(): void {
    this.recentReturns = recent(this.recentReturns)
    this.recentLengths = recent(this.recentLengths)
  }

  addValidation(outcome: ValidationOutcome): void {
    this.lastValidationStep = this.step
    const evaluation = evaluationOf(this.step, outcome)
    for (const value of evaluation.returns) this.scoreHash.add(value)
    this.evaluations.push(evaluation)
  }

  /** The validation at exactly the current step; undefined if there was none. */
  get evaluationHere(): Evaluation | undefined {
    const last = this.evaluations.at(-1)
    return last?.step === this.step ? last : undefined
  }

  /** The mean return of the validation at exactly the current step; null if there was none. */
  get scoreHere(): number | null {
    const here = this.evaluationHere
    return here === undefined ? null : meanOrNull(here.returns)
  }

  /** The mean return of all training episodes; null if none has ended. */
  get meanScore(): number | null {
    return this.episodes === 0 ? null : this.scoreSum / this.episodes
  }

  /** The mean return of the last hundred training episodes; null if none has ended. */
  get meanReturn(): number | null {
    return meanOrNull(this.recentReturns)
  }

  get meanLength(): number | null {
    return meanOrNull(this.recentLengths)
  }
}
