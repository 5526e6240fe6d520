/**
 * Reads files of weights one tensor at a time: one file, or several with an index. Of safetensors files, opening reads only
 * the headers, so a model can be larger than half of the memory; PyTorch files are read as a whole. `Weights.ts` loads
 * whole files of both kinds.
 *
 * @example
 * ```ts
 * const weights = yield* TensorFiles.open(files, "pretrained")
 * for (const name of weights.tensors.keys()) {
 *   const { shape, data } = yield* weights.read(name)
 * }
 * ```
 */
import { Effect, Stream } from "effect"
import { attempt } from "../config/attempt.ts"
import {
  byteLength,
  decodeTensor,
  dtypeIn,
  headerLength,
  placesIn,
  type TensorEntry,
  type TensorPlace,
} from "./safetensors.ts"
import { inFolder } from "./modelFiles.ts"
import { readIndex, weightFileIn } from "./shards.ts"
import { load, type ReadableParts } from "./Weights.ts"
import { FormatError } from "./FormatError.ts"

/** A tensor in a file. */
interface StoredTensor extends TensorPlace {
  /** The path of the file. */
  readonly path: string
}

export interface TensorFiles {
  /** The path of the file, or of the index. */
  readonly path: string
  readonly tensors: ReadonlyMap<string, StoredTensor>
  /** Reads one tensor. Fails if no file has it. */
  readonly read: (name: string) => Effect.Effect<TensorEntry, FormatError>
}

const wrong = (path: string, message: string): FormatError => new FormatError({ path, message: `${path}: ${message}` })

const checked = <A>(path: string, body: () => A): Effect.Effect<A, FormatError> =>
  Effect.mapError(attempt(body, FormatError), ({ message }) => wrong(path, message))

/** Opens the weights of a folder, or those of a file or an index by its path. */
export const open = Effect.fnUntraced(function* (
  files: ReadableParts,
  path: string,
): Effect.fn.Return<TensorFiles, FormatError> {
  const file = /\.(safetensors|bin|pt|pth|index\.json)$/.test(path) ? path : yield* fileIn(files, path)
  if (!/\.safetensors(\.index\.json)?$/.test(file)) return yield* openTorch(files, file)
  const tensors = yield* file.endsWith(".index.json") ? openIndex(files, file) : openOne(files, file)
  const read = Effect.fnUntraced(function* (name: string) {
    const place = tensors.get(name)
    if (place === undefined) return yield* wrong(file, `there is no tensor "${name}"`)
    const bytes = yield* readPart(files, place.path, place.offset, place.bytes)
    return yield* checked(place.path, () => decodeTensor(name, place, bytes))
  })
  return { path: file, tensors, read }
})

const fileIn = Effect.fnUntraced(function* (files: ReadableParts, folder: string) {
  const names = yield* Effect.mapError(files.list(folder), ({ message }) => wrong(folder, message))
  const name = yield* checked(folder, () => weightFileIn(names.filter((name) => !name.startsWith("adapter_"))))
  return inFolder(folder, name)
})

/** Opens a file of PyTorch, or the index of several. No code in them is executed: see `torch/pickle.ts`. */
const openTorch = Effect.fnUntraced(function* (files: ReadableParts, path: string) {
  const entries = yield* load(files, path)
  const tensors = new Map(
    Object.entries(entries).map(([name, entry]): [string, StoredTensor] => [
      name,
      { dtype: dtypeIn(entry), shape: entry.shape, offset: 0, bytes: byteLength(entry), path },
    ]),
  )
  const read = (name: string): Effect.Effect<TensorEntry, FormatError> =>
    Object.hasOwn(entries, name)
      ? Effect.succeed(entries[name])
      : Effect.fail(wrong(path, `there is no tensor "${name}"`))
  return { path, tensors, read }
})

const openOne = Effect.fnUntraced(function* (files: ReadableParts, path: string) {
  const size = yield* Effect.mapError(files.size(path), ({ message }) => wrong(path, message))
  const first = yield* readPart(files, path, 0, Math.min(8, size))
  const length = yield* checked(path, () => headerLength(first, size))
  const head = yield* readPart(files, path, 0, length)
  const places = yield* checked(path, () => placesIn(head, size))
  return new Map(Array.from(places, ([name, place]): [string, StoredTensor] => [name, { ...place, path }]))
})

const openIndex = Effect.fnUntraced(function* (files: ReadableParts, path: string) {
  const folder = path.slice(0, path.lastIndexOf("/") + 1)
  const bytes = yield* Effect.mapError(files.read(path), ({ message }) => wrong(path, message))
  const index = yield* checked(path, () => readIndex(bytes))
  const tensors = new Map<string, StoredTensor>()
  for (const [file, names] of index) {
    const shard = yield* openOne(files, `${folder}${file}`)
    for (const name of names) {
      const place = shard.get(name)
      if (place === undefined) {
        return yield* wrong(`${folder}${file}`, `it lacks "${name}", which ${path} says it has`)
      }
      tensors.set(name, place)
    }
  }
  return tensors
})

const readPart = Effect.fnUntraced(function* (files: ReadableParts, path: string, offset: number, bytes: number) {
  const part = new Uint8Array(bytes)
  if (bytes === 0) return part
  let filled = 0
  yield* Effect.mapError(
    Stream.runForEach(files.stream(path, { offset, bytes }), (piece) =>
      Effect.sync(() => {
        part.set(piece.subarray(0, bytes - filled), filled)
        filled += piece.length
      }),
    ),
    ({ message }) => wrong(path, message),
  )
  if (filled >= bytes) return part
  return yield* wrong(path, `expected ${bytes} bytes at ${offset}, found ${filled}; the file was cut meanwhile`)
})
