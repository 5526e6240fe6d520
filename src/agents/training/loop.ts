/** Runs the loop of a training of agents: episodes, validations and checkpoints. */
import { Effect } from "effect"
import type { WorkerError } from "../../spread/workers/WorkerError.ts"
import { type Rollout, usageOf } from "../episode/Rollout.ts"
import * as Rollouts from "../episode/rollouts/Rollouts.ts"
import { episodeEnded, stepScored } from "../evaluate/events.ts"
import type { TimedStep } from "../evaluate/PlayedEpisode.ts"
import { CurrentRun } from "../../run/CurrentRun.ts"
import * as Layout from "../../run/Layout.ts"
import type { RunEvent } from "../../run/record/RunEvent.ts"
import { type AgentTraining, totalEpisodesOf } from "./AgentTraining.ts"
import { saveCheckpoint } from "./checkpointing.ts"
import type { RuntimeSettings } from "./RuntimeConfig.ts"
import type { RuntimeState } from "./RuntimeState.ts"
import { ahead, spreadOf } from "./spread/client.ts"
import type { TrainingEpisode } from "./spread/jobs.ts"
import { playTrainingEpisode } from "./trainingEpisode.ts"
import { validate } from "./validate.ts"

/**
 * Plays one training episode after another, with validations and checkpoints between them. If it is stopped during an
 * episode or a validation, `saveBoundary` undoes that part, so a run that resumes gives the same results as one that
 * was never stopped.
 */
export const loop = Effect.fnUntraced(function* (training: AgentTraining, state: RuntimeState) {
  const { runtime, output } = training.settings
  const totalEpisodes = totalEpisodesOf(training)
  const checkpointEvery = runtime.checkpointEveryEpisodes ?? Math.ceil(totalEpisodes / 10)
  const checkpoint = saveCheckpoint(training, state)
  // This is also true for a resumed run that was stopped before its first episode ended.
  const atStart = state.seen === state.begunAt
  const spread = yield* spreadOf(training)
  const next = spread === undefined ? undefined : yield* ahead(spread, training, state)
  if (atStart && runtime.runValidationAtStart && state.lastValidation < state.seen) yield* validated(training, state)
  if (atStart && runtime.checkpointOnStart && state.lastCheckpoint < state.seen) yield* checkpoint

  while (true) {
    const finished = state.seen >= totalEpisodes
    if (isMultiple(state.seen, checkpointEvery) && state.lastCheckpoint < state.seen) yield* checkpoint
    if (owesValidation(runtime, state)) yield* validated(training, state)
    if (finished) {
      if (state.lastCheckpoint < state.seen) yield* checkpoint
      yield* keepMemory(training, state)
      return
    }
    if (isMultiple(state.seen, output.saveMemoryEvery)) yield* keepMemory(training, state)
    yield* playNext(training, state, next)
  }
}, Effect.scoped)

/** Tells whether a validation is due after the episodes so far (by `validation_freq`) and was not done yet. */
export const owesValidation = ({ validationFreq }: RuntimeSettings, state: RuntimeState): boolean =>
  isMultiple(state.seen, validationFreq ?? 0) && state.lastValidation < state.seen

const isMultiple = (count: number, every: number): boolean => every > 0 && count > 0 && count % every === 0

/**
 * Validates the agent. Then saves a checkpoint with the validation's score if checkpoints are kept by score (`top_k_val`), or
 * if a checkpoint without the score was already saved after the same episode.
 */
const validated = Effect.fnUntraced(function* (training: AgentTraining, state: RuntimeState) {
  yield* validate(training, state)
  if (state.scoreHere === null) return
  const { checkpointStrategy } = training.settings.runtime
  const isKept = checkpointStrategy === "top_k_val" || state.lastCheckpoint === state.seen
  if (isKept) yield* saveCheckpoint(training, state)
})

/** Copies the agent's memory to `memories/memory_{episode}.jsonl`, if there is no copy yet after this episode. */
const keepMemory = Effect.fnUntraced(function* ({ agent: { memory } }: AgentTraining, state: RuntimeState) {
  if (memory === null || state.lastMemory >= state.seen) return
  yield* (yield* CurrentRun).files.write(Layout.memory(state.seen), yield* memory.snapshot)
  state.lastMemory = state.seen
})

/**
 * Plays the next training episode, records its steps and its end, and counts it in the state. If other machines play the
 * episodes, `next` returns the episode.
 */
