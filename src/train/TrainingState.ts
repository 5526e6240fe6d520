import { Effect, Schema } from "effect"
import { Evaluation, evaluationOf, type ValidationOutcome } from "../run/evaluation.ts"
import { count, list, recent, scoreHash, total } from "../run/Progress.ts"
import { meanOrNull } from "../statistics/resampling.ts"

/** The state of a training, apart from its learner and its envs. */
export class TrainingState extends Schema.Class<TrainingState>("TrainingState")({
  step: count(),
  iteration: count(),
  episodes: count(),
  scoreSum: total,
  recentReturns: list(Schema.Finite),
  recentLengths: list(Schema.Int),
  scoreHash,
  lastValidationStep: count(),
  failedValidations: count(),
  lastCheckpointStep: count(),
  lastCheckpointEpisode: count(),
  lastRenderStep: count(),
  evaluations: list(Evaluation),
  /** The device that runs each program. Another device computes other last bits. */
  devices: Schema.mutableKey(
    Schema.Record(Schema.String, Schema.String).pipe(Schema.withConstructorDefault(Effect.succeed({}))),
  ),
}) {
  /** The number of steps that earlier processes have done. */
  readonly stepsBefore = this.step

  /** Counts an episode and returns its index. */
  addEpisode(score: number, length: number): number {
    this.scoreSum += score
    this.recentReturns.push(score)
    this.recentLengths.push(length)
    this.scoreHash.add(score)
    this.scoreHash.add(length)
    return this.episodes++
  }

  /** Drops all but the last hundred returns. Called once an iteration, which is cheaper than once an episode. */
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

  /** The validation at this very step, if there was one. */
  get evaluationHere(): Evaluation | undefined {
    const last = this.evaluations.at(-1)
    return last?.step === this.step ? last : undefined
  }

  /** The mean return of a validation at this very step. */
  get scoreHere(): number | null {
    const here = this.evaluationHere
    return here === undefined ? null : meanOrNull(here.returns)
  }

  /** The mean return of all episodes. */
  get meanScore(): number | null {
    return this.episodes === 0 ? null : this.scoreSum / this.episodes
  }

  /** The mean return of the last hundred episodes. */
  get meanReturn(): number | null {
    return meanOrNull(this.recentReturns)
  }

  get meanLength(): number | null {
    return meanOrNull(this.recentLengths)
  }
}
