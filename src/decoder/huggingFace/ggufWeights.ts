/**
 * Reads the weights of a model from a GGUF file, by the names of Hugging Face's files. It undoes what llama.cpp's converter
 * changes: the rows of the queries' and keys' projections in Llama's families, whose rotations there turn neighbours, the
 * weights of Gemma's norms, to which it adds one, GPT-2's matrices, which it transposes, and the experts of a layer, which it
 * joins.
 */
import { Effect } from "effect"
import * as Gguf from "../../base/formats/gguf.ts"
import { FormatError } from "../../base/formats/FormatError.ts"
import type { TensorFiles } from "../../base/formats/TensorFiles.ts"
import type { ReadableParts } from "../../base/formats/Weights.ts"
import type { NamedArray } from "../../tensor/graph/Parameters.ts"
import type { Architecture, DecoderConfig } from "../networks/DecoderConfig.ts"
import { embeddingName, finalNormName, headName } from "../networks/parameters.ts"

/** The names of architectures in GGUF files. */
const architectures: Readonly<Record<Architecture, string>> = {
  llama: "llama",
  mistral: "llama",
  smollm3: "smollm3",
  qwen2: "qwen2",
  qwen3: "qwen3",
  olmo2: "olmo2",
  phi3: "phi3",
  gemma2: "gemma2",
  gemma3_text: "gemma3",
  gpt2: "gpt2",
  qwen3_moe: "qwen3moe",
}

/** The names of a layer's modules in GGUF files, with those of Hugging Face. */
const modules: Readonly<Record<string, string>> = {
  attn_norm: "input_layernorm",
  attn_q: "self_attn.q_proj",
  attn_k: "self_attn.k_proj",
  attn_v: "self_attn.v_proj",
  attn_qkv: "self_attn.qkv_proj",
  attn_output: "self_attn.o_proj",
  attn_q_norm: "self_attn.q_norm",
  attn_k_norm: "self_attn.k_norm",
  ffn_norm: "post_attention_layernorm",
  ffn_gate: "mlp.gate_proj",
  ffn_up: "mlp.up_proj",
  ffn_down: "mlp.down_proj",
  post_attention_norm: "post_attention_layernorm",
  post_ffw_norm: "post_feedforward_layernorm",
}

/** The modules of families that differ from `modules`. */
const others: Readonly<Partial<Record<Architecture, Readonly<Record<string, string>>>>> = {
  phi3: { ffn_up: "mlp.gate_up_proj" },
  gemma2: { ffn_norm: "pre_feedforward_layernorm" },
  gemma3_text: { ffn_norm: "pre_feedforward_layernorm" },
  qwen3_moe: { ffn_gate_inp: "mlp.gate" },
}

const outside: Readonly<Record<string, string>> = {
  "token_embd.weight": embeddingName,
  "output_norm.weight": finalNormName,
  "output.weight": headName,
}

/** The names of GPT-2's tensors outside of layers, and of the modules of its layers. */
const gpt2Outside: Readonly<Record<string, string>> = {
  "token_embd.weight": "transformer.wte.weight",
  "position_embd.weight": "transformer.wpe.weight",
  "output_norm.weight": "transformer.ln_f.weight",
  "output_norm.bias": "transformer.ln_f.bias",
  "output.weight": headName,
}
const gpt2Modules: Readonly<Record<string, string>> = {
  attn_norm: "ln_1",
  attn_qkv: "attn.c_attn",
  attn_output: "attn.c_proj",
  ffn_norm: "ln_2",
  ffn_up: "mlp.c_fc",
  ffn_down: "mlp.c_proj",
}

const gpt2NameOf = (name: string): string => {
  const [, layer, module = "", part] = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/.exec(name) ?? []
  const known = gpt2Modules[module]
  return known === undefined ? (gpt2Outside[name] ?? name) : `transformer.h.${layer}.${known}.${part}`
}

/** Tells whether a matrix of Hugging Face's files is the transpose of the one in GGUF files. */
const isTransposed = (name: string): boolean => /^transformer\.h\.\d+\.(attn|mlp)\.c_\w+\.weight$/.test(name)

/** Returns the name of a tensor in Hugging Face's files. An unknown name stays the same, and is refused later. */
const nameOf = (architecture: Architecture, name: string): string => {
  if (architecture === "gpt2") return gpt2NameOf(name)
  const [, layer, module = "", part] = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/.exec(name) ?? []
  const known = others[architecture]?.[module] ?? modules[module]
  return known === undefined ? (outside[name] ?? name) : `model.layers.${layer}.${known}.${part}`
}

