/**
 * Encodes a tree of groups, datasets and attributes as the bytes of an HDF5 file. Equal trees give equal bytes. It writes no
 * file itself; `rl/export/rltools.ts` and `rl/learner/transitions/minari.ts` call it. `read.ts` reads such files.
 *
 * @example
 * ```ts
 * encode({ attributes: { unit: "m" }, children: { lengths: { shape: [2], data: Float32Array.of(1, 2) } } })
 * ```
 */
import {
  attribute,
  attributeInfo,
  datasetMessages,
  groupMessages,
  heapCollection,
  link,
  longestMessage,
  type HeaderMessage,
  type DatasetNumbers,
  objectHeader,
  superblock,
  superblockSize,
  type TextPlace,
} from "./encoding.ts"
import { utf8 } from "../../text/utf8.ts"
import { FormatError } from "../FormatError.ts"

const refuse = (message: string): never => {
  throw new FormatError({ message })
}

/** Attributes by name: texts, or whole numbers from 0. */
export type Hdf5Attributes = Readonly<Record<string, string | number>>

/** A group: it holds groups and datasets by name, as a folder holds folders and files. */
export interface Hdf5Group {
  readonly attributes?: Hdf5Attributes | undefined
  readonly children: Readonly<Record<string, Hdf5Node>>
}

/** An array of numbers with its shape; the shape of a single number is `[]`. A Uint8Array holds booleans, each 0 or 1. */
export interface Hdf5Dataset {
  readonly attributes?: Hdf5Attributes | undefined
  readonly shape: ReadonlyArray<number>
  readonly data: DatasetNumbers
}

export type Hdf5Node = Hdf5Group | Hdf5Dataset

/** The number of texts that we put into one heap collection (HDF5's storage for texts); HDF5 allows 65535. */
const textsPerCollection = 4096
const mostDimensions = 32

/** A node of the tree in which texts of attributes are replaced by indices into a list of the file's texts. */
interface PlannedNode {
  readonly path: string
  readonly attributes: ReadonlyArray<{ readonly name: string; readonly value: number | { readonly text: number } }>
  readonly content: Hdf5Dataset | ReadonlyArray<{ readonly name: string; readonly node: PlannedNode }>
}

/** Returns the bytes of an HDF5 file. Throws a `FormatError` if a name, a text or a shape cannot be written. */
export const encode = (root: Hdf5Group): Uint8Array => {
  const texts: Array<Uint8Array> = []
  const plan = planned(root, "/", texts)
  const file = appender(superblockSize)
  const places = writeTexts(texts, file.append)
  const address = writeNode(plan, places, file.append)
  return file.finish((end) => superblock(end, address))
}

/** Appends bytes to the file and returns their address. */
type AppendBytes = (data: Uint8Array) => number

/**
 * Collects the parts of the file: `append` adds a part, aligned to eight bytes, after the first `start` bytes, and
 * `finish` returns the file. `head` makes the first bytes at the end, because they hold the size of the file.
 */
const appender = (start: number) => {
  const parts: Array<{ readonly at: number; readonly data: Uint8Array }> = []
  let end = start
  const append: AppendBytes = (data) => {
    const at = end
    parts.push({ at, data })
    end += data.length + (-data.length & 7) // rounds up to a multiple of eight
    return at
  }
  const finish = (head: (end: number) => Uint8Array): Uint8Array => {
    const bytes = new Uint8Array(end)
    bytes.set(head(end), 0)
    for (const { at, data } of parts) bytes.set(data, at)
    return bytes
  }
  return { append, finish }
}

