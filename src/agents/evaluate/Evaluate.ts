/**
 * Plays the tasks of a data set, many at a time, with a protocol (the code that plays one episode). `frozen` makes the
 * protocol for an agent that must not learn. `each` passes the played episodes to a callback, `all` returns them, and `one`
 * plays a single episode. An episode that fails is a result, too, and does not stop the others. Episodes come in the order of
 * the tasks, so the result does not depend on the concurrency. No files are written: the callers, such as `execute.ts` and
 * the validation of agents in training, record the episodes.
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
import type { EpisodeToPlay, EpisodeFailure, Protocol } from "../episode/Protocol.ts"
import { notEnded, type RolloutStep } from "../episode/Rollout.ts"
import type { Tasks } from "../episode/rollouts/RolloutEngine.ts"
import * as SingleAgent from "../episode/protocols/SingleAgent.ts"
import { CallContext } from "../lm/Lm.ts"
import { type LmError, isFinal } from "../lm/LmError.ts"
import { stream } from "../../base/rng/Rng.ts"
import type { TaskInfo, EpisodeToScore, TimedStep } from "./PlayedEpisode.ts"
import { scored } from "./PlayedEpisode.ts"

export type { TaskInfo, EpisodeToScore, TimedStep } from "./PlayedEpisode.ts"

export interface EvaluationPlan<Env extends TaskInfo = TextEnv> {
  readonly tasks: Tasks<Env>
  /** The protocol that plays the episodes, e.g. `frozen(agent)`. */
  readonly protocol: Protocol<Env>
  /**
   * The seed of envs and sampling. The n-th episode of a task has the same random numbers in every evaluation with this seed.
   */
  readonly seed: number
  /** The number of episodes that are played at the same time. */
  readonly concurrency: number
  /** The number of episodes of each task, 1 by default. */
  readonly repeats?: number
  /** The phase of a run, which logs and caches of model calls record; `default` (outside of runs) if left out. */
  readonly phase?: CallContext["phase"]
  /** Called with the index and the error of each failed episode, before that episode is emitted or returned. */
  readonly onFailed?: (index: number, error: EpisodeFailure | DatasetError) => void
}

/**
 * Makes a protocol that plays with clones of the agent. The clones read its memory but cannot write it, so the agent does not
 * learn.
 */
export const frozen = (agent: Agent, options: SingleAgent.SingleAgentOptions = {}): Protocol => ({
  name: "SingleAgent",
  play: Effect.fnUntraced(function* (episode: EpisodeToPlay) {
    const player = yield* agent.cloneForEpisode({ training: false, shareMemory: true })
    return [yield* SingleAgent.play(player, episode, options)]
  }),
})

/** Returns the number of episodes of an evaluation: tasks times repeats. */
export const sizeOf = <Env extends TaskInfo>({ tasks, repeats = 1 }: EvaluationPlan<Env>): number =>
  tasks.size * repeats

/** Plays all episodes, and calls `emit` with each of them, in the order of the tasks. */
export const each = Effect.fn("effect-rl.evaluate")(function* <E, Env extends TaskInfo = TextEnv>(
  evaluation: EvaluationPlan<Env>,
  emit: (played: EpisodeToScore) => Effect.Effect<void, E>,
): Effect.fn.Return<void, E | LmError> {
  yield* inOrder(
    Array.from({ length: sizeOf(evaluation) }, (_, index) => index),
    { concurrency: evaluation.concurrency, work: (index) => one(evaluation, index), emit },
  )
})

/** Plays all episodes, and returns them in the order of the tasks when all are finished. */
export const all = Effect.fnUntraced(function* <Env extends TaskInfo = TextEnv>(
  evaluation: EvaluationPlan<Env>,
): Effect.fn.Return<ReadonlyArray<EpisodeToScore>, LmError> {
  const episodes: Array<EpisodeToScore> = []
  yield* each(evaluation, (played) => Effect.sync(() => void episodes.push(played)))
  return episodes
})

/** Returns the id of an episode's first rollout. */
export const episodeId = (
  { task, repeat }: Pick<EpisodeToScore, "task" | "repeat">,
  { isRepeated }: { readonly isRepeated: boolean },
): string => (isRepeated ? `task-${task}-${repeat}` : `task-${task}`)

/** The description of a task that could not be read from the data set, for the result of its episode. */
const unreadTask: TaskInfo = { id: "unknown", type: "unknown", metadata: {} }

/**
 * Plays one episode and returns it, with its `error` if it failed. `index` counts all episodes, beginning with those of the
 * first task. Fails only for a reason that all episodes would share, such as a wrong API key or a spent budget.
 */
export const one = Effect.fnUntraced(function* <Env extends TaskInfo = TextEnv>(
  { tasks, protocol, seed, repeats = 1, phase = { _tag: "default" }, onFailed }: EvaluationPlan<Env>,
  index: number,
): Effect.fn.Return<EpisodeToScore, LmError> {
  const task = Math.floor(index / repeats)
  const repeat = index % repeats
  const random = stream(seed, "evaluate", task, repeat)
  const envSeed = random.uint32()
  const samplingSeed = random.uint32()
  const startedAtMillis = yield* Clock.currentTimeMillis
  let timedSteps: Array<{ readonly id: string; readonly step: TimedStep }> = []
  let stepStartedAtMillis = startedAtMillis
  let env = unreadTask
  const onStep = (step: RolloutStep): Effect.Effect<void> => {
    const scoredStep = scored(step)
    if (scoredStep === undefined) return Effect.void
    return Effect.map(Clock.currentTimeMillis, (now) => {
      timedSteps.push({
        id: step.id,
        step: { ...scoredStep, startedAtMillis: stepStartedAtMillis, endedAtMillis: now },
      })
      stepStartedAtMillis = now
    })
  }
  const playing = Effect.gen(function* () {
    const taskEnv = yield* tasks.at(task)
    const { id, type, metadata, content } = taskEnv
    env = { id, type, metadata, ...(content === undefined ? {} : { content }) }
    return yield* protocol.play({
      id: episodeId({ task, repeat }, { isRepeated: repeats > 1 }),
      env: taskEnv,
      envSeed,
      samplingSeed,
      onStep,
    })
  }).pipe(Effect.scoped, Effect.provideService(CallContext, { phase, purpose: "action", episode: index + 1, step: 0 }))

  const exit = yield* Effect.exit(playing)
  const endedAtMillis = yield* Clock.currentTimeMillis
  const outcome = (): Omit<EpisodeToScore, "ending" | "rollouts" | "error"> => ({
    index,
    task,
    repeat,
    env,
    steps: timedSteps.map(({ step }) => step),
    totalScore: timedSteps.reduce((sum, { step }) => sum + step.score, 0),
    startedAtMillis,
    endedAtMillis,
  })
  if (Exit.isSuccess(exit)) {
    const [first] = exit.value
    // `onStep` also received the steps of other players and of sub-agents. Keep only those of the first rollout.
    const ownIds = new Set(first.steps.map(({ id }) => id))
    timedSteps = timedSteps.filter(({ id }) => ownIds.has(id))
    return { ...outcome(), ending: first.ending, rollouts: exit.value, error: null }
  }
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  // An interruption or a defect (a bug) is not a result of the episode, so it ends this Effect, too.
  if (error === undefined) return yield* Effect.orDie(Effect.failCause(exit.cause))
  if (isFinal(error)) return yield* error
  onFailed?.(index, error)
  return { ...outcome(), ending: notEnded, rollouts: [], error: { error: error._tag, message: error.message } }
})