const playNext = Effect.fn("effect-rl.trainingEpisode")(function* (
  training: AgentTraining,
  state: RuntimeState,
  next: Effect.Effect<TrainingEpisode, WorkerError> | undefined,
) {
  const { settings, agent, train } = training
  const { files, recording, isSaving, letSave } = yield* CurrentRun
  if (isSaving()) yield* letSave
  const { unfinished } = state
  if (train === null) return
  const { seen } = state
  const episode = seen + 1
  const env = yield* train.at(seen)
  const scores: Array<number> = []
  let episodeScore = 0

  const onStep = (step: TimedStep): Effect.Effect<void> => {
    scores.push(step.score)
    episodeScore += step.score
    const event = stepScored(step, {
      mode: "train",
      seenEpisodes: seen,
      episode,
      stepIndex: scores.length,
      episodeScore,
      envId: env.id,
      envType: env.type,
      agent,
      verbose: settings.runtime.verboseScoreLogging,
    })
    // `onStep` cannot fail, so convert a failed recording to a defect. `execute.ts` converts it back to an error.
    return Effect.orDie(recording.emit([event]))
  }

  unfinished.memory = agent.memory === null ? null : yield* agent.memory.entries
  unfinished.usage = state.usage
  unfinished.doing = "train"
  const rollout: Rollout =
    next === undefined
      ? yield* playTrainingEpisode(training, train, { agent, index: seen, onStep })
      : yield* playedElsewhere(next, onStep)
  // Uninterruptible, so that the episode is counted either completely or not at all.
  yield* Effect.uninterruptible(
    Effect.gen(function* () {
      const { ending } = rollout
      state.addEpisode(scores)
      state.addUsage(usageOf([rollout]))
      unfinished.doing = null
      if (settings.output.saveRollouts) yield* files.append(Layout.rollouts("train"), Rollouts.line(rollout))
      const ended = { step: state.seen, episode: seen, return: episodeScore, length: scores.length }
      const events: Array<RunEvent> = [episodeEnded(ended, ending)]
      if (state.seen % recordEvery === 0 || state.seen === totalEpisodesOf(training)) events.push(progressOf(state))
      yield* recording.emit(events)
    }),
  )
})

/** Waits for the next training episode from another machine, passes its steps to `onStep`, and returns its rollout. */
const playedElsewhere = Effect.fnUntraced(function* (
  next: Effect.Effect<TrainingEpisode, WorkerError>,
  onStep: (step: TimedStep) => Effect.Effect<void>,
) {
  const { steps, rollout, failure } = yield* next
  yield* Effect.forEach(steps, onStep, { discard: true })
  if (failure !== null) return yield* failure
  return rollout ?? (yield* Effect.die(new Error("an episode without a rollout and without a failure")))
})

/** The number of ended episodes between two progress events. */
const recordEvery = 10

/** Makes the event with the mean return and the usage of the model so far, for logs of metrics. */
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

/**
 * Tells whether nothing is left to do: all episodes are played, and the memory and the last checkpoint (with the last
 * validation's score) are saved.
 */
export const isSaved = (training: AgentTraining, state: RuntimeState): boolean => {
  const isPlayed =
    state.seen >= totalEpisodesOf(training) &&
    state.unfinished.doing === null &&
    !owesValidation(training.settings.runtime, state)
  const isKept = training.agent.memory === null || state.lastMemory === state.seen
  return isPlayed && isKept && state.lastCheckpoint === state.seen && state.lastCheckpointScore === state.scoreHere
}

/** Undoes the episode or validation in progress, if there is one, and saves a checkpoint of the state before it. */
export const saveBoundary = Effect.fnUntraced(function* (training: AgentTraining, state: RuntimeState) {
  yield* undo(training, state)
  yield* saveCheckpoint(training, state)
})

/** Restores the memory and the usage from before the interrupted episode or validation, and reports that it was abandoned. */
const undo = Effect.fnUntraced(function* ({ agent }: AgentTraining, state: RuntimeState) {
  const { files, recording } = yield* CurrentRun
  const { doing, memory, usage } = state.unfinished
  if (doing === null) return
  state.usage = usage
  if (doing === "validation") yield* files.remove(Layout.rollouts(state.seen))
  if (doing === "train" && agent.memory !== null && memory !== null) {
    const lines = memory.map((entry) => `${JSON.stringify(entry)}\n`).join("")
    yield* Effect.orDie(agent.memory.restore(lines, "the memory before the episode"))
  }
  yield* recording.emit([{ _tag: "Abandoned", mode: doing, seenEpisodes: state.seen }])
})
