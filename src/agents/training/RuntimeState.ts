/** The counters of a training of agents. Checkpoints save them; `loop.ts` and `validate.ts` change them. */
import { Effect, Schema } from "effect"
import type { MemoryEntry } from "../agent/memory/Memory.ts"
import { Spending } from "../lm/middleware/budgeted.ts"
import { LmUsage, noUsage } from "../lm/Chat.ts"
import { Evaluation, evaluationOf, type ValidationOutcome } from "../../run/evaluation.ts"
import { count, list, recent, scoreHash, total } from "../../run/Progress.ts"
import { meanOrNull } from "../../base/statistics/resampling.ts"

/** The training episode or validation in progress, with the data that are needed to undo it after an interruption. */
interface UnfinishedEpisode {
  doing: "train" | "validation" | null
  /** The agent's memory before the training episode; null if the agent has none, or before the first episode. */
  memory: ReadonlyArray<MemoryEntry> | null
  /** The model usage before the episode or validation. */
  usage: LmUsage
}

const usage = Schema.mutableKey(LmUsage.pipe(Schema.withConstructorDefault(Effect.succeed(noUsage))))

/** The state of a training of agents, without the agent's memory. It is saved only between two episodes. */
export class RuntimeState extends Schema.Class<RuntimeState>("RuntimeState")({
  /** The number of training episodes that have ended, including skipped ones. */
  seen: count(),
  /** The number of training episodes that had ended when the run's folder was created. */
  begunAt: count(),
  /** The number of training episodes that were played, without skipped ones. */
  played: count(),
  /** The number of training steps. If the run continued another run's checkpoint, that run's steps are included. */
  steps: count(),
  /** The number of training steps with known scores. Steps in a checkpoint of another program have none. */
  scoredSteps: count(),
  scoreSum: total,
  /** The total scores of the last hundred training episodes. */
  recentScores: list(Schema.Finite),
  scoreHash,
  /** The numbers of ended episodes at the last validation, checkpoint and memory copy (`lastMemory`); -1 for none. */
  lastValidation: count(-1),
  lastCheckpoint: count(-1),
  /** The validation score in the last checkpoint; null if it has none. */
  lastCheckpointScore: Schema.mutableKey(
    Schema.NullOr(Schema.Finite).pipe(Schema.withConstructorDefault(Effect.succeed(null))),
  ),
  lastMemory: count(-1),
  failedValidationEpisodes: count(),
  evaluations: list(Evaluation),
  usage,
  /** The calls, tokens and cost that count against the budget; null if none are counted. */
  spent: Schema.mutableKey(Schema.NullOr(Spending).pipe(Schema.withConstructorDefault(Effect.succeed(null)))),
}) {
  /** The number of training steps before this process started, including those of another run. */
  readonly stepsBefore = this.steps

  /** The episode or validation in progress. If it is interrupted, it is undone before a checkpoint is saved. */
  readonly unfinished: UnfinishedEpisode = { doing: null, memory: null, usage: this.usage }

  /** Makes the state of a new run that skips the first `seen` episodes of the data set. */
  static readonly after = (seen: number): RuntimeState => new RuntimeState({ seen, begunAt: seen })

  /**
   * Sets the counters for a new run's folder, in which nothing is saved yet. The run may be new, or continue another run's
   * checkpoint.
   */
  beginFolder(): void {
    this.begunAt = this.seen
    this.lastCheckpoint = -1
    this.lastMemory = -1
  }

  /** Counts an ended training episode with the scores of its steps. */
  addEpisode(scores: ReadonlyArray<number>): void {
    this.seen++
    this.played++
    this.steps += scores.length
    this.scoredSteps += scores.length
    const total = scores.reduce((sum, score) => sum + score, 0)
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

  addValidation(outcome: ValidationOutcome & { readonly failed: number }): void {
    this.lastValidation = this.seen
    this.failedValidationEpisodes += outcome.failed
    const evaluation = evaluationOf(this.seen, outcome)
    for (const value of evaluation.returns) this.scoreHash.add(value)
    this.scoreHash.add(outcome.failed)
    this.evaluations.push(evaluation)
  }

  /** The mean episode score of the last validation; null if training episodes have ended since, or if there is none. */
  get scoreHere(): number | null {
    const last = this.evaluations.at(-1)
    return last?.step === this.seen ? meanOrNull(last.returns) : null
  }

  /** The mean score of all training steps that have a score; null if there are none. */
  get meanScore(): number | null {
    return this.scoredSteps === 0 ? null : this.scoreSum / this.scoredSteps
  }

  /** The mean total score of the last hundred training episodes; null if there are none. */
  get meanReturn(): number | null {
    return meanOrNull(this.recentScores)
  }
}
