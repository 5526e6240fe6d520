/** Rotary position embeddings (Su et al. 2021, arXiv:2104.09864), with the scaling of Llama 3 and linear scaling. */
import { cast, concat, constant, cos, mul, reshape, sin, split, sub, add } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { DecoderConfig, RopeScaling } from "./DecoderConfig.ts"

/** Returns the angle (in radians per position) of the rotation of each pair of a head's numbers: headDim / 2 frequencies. */
export const rotaryFrequencies = ({ headDim, rope }: DecoderConfig): Float64Array =>
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

/** Computes the rotation of each position. */
export const rotationOf = (config: DecoderConfig, positions: Tensor): RotaryAngles => {
  const frequencies = constant(Float32Array.from(rotaryFrequencies(config)))
  const angles = mul(reshape(cast(positions, "f32"), [...positions.shape, 1, 1]), frequencies)
  return { cos: cos(angles), sin: sin(angles) }
}

/**
 * Scales a rotation: everything that is rotated with it is multiplied by `factor`. Attention scales its queries in this way,
 * without additional cost.
 */
export const scaledRotation = ({ cos, sin }: RotaryAngles, factor: number): RotaryAngles => ({
  cos: mul(cos, factor),
  sin: mul(sin, factor),
})

/** Rotates the pairs (i, i + headDim / 2) of each head, for x [..., heads, headDim]. */
export const rotate = (x: Tensor, { cos, sin }: RotaryAngles): Tensor => {
  const axis = x.shape.length - 1
  const half = x.shape[axis] / 2
  const [first, second] = split(x, [half, half], axis)
  return concat([sub(mul(first, cos), mul(second, sin)), add(mul(second, cos), mul(first, sin))], axis)
}
