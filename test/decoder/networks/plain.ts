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

const meanOf = (x: Vector): number => x.reduce((sum, value) => sum + value, 0) / x.length

/** Applies the norm `name`, of the kind that the config has. */
const normalised = (
  { norm = "rms", rmsNormEpsilon }: DecoderConfig,
  weights: Arrays,
  name: string,
  x: Vector,
): Vector => {
  const { data } = weights[`${name}.weight`]
  const mean = norm === "layer" ? meanOf(x) : 0
  const centred = x.map((value) => value - mean)
  const size = Math.sqrt(meanOf(centred.map((value) => value * value)) + rmsNormEpsilon)
  const shift = norm === "layer" ? weights[`${name}.bias`].data : undefined
  return centred.map(
    (value, index) => (value / size) * (norm === "rmsPlusOne" ? 1 + data[index] : data[index]) + (shift?.[index] ?? 0),
  )
}

const bounded = (value: number, cap: number | undefined): number =>
  cap === undefined ? value : cap * Math.tanh(value / cap)

const softmax = (scores: Vector): Vector => {
  const largest = Math.max(...scores)
  const exponentials = scores.map((score) => Math.exp(score - largest))
  const total = exponentials.reduce((sum, value) => sum + value, 0)
  return exponentials.map((value) => value / total)
}

const activated = (config: DecoderConfig, value: number): number =>
  config.activation === "gelu"
    ? 0.5 * value * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (value + 0.044715 * value ** 3)))
    : value / (1 + Math.exp(-value))

