import { Schema } from "effect"
import { ScoreHash } from "../train/ScoreHash.ts"
import { Evaluation } from "../train/RunState.ts"
import { LmUsage, noUsage } from "../lm/Chat.ts"

/** How many episodes the mean that people watch is taken over. */
const recentEpisodes = 100

/** A run's progress, as `runtime.json` of a checkpoint holds it. */
export const SavedProgress = Schema.Struct({
  /** Training episodes that have ended, those that were passed over included. */
  seen: Schema.Int,
  /** As many had ended when the run's folder began. */
  begunAt: Schema.Int,
  /** Those that were played. */
  played: Schema.Int,
  /** Of the run, also of a part of it that another program ran. */
  steps: Schema.Int,
  /** Those whose scores are known. */
  scoredSteps: Schema.Int,
  scoreSum: Schema.Finite,
  recentScores: Schema.Array(Schema.Finite),
  hash: Schema.Tuple([Schema.Int, Schema.Int]),
  lastValidation: Schema.Int,
  lastCheckpoint: Schema.Int,
  lastMemory: Schema.Int,
  failedValidationEpisodes: Schema.Int,
  evaluations: Schema.Array(Evaluation),
  usage: LmUsage,
  wallSeconds: Schema.Finite,
})
export type SavedProgress = typeof SavedProgress.Type

/** One episode, as far as scores go. */
export interface Played {
  readonly scores: ReadonlyArray<number>
  readonly terminated: boolean
  readonly truncated: boolean
}

export const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0)
const mean = (values: ReadonlyArray<number>): number | null =>
  values.length === 0 ? null : sum(values) / values.length

/** A run's progress while it goes; it always is at a boundary between two episodes. */
export class RuntimeState {
  seen: number
  begunAt: number
  played = 0
  steps = 0
  scoredSteps = 0
  lastValidation = -1
  lastCheckpoint = -1
  /** The validation score in that checkpoint. */
  lastCheckpointScore: number | null = null
  lastMemory = -1
  failedValidationEpisodes = 0
  usage: LmUsage = noUsage
  /** Seconds spent before this process took over. */
  earlierSeconds = 0
  evaluations: ReadonlyArray<Evaluation> = []
  private scoreSum = 0
  private recentScores: Array<number> = []
  private hash = new ScoreHash()

  /** `passedOver` episodes of the data set are not played. */
  constructor(passedOver = 0) {
    this.seen = passedOver
    this.begunAt = passedOver
  }

  /** What another run's folder has, its own new one hasn't. */
  beginFolder(): void {
    this.begunAt = this.seen
    this.lastCheckpoint = -1
    this.lastMemory = -1
  }

  addEpisode({ scores }: Played): void {
    this.seen++
    this.played++
    this.steps += scores.length
    this.scoredSteps += scores.length
    const total = sum(scores)
    this.scoreSum += total
    this.hash.add(this.seen)
    for (const score of scores) this.hash.add(score)
    this.recentScores.push(total)
    if (this.recentScores.length > 2 * recentEpisodes) this.recentScores = this.recentScores.slice(-recentEpisodes)
  }

  addUsage(more: LmUsage): void {
    const { calls, retries, inputTokens, outputTokens } = this.usage
    this.usage = {
      calls: calls + more.calls,
      retries: retries + more.retries,
      inputTokens: inputTokens + more.inputTokens,
      outputTokens: outputTokens + more.outputTokens,
    }
  }

  addValidation(episodes: ReadonlyArray<Played>, failed: number): void {
    this.lastValidation = this.seen
    this.failedValidationEpisodes += failed
    const returns = episodes.map(({ scores }) => sum(scores))
    for (const value of returns) this.hash.add(value)
    this.hash.add(failed)
    const lengths = episodes.map(({ scores }) => scores.length)
    const terminated = episodes.filter((episode) => episode.terminated).length
    this.evaluations = [...this.evaluations, { step: this.seen, returns, lengths, terminated }]
  }

  /** The mean episode score of a validation at this very moment. */
  get scoreHere(): number | null {
    const last = this.evaluations.at(-1)
    return last?.step === this.seen ? mean(last.returns) : null
  }

  /** Over steps. */
  get meanScore(): number | null {
    return this.scoredSteps === 0 ? null : this.scoreSum / this.scoredSteps
  }

  /** Over the last hundred episodes. */
  get meanReturn(): number | null {
    return mean(this.recentScores.slice(-recentEpisodes))
  }

  get scoreHash(): readonly [number, number] {
    return this.hash.state
  }

  save(wallSeconds: number): SavedProgress {
    return {
      seen: this.seen,
      begunAt: this.begunAt,
      played: this.played,
      steps: this.steps,
      scoredSteps: this.scoredSteps,
      scoreSum: this.scoreSum,
      recentScores: this.recentScores.slice(-recentEpisodes),
      hash: this.hash.state,
      lastValidation: this.lastValidation,
      lastCheckpoint: this.lastCheckpoint,
      lastMemory: this.lastMemory,
      failedValidationEpisodes: this.failedValidationEpisodes,
      evaluations: this.evaluations,
      usage: this.usage,
      wallSeconds,
    }
  }

  static restore(saved: SavedProgress): RuntimeState {
    const state = new RuntimeState()
    state.seen = saved.seen
    state.begunAt = saved.begunAt
    state.played = saved.played
    state.steps = saved.steps
    state.scoredSteps = saved.scoredSteps
    state.scoreSum = saved.scoreSum
    state.recentScores = [...saved.recentScores]
    state.hash = new ScoreHash(saved.hash)
    state.lastValidation = saved.lastValidation
    state.lastCheckpoint = saved.lastCheckpoint
    state.lastMemory = saved.lastMemory
    state.failedValidationEpisodes = saved.failedValidationEpisodes
    state.evaluations = saved.evaluations
    state.lastCheckpointScore = state.scoreHere
    state.usage = saved.usage
    state.earlierSeconds = saved.wallSeconds
    return state
  }
}
