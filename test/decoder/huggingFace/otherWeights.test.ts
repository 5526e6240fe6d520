/** Weights of the families in PyTorch's files and in GGUF files, and files with wrong tensors. */
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Safetensors from "../../../src/base/formats/safetensors.ts"
import { inRecord } from "../../../src/base/formats/Weights.ts"
import * as LmDirectory from "../../../src/decoder/huggingFace/LmDirectory.ts"
import { type GgufTensor, ggufFile } from "../../base/formats/ggufFile.ts"
import { familyCases, filesOf, tensorsOf } from "./families.ts"

const caseOf = (name: string) => {
  const found = familyCases.find(([one]) => one === name)
  assert(found !== undefined, name)
  return found[1]
}

const bytesOf = (data: Float32Array): Buffer => Buffer.from(data.buffer, data.byteOffset, data.byteLength)

/** Opens the weights of a case in other files than its own. */
const openWith = Effect.fnUntraced(function* (name: string, files: Readonly<Record<string, Uint8Array>>) {
  const { decoder } = yield* LmDirectory.decodeModelConfig(filesOf(caseOf(name))["config.json"], "config.json")
  return yield* LmDirectory.openWeights(inRecord(files), ".", decoder)
})

const assertSame = Effect.fnUntraced(function* (name: string, files: Readonly<Record<string, Uint8Array>>, error = 0) {
  const found = yield* (yield* openWith(name, files)).readAll
  const wanted = yield* (yield* openWith(name, filesOf(caseOf(name)))).readAll
  assert.deepEqual(Object.keys(found), Object.keys(wanted))
  for (const [parameter, { shape, data }] of Object.entries(wanted)) {
    assert.deepEqual(found[parameter].shape, shape)
    data.forEach((value, at) => assert.closeTo(found[parameter].data[at], value, error, parameter))
  }
})

describe("weights in files of PyTorch", () => {
  for (const [name, folder] of [
    ["gpt2", "gpt2-bin"],
    ["phi3", "phi3-bin"],
  ] as const) {
    it.effect(`of ${folder} are those in safetensors`, () => {
      const path = fileURLToPath(new URL(`../../fixtures/families/${folder}/`, import.meta.url))
      const files = readdirSync(path).map((file) => [file, new Uint8Array(readFileSync(`${path}${file}`))] as const)
      return assertSame(name, Object.fromEntries(files))
    })
  }
})

const modules: Readonly<Record<string, string>> = {
  input_layernorm: "attn_norm",
  "self_attn.q_proj": "attn_q",
  "self_attn.k_proj": "attn_k",
  "self_attn.v_proj": "attn_v",
  "self_attn.qkv_proj": "attn_qkv",
  "self_attn.o_proj": "attn_output",
  "mlp.gate": "ffn_gate_inp",
  "self_attn.q_norm": "attn_q_norm",
  "self_attn.k_norm": "attn_k_norm",
  "mlp.gate_proj": "ffn_gate",
  "mlp.up_proj": "ffn_up",
  "mlp.gate_up_proj": "ffn_up",
  "mlp.down_proj": "ffn_down",
  post_attention_layernorm: "post_attention_norm",
  pre_feedforward_layernorm: "ffn_norm",
  post_feedforward_layernorm: "post_ffw_norm",
}
const outside: Readonly<Record<string, string>> = {
  "model.embed_tokens.weight": "token_embd.weight",
  "model.norm.weight": "output_norm.weight",
  "lm_head.weight": "output.weight",
}

const gpt2Names: ReadonlyArray<readonly [RegExp, string]> = [
  [/^transformer\.wte/, "token_embd"],
  [/^transformer\.wpe/, "position_embd"],
  [/^transformer\.ln_f/, "output_norm"],
  [/^transformer\.h\./, "blk."],
  [/\.ln_1\./, ".attn_norm."],
  [/\.ln_2\./, ".ffn_norm."],
  [/attn\.c_attn/, "attn_qkv"],
  [/attn\.c_proj/, "attn_output"],
  [/mlp\.c_fc/, "ffn_up"],
  [/mlp\.c_proj/, "ffn_down"],
]

