/**
 * Makes envs whose reset and step are Effects: an env behind a network, in another process, or on a robot. All copies
 * of a batch step at the same time, and rollouts and validations wait for them.
 *
 * A resumed run plays the interrupted episodes again, from the seed and the actions that were taken. If an env is not
 * deterministic and shows a different observation this time, that episode ends as truncated and the next one begins.
 *
 * An interrupt takes effect when the current step has ended, after `timeoutSeconds` at the latest.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { AsyncEnv, Space } from "effect-rl"
 *
 * const far = AsyncEnv.make({
 *   id: "far-corridor",
 *   observationSpace: Space.box(0, 10),
 *   actionSpace: Space.discrete(2),
 *   maxSteps: 50,
 *   open: () =>
 *     Effect.sync(() => {
 *       let at = 0
 *       return {
 *         reset: () => Effect.sync(() => [(at = 0)]),
 *         step: (action) =>
 *           Effect.sync(() => {
 *             at = Math.max(0, at + (action === 1 ? 1 : -1))
 *             return { observation: [at], reward: at === 10 ? 1 : 0, terminated: at === 10 }
 *           }),
 *       }
 *     }),
 * })
 * ```
 */
import { Cause, Effect, type Scope } from "effect"
import { messageOf, oneLine } from "../../base/text/text.ts"
import type { Stream } from "../../base/rng/Rng.ts"
import { actionReader } from "./Batch.ts"
import { type ActionOf, type Env, rowSpaceOf } from "./Env.ts"
import { EnvError } from "../../base/EnvError.ts"
import { asyncBatchOf } from "./internal/asyncEpisodes.ts"
import { type AsyncColumns, type AsyncKernel, command } from "./internal/asyncKernel.ts"
import { elsewhere } from "./internal/elsewhere.ts"
import { errorAt } from "./internal/episodes.ts"
import { givenMaskWriter } from "./internal/rows.ts"
import { within } from "../../spread/programs/timeLimit.ts"
import { writerOf } from "./internal/values.ts"
import { type ActionSpace, type Box, choicesOf, sizeOf, type Space, type ValueOf } from "./Space.ts"

/** The result of a step. */
export interface AsyncStep<O extends Space = Space> {
  readonly observation: ValueOf<O>
  readonly reward: number
  /** True if the env reached a terminal state. */
  readonly terminated: boolean
  /** True if the env itself ended the episode early. For a time limit, use `maxSteps` instead. */
  readonly truncated?: boolean
}

/** One copy of an env, which plays one episode after another. */
export interface EnvSession<A extends ActionSpace = ActionSpace, O extends Space = Space> {
  /** Begins an episode, whose random numbers come from `random`, and returns the first observation. */
  reset(random: Stream): Effect.Effect<ValueOf<O>, unknown>
  step(action: ActionOf<A>, random: Stream): Effect.Effect<AsyncStep<O>, unknown>
  /**
   * Returns the mask of the choices that are allowed now, like `actionMask` of `Env.make`. Needs `hasActionMask: true`.
   * It runs after each reset and each step, but not in terminal states.
   */
  readonly actionMask?: Effect.Effect<ArrayLike<number | boolean>, unknown>
  /** Renders the env's state as an SVG document. */
  readonly renderSvg?: Effect.Effect<string, unknown>
}

export interface AsyncEnvDefinition<A extends ActionSpace, O extends Space = Box> extends Pick<
  Env<unknown, A, O>,
  "id" | "observationSpace" | "actionSpace" | "maxSteps" | "rewardThreshold"
> {
  /** Opens one copy of the env; `index` is its position in the batch. Closing the scope closes the copy. */
  readonly open: (index: number) => Effect.Effect<EnvSession<A, O>, unknown, Scope.Scope>
  /** Whether the sessions have an `actionMask`. Default: false. */
  readonly hasActionMask?: boolean
  /** The number of seconds after which a step of all copies fails if it has not ended. Default: 60. */
  readonly timeoutSeconds?: number
}

/** Makes an env whose `reset` and `step` are Effects. */
export const make = <A extends ActionSpace, O extends Space = Box>(
  definition: AsyncEnvDefinition<A, O>,
): Env<unknown, A, O> => {
  const { open, timeoutSeconds = 60, hasActionMask = false, ...facts } = definition
  const env: Env<unknown, A, O> = {
    ...facts,
    ...elsewhere(definition, hasActionMask),
    open: (numEnvs, options) =>
      asyncBatchOf(env, numEnvs, options, (columns) =>
        Effect.forEach(Array.from({ length: numEnvs }), (_, index) => failingAt(env.id, index, open(index)), {
          concurrency: "unbounded",
        }).pipe(Effect.map((sessions) => kernelOf(env, sessions, timeoutSeconds, columns))),
      ),
  }
  return env
}

