/**
 * Computes what may differ between the layers' attention: rotary position embeddings (Su et al. 2021, arXiv:2104.09864), with
 * the scaling of Llama 3 and linear scaling, and the sizes of windows.
 */
import { cast, concat, constant, cos, mul, reshape, sin, split, sub, add, tanh } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { DecoderConfig, LayerAttention, Rope, RopeScaling } from "./DecoderConfig.ts"

/** Returns the attention of a layer. */
const attentionOf = ({ attention, rope }: DecoderConfig, layer: number): LayerAttention =>
  attention?.[layer] ?? { window: null, rope }

/** Makes something for each layer from a part of its attention. Layers with an equal part share it. */
const perLayer = <K extends Rope | number | null, A>(
  config: DecoderConfig,
  partOf: (attention: LayerAttention) => K,
  make: (part: K) => A,
): ((layer: number) => A) => {
  const made = new Map<string, A>()
  const all = Array.from({ length: config.layers }, (_, layer): A => {
    const part = partOf(attentionOf(config, layer))
    const key = JSON.stringify(part)
    const value = made.get(key) ?? make(part)
    made.set(key, value)
    return value
  })
  return (layer) => all[layer]
}

/** Makes the masks of all layers. Layers with windows of the same size share one. */
export const masksOf = (config: DecoderConfig, make: (window: number | null) => Tensor): ((layer: number) => Tensor) =>
  perLayer(config, ({ window }) => window, make)

/** Bounds scores of attention or logits softly: c · tanh(x / c). */
export const capped = (x: Tensor, cap: number | undefined): Tensor =>
  cap === undefined ? x : mul(tanh(mul(x, 1 / cap)), cap)

/** Returns the angle (in radians per position) of the rotation of each pair of a head's numbers: headDim / 2 frequencies. */
export const rotaryFrequencies = ({ headDim, rope }: Pick<DecoderConfig, "headDim" | "rope">): Float64Array =>
  Float64Array.from({ length: headDim / 2 }, (_, pair) => scaled(rope.theta ** ((-2 * pair) / headDim), rope.scaling))

const scaled = (frequency: number, scaling: RopeScaling | null): number => {
  if (scaling === null) return frequency
  if (scaling._tag === "linear") return frequency / scaling.factor
  const { factor, lowFrequencyFactor, highFrequencyFactor, originalMaxPositions } = scaling
  /** The number of full turns of the pair within a sequence of the original training. */
  const turns = (originalMaxPositions * frequency) / (2 * Math.PI)
  const kept = (turns - lowFrequencyFactor) / (highFrequencyFactor - lowFrequencyFactor)
  const share = Math.min(1, Math.max(0, kept))
  return (1 - share) * (frequency / factor) + share * frequency
}

/** The cosines and sines of all angles: [...positions.shape, 1, headDim / 2]. The axis of size 1 is for the heads. */
interface RotaryAngles {
  readonly cos: Tensor
  readonly sin: Tensor
}

/** Turns the queries and the keys of a layer, [..., heads, headDim], by their positions. */
interface Turns {
  /** Turns queries, and multiplies them by the factor of the scores. */
  readonly queries: (layer: number, x: Tensor) => Tensor
  readonly keys: (layer: number, x: Tensor) => Tensor
}

/** Makes the rotations of all layers. Layers with the same rotary embeddings share one. */
export const turnsOf = (config: DecoderConfig, positions: Tensor): Turns => {
  const { headDim, scoreScale = 1 / Math.sqrt(headDim) } = config
  const rotations = perLayer(
    config,
    ({ rope }) => rope,
    (rope) => {
      if (rope === null) return null
      const keys = rotationOf({ headDim, rope }, positions)
      return { keys, queries: scaledRotation(keys, scoreScale) }
    },
  )
  return {
    queries: (layer, x) => {
      const rotation = rotations(layer)
      return rotation === null ? mul(x, scoreScale) : rotate(x, rotation.queries)
    },
    keys: (layer, x) => {
      const rotation = rotations(layer)
      return rotation === null ? x : rotate(x, rotation.keys)
    },
  }
}

/** Computes the rotation of each position. */
const rotationOf = (config: Pick<DecoderConfig, "headDim" | "rope">, positions: Tensor): RotaryAngles => {
  const frequencies = constant(Float32Array.from(rotaryFrequencies(config)))
  const angles = mul(reshape(cast(positions, "f32"), [...positions.shape, 1, 1]), frequencies)
  return { cos: cos(angles), sin: sin(angles) }
}

/**
 * Scales a rotation: everything that is rotated with it is multiplied by `factor`. Attention scales its queries in this way,
 * without additional cost.
 */
const scaledRotation = ({ cos, sin }: RotaryAngles, factor: number): RotaryAngles => ({
  cos: mul(cos, factor),
  sin: mul(sin, factor),
})

/** Rotates the pairs (i, i + headDim / 2) of each head, for x [..., heads, headDim]. */
const rotate = (x: Tensor, { cos, sin }: RotaryAngles): Tensor => {
  const axis = x.shape.length - 1
  const half = x.shape[axis] / 2
  const [first, second] = split(x, [half, half], axis)
  return concat([sub(mul(first, cos), mul(second, sin)), add(mul(second, cos), mul(first, sin))], axis)
}
