/** Builds the graphs of networks from their layers, and checks that their shapes fit. `trunk.ts` calls it. */
import { constant, normal, orthogonal, zeros } from "../../../tensor/graph/initialisers.ts"
import { activations, conv, linear } from "../../../tensor/graph/layers.ts"
import {
  add,
  concat,
  input,
  layerNorm,
  matmul,
  mean,
  mul,
  reshape,
  softmax,
  transpose,
} from "../../../tensor/graph/ops.ts"
import { sameShape, shapeText } from "../../../tensor/graph/ops/core.ts"
import { GraphError } from "../../../tensor/graph/GraphError.ts"
import type { Declaration } from "../../../tensor/graph/Parameters.ts"
import { type Shape, sizeOf, type Tensor } from "../../../tensor/graph/Tensor.ts"
import { partsOf, type RowSpace } from "../../env/Space.ts"
import { vectorOf, vectorSizeOf, withoutMask } from "../observations.ts"
import { type Custom, type Layer, type Network, layersOf } from "./layers.ts"

/** The tensors of weights by the names of their parameters. */
export type Weights = Readonly<Record<string, Tensor>>
/** Parameters by name: the shape and the initial values of each. */
export type Declarations = Readonly<Record<string, Declaration>>

/** The part of a network before its heads, from observations [rows, size] to features [rows, outputs]. */
export interface Trunk {
  readonly parameters: Declarations
  readonly outputs: number
  /** The number of dense layers. Their names end with 0, 1, …, so a head that follows can be named with this number. */
  readonly depth: number
  readonly apply: (weights: Weights, observations: Tensor) => Tensor
}

/** A part of an observation: its name, the shape of its values, and how they are read from a row. */
interface Part {
  /** The name of a part of a `Dict`, with dots below it; empty if the observation has no parts. */
  readonly name: string
  readonly shape: Shape
  /** Reads the part from rows [rows, numbers of an observation], as [rows, …shape]. */
  readonly read: (observations: Tensor) => Tensor
}

/** Returns the parts of observations. A choice is a one-hot vector. */
const partsIn = (space: RowSpace): ReadonlyArray<Part> =>
  partsOf(space).map((part) => {
    const shape = part.space._tag === "Box" ? part.space.shape : [vectorSizeOf(part.space)]
    const read = (rows: Tensor): Tensor => reshape(vectorOf(part, withoutMask(space, rows)), [rows.shape[0], ...shape])
    return { name: part.path, shape, read }
  })

/** A layer whose input and output shapes are known. The shapes are those of one row. */
interface Built {
  readonly parameters: Declarations
  readonly shape: Shape
  readonly apply: (weights: Weights, x: Tensor) => Tensor
}

/** The position of a layer in its network, with the facts that building it needs. */
interface Place {
  /** The layer's position in messages: `actor, layer 2 (attention)`. */
  readonly at: string
  readonly shape: Shape
  /** Returns the name of the parameters of the next layer that has any. */
  readonly nextName: () => string
}

/**
 * Builds a network over the parts of an observation. Its parameters are called `name.0.weight`, `name.1.weight` and so on,
 * counted over the layers that have any, as those of a trunk with `hidden` are. Throws a GraphError that names the layer
 * if shapes do not fit.
 */
export const networkTrunk = (name: string, space: RowSpace, network: Network): Trunk => {
  const parts = partsIn(space)
  let depth = 0
  const nextName = () => `${name}.${depth++}`
  const all = sequenceOf(network)
  const [first, ...rest] = all
  const begun = first?.type === "inputs" ? inputsOf(name, parts, first.parts, nextName) : joined(parts)
  const layers = first?.type === "inputs" ? rest : all
  const from = first?.type === "inputs" ? 1 : 0
  const built = sequence({ at: name, shape: begun.shape, nextName }, layers, from)
  const outputs = sizeOf(built.shape)
  return {
    parameters: { ...begun.parameters, ...built.parameters },
    outputs,
    depth,
    apply: (weights, observations) => {
      const [rows] = observations.shape
      return reshape(built.apply(weights, begun.apply(weights, observations)), [rows, outputs])
    },
  }
}

