/**
 * Loads and saves tensors by name. `load` reads safetensors and PyTorch files: one file, or several files with an
 * index, which names the file of each tensor. The file name tells the format: `model.safetensors`, `pytorch_model.bin`
 * (or `.pt`, `.pth`), `….index.json`. In a folder, it reads the first of: an index (safetensors, PyTorch), a
 * safetensors file, a PyTorch file.
 *
 * `save` writes safetensors only. If it replaces an older model of several files, a reader may see files of both
 * models. In a run, save the files of `encode` with a checkpoint, which is written as a whole or not at all.
 *
 * @example
 * ```ts
 * const weights = yield* Weights.load(files, "pretrained", { tied: { "lm_head.weight": "embed_tokens.weight" } })
 * yield* Weights.save(runFiles, "export/model.safetensors", weights, { maxShardBytes: 2e9 })
 * yield* Checkpoint.save(runFiles, { ...checkpoint, files: yield* Weights.encode(weights) })
 * ```
 */
import { Effect, Stream } from "effect"
import * as safetensors from "./safetensors.ts"
import { encodeSharded, readIndex, type ShardOptions, weightFileIn } from "./shards.ts"
import * as torch from "./torch/torch.ts"
import { attempt } from "../config/attempt.ts"

export type { ShardOptions } from "./shards.ts"
import { FormatError } from "./FormatError.ts"
export type { Dtype, TensorArray, TensorEntry, TensorEntries } from "./safetensors.ts"

/**
 * A source from which files can be read: a run's files, a `FileTree` (files by path), or e.g. a function that uses
 * HTTP.
 */
export interface Readable {
  readonly read: (path: string) => Effect.Effect<Uint8Array, { readonly message: string }>
  /** Lists the names in a folder. Only loading a folder needs it. */
  readonly list?: (path: string) => Effect.Effect<ReadonlyArray<string>, { readonly message: string }>
}

export interface WeightsLoadOptions {
  /** Pairs of parameters that share a tensor. A file may lack one of a pair: `{ "lm_head.weight": "embed.weight" }`. */
  readonly tied?: Readonly<Record<string, string>> | undefined
  /**
   * The names of the model's parameters. After `tied` is applied, a parameter without a tensor is an error, and so is a
   * tensor with another name. If left out, names are not checked.
   */
  readonly names?: ReadonlyArray<string> | undefined
}

/** A target to which files can be written: a run's files, or a `FileTree` (files by path). */
export interface Writable {
  readonly write: (path: string, contents: Uint8Array) => Effect.Effect<void, { readonly message: string }>
  /** Removes a file; does nothing if it doesn't exist. */
  readonly remove: (path: string) => Effect.Effect<void, { readonly message: string }>
}

/** A folder from which parts of files can be read, too: a `FileTree`, or files in memory (`inRecord`). */
export interface ReadableParts extends Required<Readable> {
  /** Returns the number of bytes of a file. */
  readonly size: (path: string) => Effect.Effect<number, { readonly message: string }>
  /** Reads a range of a file's bytes. */
  readonly stream: (
    path: string,
    part: { readonly offset: number; readonly bytes: number },
  ) => Stream.Stream<Uint8Array, { readonly message: string }>
}

/** Makes a folder of files that are in memory, such as those of a loaded checkpoint. */
export const inRecord = (files: Readonly<Record<string, Uint8Array>>): ReadableParts => ({
  read: (path) => inMemory(files, path),
  size: (path) => Effect.map(inMemory(files, path), ({ length }) => length),
  stream: (path, { offset, bytes }) =>
    Stream.fromEffect(Effect.map(inMemory(files, path), (whole) => whole.subarray(offset, offset + bytes))),
  list: (path) => {
    const folder = folderPath(path)
    const below = Object.keys(files).filter((file) => file.startsWith(folder))
    return Effect.succeed(below.map((file) => file.slice(folder.length)).filter((name) => !name.includes("/")))
  },
})

const inMemory = (files: Readonly<Record<string, Uint8Array>>, path: string) =>
  Object.hasOwn(files, path) ? Effect.succeed(files[path]) : Effect.fail({ message: "it is missing" })

const wrong = (path: string, message: string): FormatError => new FormatError({ path, message: `${path}: ${message}` })

const endings = ".safetensors, .bin, .pt, .pth, .safetensors.index.json or .bin.index.json"

/** Returns the prefix of the paths of all files in a folder: `a/` for the folder `a`, nothing for `.`. */
const folderPath = (path: string): string =>
  (path === "" || path === "." || path.endsWith("/") ? path : `${path}/`).replace(/^\.\/?$/, "")

const isIndex = (path: string): boolean => path.endsWith(".index.json")

/** Loads all tensors of a file, of all files in an index (one file at a time), or of the weights file in a folder. */
export const load = Effect.fnUntraced(function* (
  files: Readable,
  path: string,
  { tied = {}, names }: WeightsLoadOptions = {},
): Effect.fn.Return<safetensors.TensorEntries, FormatError> {
  const file = isIndex(path) || decoderOf(path) !== undefined ? path : yield* fileIn(files, path)
  const tensors = withTied(yield* isIndex(file) ? loadSharded(files, file) : loadOne(files, file), tied)
  if (names === undefined) return tensors
  const missing = names.filter((name) => !Object.hasOwn(tensors, name))
  if (missing.length > 0) return yield* wrong(file, `it lacks ${listed(missing)}, and no tied parameter has its tensor`)
  const unexpected = Object.keys(tensors).filter((name) => !names.includes(name))
  if (unexpected.length > 0) return yield* wrong(file, `the model has no ${listed(unexpected)}`)
  return tensors
})

