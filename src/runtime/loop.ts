import { Cause, Clock, Effect, Exit, Option } from "effect"
import { type Restore, supervised } from "../train/supervised.ts"
import type { Agent } from "../agent/Agent.ts"
import type { MemoryEntry } from "../agent/memory/Memory.ts"
import type { DatasetError, TaskSet } from "../task/TaskSet.ts"
import type { EpisodeFailure } from "../episode/Protocol.ts"
import { type Rollout, type Step, usageOf } from "../episode/Rollout.ts"
import * as Rollouts from "../episode/rollouts/Rollouts.ts"
import * as SingleAgent from "../episode/protocols/SingleAgent.ts"
import { stepScored } from "../evaluate/events.ts"
import { scored, type ScoredStep } from "../evaluate/scored.ts"
import type { RunFiles } from "../run/store/RunFiles.ts"
import { RunStoreError } from "../run/store/RunStoreError.ts"
import { CallContext } from "../lm/Lm.ts"
import type { Recording } from "../run/record/Recorder.ts"
import type { RunEnded, RunEvent } from "../run/record/RunEvent.ts"
import { stream } from "../rng/Rng.ts"
import * as Layout from "../run/Layout.ts"
import type { RunSettings } from "./RuntimeConfig.ts"
import type { RuntimeState } from "./RuntimeState.ts"
import { validate } from "./validate.ts"
import type { LmUsage } from "../lm/Chat.ts"

/** What the loop works with: everything set up, nothing about how. */
export interface Running {
  readonly settings: RunSettings
  readonly agent: Agent
  readonly train: TaskSet | null
  readonly validation: TaskSet | null
  readonly totalEpisodes: number
  readonly state: RuntimeState
  readonly run: RunFiles
  readonly recording: Recording
  /** Episodes between two checkpoints; 0 saves at the end only. */
  readonly checkpointEvery: number
  readonly save: Effect.Effect<string, RunStoreError>
  /** What is going on between two boundaries: it must be taken back if it doesn't come to its end. */
  readonly unfinished: Unfinished
}

/** Mutable: what an interruption finds half done. */
export interface Unfinished {
  doing: "train" | "validation" | null
  /** Of the memory, before the episode. */
  entries: ReadonlyArray<MemoryEntry> | null
  /** Before it. */
  usage: LmUsage
}

export type LoopError = EpisodeFailure | DatasetError | RunStoreError

/**
 * Episode after episode, with validations and checkpoints between them. Wherever it is stopped, state and memory can be
 * put back to the last boundary between two episodes, and a checkpoint of that goes on as if nothing had happened.
 */
export const loop = Effect.fnUntraced(function* (running: Running): Effect.fn.Return<void, LoopError> {
  const { settings, state, totalEpisodes, checkpointEvery } = running
  const { runtime } = settings
  // One that was stopped before it had played anything is still at its start.
  const atStart = state.seen === state.begunAt
  if (atStart && runtime.runValidationAtStart && state.lastValidation < state.seen) yield* validated(running)
  if (atStart && runtime.checkpointOnStart && state.lastCheckpoint < state.seen) yield* checkpoint(running)

  while (true) {
    const finished = state.seen >= totalEpisodes
    if (isMultiple(state.seen, checkpointEvery) && state.lastCheckpoint < state.seen) yield* checkpoint(running)
    if (owesValidation(running)) yield* validated(running)
    if (finished) {
      if (state.lastCheckpoint < state.seen) yield* checkpoint(running)
      yield* keepMemory(running)
      return
    }
    if (isMultiple(state.seen, settings.output.saveMemoryEvery)) yield* keepMemory(running)
    yield* playNext(running)
  }
})

/** Whether the episodes so far are to be validated, and are not yet. */
export const owesValidation = ({ settings, state }: Pick<Running, "settings" | "state">): boolean =>
  isMultiple(state.seen, settings.runtime.validationFreq ?? 0) && state.lastValidation < state.seen

