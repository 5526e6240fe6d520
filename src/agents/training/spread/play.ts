/**
 * Plays the chunks of episodes that the training of an agent spreads: on a worker or, by default, in the training's own
 * process.
 */
import { Effect, type Scope } from "effect"
import type { WorkerError } from "../../../spread/workers/WorkerError.ts"
import type { Agent } from "../../agent/Agent.ts"
import type { AgentError } from "../../agent/AgentError.ts"
import { type Handler, handler } from "../../../spread/cluster/Dispatcher.ts"
import { cores } from "../../episode/cores.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { inOrder } from "../../episode/rollouts/inOrder.ts"
import { type Chunk, indicesOf } from "../../../spread/cluster/sent/chunks.ts"
import * as Evaluate from "../../evaluate/Evaluate.ts"
import type { TimedStep } from "../../evaluate/PlayedEpisode.ts"
import { withCalls } from "../../evaluate/remoteCalls.ts"
import type { LmError } from "../../lm/LmError.ts"
import type { Attachment } from "../../../run/spread/Attachment.ts"
import type { AgentTraining } from "../AgentTraining.ts"
import { playTrainingEpisode } from "../trainingEpisode.ts"
import { validationOf } from "../validation.ts"
import {
  FailedChunk,
  rolloutJob,
  type TrainingEpisode,
  UnansweredChunk,
  type ValidationEpisode,
  validationJob,
} from "./jobs.ts"

/** Makes the code of a worker that has loaded this training. */
export const handlersOf = (
  training: AgentTraining,
  read: (job: string, attachment: Attachment) => Effect.Effect<Uint8Array, WorkerError>,
): ReadonlyArray<Handler> => [
  handler(
    validationJob,
    Effect.fnUntraced(function* ({ memory, seen, ...chunk }) {
      const lines = memory === null ? null : utf8.decode(yield* read(validationJob.name, memory))
      return yield* playValidation(training, yield* remembering(training.agent, lines), seen, chunk)
    }),
  ),
  handler(rolloutJob, (chunk) => playRollouts(training, chunk)),
]

/** Makes a copy of the agent with this memory. Several jobs with different memories may play at the same time. */
const remembering = Effect.fnUntraced(function* (
  agent: Agent,
  lines: string | null,
): Effect.fn.Return<Agent, AgentError> {
  if (lines === null) return agent
  const copy = yield* agent.cloneForEpisode({ training: true, shareMemory: false })
  yield* copy.memory?.restore(lines, "the memory of the training") ?? Effect.void
  return copy
})

/** Plays the validation episodes of a chunk. */
export const playValidation = Effect.fnUntraced(function* (
  training: AgentTraining,
  agent: Agent,
  seen: number,
  chunk: Chunk,
): Effect.fn.Return<ReadonlyArray<ValidationEpisode>, LmError | UnansweredChunk> {
  const unanswered = new Map<number, LmError>()
  const evaluation = validationOf({ ...training, agent }, seen, unanswered)
  const episodes: Array<ValidationEpisode> = []
  if (evaluation === undefined) return episodes
  yield* inOrder(indicesOf(chunk), {
    concurrency: evaluation.concurrency,
    work: (index) => withCalls(training.logCalls, Evaluate.one(evaluation, index)),
    emit: ({ result: played, calls }) =>
      Effect.sync(() => episodes.push({ played, calls, unanswered: unanswered.get(played.index) ?? null })),
  })
  const [first] = unanswered.values()
  return first === undefined ? episodes : yield* Effect.fail(UnansweredChunk.make({ message: first.message, episodes }))
})

/**
 * Plays the training episodes of a chunk with clones of the agent, which has no memory. Stops after the first episode that
 * fails.
 */
export const playRollouts = Effect.fnUntraced(function* (
  training: AgentTraining,
  chunk: Chunk,
): Effect.fn.Return<ReadonlyArray<TrainingEpisode>, FailedChunk, Scope.Scope> {
  const { agent, train, settings, logCalls } = training
  const episodes: Array<TrainingEpisode> = []
  if (train === null) return episodes
  const work = Effect.fnUntraced(function* (index: number) {
    const steps: Array<TimedStep> = []
    const clone = yield* agent.cloneForEpisode({ training: agent.training, shareMemory: true })
    const onStep = (step: TimedStep) => Effect.sync(() => void steps.push(step))
    const { result, calls } = yield* playTrainingEpisode(training, train, { agent: clone, index, onStep }).pipe(
      Effect.match({
        onSuccess: (rollout) => ({ rollout, failure: null }),
        onFailure: (failure) => ({ rollout: null, failure }),
      }),
      (playing) => withCalls(logCalls, playing),
    )
    return { steps, calls, ...result }
  })
  yield* inOrder(indicesOf(chunk), {
    concurrency: settings.runtime.numParallelEpisodes ?? cores(),
    work,
    emit: (episode) => {
      episodes.push(episode)
      const { failure } = episode
      return failure === null ? Effect.void : Effect.fail(FailedChunk.make({ message: failure.message, episodes }))
    },
  })
  return episodes
}, Effect.scoped)
