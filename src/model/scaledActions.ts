import type { Box } from "../env/Space.ts"
import { add, constant, mul, sub } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"

/** Between actions in −1 … 1, as networks make them, and those within an env's finite bounds. */
export const scaledActions = ({ low, high }: Box) => {
  const middle = low.map((bound, index) => (bound + high[index]) / 2)
  const half = low.map((bound, index) => (high[index] - bound) / 2)
  return {
    toEnv: (actions: Tensor): Tensor => add(mul(actions, constant(half)), constant(middle)),
    fromEnv: (actions: Tensor): Tensor =>
      mul(sub(actions, constant(middle)), constant(half.map((width) => (width > 0 ? 1 / width : 0)))),
  }
}