const isMultiple = (count: number, every: number): boolean => every > 0 && count > 0 && count % every === 0

const checkpoint = Effect.fnUntraced(function* (running: Running): Effect.fn.Return<void, RunStoreError> {
  const { recording, state, save } = running
  yield* recording.flush
  const path = yield* save
  yield* recording.emit([{ _tag: "CheckpointSaved", step: state.seen, path }])
})

/**
 * Validates, and saves what the score belongs to: with `top_k_val` there is a checkpoint to every score, and one that was
 * saved at this very episode, so that a validation that is killed loses none, is saved once more with its score.
 */
const validated = Effect.fnUntraced(function* (running: Running): Effect.fn.Return<void, LoopError> {
  yield* validate(running)
  const { settings, state } = running
  if (state.scoreHere === null) return
  const isKept = settings.runtime.checkpointStrategy === "top_k_val" || state.lastCheckpoint === state.seen
  if (isKept) yield* checkpoint(running)
})

const keepMemory = Effect.fnUntraced(function* ({ agent, run, state }: Running): Effect.fn.Return<void, RunStoreError> {
  const { memory } = agent
  if (memory === null || state.lastMemory >= state.seen) return
  yield* run.write(Layout.memory(state.seen), yield* memory.snapshot)
  state.lastMemory = state.seen
})

const playNext = Effect.fnUntraced(function* (running: Running): Effect.fn.Return<void, LoopError> {
  const { settings, agent, train, state, run, recording, unfinished } = running
  if (train === null) return
  const { seen } = state
  const episode = seen + 1
  const env = yield* train.at(seen)
  const random = stream(settings.seed, "train", seen)
  const envSeed = random.uint32()
  const samplingSeed = random.uint32()
  const scores: Array<number> = []
  let startedAtMillis = yield* Clock.currentTimeMillis
  let episodeScore = 0

  const tell = (step: ScoredStep): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (endedAtMillis) => {
      scores.push(step.score)
      episodeScore += step.score
      const event = stepScored(
        { ...step, startedAtMillis, endedAtMillis },
        {
          mode: "train",
          seenEpisodes: seen,
          episode,
          stepIndex: scores.length,
          episodeScore,
          envId: env.id,
          envType: env.type,
          agent,
          verbose: settings.runtime.verboseScoreLogging,
        },
      )
      startedAtMillis = endedAtMillis
      // What can't be recorded ends the run, from wherever a step is told of.
      return Effect.orDie(recording.emit([event]))
    })
  const onStep = (step: Step): Effect.Effect<void> => {
    const made = scored(step)
    return made === undefined ? Effect.void : tell(made)
  }

  unfinished.entries = agent.memory === null ? null : yield* agent.memory.entries
  unfinished.usage = state.usage
  unfinished.doing = "train"
  const rollout: Rollout = yield* SingleAgent.play(
    agent,
    { id: `train-${episode}`, env, envSeed, samplingSeed, onStep },
    { maxSteps: settings.runtime.maxStepsPerEpisode },
  ).pipe(Effect.provideService(CallContext, { phase: { _tag: "train" }, purpose: "action", episode, step: 0 }))
  // From here on it counts, or not at all.
  yield* Effect.uninterruptible(
    Effect.gen(function* () {
      const { ending } = rollout
      state.addEpisode({ scores, ...ending })
      state.addUsage(usageOf([rollout]))
      unfinished.doing = null
      if (settings.output.saveRollouts) yield* run.append(Layout.rollouts("train"), Rollouts.line(rollout))
      const events: Array<RunEvent> = [
        {
          _tag: "EpisodeEnded",
          step: state.seen,
          episode: seen,
          env: 0,
          return: episodeScore,
          length: scores.length,
          terminated: ending.terminated,
          truncated: ending.truncated,
          truncationReason: ending.truncationReason === "max_seq_len" ? null : ending.truncationReason,
        },
      ]
      if (state.seen % recordEvery === 0 || state.seen === running.totalEpisodes) events.push(progressOf(state))
      yield* recording.emit(events)
    }),
  )
})

