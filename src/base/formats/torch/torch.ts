/**
 * Reads the files of PyTorch's `torch.save` (`pytorch_model.bin`, `.pt`, `.pth`) without Python and without running
 * code in them: see `pickle.ts`. A file holds a state dict of tensors by name. The names in nested dicts, such as
 * `{"model": …, "optimizer": …}`, are joined with dots. Values other than tensors are ignored.
 *
 * @example
 * ```ts
 * const weights = decode(yield* files.read("pytorch_model.bin"))
 * weights["layer.weight"] // { shape: [64, 4], data: Float32Array }
 * ```
 */
import { codecs, dtypeOf, elements } from "../dtypes.ts"
import { type PickleDict, isDict, isTensor, readPickle, tagOf, type TensorView } from "./pickle.ts"
import type { TensorEntry, TensorEntries } from "../safetensors.ts"
import { refuse } from "./refuse.ts"
import { readStoredZip } from "./storedZip.ts"
import { utf8 } from "../../text/utf8.ts"

/** The first bytes of a file from before torch 1.6: a pickled magic number. Still older files are tar archives. */
const oldMagic = [0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19]
const isOld = (bytes: Uint8Array): boolean =>
  oldMagic.every((byte, index) => bytes[index] === byte) || utf8.decode(bytes.subarray(257, 262)) === "ustar"

// These limits keep a malicious file from using up the memory.
const mostNested = 32
const longestName = 1024
/**
 * Returns the largest number of bytes to which a file may expand. Views may repeat the numbers of a storage, but a file
 * that expands further is treated as an attack.
 */
const largest = (file: Uint8Array): number => 16 * file.length + 2 ** 26

/** Returns the tensors by name, each with a copy of its numbers. Throws a `FormatError`. */
export const decode = (bytes: Uint8Array): TensorEntries => {
  if (isOld(bytes)) {
    refuse("it is in the format from before torch 1.6; load it with torch and save it again", 0)
  }
  const entries = readStoredZip(bytes)
  const folder = folderOf(entries)
  const order = entries.get(`${folder}byteorder`)
  if (order !== undefined && utf8.decode(order) !== "little") {
    refuse("its numbers are big-endian; expected little-endian")
  }
  const root = readPickle(entries.get(`${folder}data.pkl`) ?? refuse("the archive has no data.pkl"))
  if (!isDict(root)) return refuse(`expected a dict of tensors, found a ${tagOf(root)}`)

  let bytesLeft = largest(bytes)
  const tensors = namedTensors(root).map(([name, view]): readonly [string, TensorEntry] => {
    bytesLeft -= elements(view.shape) * codecs[view.storage.dtype].width
    if (!(bytesLeft >= 0)) refuse(`tensor "${name}": the tensors have far more numbers than the file`)
    const contents = entries.get(`${folder}data/${view.storage.key}`)
    if (contents === undefined) return refuse(`tensor "${name}": the archive has no data/${view.storage.key}`)
    return [name, tensorOf(name, view, contents)]
  })
  return Object.fromEntries(tensors)
}

/** Returns the path of the only folder in the archive. Its name is the name that the file had when it was saved. */
const folderOf = (entries: ReadonlyMap<string, Uint8Array>): string => {
  const pickles = [...entries.keys()].filter((name) => /^[^/]+\/data\.pkl$/.test(name))
  if (pickles.length !== 1) refuse(`the archive has ${pickles.length} files FOLDER/data.pkl; torch.save writes one`)
  return pickles[0].slice(0, -"data.pkl".length)
}

const namedTensors = (root: PickleDict): ReadonlyArray<readonly [string, TensorView]> => {
  const tensors = new Map<string, TensorView>()
  // A dict that occurs in several places is refused, because it could expand without end, or exponentially.
  const visited = new Set<PickleDict>()
  const visit = (dict: PickleDict, prefix: string, depth: number): void => {
    if (visited.has(dict)) refuse(`the dict "${prefix}" is also elsewhere in the file`)
    if (depth > mostNested) refuse(`dicts are nested more than ${mostNested} deep`)
    visited.add(dict)
    for (const [key, value] of dict.entries) {
      const name = `${prefix}${String(key)}`
      if (name.length > longestName) refuse(`a name has ${name.length} characters; expected at most ${longestName}`)
      if (isDict(value)) visit(value, `${name}.`, depth + 1)
      if (!isTensor(value)) continue
      if (tensors.has(name)) refuse(`there are two tensors "${name}"`)
      tensors.set(name, value)
    }
  }
  visit(root, "", 1)
  return [...tensors]
}

/** A view may always have this many elements, even if its storage has fewer. */
const mostExpanded = 2 ** 20

const tensorOf = (name: string, view: TensorView, contents: Uint8Array): TensorEntry => {
  const { storage, shape } = view
  const codec = codecs[storage.dtype]
  if (contents.length !== storage.elements * codec.width) {
    const expected = storage.elements * codec.width
    refuse(`tensor "${name}": data/${storage.key} has ${contents.length} bytes, expected ${expected}`)
  }
  const last = lastElement(view)
  if (!(last < storage.elements)) {
    refuse(
      `tensor "${name}": expected a view within the ${storage.elements} elements of its storage, found element ${last}`,
    )
  }
  // A stride of 0 lets a few elements stand for any number.
  const count = elements(view.shape)
  if (count > Math.max(storage.elements, mostExpanded)) {
    refuse(
      `tensor "${name}": expected at most the ${storage.elements} elements of its storage, found a view of ${count}`,
    )
  }
  try {
    const data = codec.decode(rowMajor(view, contents, codec.width))
    return { shape, data, ...(storage.dtype === dtypeOf(data) ? {} : { dtype: storage.dtype }) }
  } catch (error) {
    if (error instanceof RangeError) return refuse(`tensor "${name}": ${error.message}`)
    throw error
  }
}

/** Returns the index of the last element of a view; -1 if it has none. */
const lastElement = ({ offset, shape, stride }: TensorView): number =>
  shape.includes(0) ? -1 : shape.reduce((last, size, axis) => last + (size - 1) * stride[axis], offset)

/** Returns the bytes of a view's elements in row-major order; without a copy if they are stored in that order. */
const rowMajor = (view: TensorView, contents: Uint8Array, width: number): Uint8Array => {
  const { offset, shape, stride } = view
  const count = elements(shape)
  if (isContiguous(view)) return contents.subarray(offset * width, (offset + count) * width)
  const bytes = new Uint8Array(count * width)
  const index = shape.map(() => 0)
  let from = offset
  for (let to = 0; to < bytes.length; to += width) {
    for (let byte = 0; byte < width; byte++) bytes[to + byte] = contents[from * width + byte]
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      index[axis]++
      from += stride[axis]
      if (index[axis] < shape[axis]) break
      from -= index[axis] * stride[axis]
      index[axis] = 0
    }
  }
  return bytes
}

const isContiguous = ({ shape, stride }: TensorView): boolean => {
  let expected = 1
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    if (shape[axis] !== 1 && stride[axis] !== expected) return false
    expected *= shape[axis]
  }
  return true
}
