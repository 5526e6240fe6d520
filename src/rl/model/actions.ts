/** Builds graphs that convert actions between networks and envs. It only computes; networks and learners call it. */
import { type ActionSpace, type Box, sizeOf } from "../env/Space.ts"
import {
  bernoulli,
  categorical,
  diagonalGaussian,
  type Distribution,
  multiCategorical,
  type StateDependent,
  stateDependentGaussian,
} from "../../tensor/graph/distributions.ts"
import {
  add,
  cast,
  concat,
  constant,
  maximum,
  minimum,
  mul,
  oneHot,
  reshape,
  slice,
  sub,
} from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"

/**
 * Returns the number of outputs that a policy needs: one for each option of a choice, one for a switch or a real number.
 *
 * @example
 * ```ts
 * outputsFor(Space.discrete(3)) // 3
 * outputsFor(Space.box(-1, 1, [2])) // 2
 * ```
 */
export const outputsFor = (space: ActionSpace): number =>
  space._tag === "Discrete"
    ? space.n
    : space._tag === "MultiDiscrete"
      ? space.sizes.reduce((sum, size) => sum + size, 0)
      : sizeOf(space)

/**
 * Encodes actions as inputs of a network, with `outputsFor` numbers each; choices are one-hot.
 *
 * @example
 * ```ts
 * asNumbers(Space.discrete(2), Graph.constant(Int32Array.of(1, 0))) // [[0, 1], [1, 0]]
 * ```
 */
export const asNumbers = (space: ActionSpace, actions: Tensor): Tensor => {
  if (space._tag === "Discrete") return oneHot(actions, space.n)
  if (space._tag === "Box") return actions
  if (space._tag === "MultiBinary") return cast(actions, "f32")
  const [rows] = actions.shape
  const choice = (index: number): Tensor => reshape(slice(actions, [0, index], [rows, 1]), [rows])
  return concat(
    space.sizes.map((size, index) => oneHot(choice(index), size)),
    1,
  )
}

/** The tensors that a policy needs besides the outputs of its network. */
interface PolicyParts {
  readonly allowed?: Tensor | undefined
  readonly logDeviation?: Tensor | undefined
  /** The features and deviations of state-dependent noise, used instead of `logDeviation`. */
  readonly stateDependent?: StateDependent | undefined
}

/**
 * Makes the distribution of actions from the outputs of a network: independent choices and switches, or normal
 * distributions with the logarithms of standard deviations `logDeviation`. `allowed` is the action mask.
 *
 * @example
 * ```ts
 * const outputs = Graph.input("outputs", [8, 5])
 * policyOver(Space.multiDiscrete([3, 2]), outputs).mode() // actions of shape [8, 2]
 * ```
 */
export const policyOver = (
  space: ActionSpace,
  outputs: Tensor,
  { allowed, logDeviation, stateDependent }: PolicyParts = {},
): Distribution => {
  switch (space._tag) {
    case "Discrete":
      return categorical(outputs, allowed)
    case "MultiDiscrete":
      return multiCategorical(outputs, space.sizes, allowed)
    case "MultiBinary":
      return bernoulli(outputs)
    case "Box":
      return stateDependent === undefined
        ? diagonalGaussian(outputs, logDeviation ?? constant(new Float32Array(sizeOf(space))))
        : stateDependentGaussian(outputs, stateDependent)
  }
}

/** Returns how many uniform random numbers `policyOver` needs for an action. */
export const noiseSizeFor = (space: ActionSpace): number => (space._tag === "Box" ? 2 * sizeOf(space) : sizeOf(space))

/**
 * Clips continuous actions to the bounds of the space, because the env refuses others. Whole numbers stay unchanged.
 *
 * @example
 * ```ts
 * toEnvAction(Space.box(-1, 1, [1]), Graph.constant([-3, 0.5], [2, 1])) // [[−1], [0.5]]
 * ```
 */
export const toEnvAction = (space: ActionSpace, action: Tensor): Tensor =>
  space._tag !== "Box"
    ? action
    : minimum(maximum(action, constant(boundsOf(space).low)), constant(boundsOf(space).high))

/** Returns the bounds of a space as the outermost float32 numbers within them. */
export const boundsOf = ({ low, high }: Box): { readonly low: Array<number>; readonly high: Array<number> } => ({
  low: low.map(atLeast),
  high: high.map((bound) => -atLeast(-bound)),
})

/** Holds one float32 while `atLeast` reads and changes its bits. */
const bits = new DataView(new ArrayBuffer(4))

/** Returns the smallest float32 that is not below `bound`. (The nearest float32 may be below it, so out of bounds.) */
const atLeast = (bound: number): number => {
  const nearest = Math.fround(bound)
  if (!(nearest < bound)) return nearest
  bits.setFloat32(0, nearest)
  // As an integer, the bits of the next float32 away from 0 are larger by 1, so for a negative number subtract 1.
  bits.setInt32(0, bits.getInt32(0) + (nearest < 0 ? -1 : 1))
  return bits.getFloat32(0)
}

/** Two conversions: from a network's actions, which are from −1 to 1, to actions within an env's bounds, and back. */
interface ScaledActions {
  readonly toEnv: (actions: Tensor) => Tensor
  /** Converts the env's actions to the network's; where both bounds are equal, the network's action is 0. */
  readonly fromEnv: (actions: Tensor) => Tensor
}

/** Makes the conversions for an action space with finite bounds. */
export const scaledActions = ({ low, high }: Box): ScaledActions => {
  const centre = low.map((bound, index) => (bound + high[index]) / 2)
  const half = low.map((bound, index) => (high[index] - bound) / 2)
  return {
    toEnv: (actions) => add(mul(actions, constant(half)), constant(centre)),
    fromEnv: (actions) =>
      mul(sub(actions, constant(centre)), constant(half.map((width) => (width > 0 ? 1 / width : 0)))),
  }
}
