import { sizeOf, type Space } from "../env/Space.ts"
import { constant, maximum, minimum, oneHot } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"

/** How many numbers a network says about an action: one a choice, or one an element. */
export const outputsFor = (space: Space): number => (space._tag === "Discrete" ? space.n : sizeOf(space))

/** Actions as a network takes them in, in as many numbers. */
export const asNumbers = (space: Space, actions: Tensor): Tensor =>
  space._tag === "Discrete" ? oneHot(actions, space.n) : actions

/** Actions as the env takes them: a continuous one is clipped to the space's bounds. */
export const toEnvAction = (space: Space, action: Tensor): Tensor =>
  space._tag === "Discrete"
    ? action
    : minimum(maximum(action, constant(space.low.map(atLeast))), constant(space.high.map((high) => -atLeast(-high))))

const bits = new DataView(new ArrayBuffer(4))

/** The least float32 that is not below a number: 0.1 itself is none, and the nearest may lie out of bounds. */
const atLeast = (bound: number): number => {
  const nearest = Math.fround(bound)
  if (!(nearest < bound)) return nearest
  bits.setFloat32(0, nearest)
  bits.setInt32(0, bits.getInt32(0) + (nearest < 0 ? -1 : 1))
  return bits.getFloat32(0)
}
