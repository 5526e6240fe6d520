/**
 * Weights in any of the formats that people have: safetensors and PyTorch's, whole or in shards as Hugging Face's hub
 * keeps them. Which one it is, the name says.
 *
 * @example
 * ```ts
 * const read = (path: string) => run.read(path) // or any other way to bytes
 * const weights = yield* Weights.load(read, "model/model.safetensors.index.json")
 * const files = yield* Weights.encode(weights, { maxShardBytes: 5_000_000_000 })
 * ```
 */
import { Effect, Schema } from "effect"
import { CheckpointError } from "./Checkpoint.ts"
import * as pytorch from "./pytorch.ts"
import * as safetensors from "./safetensors.ts"

/** A way to a file's bytes. */
export type Read<E = never> = (path: string) => Effect.Effect<Uint8Array, E>

const Index = Schema.Struct({
  metadata: Schema.optionalKey(Schema.Unknown),
  weight_map: Schema.Record(Schema.String, Schema.String),
})

const wrong = (path: string, message: string): CheckpointError =>
  new CheckpointError({ path, message: `${path}: ${message}` })

const formats: ReadonlyArray<{ readonly name: RegExp; readonly decode: (bytes: Uint8Array) => safetensors.Tensors }> = [
  { name: /\.safetensors$/, decode: safetensors.decode },
  { name: /\.(bin|pt|pth)$/, decode: pytorch.decode },
]

/** All tensors of a file or of an index's shards, by their names. */
export const load = Effect.fnUntraced(function* <E>(
  read: Read<E>,
  path: string,
): Effect.fn.Return<safetensors.Tensors, CheckpointError | E> {
  if (path.endsWith(".index.json")) return yield* loadShards(read, path)
  return yield* decodeFile(path, yield* read(path))
})

const decodeFile = (path: string, bytes: Uint8Array): Effect.Effect<safetensors.Tensors, CheckpointError> => {
  const format = formats.find(({ name }) => name.test(path))
  if (format === undefined) {
    return Effect.fail(wrong(path, "weights are .safetensors, .bin, .pt or .pth, or an .index.json of such"))
  }
  return Effect.try({
    try: () => format.decode(bytes),
    catch: (error) => wrong(path, error instanceof Error ? error.message : String(error)),
  })
}

const loadShards = Effect.fnUntraced(function* <E>(
  read: Read<E>,
  path: string,
): Effect.fn.Return<safetensors.Tensors, CheckpointError | E> {
  const folder = path.slice(0, path.lastIndexOf("/") + 1)
  const index = yield* Schema.decodeUnknownEffect(Schema.fromJsonString(Index))(
    new TextDecoder().decode(yield* read(path)),
  ).pipe(Effect.mapError((error) => wrong(path, `it is no index of shards: ${error.message.replace(/\s+/g, " ")}`)))
  const places = Object.entries(index.weight_map)
  const tensors: Record<string, safetensors.TensorEntry> = {}
  for (const shard of new Set(places.map(([, file]) => file))) {
    // A shard lies beside its index, and nowhere else.
    if (!/^[\w.-]+$/.test(shard) || shard.startsWith(".")) {
      return yield* wrong(path, `the shard "${shard}" is not a file beside the index`)
    }
    const found = yield* decodeFile(`${folder}${shard}`, yield* read(`${folder}${shard}`))
    for (const [name, file] of places) {
      if (file !== shard) continue
      if (!Object.hasOwn(found, name))
        return yield* wrong(`${folder}${shard}`, `there is no tensor "${name}", which ${path} says is here`)
      tensors[name] = found[name]
    }
  }
  return tensors
})

export interface EncodeOptions {
  /** Files are no larger than this, as far as single tensors are not; one file by default. */
  readonly maxShardBytes?: number
}

const numbered = (value: number): string => String(value).padStart(5, "0")

/** Weights as files: `model.safetensors`, or shards and their index. */
export const encode = (
  tensors: safetensors.Tensors,
  { maxShardBytes = Infinity }: EncodeOptions = {},
): Effect.Effect<Readonly<Record<string, Uint8Array>>, CheckpointError> =>
  Effect.try({
    try: () => encodeShards(tensors, maxShardBytes),
    catch: (error) => wrong("model.safetensors", error instanceof Error ? error.message : String(error)),
  })

const encodeShards = (tensors: safetensors.Tensors, most: number): Readonly<Record<string, Uint8Array>> => {
  const shards: Array<Record<string, safetensors.TensorEntry>> = [{}]
  let size = 0
  let total = 0
  for (const [name, tensor] of Object.entries(tensors)) {
    const { byteLength } = tensor.data
    if (size > 0 && size + byteLength > most) {
      shards.push({})
      size = 0
    }
    shards[shards.length - 1][name] = tensor
    size += byteLength
    total += byteLength
  }
  const remark = { format: "pt" }
  if (shards.length === 1) return { "model.safetensors": safetensors.encode(shards[0], remark) }
  const nameOf = (index: number): string => `model-${numbered(index + 1)}-of-${numbered(shards.length)}.safetensors`
  const places = shards.flatMap((shard, index) => Object.keys(shard).map((name) => [name, nameOf(index)] as const))
  const index = { metadata: { total_size: total }, weight_map: Object.fromEntries(places) }
  return {
    ...Object.fromEntries(shards.map((shard, at) => [nameOf(at), safetensors.encode(shard, remark)])),
    "model.safetensors.index.json": new TextEncoder().encode(`${JSON.stringify(index, null, 2)}\n`),
  }
}
