import { Schema } from "effect"
import { ScoreHash } from "./ScoreHash.ts"
import type { ValidationOutcome } from "./validation/Validator.ts"

/** How many episodes the mean return that people watch is taken over. */
const recentEpisodes = 100

export const Evaluation = Schema.Struct({
  step: Schema.Int,
  returns: Schema.Array(Schema.Finite),
  lengths: Schema.Array(Schema.Int),
  terminated: Schema.Int,
})
export type Evaluation = typeof Evaluation.Type

/** A run's progress, as `runtime.json` of a checkpoint holds it. */
export const SavedProgress = Schema.Struct({
  step: Schema.Int,
  iteration: Schema.Int,
  episodes: Schema.Int,
  scoreSum: Schema.Finite,
  recentReturns: Schema.Array(Schema.Finite),
  recentLengths: Schema.Array(Schema.Int),
  scoreHash: Schema.Tuple([Schema.Int, Schema.Int]),
  lastValidationStep: Schema.Int,
  failedValidations: Schema.Int,
  lastCheckpointStep: Schema.Int,
  lastCheckpointEpisode: Schema.Int,
  lastRenderStep: Schema.Int,
  evaluations: Schema.Array(Evaluation),
  wallSeconds: Schema.Finite,
})
export type SavedProgress = typeof SavedProgress.Type

const mean = (values: ReadonlyArray<number>): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length

export const evaluationOf = (step: number, { episodes }: ValidationOutcome): Evaluation => ({
  step,
  returns: episodes.map((episode) => episode.return),
  lengths: episodes.map((episode) => episode.length),
  terminated: episodes.filter((episode) => episode.terminated).length,
})

/** A run's progress while it goes. */
export class RunState {
  step = 0
  iteration = 0
  episodes = 0
  scoreSum = 0
  lastValidationStep = 0
  failedValidations = 0
  lastCheckpointStep = 0
  lastCheckpointEpisode = 0
  lastRenderStep = 0
  /** Seconds spent before this process took over. */
  earlierSeconds = 0
  evaluations: ReadonlyArray<Evaluation> = []
  private recentReturns: Array<number> = []
  private recentLengths: Array<number> = []
  private hash = new ScoreHash()

  /** Counts an episode and gives its index. */
  addEpisode(total: number, length: number): number {
    this.scoreSum += total
    this.recentReturns.push(total)
    this.recentLengths.push(length)
    this.hash.add(total)
    this.hash.add(length)
    return this.episodes++
  }

  /** Drops all but the last hundred returns; called once an iteration rather than once an episode. */
  trim(): void {
    const excess = this.recentReturns.length - recentEpisodes
    if (excess <= 0) return
    this.recentReturns = this.recentReturns.slice(excess)
    this.recentLengths = this.recentLengths.slice(excess)
  }

  addValidation(outcome: ValidationOutcome): void {
    this.lastValidationStep = this.step
    const evaluation = evaluationOf(this.step, outcome)
    for (const value of evaluation.returns) this.hash.add(value)
    this.evaluations = [...this.evaluations, evaluation]
  }

  /** The evaluation of this very step, if there was one. */
  get evaluationHere(): Evaluation | undefined {
    const last = this.evaluations.at(-1)
    return last?.step === this.step ? last : undefined
  }

  /** The mean return of a validation at this very step. */
  get scoreHere(): number | null {
    const here = this.evaluationHere
    return here === undefined ? null : mean(here.returns)
  }

  get meanScore(): number | null {
    return this.episodes === 0 ? null : this.scoreSum / this.episodes
  }

  get meanReturn(): number | null {
    return mean(this.recentReturns)
  }

  get meanLength(): number | null {
    return mean(this.recentLengths)
  }

  get scoreHash(): readonly [number, number] {
    return this.hash.state
  }

  save(wallSeconds: number): SavedProgress {
    return {
      step: this.step,
      iteration: this.iteration,
      episodes: this.episodes,
      scoreSum: this.scoreSum,
      recentReturns: this.recentReturns,
      recentLengths: this.recentLengths,
      scoreHash: this.hash.state,
      lastValidationStep: this.lastValidationStep,
      failedValidations: this.failedValidations,
      lastCheckpointStep: this.lastCheckpointStep,
      lastCheckpointEpisode: this.lastCheckpointEpisode,
      lastRenderStep: this.lastRenderStep,
      evaluations: this.evaluations,
      wallSeconds,
    }
  }

  static restore(saved: SavedProgress): RunState {
    const state = new RunState()
    state.step = saved.step
    state.iteration = saved.iteration
    state.episodes = saved.episodes
    state.scoreSum = saved.scoreSum
    state.recentReturns = [...saved.recentReturns]
    state.recentLengths = [...saved.recentLengths]
    state.hash = new ScoreHash(saved.scoreHash)
    state.lastValidationStep = saved.lastValidationStep
    state.failedValidations = saved.failedValidations
    state.lastCheckpointStep = saved.lastCheckpointStep
    state.lastCheckpointEpisode = saved.lastCheckpointEpisode
    state.lastRenderStep = saved.lastRenderStep
    state.evaluations = saved.evaluations
    state.earlierSeconds = saved.wallSeconds
    return state
  }
}