/** Writes the case of GPT-2 as llama.cpp's converter does, which transposes its matrices. */
const ggufOfGpt2 = (): Uint8Array => {
  const tensors = Object.entries(tensorsOf(caseOf("gpt2"))).map(([tensor, { shape, data }]) => {
    const name = gpt2Names.reduce((all, [pattern, own]) => all.replace(pattern, own), tensor)
    const [rows, columns] = shape
    if (!/\.c_\w+\.weight$/.test(tensor)) return { name, shape, type: 0, bytes: bytesOf(data) }
    const turned = Float32Array.from(data, (_, at) => data[(at % rows) * columns + Math.floor(at / rows)])
    return { name, shape: [columns, rows], type: 0, bytes: bytesOf(turned) }
  })
  return ggufFile(tensors, { "general.architecture": "gpt2" })
}

/** Writes the case of Qwen3-MoE as llama.cpp's converter does, which joins the matrices of a layer's experts. */
const ggufOfExperts = (count = 6, others: ReadonlyArray<GgufTensor> = []): Uint8Array => {
  const all = tensorsOf(caseOf("qwen3-moe"))
  const experts = /^model\.layers\.(\d+)\.mlp\.experts\.0\.(\w+)_proj\.weight$/
  const tensors = Object.entries(all).flatMap(([tensor, { shape, data }]) => {
    const [, layer, projection] = experts.exec(tensor) ?? []
    if (layer === undefined)
      return tensor.includes(".experts.")
        ? []
        : [{ name: ggufName(tensor, false), shape, type: 0, bytes: bytesOf(data) }]
    const parts = Array.from({ length: count }, (_, expert) => all[tensor.replace("experts.0", `experts.${expert}`)])
    const bytes = Buffer.concat(parts.map((part) => bytesOf(part.data)))
    return [{ name: `blk.${layer}.ffn_${projection}_exps.weight`, shape: [count, ...shape], type: 0, bytes }]
  })
  return ggufFile([...tensors, ...others], { "general.architecture": "qwen3moe" })
}

/** Returns the name of a tensor in GGUF files. The norm before the feed-forward network is `ffn_norm` in all families. */
const ggufName = (name: string, hasBoth: boolean): string => {
  const [, layer, module = "", part] = /^model\.layers\.(\d+)\.(.*)\.(\w+)$/.exec(name) ?? []
  if (layer === undefined) return outside[name]
  const own = !hasBoth && module === "post_attention_layernorm" ? "ffn_norm" : modules[module]
  return `blk.${layer}.${own}.${part}`
}

/** Interleaves the halves of each head's rows, as llama.cpp's converter does. */
const interleaved = (data: Float32Array, [rows, columns = 1]: ReadonlyArray<number>, heads: number): Float32Array => {
  const half = rows / heads / 2
  return Float32Array.from(data, (_, index) => {
    const row = Math.floor(index / columns)
    const [head, within] = [Math.floor(row / (2 * half)), row % (2 * half)]
    const from = head * 2 * half + (within % 2) * half + Math.floor(within / 2)
    return data[from * columns + (index % columns)]
  })
}

/** Writes a case as llama.cpp's converter does. */
const ggufOf = (name: string, architecture: string): Uint8Array => {
  const isGemma = architecture.startsWith("gemma")
  const hasNormsAfter = isGemma || architecture === "olmo2"
  const turnsNeighbours = architecture === "llama" || architecture === "smollm3"
  const tensors = Object.entries(tensorsOf(caseOf(name))).map(([tensor, { shape, data }]) => {
    const projection = turnsNeighbours ? /([qk])_proj/.exec(tensor)?.[1] : undefined
    const turned = projection === undefined ? data : interleaved(data, shape, projection === "q" ? 4 : 2)
    const numbers = isGemma && tensor.endsWith("norm.weight") ? turned.map((value) => value + 1) : turned
    return { name: ggufName(tensor, hasNormsAfter), shape, type: 0, bytes: bytesOf(numbers) }
  })
  return ggufFile(tensors, { "general.architecture": architecture })
}

