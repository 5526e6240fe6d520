import type { Box } from "../env/Space.ts"
import { add, constant, mul, sub } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"

/** Converts between actions from −1 to 1, which networks output, and actions within an env's finite bounds. */
interface ScaledActions {
  readonly toEnv: (actions: Tensor) => Tensor
  /** Converts the env's actions to the network's; where a bound's width is 0, the network's action is 0. */
  readonly fromEnv: (actions: Tensor) => Tensor
}

export const scaledActions = ({ low, high }: Box): ScaledActions => {
  const centre = low.map((bound, index) => (bound + high[index]) / 2)
  const half = low.map((bound, index) => (high[index] - bound) / 2)
  return {
    toEnv: (actions) => add(mul(actions, constant(half)), constant(centre)),
    fromEnv: (actions) =>
      mul(sub(actions, constant(centre)), constant(half.map((width) => (width > 0 ? 1 / width : 0)))),
  }
}