/** The frequency of a pair of numbers, by wavelengths, as the paper and the code of Llama 3 state it. */
export const plainFrequency = ({ headDim, rope }: Pick<DecoderConfig, "headDim" | "rope">, pair: number): number => {
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

const rotated = (rope: DecoderConfig["rope"] | null, head: Vector, position: number): Vector => {
  if (rope === null) return head
  const half = head.length / 2
  return head.map((value, index) => {
    const angle = position * plainFrequency({ headDim: head.length, rope }, index % half)
    const partner = index < half ? -head[index + half] : head[index - half]
    return value * Math.cos(angle) + partner * Math.sin(angle)
  })
}

/** Returns the experts that a layer uses for a token, instead of those that its router would choose. */
type ForcedExperts = (layer: number, token: number) => ReadonlyArray<number> | undefined

/** Computes the experts of a layer one by one, each for the tokens whose router chose it. */
const expertOutput = (
  config: DecoderConfig,
  weights: Arrays,
  name: string,
  x: Vector,
  forced: ReadonlyArray<number> | undefined,
): Vector => {
  const { count = 0, perToken = 0, units = 0, normalised: isNormalised = false } = config.experts ?? {}
  const shares = softmax(times(weights[`${name}.gate.weight`], x))
  const best = Array.from(shares.keys())
    .sort((a, b) => shares[b] - shares[a] || a - b)
    .slice(0, perToken)
  const chosen = forced ?? best
  const total = isNormalised ? chosen.reduce((sum, expert) => sum + shares[expert], 0) : 1
  const [gate, up, down] = ["gate", "up", "down"].map((part) => weights[`${name}.experts.${part}_proj.weight`])
  const rowsOf = ({ shape, data }: PlainArray, expert: number): PlainArray => ({
    shape: [units, shape[1]],
    data: data.slice(expert * units * shape[1], (expert + 1) * units * shape[1]),
  })
  return chosen.reduce<Vector>(
    (sum, expert) => {
      const opened = times(rowsOf(gate, expert), x)
      const hidden = times(rowsOf(up, expert), x).map((value, unit) => activated(config, opened[unit]) * value)
      const output = x.map((_, row) =>
        hidden.reduce((all, value, unit) => all + down.data[(row * count + expert) * units + unit] * value, 0),
      )
      return plus(sum, output, shares[expert] / total)
    },
    x.map(() => 0),
  )
}

/** Computes the logits after each token of one sequence. */
export const plainLogits = (
  config: DecoderConfig,
  weights: Arrays,
  tokens: ReadonlyArray<number>,
  adapter?: PlainAdapter,
  forced: ForcedExperts = () => undefined,
): ReadonlyArray<Vector> => {
  const { hiddenSize, heads, keyValueHeads, headDim, normPlaces = "before" } = config
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
  const norm = (name: string, x: Vector): Vector => normalised(config, weights, name, x)
  const queriesOrKeys = (layer: number, part: "q" | "k", x: Vector): ReadonlyArray<Vector> => {
    const name = `model.layers.${layer}.self_attn.${part}`
    const all = linear(`${name}_proj`, x)
    if (config.queryKeyNorm === "all") return headsOf(norm(`${name}_norm`, all))
    return headsOf(all).map((head) => (config.queryKeyNorm === "head" ? norm(`${name}_norm`, head) : head))
  }
  const attended = (layer: number, inner: ReadonlyArray<Vector>): ReadonlyArray<Vector> => {
    const { window, rope } = config.attention?.[layer] ?? { window: null, rope: config.rope }
    const turned = (part: "q" | "k") =>
      inner.map((x, at) => queriesOrKeys(layer, part, x).map((head) => rotated(rope, head, at)))
    const [queries, keys] = [turned("q"), turned("k")]
    const values = inner.map((x) => headsOf(linear(`model.layers.${layer}.self_attn.v_proj`, x)))
    return inner.map((_, at) => {
      const first = window === null ? 0 : Math.max(0, at + 1 - window)
      const mixed = Array.from({ length: heads }, (_, head) => {
        const source = Math.floor(head / (heads / keyValueHeads))
        const shares = softmax(
          keys.slice(first, at + 1).map((key) => {
            const product = key[source].reduce((sum, value, i) => sum + value * queries[at][head][i], 0)
            return bounded(product * (config.scoreScale ?? 1 / Math.sqrt(headDim)), config.scoreCap)
          }),
        )
        return Array.from({ length: headDim }, (_, i) =>
          shares.reduce((sum, share, index) => sum + share * values[first + index][source][i], 0),
        )
      })
      return linear(`model.layers.${layer}.self_attn.o_proj`, mixed.flat())
    })
  }
  const fed = (layer: number, x: Vector, at: number): Vector => {
    const name = `model.layers.${layer}.mlp`
    if (config.experts !== undefined) return expertOutput(config, weights, name, x, forced(layer, at))
    const up = linear(`${name}.up_proj`, x)
    const gate = config.gated === false ? undefined : linear(`${name}.gate_proj`, x)
    const hidden = up.map((value, unit) =>
      gate === undefined ? activated(config, value) : activated(config, gate[unit]) * value,
    )
    return linear(`${name}.down_proj`, hidden)
  }
  /** Adds the output of a part of a layer, with the norms that `normPlaces` names. */
  const added = (
    states: ReadonlyArray<Vector>,
    names: { readonly before: string; readonly after: string },
    part: (inner: ReadonlyArray<Vector>) => ReadonlyArray<Vector>,
  ): ReadonlyArray<Vector> => {
    const outputs = part(normPlaces === "after" ? states : states.map((x) => norm(names.before, x)))
    return states.map((x, at) => plus(x, normPlaces === "before" ? outputs[at] : norm(names.after, outputs[at])))
  }
  const { data: embedding } = weights["model.embed_tokens.weight"]
  const learned = config.learnedPositions === true ? weights["model.embed_positions.weight"].data : undefined
  let states: ReadonlyArray<Vector> = tokens.map((token, at) =>
    Array.from(
      embedding.subarray(token * hiddenSize, (token + 1) * hiddenSize),
      (value, i) => value * (config.embeddingScale ?? 1) + (learned?.[at * hiddenSize + i] ?? 0),
    ),
  )
  for (let layer = 0; layer < config.layers; layer++) {
    const name = (part: string): string => `model.layers.${layer}.${part}_layernorm`
    const feedForward = normPlaces === "both" ? "pre_feedforward" : "post_attention"
    states = added(states, { before: name("input"), after: name("post_attention") }, (inner) => attended(layer, inner))
    states = added(states, { before: name(feedForward), after: name("post_feedforward") }, (inner) =>
      inner.map((x, at) => fed(layer, x, at)),
    )
  }
  const head = weights[config.tiedEmbeddings ? "model.embed_tokens.weight" : "lm_head.weight"]
  return states.map((x) => times(head, norm("model.norm", x)).map((logit) => bounded(logit, config.logitCap)))
}
