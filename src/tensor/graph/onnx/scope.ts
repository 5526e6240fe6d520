/** Adds nodes and constants to an ONNX graph, for the files that translate tensors to nodes. */
import type { Tensor } from "../Tensor.ts"
import type { Attribute, Graph, Initializer } from "./model.ts"

/**
 * The state of a translation from tensors to nodes: the graphs that get nodes and constants, and the names used so far.
 */
export interface Scope {
  /** The graph that gets the nodes. */
  readonly graph: Graph
  /** The graph that gets the constants. It is never a loop's body, which would make them again in each iteration. */
  readonly constants: Graph
  /** The names of the tensors that nodes compute so far. */
  readonly names: Map<Tensor, string>
  /** Returns a new name that begins with `prefix`. */
  readonly fresh: (prefix: string) => string
  /** Whether nodes may be ops that only ONNX Runtime has, not only those of the standard. */
  readonly runtimeOps: boolean
  /** Whether several threads of the processor compute an op. */
  readonly parallel: boolean
}

/** The options of a scope that depend on where its nodes will run. */
export type ScopeTarget = Pick<Scope, "runtimeOps" | "parallel">

/** Makes the function `fresh` of a scope. Each name is the prefix and a number, and none is in `taken`. */
export const counter = (taken: ReadonlySet<string> = new Set()): Scope["fresh"] => {
  let next = 0
  return (prefix) => {
    let name = `${prefix}${next++}`
    while (taken.has(name)) name = `${prefix}${next++}`
    return name
  }
}

export const nameOf = (scope: Scope, tensor: Tensor): string => {
  const name = scope.names.get(tensor)
  if (name === undefined) throw new Error(`emitNodes: ${tensor.op.kind} is used before it is computed`)
  return name
}

export const node = (
  scope: Scope,
  op: string,
  inputs: ReadonlyArray<string>,
  attributes: Readonly<Record<string, Attribute>> = {},
): string => {
  const output = scope.fresh(op.toLowerCase())
  scope.graph.nodes.push({ op, inputs, outputs: [output], attributes })
  return output
}

/** Constants with more elements than this are not compared with existing ones. */
const mostCompared = 1 << 12

export const initializer = (scope: Scope, value: Omit<Initializer, "name">): string => {
  const same = scope.constants.initializers.find(
    (other) =>
      other.dtype === value.dtype &&
      other.data.length === value.data.length &&
      other.data.length <= mostCompared &&
      other.shape.join() === value.shape.join() &&
      other.data.join() === value.data.join(),
  )
  if (same !== undefined) return same.name
  const name = scope.fresh("constant")
  scope.constants.initializers.push({ ...value, name })
  return name
}

/** Adds an int64 constant and returns its name; equal constants share one. */
export const int64 = (
  scope: Scope,
  values: ReadonlyArray<number>,
  shape: ReadonlyArray<number> = [values.length],
): string => initializer(scope, { dtype: "i64", shape, data: BigInt64Array.from(values.map(BigInt)) })

export const float = (scope: Scope, value: number): string =>
  initializer(scope, { dtype: "f32", shape: [], data: Float32Array.of(value) })
