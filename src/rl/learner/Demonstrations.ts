/**
 * Makes demonstrations for behaviour cloning: observations, and the actions that an expert took for them. `record`
 * plays an env, and `fromJson` decodes a JSON text; neither reads a file. `Transitions`, which also have rewards and
 * next observations, can be used as demonstrations.
 *
 * @example
 * ```ts
 * const demonstrations = Demonstrations.record(CartPole.env, {
 *   episodes: 10,
 *   policy: ([,, angle, spin]) => (angle + spin > 0 ? 1 : 0),
 * })
 * Train.run({ env: CartPole.env, algorithm: Bc.make(demonstrations), totalSteps: 50_000, validation: { everySteps: 10_000 } })
 * ```
 */
import { Effect, Schema } from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import { oneLine } from "../../base/text/text.ts"
import { type Env, rowSpaceOf } from "../env/Env.ts"
import { forbiddenIn } from "../env/internal/rows.ts"
import { isWhole, sizeOf } from "../env/Space.ts"
import { LearningError, type Task } from "./Learner.ts"
import type { NamedArrays } from "../../tensor/graph/Parameters.ts"
import { namedVector } from "./learnerState.ts"
import type { Demonstrations } from "./transitions/DataSet.ts"
import { labelProblemIn, notFiniteIn, wrongElementIn } from "./transitions/player.ts"
import * as Transitions from "./transitions/Transitions.ts"

export type { Demonstrations } from "./transitions/DataSet.ts"
export type { RecordOptions } from "./transitions/Transitions.ts"

/**
 * Plays whole episodes in an env with a policy, as `Transitions.record` does, and returns the observations and actions.
 */
export const record = (env: Env, options: Transitions.RecordOptions): Demonstrations => {
  const { rows, observations, actions, returns } = Transitions.record(env, options)
  return { rows, observations, actions, returns }
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
  const trajectories = yield* Schema.decodeUnknownEffect(jsonText(Trajectories))(text).pipe(
    Effect.mapError((error) => new LearningError({ message: `demonstrations: ${oneLine(error.message)}` })),
  )
  const space = rowSpaceOf(env)
  const width = sizeOf(space)
  const problemOf = labelProblemIn(env, space)
  const steps = trajectories.flatMap(({ trajectory }) => trajectory)
  for (const [row, { observation, action }] of steps.entries()) {
    const numbers = typeof action === "number" ? [action] : action
    const problem =
      observation.length !== width
        ? `an observation of ${env.id} has ${width} numbers, found ${observation.length}`
        : problemOf(numbers, observation, 0)
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

/** Fails unless there are demonstrations, and they fit the env's observation and action spaces and their action masks. */
export const checkFit = (
  algorithm: string,
  { rows, observations, actions }: Demonstrations,
  { observationSpace, actionSpace }: Pick<Task, "observationSpace" | "actionSpace">,
): Effect.Effect<void, LearningError> => {
  const fail = (problem: string) => Effect.fail(new LearningError({ message: `${algorithm}: ${problem}` }))
  const width = sizeOf(observationSpace)
  const actionSize = sizeOf(actionSpace)
  if (rows === 0) return fail("there are no demonstrated steps to learn from")
  const areWhole = actions instanceof Int32Array
  const kind = (whole: boolean): string => (whole ? "choices" : "real numbers")
  const misfits = [
    ...(observations.length === rows * width
      ? []
      : [`an observation has ${observations.length / rows} numbers in the data and ${width} in the env`]),
    ...(areWhole === isWhole(actionSpace)
      ? []
      : [`actions are ${kind(areWhole)} in the data and ${kind(isWhole(actionSpace))} in the env`]),
    ...(actions.length === rows * actionSize
      ? []
      : [`an action has ${actions.length / rows} numbers in the data and ${actionSize} in the env`]),
  ]
  if (misfits.length > 0) return fail(`the data are of another env: ${misfits.join("; ")}`)
  const wrong = notFiniteIn(observations)
  if (wrong >= 0) {
    return fail(
      `observations: step ${Math.floor(wrong / width)}: expected finite numbers, found ${observations[wrong]}`,
    )
  }
  const wrongElementOf = wrongElementIn(actionSpace)
  const forbidden = forbiddenIn(observationSpace)
  for (let row = 0; row < rows; row++) {
    const at = row * actionSize
    const found = wrongElementOf(actions, at)
    if (found !== undefined) {
      return fail(`actions: step ${row}: expected ${found.expected}, found ${actions[at + found.element]}`)
    }
    const element = forbidden?.(observations, row * width, actions, at) ?? -1
    if (element >= 0) return fail(`actions: step ${row}: the action mask forbids ${actions[at + element]}`)
  }
  return Effect.void
}

/** Returns the arrays of demonstrations as a learner's `data`: a run that learns from them is resumed only with equal ones. */
export const dataOf = ({ observations, actions }: Demonstrations): NamedArrays => ({
  observations: namedVector(observations),
  actions: namedVector(actions),
})
