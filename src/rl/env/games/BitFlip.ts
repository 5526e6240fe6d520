/**
 * BitFlip: each step flips one of n bits, until they equal a goal of n bits (Andrychowicz et al. 2017,
 * arXiv:1707.01495, section 3.1). Each episode draws the bits and the goal at random. The only reward is 1 at the goal,
 * which ends the episode. An episode has as many steps as there are bits, so with 10 bits or more random play hardly
 * ever reaches the goal. The env is a test of hindsight experience replay.
 *
 * Actions: the bit to flip. The observation's parts: `observation` and `achieved_goal` are the bits, `desired_goal` is
 * the goal.
 */
import * as Schema from "effect/Schema"
import { bounded, intBetween } from "../../../base/config/fields.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import type { Env } from "../Env.ts"
import { checkOptions, checkWhole } from "../../../base/EnvError.ts"
import * as GoalEnv from "../GoalEnv.ts"
import { withRecipe } from "../recipe.ts"
import { dict, discrete, type Discrete, multiBinary, type MultiBinary } from "../Space.ts"

export const BitFlipOptions = Schema.Struct({
  /** The number of bits. Default: 12. */
  bits: Schema.optionalKey(intBetween(1, 1000)),
  /** Truncates episodes at this many steps. Default: the number of bits. */
  maxSteps: Schema.optionalKey(bounded("count")),
})
export type BitFlipOptions = typeof BitFlipOptions.Type

export interface BitFlipState {
  readonly bits: ReadonlyArray<number>
  readonly goal: ReadonlyArray<number>
}

const isEqual = (one: ArrayLike<number | boolean>, other: ArrayLike<number | boolean>): boolean => {
  for (let index = 0; index < one.length; index++) if (Number(one[index]) !== Number(other[index])) return false
  return true
}

const draw = (count: number, random: Stream): ReadonlyArray<number> =>
  Array.from({ length: count }, () => random.integer(2))

/** Makes the env with other options: `BitFlip.make({ bits: 15 })`. */
export const make = (
  options: BitFlipOptions = {},
): Env<BitFlipState, Discrete, GoalEnv.GoalSpace<MultiBinary, MultiBinary>> => {
  checkOptions("BitFlip", options, BitFlipOptions)
  const { bits: count = 12 } = options
  const id = `BitFlip-${count}-v0`
  const { maxSteps = count } = options
  checkWhole(id, count, 1, `BitFlip: ${count} bits`)
  const bits = multiBinary(count)
  const env = GoalEnv.make({
    id,
    observationSpace: dict({ observation: bits, achieved_goal: bits, desired_goal: bits }),
    actionSpace: discrete(count),
    maxSteps,
    reset: (random): BitFlipState => ({ bits: draw(count, random), goal: draw(count, random) }),
    observe: ({ bits, goal }) => ({ observation: bits, achieved_goal: bits, desired_goal: goal }),
    step: ({ bits, goal }, action) => ({ bits: bits.with(action, 1 - bits[action]), goal }),
    computeReward: (achieved, desired) => (isEqual(achieved, desired) ? 1 : 0),
    computeTerminated: isEqual,
    renderText: ({ bits, goal }) => `bits ${bits.join("")}\ngoal ${goal.join("")}`,
  })
  return withRecipe(env, "BitFlip", options)
}

/** The env with its default options: `Batch.make(BitFlip.env, 32)`. */
export const env = make()
