/** Reads and makes the states of envs as tensors, for their graph forms: a row for each copy, of whole numbers as f32. */
import * as G from "../../../tensor/graph/ops.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"

/** Returns one number of each state: [N, stateSize] → [N]. */
export const numbersOf = (state: Tensor, at: number): Tensor =>
  G.reshape(G.slice(state, [0, at], [state.shape[0], 1]), [state.shape[0]])

/** Returns the number at one place of each row: [N, places] and i32 [N] → [N]. */
export const lookUp = (rows: Tensor, place: Tensor): Tensor => {
  const [count, places] = rows.shape
  const firsts = G.constant(Int32Array.from({ length: count }, (_, row) => row * places))
  return G.gather(G.reshape(rows, [count * places]), G.add(firsts, place))
}

/** Returns a condition as a column of zeros and ones: bool [N] → [N, 1]. */
export const flagged = (condition: Tensor): Tensor => G.expandDims(G.cast(condition, "f32"), 1)
