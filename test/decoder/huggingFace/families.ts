/** Small models of several families, with what transformers computes: `test/fixtures/families/make.py` makes the files. */
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as Safetensors from "../../../src/base/formats/safetensors.ts"
import type { Plain } from "../../../src/base/config/plain.ts"
import type { NamedArray } from "../../../src/tensor/graph/Parameters.ts"
import { json } from "../../base/tokens/fixtures.ts"

const folder = fileURLToPath(new URL("../../fixtures/families/", import.meta.url))

type Rows = ReadonlyArray<ReadonlyArray<number>>

export interface FamilyCase {
  readonly config: Plain
  /** The shape of each tensor, and the centre of its numbers. */
  readonly tensors: Readonly<Record<string, readonly [ReadonlyArray<number>, number]>>
  readonly ids: Rows
  /** The positions in each row whose logits are in `logits`. */
  readonly positions: ReadonlyArray<number>
  readonly logits: Rows
  readonly loss: number
  /** An adapter of peft: its config, the shapes of its tensors, and the logits of the last position of each row with it. */
  readonly lora: {
    readonly config: Plain
    readonly tensors: Readonly<Record<string, ReadonlyArray<number>>>
    readonly logits: Rows
  }
  readonly generated: Rows
  /** The size of each gradient, and seven of its numbers from the first to the last. */
  readonly gradients: Readonly<Record<string, { readonly norm: number; readonly some: ReadonlyArray<number> }>>
}

const readCase = (file: string): FamilyCase => JSON.parse(readFileSync(`${folder}${file}`, "utf8"))

export const familyCases: ReadonlyArray<readonly [string, FamilyCase]> = readdirSync(folder)
  .filter((file) => file.endsWith(".json"))
  .map((file) => [file.replace(".json", ""), readCase(file)])

/** An adapter of peft with more than two matrices of one rank for each projection: `adapters.py` makes the files. */
export interface AdapterCase {
  readonly family: string
  readonly config: Plain
  readonly tensors: FamilyCase["tensors"]
  /** The logits of the last position of each row. */
  readonly logits: Rows
}

/** Returns a case's model, and the adapter. */
export const adapterCase = (name: string): AdapterCase & { readonly model: FamilyCase } => {
  const adapter: AdapterCase = JSON.parse(readFileSync(`${folder}adapters/${name}.json`, "utf8"))
  return { ...adapter, model: readCase(`${adapter.family}.json`) }
}

/** Makes the numbers of a tensor from its name, as `formula.py` does. */
const numbers = (name: string, shape: ReadonlyArray<number>, centre: number): Float32Array => {
  let start = 2166136261
  for (const letter of new TextEncoder().encode(name)) start = Math.imul(start ^ letter, 16777619) >>> 0
  const size = shape.reduce((a, b) => a * b, 1)
  return Float32Array.from({ length: size }, (_, index) => {
    let x = (start + Math.imul(index, 2654435761)) >>> 0
    for (let round = 0; round < 2; round++) x = Math.imul(x ^ (x >>> 16), 0x45d9f3b) >>> 0
    x = (x ^ (x >>> 16)) >>> 0
    return (x / 2 ** 32 - 0.5) * (shape.length > 1 ? 0.9 : 0.4) + centre
  })
}

/** Makes the tensors of a case. */
export const tensorsOf = ({ tensors }: Pick<FamilyCase, "tensors">): Readonly<Record<string, NamedArray>> =>
  Object.fromEntries(
    Object.entries(tensors).map(([name, [shape, centre]]) => [name, { shape, data: numbers(name, shape, centre) }]),
  )

/** Makes the files of a case's model, without a tokenizer. */
export const filesOf = (family: FamilyCase): Readonly<Record<string, Uint8Array>> => ({
  "config.json": json(family.config),
  "model.safetensors": Safetensors.encode(tensorsOf(family)),
})

/** Makes the files of a case's adapter. */
export const adapterFilesOf = ({ lora }: FamilyCase): Readonly<Record<string, Uint8Array>> => ({
  "adapter_config.json": json(lora.config),
  "adapter_model.safetensors": Safetensors.encode(
    Object.fromEntries(
      Object.entries(lora.tensors).map(([name, shape]) => [name, { shape, data: numbers(name, shape, 0) }]),
    ),
  ),
})
