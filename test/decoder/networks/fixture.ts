/** The small Llama with random weights whose outputs and gradients come from Hugging Face transformers and peft. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Effect, Record } from "effect"
import type { Program } from "../../../src/tensor/backend/Backend.ts"
import * as OnnxNode from "../../../src/tensor/backend/onnx-node.ts"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as Safetensors from "../../../src/base/formats/safetensors.ts"
import { fixtureConfig } from "./configs.ts"

const folder = fileURLToPath(new URL("../../fixtures/hugging-face/llama/", import.meta.url))

/** The fixture's `config.json`. */
export const config = fixtureConfig

type Rows = ReadonlyArray<ReadonlyArray<number>>

interface Expected {
  readonly forward: { readonly input_ids: Rows; readonly logits_last: Rows; readonly logprobs_of_next: Rows } & {
    readonly logits_row_0: Rows
  }
  readonly packed: { readonly input_ids: Rows; readonly lengths: ReadonlyArray<number>; readonly logits: Rows }
  readonly sft: { readonly mask: Rows; readonly loss: number }
  readonly greedy: { readonly prompt: Rows; readonly generated: Rows }
  readonly lora: { readonly logits_last: Rows; readonly loss: number }
}

export const expected: Expected = JSON.parse(readFileSync(`${folder}expected.json`, "utf8"))

/** Reads a safetensors file of the fixture: numbers by name. */
export const tensorsIn = (file: string): Readonly<Record<string, Float32Array>> =>
  Record.map(Safetensors.decode(readFileSync(`${folder}${file}`)), ({ data }) => Float32Array.from(data))

export const backends = { reference: Reference.layer, wasm: Wasm.layer, cpu: OnnxNode.layerCpu() }

export const write = (program: Program, weights: Readonly<Record<string, Float32Array>>): void => {
  for (const [name, data] of Object.entries(weights)) Effect.runSync(program.write(name, data))
}

/** The greatest difference between two arrays, relative to the greatest expected size. */
export const relativeError = (found: ArrayLike<number>, wanted: ArrayLike<number>): number => {
  if (found.length !== wanted.length) return Infinity
  let [difference, size] = [0, 0]
  for (let at = 0; at < wanted.length; at++) {
    // A NaN is as far off as can be.
    difference = Math.max(difference, Number.isNaN(found[at]) ? Infinity : Math.abs(found[at] - wanted[at]))
    size = Math.max(size, Math.abs(wanted[at]))
  }
  return difference / Math.max(size, 1e-30)
}