/** Returns the layers of a network. A list and a single `sequential` layer mean the same. */
const sequenceOf = (network: Network): ReadonlyArray<Layer> => {
  const layers = layersOf(network)
  return layers.length === 1 && layers[0].type === "sequential" ? sequenceOf(layers[0].layers) : layers
}

/** Reads all parts: one part in its own shape, several as one vector. */
const joined = (parts: ReadonlyArray<Part>): Built => {
  if (parts.length === 1) return { parameters: {}, shape: parts[0].shape, apply: (_, x) => parts[0].read(x) }
  return {
    parameters: {},
    shape: [parts.reduce((sum, { shape }) => sum + sizeOf(shape), 0)],
    apply: (_, x) =>
      concat(
        parts.map(({ shape, read }) => reshape(read(x), [x.shape[0], sizeOf(shape)])),
        1,
      ),
  }
}

/** Builds a branch for each named part, and joins their outputs. */
const inputsOf = (
  name: string,
  parts: ReadonlyArray<Part>,
  branches: ReadonlyArray<{ readonly name: string; readonly layers: ReadonlyArray<Layer> }>,
  nextName: () => string,
): Built => {
  const at = `${name}, layer 1 (inputs)`
  if (branches.length === 0) misfit(at, "expected at least one part of the observation", [])
  const built = branches.map((branch) => {
    const part = parts.find((one) => one.name === branch.name)
    if (part === undefined) {
      const partNames = parts.map((one) => one.name).filter((one) => one !== "")
      const parted =
        partNames.length === 0 ? "the observation has no parts" : `the observation has ${partNames.join(", ")}`
      return misfit(at, `there is no part "${branch.name}"; ${parted}`, [])
    }
    const body = sequence({ at: `${at}, ${part.name}`, shape: part.shape, nextName }, branch.layers)
    return { ...body, apply: (weights: Weights, x: Tensor) => body.apply(weights, part.read(x)) }
  })
  return together(built)
}

/** Flattens and joins the outputs of several branches. */
const together = (branches: ReadonlyArray<Built>): Built => ({
  parameters: Object.assign({}, ...branches.map(({ parameters }) => parameters)),
  shape: [branches.reduce((sum, { shape }) => sum + sizeOf(shape), 0)],
  apply: (weights, x) =>
    concat(
      branches.map((branch) => reshape(branch.apply(weights, x), [x.shape[0], sizeOf(branch.shape)])),
      1,
    ),
})

/** Builds layers one after another. `from` is the number of layers before them, for messages. */
const sequence = ({ at, shape, nextName }: Place, layers: ReadonlyArray<Layer>, from = 0): Built => {
  let current = shape
  const built = layers.map((layer, index) => {
    const place = `${at}, layer ${from + index + 1} (${layer.type === "custom" ? `custom "${layer.name}"` : layer.type})`
    const one = build({ at: place, shape: current, nextName }, layer)
    current = one.shape
    return one
  })
  return {
    parameters: Object.assign({}, ...built.map(({ parameters }) => parameters)),
    shape: current,
    apply: (weights, x) => built.reduce((value, one) => one.apply(weights, value), x),
  }
}

const withoutParameters = (shape: Shape, apply: (x: Tensor) => Tensor): Built => ({
  parameters: {},
  shape,
  apply: (_, x) => apply(x),
})

