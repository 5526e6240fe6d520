/** Plays one copy of an env, and keeps every step. `Transitions.record` and `Transitions.play` choose its actions. */
import { display } from "../../../base/config/Config.ts"
import * as Batch from "../../env/Batch.ts"
import type { Env } from "../../env/Env.ts"
import { EnvError } from "../../../base/EnvError.ts"
import { forbiddenIn } from "../../env/internal/rows.ts"
import {
  type ActionSpace,
  isWhole,
  maskSizeOf,
  optionsOf,
  type RowSpace,
  sizeOf,
  unflatten,
  unmasked,
  type SpaceValue,
} from "../../env/Space.ts"
import type { Transitions } from "./DataSet.ts"

interface PlayerOptions {
  /** The name of the caller, for messages. */
  readonly name: string
  readonly seed: number
  /** The number of steps after which an episode is cut short. */
  readonly maxSteps: number
}

/** Makes a player of an env. Call `begin` before each episode, then `step` until it returns false. */
export const makePlayer = (env: Env, { name, seed, maxSteps }: PlayerOptions) => {
  const batch = Batch.make(env, 1, { autoReset: "disabled" })
  const actionSize = sizeOf(env.actionSpace)
  const actions = isWhole(env.actionSpace) ? new Int32Array(actionSize) : new Float32Array(actionSize)
  const observations: Array<number> = []
  const taken: Array<number> = []
  const rewards: Array<number> = []
  const finals: Array<number> = []
  const lengths: Array<number> = []
  const terminated: Array<number> = []
  const returns: Array<number> = []
  let steps = 0
  let total = 0

  const begin = (): void => {
    if (lengths.length === 0) batch.reset(seed, name)
    else batch.restart(Uint8Array.of(1))
    steps = 0
    total = 0
  }

  /** Takes an action, and returns whether the episode continues. Throws an EnvError if the action is invalid. */
  const step = (action: number | ReadonlyArray<number>): boolean => {
    const numbers = typeof action === "number" ? [action] : action
    const problem = actionProblem(env, numbers)
    if (problem !== undefined) {
      const place = { episode: lengths.length, step: steps + 1 }
      const message = `${name}: episode ${place.episode}, step ${place.step}: ${problem}`
      throw new EnvError({ env: env.id, message, ...place })
    }
    for (let at = 0; at < actions.length; at++) actions[at] = numbers[at]
    for (const number of batch.observations) observations.push(number)
    for (const number of actions) taken.push(number)
    batch.step(actions)
    rewards.push(batch.rewards[0])
    total += batch.rewards[0]
    steps++
    if ((batch.terminated[0] | batch.truncated[0]) === 0 && steps < maxSteps) return true
    for (const number of batch.observations) finals.push(number)
    lengths.push(steps)
    terminated.push(batch.terminated[0])
    returns.push(total)
    return false
  }

  return {
    /** The env's current observation, with the action mask if the env has masks; each step overwrites it. */
    observations: batch.observations,
    begin,
    step,
    /** Returns the steps of all complete episodes. */
    played: (): Transitions => ({
      rows: rewards.length,
      observations: Float32Array.from(observations),
      actions: actions instanceof Int32Array ? Int32Array.from(taken) : Float32Array.from(taken),
      rewards: Float32Array.from(rewards),
      lengths: Int32Array.from(lengths),
      terminated: Uint8Array.from(terminated),
      finalObservations: Float32Array.from(finals),
      returns,
    }),
  }
}

/** Returns why these numbers are not an action of the env; undefined if they are one. */
const actionProblem = (
  { id, actionSpace }: Pick<Env, "id" | "actionSpace">,
  numbers: ReadonlyArray<number>,
): string | undefined => {
  const size = sizeOf(actionSpace)
  if (numbers.length !== size) return `an action of ${id} has ${size} numbers, found ${display(numbers)}`
  const wrong = wrongElementIn(actionSpace)(numbers, 0)
  if (wrong === undefined) return undefined
  if (!isWhole(actionSpace)) return `an action of ${id} consists of finite numbers, found [${numbers.join(", ")}]`
  const what = size === 1 ? `an action of ${id}` : `element ${wrong.element} of an action of ${id}`
  return `${what} is ${wrong.expected}, found ${numbers[wrong.element]}`
}

/**
 * Returns a function that says why numbers are not an allowed action: they are not an action of the env, or the mask of
 * the row at `from` in `rows` forbids them. It returns undefined if they are allowed.
 */
export const labelProblemIn = (
  env: Pick<Env, "id" | "actionSpace">,
  space: RowSpace,
): ((numbers: ReadonlyArray<number>, rows: ArrayLike<number>, from: number) => string | undefined) => {
  const forbidden = forbiddenIn(space)
  return (numbers, rows, from) =>
    actionProblem(env, numbers) ??
    ((forbidden?.(rows, from, numbers, 0) ?? -1) < 0
      ? undefined
      : `the action mask forbids ${display(numbers.length === 1 ? numbers[0] : numbers)}`)
}

/**
 * Returns a function that divides a row into the observation, in the env's form, and its mask, as a loaded policy needs
 * them.
 */
export const observationIn = (
  space: RowSpace,
): ((row: ReadonlyArray<number>) => {
  readonly observation: SpaceValue
  readonly mask: ReadonlyArray<number> | undefined
}) => {
  const plain = unmasked(space)
  const size = sizeOf(plain)
  const hasMask = maskSizeOf(space) > 0
  return (row) => ({ observation: unflatten(plain, row), mask: hasMask ? row.slice(size) : undefined })
}

/**
 * Returns a function that checks the numbers of a value, from index `from` on. It returns the first number that is not
 * in the space with a description of what was expected; undefined if all are right. The bounds of real numbers are not
 * checked.
 */
export const wrongElementIn = (
  space: ActionSpace,
): ((
  numbers: ArrayLike<number>,
  from: number,
) => { readonly element: number; readonly expected: string } | undefined) => {
  const options = optionsOf(space)
  const size = sizeOf(space)
  return (numbers, from) => {
    for (let element = 0; element < size; element++) {
      const number = numbers[from + element]
      if (options === undefined) {
        if (!Number.isFinite(number)) return { element, expected: "a finite number" }
      } else if (!Number.isInteger(number) || number < 0 || number >= options[element]) {
        return { element, expected: `a whole number from 0 to ${options[element] - 1}` }
      }
    }
    return undefined
  }
}

/** Returns the index of the first number that is not finite as a 32-bit float; −1 if all are. */
export const notFiniteIn = (numbers: ArrayLike<number>): number => {
  for (let at = 0; at < numbers.length; at++) if (!Number.isFinite(Math.fround(numbers[at]))) return at
  return -1
}
