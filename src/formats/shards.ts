/**
 * Weights over several files, as Hugging Face lays them out: `model-00001-of-00003.safetensors` and so on, and
 * `model.safetensors.index.json`, which says for every tensor which file has it.
 *
 * @example
 * ```ts
 * const files = encodeSharded(weights, { maxShardBytes: 5e9 })
 * // model.safetensors where all fits in one; or model-00001-of-00002.safetensors, … and the index
 * ```
 */
import { Schema } from "effect"
import { messageOf, prettyJson } from "../config/text.ts"
import { byteLength, encode, SafetensorsError, type Tensors } from "./safetensors.ts"
import { utf8 } from "../config/utf8.ts"

export interface ShardOptions {
  /** What comes before `.safetensors` and the shards' numbers: `model` when left out. */
  readonly name?: string | undefined
  /** The most bytes of tensors a file; a tensor that has more gets a file of its own. 5 GB when left out. */
  readonly maxShardBytes?: number | undefined
  /** What every file says of itself: `format: pt` when left out, without which Hugging Face's `transformers` refuses it. */
  readonly metadata?: Readonly<Record<string, string>> | undefined
}

const five = (index: number): string => String(index).padStart(5, "0")

/** The files by name, the index last. Tensors stay in their order. Throws a SafetensorsError. */
export const encodeSharded = (tensors: Tensors, options: ShardOptions = {}): Readonly<Record<string, Uint8Array>> => {
  const { name = "model", maxShardBytes = 5e9, metadata = { format: "pt" } } = options
  if (!(maxShardBytes > 0)) {
    throw new SafetensorsError({ message: `shards of at most ${maxShardBytes} bytes cannot hold anything` })
  }
  const shards = split(tensors, maxShardBytes)
  if (shards.length <= 1) return { [`${name}.safetensors`]: encode(tensors, metadata) }
  const files: Array<readonly [string, Uint8Array]> = []
  const weightMap: Array<readonly [string, string]> = []
  for (const [index, shard] of shards.entries()) {
    const file = `${name}-${five(index + 1)}-of-${five(shards.length)}.safetensors`
    files.push([file, encode(shard, metadata)])
    for (const tensor of Object.keys(shard)) weightMap.push([tensor, file])
  }
  const total = Object.values(tensors).reduce((size, tensor) => size + byteLength(tensor), 0)
  const index = { metadata: { total_size: total }, weight_map: Object.fromEntries(weightMap.sort()) }
  files.push([`${name}.safetensors.index.json`, utf8.encode(prettyJson(index))])
  return Object.fromEntries(files)
}

/** One after another, a new shard where the next tensor would be too much. */
const split = (tensors: Tensors, most: number): ReadonlyArray<Tensors> => {
  const shards: Array<Array<[string, Tensors[string]]>> = []
  let size = Infinity
  for (const [name, tensor] of Object.entries(tensors)) {
    const bytes = byteLength(tensor)
    if (size + bytes > most) {
      shards.push([])
      size = 0
    }
    shards.at(-1)?.push([name, tensor])
    size += bytes
  }
  return shards.map((shard) => Object.fromEntries(shard))
}

/** What `total_size` and the like say is a remark; only the map is needed. */
const Index = Schema.fromJsonString(Schema.Struct({ weight_map: Schema.Record(Schema.String, Schema.String) }))
const decodeIndex = Schema.decodeUnknownSync(Index)

/** An index that cannot be followed: what is wrong with it. */
export class ShardIndexError extends Schema.TaggedError<ShardIndexError>()("ShardIndexError", {
  message: Schema.String,
}) {}

/** The names of the tensors in each file, in the index's order. Throws a ShardIndexError. */
export const readIndex = (bytes: Uint8Array): ReadonlyMap<string, ReadonlyArray<string>> => {
  const files = new Map<string, Array<string>>()
  for (const [tensor, file] of Object.entries(weightMapIn(bytes))) {
    if (!isSibling(file)) {
      const message = `tensor "${tensor}" is said to be in "${file}", which is not the name of a file beside the index`
      throw new ShardIndexError({ message })
    }
    const names = files.get(file)
    if (names === undefined) files.set(file, [tensor])
    else names.push(tensor)
  }
  return files
}

const weightMapIn = (bytes: Uint8Array): Readonly<Record<string, string>> => {
  try {
    return decodeIndex(utf8.decodeStrict(bytes)).weight_map
  } catch (error) {
    throw new ShardIndexError({ message: `it is no index: ${messageOf(error)}` })
  }
}

/** Anything else would let an index name files that are not its own. */
const isSibling = (file: string): boolean => /^[^/\\:\0]+$/.test(file) && file !== "." && file !== ".."