const refused = (name: string, files: Readonly<Record<string, Uint8Array>>) =>
  Effect.map(Effect.flip(openWith(name, files)), ({ message }) => message)

describe("weights in a GGUF file", () => {
  for (const [name, architecture, error] of [
    ["mistral", "llama", 0],
    ["phi3", "phi3", 0],
    ["qwen3", "qwen3", 0],
    ["olmo2", "olmo2", 0],
    ["smollm3-biases", "smollm3", 0],
    ["gemma2", "gemma2", 1e-7],
    ["gemma3", "gemma3", 1e-7],
  ] as const) {
    it.effect(`of ${name} are those in safetensors`, () =>
      assertSame(name, { "model.gguf": ggufOf(name, architecture) }, error),
    )
  }

  it.effect("of gpt2 are those in safetensors", () => assertSame("gpt2", { "model.gguf": ggufOfGpt2() }))

  it.effect("of qwen3-moe are those in safetensors, if it has all experts", () =>
    Effect.gen(function* () {
      yield* assertSame("qwen3-moe", { "model.gguf": ggufOfExperts() })
      const empty = { name: "blk.9.ffn_gate_exps.weight", shape: [6, 0, 0], type: 0, bytes: new Uint8Array() }
      const further = yield* refused("qwen3-moe", { "model.gguf": ggufOfExperts(6, [empty]) })
      assert.include(further, "blk.9.ffn_gate_exps.weight")
      const fewer = yield* refused("qwen3-moe", { "model.gguf": ggufOfExperts(5) })
      assert.match(fewer, /model\.gguf: it lacks "model\.layers\.0\.mlp\.experts\.0\.gate_proj\.weight"/)
    }),
  )

  it.effect("of another architecture, or of a family that is not read, are refused", () =>
    Effect.gen(function* () {
      const gguf = ggufOf("mistral", "llama")
      assert.include(yield* refused("phi3", { "model.gguf": gguf }), "model.gguf: general.architecture: expected phi3")
      assert.include(yield* refused("gpt2", { "model.gguf": gguf }), "general.architecture: expected gpt2")
      assert.include(
        yield* refused("mistral", { "a.gguf": gguf, "b.gguf": gguf }),
        "expected one GGUF file, found a.gguf, b.gguf",
      )
      const empty = ggufFile([], { "general.architecture": "llama" })
      assert.include(
        yield* refused("mistral", { "model.gguf": empty }),
        `model.gguf: it lacks "model.embed_tokens.weight"`,
      )
    }),
  )
})

describe("a folder with wrong tensors", () => {
  for (const name of ["qwen3", "phi3", "gpt2", "qwen3-moe"]) {
    it.effect(`of ${name} is refused by the tensor's name`, () =>
      Effect.gen(function* () {
        const tensors = tensorsOf(caseOf(name))
        const [first] = Object.keys(tensors).filter((tensor) => tensor.includes("mlp"))
        const message = (others: Safetensors.TensorEntries) =>
          refused(name, { "model.safetensors": Safetensors.encode(others) })
        const { [first]: removed, ...rest } = tensors
        assert.include(yield* message(rest), `model.safetensors: it lacks "${first}"`)
        assert.include(yield* message({ ...tensors, other: removed }), `that the config describes, found "other"`)
        const wide = { shape: [...removed.shape, 1], data: removed.data }
        assert.include(yield* message({ ...tensors, [first]: wide }), `tensor "${first}": expected the shape`)
      }),
    )
  }
})
