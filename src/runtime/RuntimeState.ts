import { Effect, Schema } from "effect"
import type { MemoryEntry } from "../agent/memory/Memory.ts"
import { Spending } from "../lm/middleware/budgeted.ts"
import { LmUsage, noUsage } from "../lm/Chat.ts"
import { Evaluation } from "../run/evaluation.ts"
import { count, list, recent, scoreHash, total } from "../run/Progress.ts"
import { meanOrNull } from "../statistics/resampling.ts"

/** The scores of one episode, and how it ended. */
export interface EpisodeScores {
  readonly scores: ReadonlyArray<number>
  readonly terminated: boolean
  readonly truncated: boolean
}

export const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0)

/** An episode or a validation that is being played, and what to restore if it doesn't end. */
interface Unfinished {
  doing: "train" | "validation" | null
  /** The agent's memory before the episode. */
  memory: ReadonlyArray<MemoryEntry> | null
  /** The usage before it. */
  usage: LmUsage
}

const usage = Schema.mutableKey(LmUsage.pipe(Schema.withConstructorDefault(Effect.succeed(noUsage))))

/** The state of a training of agents, apart from the agent's memory. It is saved between two episodes only. */
export class RuntimeState extends Schema.Class<RuntimeState>("RuntimeState")({
  /** Training episodes that have ended, including those that were skipped. */
  seen: count(),
  /** The number of episodes that had ended when the run's folder was made. */
  begunAt: count(),
  /** Training episodes that were played. */
  played: count(),
  /** Steps of the run, including those in a part of it that another program ran. */
  steps: count(),
  /** Steps whose scores are known. */
  scoredSteps: count(),
  scoreSum: total,
  recentScores: list(Schema.Finite),
  scoreHash,
  lastValidation: count(-1),
  lastCheckpoint: count(-1),
  /** The validation score in the last checkpoint. */
  lastCheckpointScore: Schema.mutableKey(
    Schema.NullOr(Schema.Finite).pipe(Schema.withConstructorDefault(Effect.succeed(null))),
  ),
  lastMemory: count(-1),
  failedValidationEpisodes: count(),
  evaluations: list(Evaluation),
  usage,
  /** What counts against the budget; null for a run without one. */
  spent: Schema.mutableKey(Schema.NullOr(Spending).pipe(Schema.withConstructorDefault(Effect.succeed(null)))),
}) {
  /** The number of steps that earlier processes have done. */
  readonly stepsBefore = this.steps

  /** The episode or validation that is being played. If it is interrupted, it is undone before a checkpoint is saved. */
  readonly unfinished: Unfinished = { doing: null, memory: null, usage: this.usage }

  /** Makes a state that skips the first episodes of the data set. */
  static readonly after = (seen: number): RuntimeState => new RuntimeState({ seen, begunAt: seen })

  /** Forgets the files of another run, whose checkpoint this state is from: this run's own folder is new. */
  beginFolder(): void {
    this.begunAt = this.seen
    this.lastCheckpoint = -1
    this.lastMemory = -1
  }

  addEpisode({ scores }: EpisodeScores): void {
    this.seen++
    this.played++
    this.steps += scores.length
    this.scoredSteps += scores.length
    const total = sum(scores)
    this.scoreSum += total
    this.scoreHash.add(this.seen)
    for (const score of scores) this.scoreHash.add(score)
    this.recentScores.push(total)
    this.recentScores = recent(this.recentScores)
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

  addValidation(episodes: ReadonlyArray<EpisodeScores>, failed: number): void {
    this.lastValidation = this.seen
    this.failedValidationEpisodes += failed
    const returns = episodes.map(({ scores }) => sum(scores))
    for (const value of returns) this.scoreHash.add(value)
    this.scoreHash.add(failed)
    const lengths = episodes.map(({ scores }) => scores.length)
    const terminated = episodes.filter((episode) => episode.terminated).length
    this.evaluations.push({ step: this.seen, returns, lengths, terminated })
  }

  /** The mean episode score of a validation after exactly these episodes. */
  get scoreHere(): number | null {
    const last = this.evaluations.at(-1)
    return last?.step === this.seen ? meanOrNull(last.returns) : null
  }

  /** The mean score of all steps whose scores are known. */
  get meanScore(): number | null {
    return this.scoredSteps === 0 ? null : this.scoreSum / this.scoredSteps
  }

  /** The mean score of the last hundred episodes. */
  get meanReturn(): number | null {
    return meanOrNull(this.recentScores)
  }
}
