/** A decoder transformer in loops over doubles, one sequence at a time, to compare the graphs with. */
import type { DecoderConfig } from "../../../src/decoder/networks/Decoder.ts"

/** The numbers of a parameter, in single or in double precision. */
export interface PlainArray {
  readonly shape: ReadonlyArray<number>
  readonly data: Float32Array | Float64Array
}

export type Arrays = Readonly<Record<string, PlainArray>>
type Vector = ReadonlyArray<number>

/** An adapter: its matrices, by the names `….lora_A.weight` and `….lora_B.weight`, and alpha / rank. */
export interface PlainAdapter {
  readonly matrices: Arrays
  readonly scaling: number
}

/** Multiplies a matrix [outputs, inputs] by a vector. */
const times = ({ shape: [outputs, inputs], data }: PlainArray, x: Vector): Vector =>
  Array.from({ length: outputs }, (_, row) =>
    x.reduce((sum, value, column) => sum + data[row * inputs + column] * value, 0),
  )

const plus = (a: Vector, b: ArrayLike<number>, scale = 1): Vector => a.map((value, index) => value + scale * b[index])

const normalised = (x: Vector, { data }: PlainArray, epsilon: number): Vector => {
  const meanSquare = x.reduce((sum, value) => sum + value * value, 0) / x.length
  return x.map((value, index) => (value / Math.sqrt(meanSquare + epsilon)) * data[index])
}

/** The frequency of a pair of numbers, by wavelengths, as the paper and the code of Llama 3 state it. */
export const plainFrequency = ({ headDim, rope }: DecoderConfig, pair: number): number => {
  const frequency = Math.fround(1 / rope.theta ** ((2 * pair) / headDim))
  const { scaling } = rope
  if (scaling === null) return frequency
  if (scaling._tag === "linear") return frequency / scaling.factor
  const wavelength = (2 * Math.PI) / frequency
  if (wavelength < scaling.originalMaxPositions / scaling.highFrequencyFactor) return frequency
  if (wavelength > scaling.originalMaxPositions / scaling.lowFrequencyFactor) return frequency / scaling.factor
  const smooth =
    (scaling.originalMaxPositions / wavelength - scaling.lowFrequencyFactor) /
    (scaling.highFrequencyFactor - scaling.lowFrequencyFactor)
  return ((1 - smooth) * frequency) / scaling.factor + smooth * frequency
}

const rotated = (config: DecoderConfig, head: Vector, position: number): Vector => {
  const half = config.headDim / 2
  return head.map((value, index) => {
    const angle = position * plainFrequency(config, index % half)
    const partner = index < half ? -head[index + half] : head[index - half]
    return value * Math.cos(angle) + partner * Math.sin(angle)
  })
}

/** Computes the logits after each token of one sequence. */
export const plainLogits = (
  config: DecoderConfig,
  weights: Arrays,
  tokens: ReadonlyArray<number>,
  adapter?: PlainAdapter,
): ReadonlyArray<Vector> => {
  const { hiddenSize, heads, keyValueHeads, headDim, rmsNormEpsilon } = config
  const linear = (name: string, x: Vector): Vector => {
    const product = times(weights[`${name}.weight`], x)
    const bias = weights[`${name}.bias`]
    const base = bias === undefined ? product : plus(product, bias.data)
    const a = adapter?.matrices[`${name}.lora_A.weight`]
    const b = adapter?.matrices[`${name}.lora_B.weight`]
    if (adapter === undefined || a === undefined || b === undefined) return base
    return plus(base, times(b, times(a, x)), adapter.scaling)
  }
  const headsOf = (x: Vector): ReadonlyArray<Vector> =>
    Array.from({ length: x.length / headDim }, (_, head) => x.slice(head * headDim, (head + 1) * headDim))
  const { data: embedding } = weights["model.embed_tokens.weight"]
  let states: ReadonlyArray<Vector> = tokens.map((token) =>
    Array.from(embedding.subarray(token * hiddenSize, (token + 1) * hiddenSize)),
  )
  for (let layer = 0; layer < config.layers; layer++) {
    const name = `model.layers.${layer}`
    const inner = states.map((x) => normalised(x, weights[`${name}.input_layernorm.weight`], rmsNormEpsilon))
    const queries = inner.map((x, at) =>
      headsOf(linear(`${name}.self_attn.q_proj`, x)).map((head) => rotated(config, head, at)),
    )
    const keys = inner.map((x, at) =>
      headsOf(linear(`${name}.self_attn.k_proj`, x)).map((head) => rotated(config, head, at)),
    )
    const values = inner.map((x) => headsOf(linear(`${name}.self_attn.v_proj`, x)))
    states = states.map((x, at) => {
      const mixed = Array.from({ length: heads }, (_, head) => {
        const source = Math.floor(head / (heads / keyValueHeads))
        const scores = keys
          .slice(0, at + 1)
          .map(
            (key) => key[source].reduce((sum, value, i) => sum + value * queries[at][head][i], 0) / Math.sqrt(headDim),
          )
        const largest = Math.max(...scores)
        const exponentials = scores.map((score) => Math.exp(score - largest))
        const total = exponentials.reduce((sum, value) => sum + value, 0)
        return Array.from({ length: headDim }, (_, i) =>
          exponentials.reduce((sum, value, earlier) => sum + (value / total) * values[earlier][source][i], 0),
        )
      })
      return plus(x, linear(`${name}.self_attn.o_proj`, mixed.flat()))
    })
    states = states.map((x) => {
      const normal = normalised(x, weights[`${name}.post_attention_layernorm.weight`], rmsNormEpsilon)
      const gate = linear(`${name}.mlp.gate_proj`, normal)
      const up = linear(`${name}.mlp.up_proj`, normal)
      const hidden = gate.map((value, index) => (value / (1 + Math.exp(-value))) * up[index])
      return plus(x, linear(`${name}.mlp.down_proj`, hidden))
    })
  }
  const head = weights[config.tiedEmbeddings ? "model.embed_tokens.weight" : "lm_head.weight"]
  return states.map((x) => times(head, normalised(x, weights["model.norm.weight"], rmsNormEpsilon)))
}
