/**
 * Demonstrations for behaviour cloning: observations, and the actions that an expert took on them. `record` makes them
 * by playing an env, and `fromJson` decodes them from a JSON text. Neither reads a file.
 *
 * @example
 * ```ts
 * const demonstrations = Demonstrations.record(CartPole.env, {
 *   episodes: 10,
 *   policy: ([, , angle, spin]) => (angle + spin > 0 ? 1 : 0),
 * })
 * Train.run({ env: CartPole.env, algorithm: Bc.make(demonstrations), totalSteps: 50_000, validation: { everySteps: 10_000 } })
 * ```
 */
import { Effect, Schema } from "effect"
import { oneLine } from "../config/text.ts"
import * as Batch from "../env/Batch.ts"
import { type Env, rowSpaceOf } from "../env/Env.ts"
import { EnvError } from "../env/EnvError.ts"
import { forbiddenIn } from "../env/internal/rows.ts"
import { isWhole, optionsOf, sizeOf } from "../env/Space.ts"
import { LearningError } from "./Algorithm.ts"
import { display } from "../config/Config.ts"

/** Steps of an expert, from which `Bc` learns: one row per step. */
export interface Demonstrations {
  readonly rows: number
  /** The observations, of shape [rows, size], where `size` is the number of elements of an observation. */
  readonly observations: Float32Array
  /** The actions: discrete ones of shape [rows], or continuous ones of shape [rows, numbers per action]. */
  readonly actions: Int32Array | Float32Array
  /** The return of each episode; a step without a reward (`fromJson` allows such steps) counts as 0. */
  readonly returns: ReadonlyArray<number>
}

export interface RecordOptions {
  readonly episodes: number
  /**
   * Chooses the action for a flat observation (see `Space.unflatten`), which ends with the action mask if the env has
   * masks: one number if actions are discrete, else a number per element.
   */
  readonly policy: (observation: ReadonlyArray<number>) => number | ReadonlyArray<number>
  /** The seed of the env's randomness; 0 by default. */
  readonly seed?: number
  /** The number of steps after which an episode is cut short; 10,000 by default. */
  readonly maxSteps?: number
}

/** Plays episodes with a policy, and returns their steps. Throws EnvError if an action is invalid or the env fails. */
export const record = (env: Env, { episodes, policy, seed = 0, maxSteps = 10_000 }: RecordOptions): Demonstrations => {
  const observations: Array<number> = []
  const takenActions: Array<number> = []
  const returns: Array<number> = []
  const batch = Batch.make(env, 1, { autoReset: "disabled" })
  const actionSize = sizeOf(env.actionSpace)
  const actions = isWhole(env.actionSpace) ? new Int32Array(actionSize) : new Float32Array(actionSize)
  batch.reset(seed, "demonstrations")
  for (let episode = 0; episode < episodes; episode++) {
    if (episode > 0) batch.restart(Uint8Array.of(1))
    let total = 0
    for (let step = 0; step < maxSteps; step++) {
      const observation = Array.from(batch.observations)
      const action = policy(observation)
      const numbers = typeof action === "number" ? [action] : action
      const problem = problemOf(env, numbers)
      if (problem !== undefined) {
        const message = `demonstrations: episode ${episode}, step ${step + 1}: ${problem}`
        throw new EnvError({ env: env.id, message, episode, step: step + 1 })
      }
      for (let at = 0; at < actions.length; at++) actions[at] = numbers[at]
      for (const number of observation) observations.push(number)
      for (const number of actions) takenActions.push(number)
      batch.step(actions)
      total += batch.rewards[0]
      if ((batch.terminated[0] | batch.truncated[0]) !== 0) break
    }
    returns.push(total)
  }
  return {
    rows: takenActions.length / actions.length,
    observations: Float32Array.from(observations),
    actions: actions instanceof Int32Array ? Int32Array.from(takenActions) : Float32Array.from(takenActions),
    returns,
  }
}

/** Returns why these numbers are not an action of the env; undefined if they are one. */
const problemOf = ({ id, actionSpace }: Env, numbers: ReadonlyArray<number>): string | undefined => {
  const size = sizeOf(actionSpace)
  if (numbers.length !== size) return `an action of ${id} has ${size} numbers, found ${display(numbers)}`
  const options = optionsOf(actionSpace)
  if (options !== undefined) {
    const isOption = (choice: number, at: number) => Number.isInteger(choice) && choice >= 0 && choice < options[at]
    const wrong = numbers.findIndex((choice, at) => !isOption(choice, at))
    if (wrong < 0) return undefined
    const what = options.length === 1 ? `an action of ${id}` : `element ${wrong} of an action of ${id}`
    return `${what} is a whole number from 0 to ${options[wrong] - 1}, found ${numbers[wrong]}`
  }
  return numbers.every(Number.isFinite)
    ? undefined
    : `an action of ${id} consists of finite numbers, found [${numbers.join(", ")}]`
}

const Trajectories = Schema.Array(
  Schema.Struct({
    trajectory: Schema.Array(
      Schema.Struct({
        observation: Schema.Array(Schema.Finite),
        action: Schema.Union([Schema.Finite, Schema.Array(Schema.Finite)]),
        reward: Schema.optionalKey(Schema.Finite),
      }),
    ),
  }),
)

/**
 * Decodes demonstrations from JSON, a list of `{ trajectory: [{ observation: […], action: n | […], reward? }] }`. Fails
 * with a LearningError if the text has another form, or if the observations or actions do not fit the env's spaces.
 */
export const fromJson = Effect.fnUntraced(function* (
  env: Env,
  text: string,
): Effect.fn.Return<Demonstrations, LearningError> {
  const trajectories = yield* Schema.decodeUnknownEffect(Schema.fromJsonString(Trajectories))(text).pipe(
    Effect.mapError((error) => new LearningError({ message: `demonstrations: ${oneLine(error.message)}` })),
  )
  const space = rowSpaceOf(env)
  const width = sizeOf(space)
  const forbidden = forbiddenIn(space)
  const steps = trajectories.flatMap(({ trajectory }) => trajectory)
  for (const [row, { observation, action }] of steps.entries()) {
    const numbers = typeof action === "number" ? [action] : action
    const problem =
      observation.length !== width
        ? `an observation of ${env.id} has ${width} numbers, found ${observation.length}`
        : (problemOf(env, numbers) ??
          ((forbidden?.(observation, 0, numbers, 0) ?? -1) < 0
            ? undefined
            : `the action mask forbids ${display(action)}`))
    if (problem !== undefined) return yield* new LearningError({ message: `demonstrations: step ${row}: ${problem}` })
  }
  const actions = steps.flatMap(({ action }) => action)
  return {
    rows: steps.length,
    observations: Float32Array.from(steps.flatMap(({ observation }) => observation)),
    actions: isWhole(env.actionSpace) ? Int32Array.from(actions) : Float32Array.from(actions),
    returns: trajectories.map(({ trajectory }) => trajectory.reduce((sum, { reward = 0 }) => sum + reward, 0)),
  }
})