/** Checks a node and all nodes below it, adds the values of their attributes to `texts`, and returns the plan. */
const planned = (node: Hdf5Node, path: string, texts: Array<Uint8Array>): PlannedNode => {
  const attributes = Object.entries(node.attributes ?? {}).map(([name, value]) => {
    if (name === "") refuse(`${path}: an attribute has an empty name; expected a name`)
    checkText(`${path}: the name of the attribute "${name}"`, name)
    if (typeof value === "number") {
      if (Number.isSafeInteger(value) && value >= 0) return { name, value }
      return refuse(`${path}: the attribute "${name}" is ${value}; expected text or a whole number from 0`)
    }
    checkText(`${path}: the value of the attribute "${name}"`, value)
    return { name, value: { text: texts.push(utf8.encode(value)) - 1 } }
  })
  if ("data" in node) {
    checkShape(path, node)
    return { path, attributes, content: node }
  }
  const content = Object.entries(node.children).map(([name, child]) => {
    if (name === "" || name === "." || name.includes("/")) {
      refuse(`${path}: found a child named "${name}"; expected a name other than "" and ".", without "/"`)
    }
    checkText(`${path}: the name "${name}"`, name)
    return { name, node: planned(child, path === "/" ? `/${name}` : `${path}/${name}`, texts) }
  })
  return { path, attributes, content }
}

/** Throws if a text cannot be written: HDF5 ends a text at its first zero byte, and UTF-8 has no lone surrogates. */
const checkText = (where: string, value: string): void => {
  if (value.includes("\0") || !value.isWellFormed()) {
    refuse(`${where} has a zero character or half of a surrogate pair; expected text that UTF-8 can hold`)
  }
}

const checkShape = (path: string, { shape, data }: Hdf5Dataset): void => {
  const fits = shape.length <= mostDimensions && shape.every((size) => Number.isSafeInteger(size) && size >= 0)
  if (!fits) {
    refuse(`${path}: expected a shape of at most ${mostDimensions} whole numbers from 0, found [${shape.join(", ")}]`)
  }
  const needed = shape.reduce((product, size) => product * size, 1)
  if (needed !== data.length) {
    refuse(`${path}: expected ${needed} numbers for the shape [${shape.join(", ")}], found ${data.length}`)
  }
}

/** The position that stands for an empty text: like HDF5's own library, we do not store empty texts. */
const noPlace: TextPlace = { length: 0, collection: 0, index: 0 }

const writeTexts = (texts: ReadonlyArray<Uint8Array>, append: AppendBytes): ReadonlyArray<TextPlace> => {
  const places = texts.map(() => noPlace)
  const nonEmpty = texts.map((data, text) => ({ data, text })).filter(({ data }) => data.length > 0)
  for (let start = 0; start < nonEmpty.length; start += textsPerCollection) {
    const stored = nonEmpty.slice(start, start + textsPerCollection)
    const collection = append(heapCollection(stored.map(({ data }) => data)))
    for (const [index, { data, text }] of stored.entries()) {
      places[text] = { length: data.length, collection, index: index + 1 }
    }
  }
  return places
}

/** Appends a node and returns its address. Its header comes last, because it holds the addresses of its contents. */
const writeNode = (node: PlannedNode, places: ReadonlyArray<TextPlace>, append: AppendBytes): number => {
  const attributes = node.attributes.map(({ name, value }) =>
    attribute(name, typeof value === "number" ? value : places[value.text]),
  )
  const info = attributes.length === 0 ? [] : [attributeInfo]
  const messages = [...contentOf(node, places, append), ...info, ...attributes]
  if (messages.some(({ data }) => data.length > longestMessage)) {
    refuse(`${node.path}: a name in it is too long; expected less than ${longestMessage} bytes`)
  }
  return append(objectHeader(messages))
}

const contentOf = (
  { content }: PlannedNode,
  places: ReadonlyArray<TextPlace>,
  append: AppendBytes,
): ReadonlyArray<HeaderMessage> => {
  if (!("data" in content)) {
    return [...groupMessages, ...content.map(({ name, node }) => link(name, writeNode(node, places, append)))]
  }
  const { shape, data } = content
  const size = data.byteLength
  const address = size === 0 ? 0 : append(new Uint8Array(data.buffer, data.byteOffset, size))
  return datasetMessages(shape, data, { address, size })
}