const build = (place: Place, layer: Layer): Built => {
  const { at, shape, nextName } = place
  switch (layer.type) {
    case "dense": {
      const { parameters, apply } = linear(nextName(), last(shape), layer.units, orthogonal(layer.gain ?? Math.SQRT2))
      return { parameters, shape: [...shape.slice(0, -1), layer.units], apply: alongLast(apply) }
    }
    case "tanh":
    case "relu":
    case "gelu":
    case "sigmoid":
    case "silu":
    case "softplus":
      return withoutParameters(shape, activations[layer.type])
    case "convolution":
      return convolution(place, layer)
    case "norm": {
      const name = nextName()
      const size = [last(shape)]
      const [scale, shift] = [`${name}.scale`, `${name}.shift`]
      return {
        parameters: { [scale]: { shape: size, init: constant(1) }, [shift]: { shape: size, init: zeros } },
        shape,
        apply: (weights, x) => layerNorm(x, { scale: weights[scale], shift: weights[shift] }),
      }
    }
    case "reshape": {
      if (sizeOf(layer.shape) !== sizeOf(shape)) {
        const numbers = `which has ${sizeOf(layer.shape)} numbers; the row has ${sizeOf(shape)}`
        misfit(at, `cannot make ${shapeText(layer.shape)}, ${numbers}`, [shape])
      }
      return withoutParameters(layer.shape, (x) => reshape(x, [x.shape[0], ...layer.shape]))
    }
    case "flatten":
      return withoutParameters([sizeOf(shape)], (x) => reshape(x, [x.shape[0], sizeOf(shape)]))
    case "tokens": {
      const [channels, height, width] = imageOf(at, shape)
      return withoutParameters([height * width, channels], (x) =>
        transpose(reshape(x, [x.shape[0], channels, height * width]), [0, 2, 1]),
      )
    }
    case "mean": {
      const [, features] = tokensOf(at, shape)
      return withoutParameters([features], (x) => mean(x, 1))
    }
    case "positions": {
      const name = `${nextName()}.positions`
      const positions = { shape: tokensOf(at, shape), init: normal(layer.deviation ?? 0.02) }
      return { parameters: { [name]: positions }, shape, apply: (weights, x) => add(x, weights[name]) }
    }
    case "attention":
      return attention(place, layer)
    case "sequential":
      return sequence(place, layer.layers)
    case "residual": {
      const inner = sequence(place, layer.layers)
      if (!sameShape(inner.shape, shape))
        misfit(at, `expected layers that keep the shape ${shapeText(shape)}, found ${shapeText(inner.shape)}`, [shape])
      return { ...inner, apply: (weights, x) => add(x, inner.apply(weights, x)) }
    }
    case "parallel":
      if (layer.branches.length === 0) misfit(at, "expected at least one branch", [shape])
      return together(
        layer.branches.map((branch, index) => sequence({ ...place, at: `${at}, branch ${index + 1}` }, branch)),
      )
    case "inputs":
      return misfit(at, "expected it as the first layer of the network", [shape])
    case "custom":
      return own(place, layer)
  }
}

const last = (shape: Shape): number => shape[shape.length - 1]

/** Applies a layer of vectors to the last axis of tensors with more axes. */
const alongLast =
  (apply: Built["apply"]): Built["apply"] =>
  (weights, x) => {
    if (x.shape.length === 2) return apply(weights, x)
    const vectors = apply(weights, reshape(x, [-1, last(x.shape)]))
    return reshape(vectors, [...x.shape.slice(0, -1), last(vectors.shape)])
  }

const convolution = ({ at, shape, nextName }: Place, layer: Extract<Layer, { type: "convolution" }>): Built => {
  const { filters, kernel, stride = 1, padding = 0 } = layer
  const image = imageOf(at, shape)
  const { parameters, apply } = conv(nextName(), image[0], filters, { kernel, strides: stride, padding })
  const weights = Object.fromEntries(Object.entries(parameters).map(([key, { shape }]) => [key, input(key, shape)]))
  const [, ...result] = named(at, [shape], () => apply(weights, input("x", [1, ...image]))).shape
  return { parameters, shape: result, apply }
}

