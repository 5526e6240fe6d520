/**
 * Splits weights over several files in Hugging Face's layout: `model-00001-of-00003.safetensors` and so on, and
 * `model.safetensors.index.json`, which names the file of every tensor. It also finds the weights file in a list of
 * names. It works on bytes and names only; `Weights.ts` reads and writes the files.
 *
 * @example
 * ```ts
 * const files = encodeSharded(weights, { maxShardBytes: 5e9 })
 * // one file, model.safetensors, if all tensors fit in it; else model-00001-of-00002.safetensors, … and the index
 * ```
 */
import { Record, Schema } from "effect"
import { jsonText } from "../text/jsonText.ts"
import { joined } from "../text/bytes.ts"
import { messageOf, prettyJson } from "../text/text.ts"
import { byteLength, partsOf, type TensorEntries } from "./safetensors.ts"
import { utf8 } from "../text/utf8.ts"
import { FormatError } from "./FormatError.ts"
import { repeatedKey } from "./repeatedKey.ts"

export interface ShardOptions {
  /** The name before `.safetensors` and the shard numbers. Default: `model`. */
  readonly name?: string | undefined
  /** The largest number of tensor bytes per file; a larger tensor gets a file of its own. Default: 5 GB. */
  readonly maxShardBytes?: number | undefined
  /** The metadata of every file. Default: `format: pt`; Hugging Face's `transformers` refuses files without it. */
  readonly metadata?: Readonly<Record<string, string>> | undefined
}

const fiveDigits = (index: number): string => String(index).padStart(5, "0")

/** Encodes tensors as one file, or several (shards) and their index, by name. Throws a `FormatError`. */
export const encodeSharded = (
  tensors: TensorEntries,
  options: ShardOptions = {},
): Readonly<Record<string, Uint8Array>> =>
  Record.map(shardParts(tensors, options), (contents) =>
    contents instanceof Uint8Array ? contents : joined([...contents]),
  )

/**
 * Returns the same files as `encodeSharded`, but encodes tensors only while the parts are written, for weights that do
 * not fit into memory twice. Throws a `FormatError`; iterating the parts throws it, too.
 */
export const shardParts = (
  tensors: TensorEntries,
  options: ShardOptions = {},
): Readonly<Record<string, Uint8Array | Iterable<Uint8Array>>> => {
  const { name = "model", maxShardBytes = 5e9, metadata = { format: "pt" } } = options
  if (!(maxShardBytes > 0)) {
    throw new FormatError({ message: `maxShardBytes: expected a number above 0, found ${maxShardBytes}` })
  }
  const shards = split(tensors, maxShardBytes)
  if (shards.length <= 1) return { [`${name}.safetensors`]: partsOf(tensors, metadata) }
  const files: Array<readonly [string, Uint8Array | Iterable<Uint8Array>]> = []
  const weightMap: Array<readonly [string, string]> = []
  for (const [index, shard] of shards.entries()) {
    const file = `${name}-${fiveDigits(index + 1)}-of-${fiveDigits(shards.length)}.safetensors`
    files.push([file, partsOf(shard, metadata)])
    for (const tensor of Object.keys(shard)) weightMap.push([tensor, file])
  }
  const total = Object.values(tensors).reduce((size, tensor) => size + byteLength(tensor), 0)
  const index = { metadata: { total_size: total }, weight_map: Object.fromEntries(weightMap.sort()) }
  files.push([`${name}.safetensors.index.json`, utf8.encode(prettyJson(index))])
  return Object.fromEntries(files)
}

/** Divides the tensors among shards in order; starts a new shard when the next tensor does not fit. */
const split = (tensors: TensorEntries, most: number): ReadonlyArray<TensorEntries> => {
  const shards: Array<Array<[string, TensorEntries[string]]>> = []
  // The bytes in the current shard; infinite at first, so that the first tensor starts a shard.
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

/** The Schema of an index. It reads the file of each tensor, and ignores `total_size` and other metadata. */
const Index = jsonText(Schema.Struct({ weight_map: Schema.Record(Schema.String, Schema.String) }))
const decodeIndex = Schema.decodeUnknownSync(Index)

/** Returns the tensor names of each file, in the order of the index. Throws a `FormatError`. */
export const readIndex = (bytes: Uint8Array): ReadonlyMap<string, ReadonlyArray<string>> => {
  const weightMap = weightMapIn(bytes)
  for (const [tensor, file] of Object.entries(weightMap)) {
    if (isSibling(file)) continue
    const message = `tensor "${tensor}": expected the name of a file in the folder of the index, found "${file}"`
    throw new FormatError({ message })
  }
  return Map.groupBy(Object.keys(weightMap), (tensor) => weightMap[tensor])
}

const weightMapIn = (bytes: Uint8Array): Readonly<Record<string, string>> => {
  const notIndex = (problem: string) => new FormatError({ message: `it is not a shard index: ${problem}` })
  const { text, weightMap } = parsedIndex(bytes, notIndex)
  if (Object.keys(weightMap).length === 0) throw notIndex("its weight_map names no tensors")
  const repeated = repeatedKey(text)
  if (repeated !== undefined) throw notIndex(`it has "${repeated}" twice`)
  return weightMap
}

const parsedIndex = (bytes: Uint8Array, notIndex: (problem: string) => FormatError) => {
  try {
    const text = utf8.decodeStrict(bytes)
    return { text, weightMap: decodeIndex(text).weight_map }
  } catch (error) {
    throw notIndex(messageOf(error))
  }
}

/** Says whether `file` is a plain file name, because an index may only refer to files in its own folder. */
const isSibling = (file: string): boolean => /^[^/\\:\0]+$/.test(file) && file !== "." && file !== ".."

/** The endings of weights files in order of preference: an index first, and safetensors before PyTorch. */
const endings = [".safetensors.index.json", ".bin.index.json", ".safetensors", ".bin", ".pt", ".pth"]

/** The usual names of weights files: the first two are Hugging Face's, and the third is used in our checkpoints. */
const usualNames = ["model", "pytorch_model", "weights"]

const isShard = (name: string): boolean => /-\d{5}-of-\d{5}\.[a-z]+$/.test(name)

/**
 * Returns the name of the weights file among the names in a folder, in the order in which Hugging Face's `transformers`
 * looks for it. Throws a `FormatError`.
 */
export const weightFileIn = (names: ReadonlyArray<string>): string => {
  for (const ending of endings) {
    const candidates = names.filter((name) => name.endsWith(ending) && !isShard(name))
    const usual = usualNames.map((name) => `${name}${ending}`).find((name) => candidates.includes(name))
    if (usual !== undefined) return usual
    if (candidates.length === 1) return candidates[0]
    if (candidates.length > 1) {
      const message = `found ${candidates.join(", ")}, none of them named ${usualNames.join(" or ")}; give the path of one file`
      throw new FormatError({ message })
    }
  }
  const firstNames = names.slice(0, 10).join(", ")
  throw new FormatError({ message: `expected a file of weights, ${endings.join(" or ")}; found ${firstNames}` })
}