/** The place of a tensor of Hugging Face's files in a GGUF file. */
interface GgufSource {
  readonly own: string
  readonly shape: ReadonlyArray<number>
  /** The index of the expert, where a tensor has the matrices of all experts of a layer. */
  readonly expert?: number
}

/** Lists the tensors of Hugging Face's files that a tensor holds. */
const sourcesIn = (
  { architecture, experts, layers }: DecoderConfig,
  own: string,
  shape: ReadonlyArray<number>,
): ReadonlyArray<readonly [string, GgufSource]> => {
  const name = nameOf(architecture, own)
  const [, layer, projection] = /^blk\.(0|[1-9]\d*)\.ffn_(gate|up|down)_exps\.weight$/.exec(own) ?? []
  // Tensors of other layers have no bytes of their own if they are empty, but would become as many as there are experts.
  const isOfModel = layer !== undefined && Number(layer) < layers
  if (!isOfModel || shape.length !== 3 || shape[0] !== experts?.count)
    return [[name, { own, shape: isTransposed(name) ? shape.toReversed() : shape }]]
  return Array.from({ length: shape[0] }, (_, expert) => [
    `model.layers.${layer}.mlp.experts.${expert}.${projection}_proj.weight`,
    { own, shape: shape.slice(1), expert },
  ])
}

/** Tells whether a tensor holds numbers that follow from the config. */
const isComputed = (name: string): boolean => name === "rope_freqs.weight"

/** Opens a GGUF file. Its architecture must be that of the config. */
export const openGguf = Effect.fnUntraced(function* (
  files: ReadableParts,
  path: string,
  config: DecoderConfig,
): Effect.fn.Return<TensorFiles, FormatError> {
  const { architecture } = config
  const wrong = (message: string) => new FormatError({ path, message: `${path}: ${message}` })
  const expected = architectures[architecture]
  const { metadata, tensors, read } = yield* Gguf.open(files, path)
  const found = metadata["general.architecture"]
  if (found !== expected) {
    return yield* wrong(`general.architecture: expected ${expected}, as config.json describes, found ${String(found)}`)
  }
  const sources = new Map(
    [...tensors].filter(([name]) => !isComputed(name)).flatMap(([name, { shape }]) => sourcesIn(config, name, shape)),
  )
  const places = Array.from(sources, ([name, { own, shape }]) => {
    const { offset, bytes } = tensors.get(own) ?? { offset: 0, bytes: 0 }
    return [name, { shape, offset, bytes, path, dtype: "F32" as const }] as const
  })
  return {
    path,
    tensors: new Map(places),
    read: (name) => {
      const { own, expert } = sources.get(name) ?? { own: name }
      return Effect.map(read(own, expert), (tensor) => asInHuggingFace(config, name, tensor))
    },
  }
})

/** Undoes the changes of llama.cpp's converter. */
const asInHuggingFace = (
  { architecture, heads, keyValueHeads, norm }: DecoderConfig,
  name: string,
  { shape, data }: { readonly shape: ReadonlyArray<number>; readonly data: Float32Array },
): NamedArray => {
  if (isTransposed(name)) return transposed(data, shape)
  if (norm === "rmsPlusOne" && name.endsWith("norm.weight")) return { shape, data: data.map((value) => value - 1) }
  if (!["llama", "mistral", "smollm3"].includes(architecture)) return { shape, data }
  const projection = /\.self_attn\.([qk])_proj\./.exec(name)?.[1]
  if (projection === undefined) return { shape, data }
  return { shape, data: apart(data, shape, projection === "q" ? heads : keyValueHeads) }
}

const transposed = (data: Float32Array, [rows, columns = 1]: ReadonlyArray<number>): NamedArray => {
  const turned = new Float32Array(data.length)
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) turned[column * rows + row] = data[row * columns + column]
  return { shape: [columns, rows], data: turned }
}

/** Moves the rows of each head from pairs of neighbours to pairs whose rows are half a head apart. */
const apart = (data: Float32Array, [rows, columns = 1]: ReadonlyArray<number>, heads: number): Float32Array => {
  const size = rows / heads
  const moved = new Float32Array(data.length)
  for (let row = 0; row < rows; row++) {
    const within = row % size
    const to = row - within + (within % 2) * (size / 2) + Math.floor(within / 2)
    moved.set(data.subarray(row * columns, (row + 1) * columns), to * columns)
  }
  return moved
}