const listed = (names: ReadonlyArray<string>): string =>
  `${names
    .slice(0, 5)
    .map((name) => `"${name}"`)
    .join(", ")}${names.length > 5 ? ` and ${names.length - 5} more` : ""}`

/** Fills in tied parameters that the file leaves out: each gets the tensor of the parameter to which it is tied. */
const withTied = (
  tensors: safetensors.TensorEntries,
  tied: Readonly<Record<string, string>>,
): safetensors.TensorEntries => {
  const filled: Record<string, safetensors.TensorEntry> = { ...tensors }
  for (const [name, other] of Object.entries(tied)) {
    for (const [absent, present] of [
      [name, other],
      [other, name],
    ]) {
      if (!Object.hasOwn(filled, absent) && Object.hasOwn(tensors, present)) filled[absent] = tensors[present]
    }
  }
  return filled
}

const fileIn = Effect.fnUntraced(function* (files: Readable, path: string) {
  const folder = folderPath(path)
  const list = files.list?.(folder === "" ? "." : folder.slice(0, -1)) ?? Effect.succeed([])
  // A path that cannot be listed is not a folder.
  const names = yield* Effect.orElseSucceed(list, () => [])
  if (names.length > 0) return `${folder}${yield* attemptAt(path, () => weightFileIn(names))}`
  return yield* wrong(path, `expected a folder with weights, or a file named ${endings}`)
})

const loadOne = Effect.fnUntraced(function* (files: Readable, path: string) {
  const decode = decoderOf(path)
  if (decode === undefined) return yield* wrong(path, `expected a file named ${endings}`)
  const bytes = yield* read(files, path)
  return yield* attemptAt(path, () => decode(bytes))
})

const decoderOf = (path: string): ((bytes: Uint8Array) => safetensors.TensorEntries) | undefined => {
  if (path.endsWith(".safetensors")) return safetensors.decode
  return /\.(bin|pt|pth)$/.test(path) ? torch.decode : undefined
}

const loadSharded = Effect.fnUntraced(function* (files: Readable, path: string) {
  const folder = path.slice(0, path.lastIndexOf("/") + 1)
  const bytes = yield* read(files, path)
  const index = yield* attemptAt(path, () => readIndex(bytes))
  const tensors: Array<readonly [string, safetensors.TensorEntry]> = []
  for (const [file, names] of index) {
    const shard = yield* loadOne(files, `${folder}${file}`)
    for (const name of names) {
      if (!Object.hasOwn(shard, name))
        return yield* wrong(`${folder}${file}`, `it lacks "${name}", which ${path} says it has`)
      tensors.push([name, shard[name]])
    }
  }
  return Object.fromEntries(tensors)
})

const read = (files: Readable, path: string): Effect.Effect<Uint8Array, FormatError> =>
  Effect.mapError(files.read(path), (error) => wrong(path, error.message))

/** Runs `body`. An error about the file becomes a `FormatError` with the path; any other one is a bug (a defect). */
const attemptAt = <A>(path: string, body: () => A): Effect.Effect<A, FormatError> =>
  attempt(body, FormatError).pipe(Effect.mapError(({ message }) => wrong(path, message)))

/** Returns safetensors files by name: one file, or several and their index if the weights exceed `maxShardBytes`. */
export const encode = (
  tensors: safetensors.TensorEntries,
  options: ShardOptions = {},
): Effect.Effect<Readonly<Record<string, Uint8Array>>, FormatError> =>
  attemptAt(`${options.name ?? "model"}.safetensors`, () => encodeSharded(tensors, options))

/** Writes the file `path`; above `maxShardBytes`, several files and an index. Returns the path to load them from. */
export const save = Effect.fnUntraced(function* (
  files: Writable,
  path: string,
  tensors: safetensors.TensorEntries,
  options: Omit<ShardOptions, "name"> = {},
): Effect.fn.Return<string, FormatError> {
  if (!path.endsWith(".safetensors")) return yield* wrong(path, "expected a path ending in .safetensors")
  const folder = path.slice(0, path.lastIndexOf("/") + 1)
  const name = path.slice(folder.length, -".safetensors".length)
  const encoded = yield* attemptAt(path, () => encodeSharded(tensors, { ...options, name }))
  for (const [file, contents] of Object.entries(encoded)) {
    yield* Effect.mapError(files.write(`${folder}${file}`, contents), (error) =>
      wrong(`${folder}${file}`, error.message),
    )
  }
  const index = `${path}.index.json`
  const isSharded = Object.keys(encoded).length > 1
  // Remove what an older model left: an index if we wrote one file, or one file if we wrote an index. If both are
  // there, some readers take one and some the other.
  const other = isSharded ? path : index
  yield* Effect.mapError(files.remove(other), (error) => wrong(other, error.message))
  return isSharded ? index : path
})