/** Episodes between two records of how it goes. */
const recordEvery = 10

const progressOf = ({ seen, meanReturn, usage }: RuntimeState): RunEvent => ({
  _tag: "UpdateApplied",
  step: seen,
  update: seen,
  metrics: {
    ...(meanReturn === null ? {} : { "charts/episodic_return": meanReturn }),
    "lm/calls": usage.calls,
    "lm/retries": usage.retries,
    "lm/input_tokens": usage.inputTokens,
    "lm/output_tokens": usage.outputTokens,
  },
})

/** Runs the loop to whatever end it comes to, as `supervised` does; a failed one is taken back to a boundary first. */
export const supervise = (running: Running, restore: Restore): Effect.Effect<void, LoopError> =>
  supervised<LoopError>(
    {
      loop: Effect.catchDefect(loop(running), (defect): Effect.Effect<never, RunStoreError> =>
        defect instanceof RunStoreError ? Effect.fail(defect) : Effect.die(defect),
      ),
      isSaved: () => isSaved(running),
      conclude: (end) => concludeRun(running, end),
    },
    restore,
  )

/** Tells whether all episodes are played, and the last checkpoint holds the last validation's score. */
const isSaved = (running: Running): boolean => {
  const { agent, state, totalEpisodes, unfinished } = running
  const isPlayed = state.seen >= totalEpisodes && unfinished.doing === null && !owesValidation(running)
  const isKept = agent.memory === null || state.lastMemory === state.seen
  return isPlayed && isKept && state.lastCheckpoint === state.seen && state.lastCheckpointScore === state.scoreHere
}

const concludeRun = Effect.fnUntraced(function* (
  running: Running,
  exit: Exit.Exit<void, LoopError>,
): Effect.fn.Return<void, RunStoreError> {
  const { state, recording } = running
  const ended = (reason: RunEnded["reason"], message: string | null) =>
    recording.emit([{ _tag: "RunEnded", step: state.seen, episodes: state.seen, reason, message }])

  if (Exit.isSuccess(exit)) return yield* ended("finished", null)
  const saved = Effect.andThen(takeBack(running), checkpoint(running))
  if (Cause.hasInterruptsOnly(exit.cause)) {
    // Nobody may be told that it can be resumed when that could not be saved.
    yield* Effect.tapError(saved, (error) => Effect.ignore(ended("failed", error.message)))
    return yield* ended("interrupted", null)
  }
  // Whatever failed, the episodes before it are not lost; and what failed is not to be hidden by what fails now. Where
  // it was the disk, nobody knows what is in the files: what was saved last holds, and the rest is played again.
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  if (!(error instanceof RunStoreError)) yield* Effect.ignore(saved)
  // A budget that is spent is no fault: it stopped where it was told to.
  if (error?._tag === "LmError" && error.reason === "budget")
    return yield* Effect.ignore(ended("stopped", error.message))
  return yield* Effect.ignore(ended("failed", Cause.pretty(exit.cause)))
})

/** Nothing stays of an episode or a validation that has not come to its end. */
const takeBack = Effect.fnUntraced(function* ({
  unfinished,
  agent,
  state,
  run,
  recording,
}: Running): Effect.fn.Return<void, RunStoreError> {
  const { doing, entries, usage } = unfinished
  if (doing === null) return
  state.usage = usage
  if (doing === "validation") yield* run.remove(Layout.rollouts(state.seen))
  if (doing === "train" && agent.memory !== null && entries !== null) {
    const lines = entries.map((entry) => `${JSON.stringify(entry)}\n`).join("")
    yield* Effect.orDie(agent.memory.restore(lines, "the memory before the episode"))
  }
  yield* recording.emit([{ _tag: "Abandoned", mode: doing, seenEpisodes: state.seen }])
})
