/**
 * An agent on a data set, or any protocol: every task is played, as many at a time as asked, an agent's by clones that
 * share its memory and can't write it. An episode that fails is an outcome like any other, and stops none of the rest.
 *
 * What comes out doesn't depend on how many were played at a time, or on which was done first: outcomes are told in the
 * order of the tasks, each as soon as all before it are there.
 *
 * @example
 * ```ts
 * const evaluation = { tasks, protocol: Evaluate.frozen(agent), seed: 1, concurrency: 100 }
 * yield* Evaluate.each(evaluation, (played) => Console.log(played.totalScore))
 * ```
 */
import { Cause, Clock, Effect, Exit, Option } from "effect"
import type { Agent } from "../agent/Agent.ts"
import type { DatasetError } from "../task/TaskSet.ts"
import type { TextEnv } from "../task/TextEnv.ts"
import { inOrder } from "../episode/rollouts/inOrder.ts"
import type { Episode, EpisodeFailure, Protocol } from "../episode/Protocol.ts"
import { notEnded, type Step } from "../episode/Rollout.ts"
import type { Tasks } from "../episode/rollouts/RolloutEngine.ts"
import * as SingleAgent from "../episode/protocols/SingleAgent.ts"
import { CallContext } from "../lm/Lm.ts"
import { type LmError, isFinal } from "../lm/LmError.ts"
import { stream } from "../rng/Rng.ts"
import type { About, PlayedEpisode, TimedStep } from "./PlayedEpisode.ts"
import { scored } from "./PlayedEpisode.ts"

export type { About, PlayedEpisode, TimedStep } from "./PlayedEpisode.ts"

export interface Evaluation<Env extends About = TextEnv> {
  readonly tasks: Tasks<Env>
  /** Who plays, and how: `frozen(agent)`, or whoever a protocol brings together. */
  readonly protocol: Protocol<Env>
  /** Of the envs' chance and the model's sampling; the same task has the same chance in every evaluation of a seed. */
  readonly seed: number
  /** Episodes at a time. */
  readonly concurrency: number
  /** Episodes of each task; 1 unless given. */
  readonly repeats?: number
  /** For the log of calls. */
  readonly phase?: CallContext["phase"]
  /** Told of what an episode failed with, before the episode itself is told of. */
  readonly onFailed?: (index: number, error: EpisodeFailure | DatasetError) => void
}

/** A protocol by which an agent is played as it is: its memory is read, and can't be written. */
export const frozen = (agent: Agent, options: SingleAgent.SingleAgentOptions = {}): Protocol => ({
  name: "SingleAgent",
  play: Effect.fnUntraced(function* (episode: Episode) {
    const player = yield* agent.cloneForEpisode({ training: false, shareMemory: true })
    return [yield* SingleAgent.play(player, episode, options)]
  }),
})

/** How many episodes there are in all. */
export const sizeOf = <Env extends About>({ tasks, repeats = 1 }: Evaluation<Env>): number => tasks.size * repeats

/** Plays all, and tells of each in order. */
export const each = Effect.fnUntraced(function* <E, Env extends About = TextEnv>(
  evaluation: Evaluation<Env>,
  emit: (played: PlayedEpisode) => Effect.Effect<void, E>,
): Effect.fn.Return<void, E | LmError> {
  yield* inOrder(
    Array.from({ length: sizeOf(evaluation) }, (_, index) => index),
    { concurrency: evaluation.concurrency, work: (index) => one(evaluation, index), emit },
  )
})

/** The same, with all outcomes in the end. */
export const all = Effect.fnUntraced(function* <Env extends About = TextEnv>(
  evaluation: Evaluation<Env>,
): Effect.fn.Return<ReadonlyArray<PlayedEpisode>, LmError> {
  const outcomes: Array<PlayedEpisode> = []
  yield* each(evaluation, (played) => Effect.sync(() => void outcomes.push(played)))
  return outcomes
})

const unknown: About = { id: "unknown", type: "unknown", metadata: {} }

/** Plays one of the episodes; what isn't about it alone (a wrong key, a budget that is spent) is an error. */
export const one = Effect.fnUntraced(function* <Env extends About = TextEnv>(
  { tasks, protocol, seed, repeats = 1, phase = { _tag: "default" }, onFailed }: Evaluation<Env>,
  index: number,
): Effect.fn.Return<PlayedEpisode, LmError> {
  const task = Math.floor(index / repeats)
  const repeat = index % repeats
  const random = stream(seed, "evaluate", task, repeat)
  const envSeed = random.uint32()
  const samplingSeed = random.uint32()
  const startedAtMillis = yield* Clock.currentTimeMillis
  let made: Array<{ readonly id: string; readonly step: TimedStep }> = []
  let since = startedAtMillis
  let env = unknown
  const onStep = (step: Step): Effect.Effect<void> => {
    const told = scored(step)
    if (told === undefined) return Effect.void
    return Effect.map(Clock.currentTimeMillis, (now) => {
      made.push({ id: step.id, step: { ...told, startedAtMillis: since, endedAtMillis: now } })
      since = now
    })
  }
  const playing = Effect.gen(function* () {
    const found = yield* tasks.at(task)
    env = { id: found.id, type: found.type, metadata: found.metadata }
    const id = repeats === 1 ? `task-${task}` : `task-${task}-${repeat}`
    return yield* protocol.play({ id, env: found, envSeed, samplingSeed, onStep })
  }).pipe(Effect.scoped, Effect.provideService(CallContext, { phase, purpose: "action", episode: index + 1, step: 0 }))

  const exit = yield* Effect.exit(playing)
  const endedAtMillis = yield* Clock.currentTimeMillis
  const about = (): Omit<PlayedEpisode, "ending" | "rollouts" | "error"> => ({
    index,
    task,
    repeat,
    env,
    steps: made.map(({ step }) => step),
    totalScore: made.reduce((sum, { step }) => sum + step.score, 0),
    startedAtMillis,
    endedAtMillis,
  })
  if (Exit.isSuccess(exit)) {
    const [first] = exit.value
    const own = new Set(first.steps.map(({ id }) => id))
    made = made.filter(({ id }) => own.has(id))
    return { ...about(), ending: first.ending, rollouts: exit.value, error: null }
  }
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  // What is interrupted is not over, and what is a bug is nobody's score.
  if (error === undefined) return yield* Effect.orDie(Effect.failCause(exit.cause))
  if (isFinal(error)) return yield* error
  onFailed?.(index, error)
  return { ...about(), ending: notEnded, rollouts: [], error: { error: error._tag, message: error.message } }
})
