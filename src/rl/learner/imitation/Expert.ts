/** Asks an expert for its actions in the observations of a batch of envs: a function, or a loaded policy. DAgger uses it. */
import { Effect, Predicate } from "effect"
import { attempt } from "../../../base/config/attempt.ts"
import { shortened, shownError } from "../../../base/text/text.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import { EnvError, invalid } from "../../../base/EnvError.ts"
import type { PolicyLike } from "../../env/multi/opponents.ts"
import { isWhole, sizeOf } from "../../env/Space.ts"
import { boundsOf } from "../../model/actions.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import { LearningError, type Task } from "../Learner.ts"
import type { NamedArrays } from "../../../tensor/graph/Parameters.ts"
import { type Steps, waitFor } from "../drive.ts"
import { copyInto, misfit } from "../learnerState.ts"
import { labelProblemIn, observationIn } from "../transitions/player.ts"
import { highest } from "../../../base/statistics/extremes.ts"

/**
 * An expert in code: it chooses the action for a flat observation (see `Space.unflatten`), which ends with the action mask if
 * the env has masks. It returns one number if actions are discrete, else a number per element. A run is resumed exactly only
 * if the function depends on its arguments alone.
 */
type ExpertFunction = (observation: ReadonlyArray<number>, random: Stream) => number | ReadonlyArray<number>

/** An expert: a function, or a policy that `Policy.load` loaded. */
export type Expert = ExpertFunction | PolicyLike

/** The memory that a recurrent policy has of an episode; undefined at its beginning, and for other experts. */
type Memory = ReadonlyArray<number> | undefined

/** Fails unless a loaded policy has the actions of the task. */
export const checkExpert = (
  algorithm: string,
  expert: Expert,
  { actionSpace }: Task,
): Effect.Effect<void, LearningError> =>
  Predicate.isFunction(expert) || JSON.stringify(expert.actionSpace) === JSON.stringify(actionSpace)
    ? Effect.void
    : Effect.fail(new LearningError({ message: `${algorithm}: the expert has other actions than the env` }))

/** Makes the functions that ask an expert; `labels` holds its last actions, clipped to the bounds of the action space. */
export const makeLabeller = (expert: Expert, { observationSpace, actionSpace, numEnvs }: Task) => {
  const width = sizeOf(observationSpace)
  const size = sizeOf(actionSpace)
  const labels = isWhole(actionSpace) ? new Int32Array(numEnvs * size) : new Float32Array(numEnvs * size)
  const bounds = actionSpace._tag === "Box" ? boundsOf(actionSpace) : undefined
  const observe = observationIn(observationSpace)
  let problemOf: ReturnType<typeof labelProblemIn> | undefined
  const memories = Array.from({ length: numEnvs }, (): Memory => undefined)

  const rowOf = ({ observations }: AnyBatchEnv, env: number): ReadonlyArray<number> =>
    Array.from(observations.subarray(env * width, (env + 1) * width))

  /** Stores the expert's action in an env. Throws an EnvError if it is none, or forbidden. */
  const keep = ({ id, observations }: AnyBatchEnv, env: number, action: number | ReadonlyArray<number>): void => {
    const numbers = typeof action === "number" ? [action] : action
    problemOf ??= labelProblemIn({ id, actionSpace }, observationSpace)
    const problem = problemOf(numbers, observations, env * width)
    if (problem !== undefined) throw invalid(id, `the expert: ${problem}`)
    for (let at = 0; at < size; at++) {
      labels[env * size + at] =
        bounds === undefined ? numbers[at] : Math.min(Math.max(numbers[at], bounds.low[at]), bounds.high[at])
    }
  }

  /** Returns the action that a function chooses. Throws an EnvError if the function throws. */
  const chosenBy = (choose: ExpertFunction, envs: AnyBatchEnv, env: number, random: Stream) => {
    try {
      return choose(rowOf(envs, env), random)
    } catch (error) {
      const userStack = error instanceof Error ? error.stack : undefined
      const thrown = error instanceof Error ? shownError(error) : shortened(String(error))
      const message = `${envs.id}: the expert, the function that Dagger.make was given, threw ${thrown}`
      throw new EnvError({ env: envs.id, message, ...(userStack !== undefined && { userStack }) })
    }
  }

  const askPolicy = (policy: PolicyLike, envs: AnyBatchEnv): Effect.Effect<void, EnvError> => {
    const asked = Array.from({ length: numEnvs }, (_, env) => observe(rowOf(envs, env)))
    return policy
      .actAll(
        asked.map(({ observation }) => observation),
        memories,
        asked.map(({ mask }) => mask),
      )
      .pipe(
        Effect.mapError(({ message }) => invalid(envs.id, `the expert: ${message}`)),
        Effect.flatMap((acted) =>
          attempt(() => {
            for (const [env, { action, state }] of acted.entries()) {
              keep(envs, env, action)
              memories[env] = state
            }
          }, EnvError),
        ),
      )
  }

  return {
    labels,
    /** Asks for the actions in the current observations of the envs. */
    ask: function* (envs: AnyBatchEnv, random: Stream): Steps<void> {
      if (!Predicate.isFunction(expert)) return yield waitFor(askPolicy(expert, envs))
      for (let env = 0; env < numEnvs; env++) keep(envs, env, chosenBy(expert, envs, env, random))
    },
    /** Clears an expert's memory of each episode that has ended. Call it after each step. */
    afterStep: ({ terminated, truncated }: AnyBatchEnv): void => {
      for (let env = 0; env < numEnvs; env++) if ((terminated[env] | truncated[env]) !== 0) memories[env] = undefined
    },
    state: (): NamedArrays => saveMemories(memories),
    restore: (arrays: NamedArrays): void => restoreMemories(memories, arrays),
  }
}

const saveMemories = (memories: ReadonlyArray<Memory>): NamedArrays => {
  const length = highest(memories.map((memory) => memory?.length ?? 0))
  if (length === 0) return {}
  const data = Float64Array.from(memories.flatMap((memory) => memory ?? new Array<number>(length).fill(0)))
  return {
    "expert.memory": { shape: [memories.length, length], data },
    "expert.remembers": {
      shape: [memories.length],
      data: Uint8Array.from(memories, (memory) => (memory === undefined ? 0 : 1)),
    },
  }
}

const restoreMemories = (memories: Array<Memory>, arrays: NamedArrays): void => {
  memories.fill(undefined)
  const saved = arrays["expert.memory"]
  if (saved === undefined) return
  const numEnvs = memories.length
  const remembers = new Uint8Array(numEnvs)
  copyInto(arrays, "expert.remembers", remembers)
  const length = saved.data.length / numEnvs
  if (!Number.isInteger(length)) throw misfit(`"expert.memory" is not of ${numEnvs} envs`)
  for (let env = 0; env < numEnvs; env++) {
    if (remembers[env] !== 0) memories[env] = Array.from(saved.data.subarray(env * length, (env + 1) * length))
  }
}