/** Turns every failure of the env's own Effects, also a thrown exception, into an `EnvError` that says where it happened. */
const failing = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  errorOf: (message: string, stack: string | undefined) => EnvError,
): Effect.Effect<A, EnvError, R> =>
  Effect.catchCause(effect, (cause) => {
    if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
    const error = Cause.squash(cause)
    if (error instanceof EnvError) return Effect.fail(error)
    return Effect.fail(errorOf(oneLine(messageOf(error)), error instanceof Error ? error.stack : undefined))
  })

const failingAt = <A, R>(id: string, index: number, effect: Effect.Effect<A, unknown, R>) =>
  failing(
    effect,
    (message) => new EnvError({ env: id, index, message: `${id}: env ${index} cannot be opened: ${message}` }),
  )

const late = (id: string, timeoutSeconds: number) =>
  Effect.suspend(() =>
    Effect.fail(new EnvError({ env: id, message: `${id}: its envs did not answer within ${timeoutSeconds} seconds` })),
  )

const kernelOf = (
  env: Env,
  sessions: ReadonlyArray<EnvSession>,
  timeoutSeconds: number,
  columns: AsyncColumns,
): AsyncKernel => {
  const { observations, finalObservations, rewards, terminated, truncated, episodes, elapsed, commands } = columns
  const size = sizeOf(rowSpaceOf(env))
  const maskAt = sizeOf(env.observationSpace)
  const writeMask = maskAt === size ? undefined : givenMaskWriter(choicesOf(env.actionSpace) ?? [])
  const streams: Array<Stream> = []
  const actionAt = actionReader(env.actionSpace)

  const failed = (index: number, step: number, message: string, stack?: string): EnvError =>
    errorAt(env.id, index, episodes[index], step, message, stack)

  const write = writerOf(env.observationSpace, "observation")
  /** Stores an observation. Unless the state is terminal, also asks the session for the action mask and stores it. */
  const store = (index: number, step: number, seen: unknown, isOver = false): Effect.Effect<void, EnvError> => {
    const problem = write(seen, observations, index * size)
    if (problem !== undefined) return Effect.fail(failed(index, step, problem))
    if (writeMask === undefined || isOver) return Effect.void
    const { actionMask } = sessions[index]
    if (actionMask === undefined) return Effect.fail(failed(index, step, "its session has no actionMask"))
    return failing(actionMask, (message, stack) => failed(index, step, `actionMask failed: ${message}`, stack)).pipe(
      Effect.flatMap((mask) => {
        const maskProblem = writeMask(mask, observations, index * size + maskAt)
        return maskProblem === undefined ? Effect.void : Effect.fail(failed(index, step, maskProblem))
      }),
    )
  }

  const start = (index: number): Effect.Effect<void, EnvError> =>
    Effect.suspend(() => {
      streams[index] = columns.nextEpisode(index)
      return failing(sessions[index].reset(streams[index]), (message, stack) =>
        failed(index, 0, `reset failed: ${message}`, stack),
      ).pipe(Effect.flatMap((seen) => store(index, 0, seen)))
    })

  const finish = (index: number, isLast: boolean, outcome: AsyncStep): Effect.Effect<void, EnvError> => {
    rewards[index] = outcome.reward
    terminated[index] = outcome.terminated ? 1 : 0
    truncated[index] = outcome.truncated === true ? 1 : 0
    const stored = store(index, elapsed[index] + 1, outcome.observation, outcome.terminated)
    if (!isLast && !outcome.terminated && outcome.truncated !== true) return stored
    return Effect.andThen(stored, () => {
      finalObservations.set(observations.subarray(index * size, (index + 1) * size), index * size)
      return start(index)
    })
  }

  const one = (index: number, actions: Float32Array | Int32Array): Effect.Effect<void, EnvError> => {
    if (commands[index] === command.none) return Effect.void
    if (commands[index] === command.start) return start(index)
    const isLast = commands[index] === command.lastStep
    return failing(
      Effect.suspend(() => sessions[index].step(actionAt(actions, index), streams[index])),
      (message, stack) => failed(index, elapsed[index] + 1, `step failed: ${message}`, stack),
    ).pipe(Effect.flatMap((outcome) => finish(index, isLast, outcome)))
  }

  const rendersAll = sessions.every(({ renderSvg }) => renderSvg !== undefined)
  return {
    exchange: (actions) =>
      within(
        Effect.interruptible(
          Effect.forEach(sessions, (_, index) => one(index, actions), { concurrency: "unbounded", discard: true }),
        ),
        timeoutSeconds,
        late(env.id, timeoutSeconds),
      ),
    ...(rendersAll && {
      renderSvg: (index: number) =>
        failing(sessions[index].renderSvg ?? Effect.succeed(""), (message, stack) =>
          failed(index, elapsed[index], `rendering failed: ${message}`, stack),
        ),
    }),
  }
}