/** Builds attention: softmax(Q Kᵀ / √d) V of each head, then a linear layer over the joined heads. */
const attention = ({ at, shape, nextName }: Place, { heads, units }: Extract<Layer, { type: "attention" }>): Built => {
  const [tokens, features] = tokensOf(at, shape)
  const size = units ?? features
  if (size % heads !== 0) misfit(at, `expected heads that divide the ${size} features, found ${heads}`, [shape])
  const name = nextName()
  const width = size / heads
  const [query, key, value] = ["query", "key", "value"].map((part) =>
    linear(`${name}.${part}`, features, size, orthogonal(1)),
  )
  const output = linear(`${name}.output`, size, size, orthogonal(1))
  return {
    parameters: { ...query.parameters, ...key.parameters, ...value.parameters, ...output.parameters },
    shape: [tokens, size],
    apply: (weights, x) => {
      const [rows] = x.shape
      /** Computes [rows, heads, tokens, width]. */
      const perHead = (layer: typeof query): Tensor =>
        transpose(reshape(alongLast(layer.apply)(weights, x), [rows, tokens, heads, width]), [0, 2, 1, 3])
      const scores = mul(matmul(perHead(query), perHead(key), { transposeB: true }), 1 / Math.sqrt(width))
      const mixed = matmul(softmax(scores), perHead(value))
      return alongLast(output.apply)(weights, reshape(transpose(mixed, [0, 2, 1, 3]), [rows, tokens, size]))
    },
  }
}

/** Builds a layer of the user's own. Its output shape comes from applying the layer to an example. */
const own = ({ at, shape, nextName }: Place, { layer }: Custom): Built => {
  if (layer === undefined) return misfit(at, "this layer is made in code, by the program of the run", [shape])
  const declared = named(at, [shape], () => layer.parameters?.(shape) ?? {})
  const name = Object.keys(declared).length === 0 ? "" : nextName()
  const keys = Object.keys(declared)
  const apply: Built["apply"] = (weights, x) =>
    layer.apply(Object.fromEntries(keys.map((key) => [key, weights[`${name}.${key}`]])), x)
  const example = Object.fromEntries(keys.map((key) => [`${name}.${key}`, input(key, declared[key].shape)]))
  const rows = 2
  const result = named(at, [shape], () => apply(example, input("x", [rows, ...shape])))
  if (result.dtype !== "f32" || result.shape[0] !== rows || result.shape.length < 2) {
    const found = `${result.dtype} of shape ${shapeText(result.shape)}`
    misfit(at, `expected real numbers of shape [rows, …] for an input with ${rows} rows, found ${found}`, [shape])
  }
  return {
    parameters: Object.fromEntries(keys.map((key) => [`${name}.${key}`, declared[key]])),
    shape: result.shape.slice(1),
    apply,
  }
}

const imageOf = (at: string, shape: Shape): readonly [number, number, number] =>
  shape.length === 3
    ? [shape[0], shape[1], shape[2]]
    : misfit(at, `expected an image [channels, height, width], found ${shapeText(shape)}; reshape it first`, [shape])

const tokensOf = (at: string, shape: Shape): readonly [number, number] =>
  shape.length === 2
    ? [shape[0], shape[1]]
    : misfit(at, `expected tokens [tokens, features], found ${shapeText(shape)}; reshape them first`, [shape])

/** Throws the error of a layer that does not fit. */
const misfit = (at: string, problem: string, shapes: ReadonlyArray<Shape>): never => {
  throw new GraphError({ op: "network", message: `algorithm.network: ${at}: ${problem}`, shapes, where: "" })
}

/** Runs code that builds a part of a graph, and adds the name of the layer to its errors. */
const named = <A>(at: string, shapes: ReadonlyArray<Shape>, body: () => A): A => {
  try {
    return body()
  } catch (error) {
    return misfit(at, error instanceof Error ? error.message : String(error), shapes)
  }
}
