/**
 * Weights as PyTorch saves them (`pytorch_model.bin`, `.pt`, `.pth`), read without running anything of what is in them.
 *
 * @example
 * ```ts
 * const weights = decode(bytes) // { "layer.weight": { shape: [64, 4], data: Float32Array }, … }
 * ```
 */
import { Schema } from "effect"
import { type NumberKind, numberKinds } from "./numbers.ts"
import { type Dictionary, type PickledTensor, PickleError, readPickle, type Value } from "./pickle.ts"
import type { TensorEntry, Tensors } from "./safetensors.ts"
import { readZip, ZipError } from "./zip.ts"

/** Bytes that hold no weights of PyTorch's, or more than weights. */
export class PytorchError extends Schema.TaggedError<PytorchError>()("PytorchError", { message: Schema.String }) {}

const kindOfStorage: Readonly<Record<string, NumberKind>> = {
  DoubleStorage: "F64",
  FloatStorage: "F32",
  HalfStorage: "F16",
  BFloat16Storage: "BF16",
  LongStorage: "I64",
  IntStorage: "I32",
  ShortStorage: "I16",
  CharStorage: "I8",
  ByteStorage: "U8",
  BoolStorage: "BOOL",
}

const largest = 2 ** 31

const complain = (message: string): never => {
  throw new PytorchError({ message })
}

/** Throws a PytorchError. Dictionaries in dictionaries are joined by dots; what is neither is left out. */
export const decode = (bytes: Uint8Array): Tensors => {
  if (bytes.length >= 4 && bytes[0] === 0x80) {
    complain("this is the format of before PyTorch 1.6; load and save it once with a newer one")
  }
  const files = attempt(() => readZip(bytes))
  const pickle = [...files.keys()].find((name) => name === "data.pkl" || name.endsWith("/data.pkl"))
  if (pickle === undefined) return complain("there is no data.pkl in the archive")
  const folder = pickle.slice(0, -"data.pkl".length)
  const order = files.get(`${folder}byteorder`)
  if (order !== undefined && new TextDecoder().decode(order) !== "little") complain("its numbers are not little-endian")
  const root = attempt(() => readPickle(files.get(pickle) ?? new Uint8Array()))
  if (!isDictionary(root)) return complain("it holds no dictionary of weights")
  const tensors: Record<string, TensorEntry> = {}
  collect(root, "", (name, tensor) => {
    const { key } = tensor.storage
    const data = files.get(`${folder}data/${key}`)
    tensors[name] =
      data === undefined ? complain(`"${name}": there is no storage "${key}"`) : materialise(name, tensor, data)
  })
  return tensors
}

const isDictionary = (value: Value): value is Dictionary =>
  typeof value === "object" && value !== null && value.kind === "dict"

const collect = (
  dictionary: Dictionary,
  prefix: string,
  found: (name: string, tensor: PickledTensor) => void,
  depth = 0,
): void => {
  if (depth > 64) complain("dictionaries are nested too deep")
  for (const [key, value] of dictionary.entries) {
    if (typeof key !== "string" && typeof key !== "number") continue
    const name = `${prefix}${key}`
    if (isDictionary(value)) collect(value, `${name}.`, found, depth + 1)
    else if (typeof value === "object" && value !== null && value.kind === "tensor") found(name, value)
  }
}

/** A tensor's numbers in the order of its shape, wherever its strides say that they are. */
const materialise = (
  name: string,
  { storage, offset, shape, strides }: PickledTensor,
  bytes: Uint8Array,
): TensorEntry => {
  const kind = kindOfStorage[storage.type]
  const { width, read } = numberKinds[kind]
  const size = shape.reduce((product, length) => product * length, 1)
  if (size > largest) complain(`"${name}" has ${size} numbers; ${largest} are allowed`)
  const last = shape.reduce((sum, length, axis) => sum + Math.max(0, length - 1) * strides[axis], offset)
  const there = Math.floor(bytes.length / width)
  if (size > 0 && (last >= there || storage.size > there)) {
    complain(`"${name}" reaches number ${last} of a storage of ${there}`)
  }
  const all = read(bytes.slice(0, there * width))
  const order = new Int32Array(size)
  for (let index = 0; index < size; index++) {
    let rest = index
    let place = offset
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      place += (rest % shape[axis]) * strides[axis]
      rest = Math.floor(rest / shape[axis])
    }
    order[index] = place
  }
  const data = all.slice(0, size)
  for (let index = 0; index < size; index++) data[index] = all[order[index]]
  return { shape, data }
}

const attempt = <A>(read: () => A): A => {
  try {
    return read()
  } catch (error) {
    return error instanceof PickleError || error instanceof ZipError ? complain(error.message) : complain(String(error))
  }
}
