/**
 * Makes an ONNX model for any number of rows. Tensors have fixed shapes, so `export.ts` emits a program for two numbers
 * of rows, and `withFreeRows` compares both graphs: whatever differs depends on the number of rows, which the model
 * computes when it runs.
 */
import { fail } from "../ops/core.ts"
import { type Attribute, Graph, type Initializer, type OnnxNode, type OnnxValue } from "./model.ts"
import { counter, initializer, int64, node, type Scope, type ScopeTarget } from "./scope.ts"

/** The name of the free axis. */
const axisName = "batch"

/** The two numbers of rows. They are primes, so that an axis of another kind hardly ever has such a size. */
const sizes = [241, 251] as const

/**
 * Returns the graph for any number of rows of a program, which `graphOf` emits for a fixed one. Only shapes, and
 * constants whose rows are all equal, may depend on the number of rows; otherwise throws a `GraphError`.
 */
export const withFreeRows = (graphOf: (rows: number) => Graph, target: ScopeTarget): Graph => {
  const [one, other] = [graphOf(sizes[0]), graphOf(sizes[1])]
  const inputs = valuesOf(one.inputs, other.inputs)
  const source = inputs.find(({ shape }) => shape?.[0] === axisName)
  if (source === undefined) return refuse("expected an input with a row for each observation, found none")
  if (one.nodes.length !== other.nodes.length) return refuse("its nodes depend on the number of rows")
  const graph = new Graph(one.name)
  const scope: Scope = { graph, constants: graph, names: new Map(), fresh: counter(namesIn(one)), ...target }
  const [constants, otherConstants] = [byName(one), byName(other)]
  const used = new Set<string>()
  const rowsOf = rowCounter(scope, source.name)
  /** For each name in the second graph, the name in the first graph of the same value. */
  const twins = new Map<string, string>()
  for (const [index, { inputs: read, ...rest }] of one.nodes.entries()) {
    const twin = other.nodes[index]
    if (!isSameOp(rest, twin) || read.length !== twin.inputs.length)
      return refuse(`its ${rest.op} depends on the number of rows`)
    const inputs = read.map((name, at) => {
      const [own, others] = [constants.get(name), otherConstants.get(twin.inputs[at])]
      if (own === undefined || others === undefined) {
        if ((twins.get(twin.inputs[at]) ?? twin.inputs[at]) !== name)
          refuse(`its ${rest.op} depends on the number of rows`)
        return name
      }
      if (!isSame(own, others)) return dependent(scope, rest.op, [own, others], rowsOf)
      if (!used.has(name)) graph.initializers.push(own)
      used.add(name)
      return name
    })
    twin.outputs.forEach((name, at) => twins.set(name, rest.outputs[at]))
    graph.nodes.push({ ...rest, inputs })
  }
  graph.inputs.push(...inputs)
  graph.outputs.push(...valuesOf(one.outputs, other.outputs))
  return graph
}

const refuse = (problem: string): never => fail("export", `expected a program for any number of rows, but ${problem}`)

const byName = ({ initializers }: Graph): ReadonlyMap<string, Initializer> =>
  new Map(initializers.map((each) => [each.name, each]))

const namesIn = ({ inputs, initializers, nodes }: Graph): ReadonlySet<string> =>
  new Set([...[...inputs, ...initializers].map(({ name }) => name), ...nodes.flatMap(({ outputs }) => outputs)])

const isSameOp = (one: Omit<OnnxNode, "inputs">, other: OnnxNode): boolean => {
  const text = (attributes: Readonly<Record<string, Attribute>> = {}) => JSON.stringify(attributes)
  return (
    one.op === other.op &&
    one.outputs.length === other.outputs.length &&
    text(one.attributes) === text(other.attributes)
  )
}

const isSame = (one: Initializer, other: Initializer): boolean =>
  one.dtype === other.dtype &&
  one.shape.join() === other.shape.join() &&
  one.data.every((value, at) => Object.is(value, other.data[at]))

/** Returns the multiple of the number of rows that both sizes are; undefined if they are not the same multiple. */
const multipleOf = (one: number, other: number): number | undefined => {
  const multiple = one / sizes[0]
  return Number.isInteger(multiple) && multiple * sizes[1] === other ? multiple : undefined
}

/** Returns inputs or outputs with the free axis in place of the number of rows. */
const valuesOf = (one: ReadonlyArray<OnnxValue>, other: ReadonlyArray<OnnxValue>): ReadonlyArray<OnnxValue> =>
  one.map((value, index) => {
    const otherShape = other[index].shape
    if (value.shape === undefined || otherShape === undefined) return value
    const shape = value.shape.map((size, axis) => {
      if (size === otherShape[axis]) return size
      const isFree = axis === 0 && size === sizes[0] && otherShape[axis] === sizes[1]
      return isFree ? axisName : refuse(`${value.name} has an axis that depends on it`)
    })
    return { ...value, shape }
  })

/** Returns a function that adds nodes for a multiple of the number of rows, which is read from an input. */
const rowCounter = (scope: Scope, input: string): ((multiple: number) => string) => {
  let rows: string | undefined
  return (multiple) => {
    rows ??= node(scope, "Shape", [input], { start: 0, end: 1 })
    return multiple === 1 ? rows : node(scope, "Mul", [rows, int64(scope, [multiple])])
  }
}

/**
 * Returns the name of a constant that a node of `op` reads, for any number of rows; `one` and `other` are the constants
 * for the two numbers.
 */
const dependent = (
  scope: Scope,
  op: string,
  [one, other]: readonly [Initializer, Initializer],
  rowsOf: (multiple: number) => string,
): string => {
  /** Adds nodes that compute a list of sizes, some of which depend on the number of rows. */
  const sizesOf = (own: ReadonlyArray<number>, others: ReadonlyArray<number>): string => {
    const parts = own.map((size, at) => {
      if (size === others[at]) return int64(scope, [size])
      const multiple = multipleOf(size, others[at])
      return multiple === undefined ? refuse(`its ${op} depends on it`) : rowsOf(multiple)
    })
    return parts.length === 1 ? parts[0] : node(scope, "Concat", parts, { axis: 0 })
  }
  if (one.dtype !== other.dtype || one.shape.length !== other.shape.length) return refuse(`its ${op} depends on it`)
  if (one.dtype === "i64") {
    if (one.data.length !== other.data.length) return refuse(`its ${op} depends on it`)
    const [own, others] = [Array.from(one.data, Number), Array.from(other.data, Number)]
    const changing = own.flatMap((size, at) => (size === others[at] ? [] : [at]))
    const isShape = op === "Reshape" && changing.length === 1 && !own.includes(0)
    return isShape && multipleOf(own[changing[0]], others[changing[0]]) !== undefined
      ? int64(scope, own.with(changing[0], -1))
      : sizesOf(own, others)
  }
  const [own, others] = [rowIn(one), rowIn(other)]
  if (own === undefined || others === undefined || !isSame(own, others)) return refuse(`its ${op} depends on it`)
  return node(scope, "Expand", [initializer(scope, own), sizesOf(one.shape, other.shape)])
}

/** Returns the row of a constant whose rows are all equal; undefined for other constants. */
const rowIn = ({ name, dtype, shape, data }: Initializer): Initializer | undefined => {
  if (shape.length === 0 || shape[0] === 0) return undefined
  const length = data.length / shape[0]
  for (let at = length; at < data.length; at++) if (!Object.is(data[at], data[at % length])) return undefined
  return { name, dtype, shape: shape.with(0, 1), data: data.slice(0, length) }
}
