/**
 * An agent on a data set: every task is played by a clone of its own, which shares the agent's memory and can't write
 * it; as many at a time as asked. An episode that fails is an outcome like any other, and stops none of the rest.
 *
 * What comes out doesn't depend on how many were played at a time, or on which was done first: outcomes are told in the
 * order of the tasks, each as soon as all before it are there.
 *
 * @example
 * ```ts
 * yield* Evaluate.each({ tasks, agent, seed: 1, concurrency: 100 }, (outcome) => Console.log(outcome.totalScore))
 * ```
 */
import { Cause, Clock, Effect, Exit, Option } from "effect"
import type { Agent } from "../agent/Agent.ts"
import type { DatasetError, TaskSet } from "../env/text/TaskSet.ts"
import type { TextEnv } from "../env/text/TextEnv.ts"
import { inOrder } from "../episode/inOrder.ts"
import { isFinal } from "../episode/isFinal.ts"
import type { EpisodeFailure } from "../episode/Protocol.ts"
import { goesOn, type Ending, type Rollout, type Step } from "../episode/Rollout.ts"
import * as SingleAgent from "../episode/SingleAgent.ts"
import { CallContext } from "../lm/Lm.ts"
import type { LmError } from "../lm/LmError.ts"
import { stream } from "../rng/Rng.ts"
import { scored, type ScoredStep } from "./scored.ts"

export interface Evaluation extends SingleAgent.Options {
  readonly tasks: TaskSet
  readonly agent: Agent
  /** Of the envs' chance and the model's sampling; the same task has the same chance in every evaluation of a seed. */
  readonly seed: number
  /** Episodes at a time. */
  readonly concurrency: number
  /** Episodes of each task; 1 unless given. */
  readonly repeats?: number
  /** For the log of calls. */
  readonly phase?: CallContext["phase"]
}

/** A step, and when it was made. */
export interface TimedStep extends ScoredStep {
  readonly startedAtMillis: number
  readonly endedAtMillis: number
}

/** How one episode went. */
export interface Outcome {
  /** Among all episodes, from 0: those of a task follow one another. */
  readonly index: number
  readonly task: number
  readonly repeat: number
  readonly env: Pick<TextEnv, "id" | "type" | "metadata">
  /** As far as it went. */
  readonly steps: ReadonlyArray<TimedStep>
  readonly totalScore: number
  readonly ending: Ending
  /** Null where it failed. */
  readonly rollout: Rollout | null
  readonly error: EpisodeFailure | DatasetError | null
}

/** Plays all, and tells of each in order. */
export const each = Effect.fnUntraced(function* <E>(
  evaluation: Evaluation,
  tell: (outcome: Outcome) => Effect.Effect<void, E>,
): Effect.fn.Return<void, E | LmError> {
  const { tasks, concurrency, repeats = 1 } = evaluation
  yield* inOrder(
    Array.from({ length: tasks.size * repeats }, (_, index) => index),
    { concurrency, work: (index) => playOne(evaluation, index, repeats), tell },
  )
})

/** The same, with all outcomes in the end. */
export const all = Effect.fnUntraced(function* (
  evaluation: Evaluation,
): Effect.fn.Return<ReadonlyArray<Outcome>, LmError> {
  const outcomes: Array<Outcome> = []
  yield* each(evaluation, (outcome) => Effect.sync(() => void outcomes.push(outcome)))
  return outcomes
})

const unknown = { id: "unknown", type: "unknown", metadata: {} }

const playOne = Effect.fnUntraced(function* (
  { tasks, agent, seed, phase = { _tag: "default" }, ...options }: Evaluation,
  index: number,
  repeats: number,
): Effect.fn.Return<Outcome, LmError> {
  const task = Math.floor(index / repeats)
  const repeat = index % repeats
  const random = stream(seed, "evaluate", task, repeat)
  const envSeed = random.uint32()
  const samplingSeed = random.uint32()
  const steps: Array<TimedStep> = []
  let since = yield* Clock.currentTimeMillis
  let env: Outcome["env"] = unknown
  const onStep = (step: Step): Effect.Effect<void> => {
    const made = scored(step)
    if (made === undefined) return Effect.void
    return Effect.map(Clock.currentTimeMillis, (now) => {
      steps.push({ ...made, startedAtMillis: since, endedAtMillis: now })
      since = now
    })
  }
  const playing = Effect.gen(function* () {
    const found = yield* tasks.at(task)
    env = { id: found.id, type: found.type, metadata: found.metadata }
    const player = yield* agent.cloneForEpisode({ training: false, shareMemory: true })
    const id = repeats === 1 ? `task-${task}` : `task-${task}-${repeat}`
    return yield* SingleAgent.play(player, { id, env: found, envSeed, samplingSeed, onStep }, options)
  }).pipe(Effect.provideService(CallContext, { phase, purpose: "action", episode: index + 1, step: 0 }))

  const exit = yield* Effect.exit(playing)
  const about = { index, task, repeat, env, steps, totalScore: steps.reduce((sum, { score }) => sum + score, 0) }
  if (Exit.isSuccess(exit)) return { ...about, ending: exit.value.ending, rollout: exit.value, error: null }
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  // What is interrupted is not over, and what is a bug is nobody's score.
  if (error === undefined) return yield* Effect.orDie(Effect.failCause(exit.cause))
  if (isFinal(error)) return yield* error
  return { ...about, ending: goesOn, rollout: null, error }
})
