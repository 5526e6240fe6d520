/** Checks the actions of a step before the envs take them. */
import { type Env, rowSpaceOf } from "../Env.ts"
import { optionsOf, sizeOf } from "../Space.ts"
import { forbiddenProblemIn } from "./rows.ts"

/** The index of the first env whose action is wrong, and the reason. */
interface ActionProblem {
  readonly index: number
  readonly problem: string
}

/** The form that actions must have. */
export interface ActionCheck {
  readonly actionSize: number
  /** The number of choices that each element of an action has; undefined if actions are real numbers. */
  readonly choices: ReturnType<typeof optionsOf>
  /** Returns the first action that its env's mask forbids; undefined if rows have no masks. */
  readonly forbidden: ReturnType<typeof forbiddenProblemIn>
}

/** Returns the check of an env's actions. */
export const actionCheckOf = (env: Env): ActionCheck => {
  const actionSize = sizeOf(env.actionSpace)
  return {
    actionSize,
    choices: optionsOf(env.actionSpace),
    forbidden: forbiddenProblemIn(rowSpaceOf(env), actionSize),
  }
}

/**
 * Returns the first problem of a step's actions. Envs whose `waiting` is 1 ignore their actions, so those are not
 * checked.
 */
export const actionProblem = (
  { actionSize, choices, forbidden }: ActionCheck,
  observations: Float32Array,
  actions: Float32Array | Int32Array,
  waiting?: Uint8Array,
): ActionProblem | undefined => {
  if (choices === undefined) return numberProblem(actionSize, actions, waiting)
  return choiceProblem(choices, actions, waiting) ?? forbidden?.(observations, actions, waiting)
}

const isWaiting = (waiting: Uint8Array | undefined, index: number): boolean =>
  waiting !== undefined && waiting[index] !== 0

const choiceProblem = (
  choices: ArrayLike<number>,
  actions: Float32Array | Int32Array,
  waiting: Uint8Array | undefined,
): ActionProblem | undefined => {
  const size = choices.length
  for (let index = 0, at = 0; at < actions.length; index++) {
    for (let element = 0; element < size; element++, at++) {
      const action = actions[at]
      // `>>> 0` leaves only the whole numbers from 0 to 2³² − 1 unchanged.
      if ((action >>> 0 !== action || action >= choices[element]) && !isWaiting(waiting, index)) {
        const where = size === 1 ? "an action" : `a number as element ${element} of the action`
        return { index, problem: `expected ${where} from 0 to ${choices[element] - 1}, found ${action}` }
      }
    }
  }
  return undefined
}

const numberProblem = (
  actionSize: number,
  actions: Float32Array | Int32Array,
  waiting: Uint8Array | undefined,
): ActionProblem | undefined => {
  for (let at = 0; at < actions.length; at++) {
    // The difference of a number with itself is 0 unless the number is NaN or infinite.
    if (actions[at] - actions[at] !== 0 && !isWaiting(waiting, Math.floor(at / actionSize))) {
      const problem = `action element ${at % actionSize} is ${actions[at]}; expected a finite number`
      return { index: Math.floor(at / actionSize), problem }
    }
  }
  return undefined
}
