/**
 * Exports the ops from which graphs are built. Each function checks the shapes and dtypes of its inputs, and throws a
 * `GraphError` that names the op, the shapes and the line of the call.
 *
 * @example
 * ```ts
 * import { Graph } from "effect-rl"
 *
 * const x = Graph.input("x", [32, 4])
 * const w = Graph.state("w", [4, 2])
 * const y = Graph.softmax(Graph.matmul(x, w)) // [32, 2]
 * ```
 */
export { shapeText } from "./ops/core.ts"
export * from "./ops/elementwise.ts"
export * from "./ops/linear.ts"
export * from "./ops/movement.ts"
export * from "./ops/reductions.ts"
export type { Tensor } from "./Tensor.ts"
