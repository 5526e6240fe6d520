/** Writes and reads the rows of a batch: observations, and the action masks after them, which are zeros and ones. */
import { display } from "../../../base/config/Config.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import { type Env, rowSpaceOf } from "../Env.ts"
import { invalid } from "../../../base/EnvError.ts"
import { writerOf } from "./values.ts"
import { choicesOf, type Masked, maskSizeOf, type RowSpace, sizeOf } from "../Space.ts"

/**
 * Writes the mask of a state to `into` from `offset` on. Describes what is wrong with the mask; returns undefined if it
 * is right.
 */
type MaskWriter = (state: unknown, isOver: boolean, into: Float32Array, offset: number) => string | undefined

/**
 * Returns the function that writes the masks of an env; undefined if it has none. If the episode is over, the mask
 * allows everything, since the env's `actionMask` is not called.
 */
export const maskWriter = (env: Env): MaskWriter | undefined => {
  const choices = choicesOf(env.actionSpace)
  if (env.actionMask === undefined || choices === undefined) return undefined
  const size = choices.reduce((sum, count) => sum + count, 0)
  const write = givenMaskWriter(choices)
  return (state, isOver, into, offset) => {
    if (!isOver) return write(env.actionMask?.(state), into, offset)
    into.fill(1, offset, offset + size)
    return undefined
  }
}

/**
 * Returns a function that writes a mask which the env already returned. It describes what is wrong with the mask;
 * undefined if it is right.
 */
export const givenMaskWriter = (
  choices: ReadonlyArray<number>,
): ((mask: unknown, into: Float32Array, offset: number) => string | undefined) => {
  const size = choices.reduce((sum, count) => sum + count, 0)
  return (mask, into, offset) => {
    if (!isList(mask) || mask.length !== size) {
      const found = isList(mask) ? `${mask.length} elements` : display(mask)
      return `actionMask returned ${found}; expected ${size}, one for each choice`
    }
    for (let index = 0; index < size; index++) {
      const allowed = mask[index]
      if (allowed !== 0 && allowed !== 1 && typeof allowed !== "boolean") {
        return `actionMask: element ${index} is ${display(allowed)}, not 0, 1, false or true`
      }
      into[offset + index] = Number(allowed)
    }
    const problem = emptyMaskProblem(choices, into, offset)
    return problem === undefined ? undefined : `actionMask ${problem}`
  }
}

/**
 * Describes which element of an action has no allowed choice in the mask of `row` from `offset` on; undefined if all
 * have.
 */
export const emptyMaskProblem = (
  choices: ReadonlyArray<number>,
  row: ArrayLike<number>,
  offset: number,
): string | undefined => {
  let from = offset
  for (let element = 0; element < choices.length; element++) {
    let count = 0
    for (let at = from; at < from + choices[element]; at++) count += row[at]
    if (count === 0) {
      const where = choices.length === 1 ? "" : ` of element ${element}`
      return `forbids all ${choices[element]} choices${where}; expected at least one that is allowed`
    }
    from += choices[element]
  }
  return undefined
}

const isList = (value: unknown): value is ArrayLike<unknown> =>
  typeof value === "object" && value !== null && "length" in value

/**
 * Returns a function that finds the first element of an action that the mask in the env's row forbids, −1 if there is
 * none. Returns undefined if rows have no masks.
 */
export const forbiddenIn = (
  space: RowSpace,
): ((row: ArrayLike<number>, rowAt: number, actions: ArrayLike<number>, actionAt: number) => number) | undefined => {
  if (space._tag !== "Masked") return undefined
  const { choices } = space
  const maskAt = sizeOf(space) - maskSizeOf(space)
  return (row, rowAt, actions, actionAt) => {
    let from = rowAt + maskAt
    for (let element = 0; element < choices.length; element++) {
      if (row[from + actions[actionAt + element]] === 0) return element
      from += choices[element]
    }
    return -1
  }
}

/** Returns a function that describes the first env whose action its mask forbids; undefined if rows have no masks. */
export const forbiddenProblemIn = (
  space: RowSpace,
  actionSize: number,
):
  | ((
      rows: Float32Array,
      actions: Float32Array | Int32Array,
      waiting?: Uint8Array,
    ) => { readonly index: number; readonly problem: string } | undefined)
  | undefined => {
  const forbidden = forbiddenIn(space)
  const rowSize = sizeOf(space)
  if (forbidden === undefined) return undefined
  return (rows, actions, waiting) => {
    for (let index = 0; index * actionSize < actions.length; index++) {
      if (waiting !== undefined && waiting[index] !== 0) continue
      const element = forbidden(rows, index * rowSize, actions, index * actionSize)
      if (element < 0) continue
      const where = actionSize === 1 ? "" : ` as element ${element} of the action`
      return { index, problem: `the action mask forbids ${actions[index * actionSize + element]}${where}` }
    }
    return undefined
  }
}

/**
 * Draws an action for each row of a batch with masks: each element is uniform among its allowed choices. If everything is
 * allowed, it draws the same actions as without a mask.
 */
export const drawAllowed = (
  space: Masked,
  rows: ArrayLike<number>,
  random: Stream,
  into: Float32Array | Int32Array,
): void => {
  const { choices } = space
  const rowSize = sizeOf(space)
  const maskAt = rowSize - maskSizeOf(space)
  const count = into.length / choices.length
  for (let row = 0; row < count; row++) {
    let from = row * rowSize + maskAt
    for (let element = 0; element < choices.length; element++) {
      let allowed = 0
      for (let at = from; at < from + choices[element]; at++) allowed += rows[at]
      let left = random.integer(allowed)
      let choice = 0
      while (rows[from + choice] === 0 || left-- > 0) choice++
      into[row * choices.length + element] = choice
      from += choices[element]
    }
  }
}

/** Returns the mask of a state; undefined if the env has no masks. Throws an `EnvError` if the mask is wrong. */
export const maskOf = (env: Env, state: unknown): Float32Array | undefined => {
  const write = maskWriter(env)
  if (write === undefined) return undefined
  const mask = new Float32Array(maskSizeOf(rowSpaceOf(env)))
  const problem = write(state, false, mask, 0)
  if (problem !== undefined) throw invalid(env.id, problem)
  return mask
}

/**
 * Returns the row that a batch gives for a state that is not terminal: the observation, and the action mask if the env has
 * masks. Throws an `EnvError` if one of them is wrong.
 */
export const rowOf = (env: Env, state: unknown): Float32Array => {
  const row = new Float32Array(sizeOf(rowSpaceOf(env)))
  const problem =
    writerOf(env.observationSpace, "observation")(env.observe(state), row, 0) ??
    maskWriter(env)?.(state, false, row, sizeOf(env.observationSpace))
  if (problem !== undefined) throw invalid(env.id, problem)
  return row
}

/** Tells whether a mask allows an action; without a mask, every action is allowed. */
export const allows = (env: Env, mask: ArrayLike<number> | undefined, action: number | ArrayLike<number>): boolean => {
  const space = rowSpaceOf(env)
  if (mask === undefined || space._tag !== "Masked") return true
  const chosen = typeof action === "number" ? [action] : action
  let from = 0
  return space.choices.every((count, element) => {
    const isAllowed = mask[from + chosen[element]] !== 0
    from += count
    return isAllowed
  })
}
