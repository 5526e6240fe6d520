import { complain } from "./ExportError.ts"
import {
  attribute,
  attributeInfo,
  datasetMessages,
  groupMessages,
  heapCollection,
  link,
  longestMessage,
  type Message,
  objectHeader,
  superblock,
  superblockSize,
  type TextPlace,
} from "../formats/hdf5/encoding.ts"

export type Attributes = Readonly<Record<string, string>>

/** A folder of an HDF5 file. */
export interface Group {
  readonly attributes?: Attributes | undefined
  readonly children: Readonly<Record<string, Node>>
}

/** Numbers with a shape: [] is one number alone. */
export interface Dataset {
  readonly attributes?: Attributes | undefined
  readonly shape: ReadonlyArray<number>
  readonly data: Float32Array
}

export type Node = Group | Dataset

/** A collection numbers its texts by 16 bits; this many are written before the next one begins. */
const textsOfCollection = 4096
const mostDimensions = 32

/** A node whose attributes' values have their numbers among all texts of the file. */
interface Planned {
  readonly path: string
  readonly attributes: ReadonlyArray<{ readonly name: string; readonly text: number }>
  readonly content:
    | { readonly kind: "dataset"; readonly dataset: Dataset }
    | { readonly kind: "group"; readonly children: ReadonlyArray<{ readonly name: string; readonly node: Planned }> }
}

/**
 * A tree as the bytes of an HDF5 file. Equal trees give equal bytes. Throws an ExportError where a name, a text or a
 * shape cannot be.
 */
export const encode = (root: Group): Uint8Array => {
  const texts: Array<Uint8Array> = []
  const plan = planned(root, "/", texts)
  const file = appender(superblockSize)
  const places = writeTexts(texts, file.append)
  const address = writeNode(plan, places, file.append)
  return file.finish((end) => superblock(end, address))
}

type Append = (data: Uint8Array) => number

/** What is appended begins at a multiple of eight bytes; the start is written last, when all else is known. */
const appender = (start: number) => {
  const parts: Array<{ readonly at: number; readonly data: Uint8Array }> = []
  let end = start
  const append: Append = (data) => {
    const at = end
    parts.push({ at, data })
    end += data.length + (-data.length & 7)
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

const planned = (node: Node, path: string, texts: Array<Uint8Array>): Planned => {
  const attributes = Object.entries(node.attributes ?? {}).map(([name, value]) => {
    const what = `${path}: the attribute "${name}"`
    if (name === "") complain(`${path}: an attribute needs a name`)
    checkText(`${what}'s name`, name)
    checkText(what, value)
    return { name, text: texts.push(new TextEncoder().encode(value)) - 1 }
  })
  if ("data" in node) {
    checkShape(path, node)
    return { path, attributes, content: { kind: "dataset", dataset: node } }
  }
  const children = Object.entries(node.children).map(([name, child]) => {
    if (name === "" || name === "." || name.includes("/")) complain(`${path}: nothing can be named "${name}"`)
    checkText(`${path}: the name "${name}"`, name)
    return { name, node: planned(child, path === "/" ? `/${name}` : `${path}/${name}`, texts) }
  })
  return { path, attributes, content: { kind: "group", children } }
}

/** Texts end at their first zero, and a half of a pair is no character. */
const checkText = (what: string, value: string): void => {
  if (value.includes("\0") || !value.isWellFormed()) complain(`${what} cannot be written as text`)
}

const checkShape = (path: string, { shape, data }: Dataset): void => {
  const fits = shape.length <= mostDimensions && shape.every((size) => Number.isSafeInteger(size) && size >= 0)
  if (!fits) complain(`${path}: [${shape.join(", ")}] is no shape`)
  const needed = shape.reduce((product, size) => product * size, 1)
  if (needed !== data.length)
    complain(`${path} has ${data.length} numbers, its shape [${shape.join(", ")}] needs ${needed}`)
}

/** An empty text is in no heap, as HDF5's own library has it. */
const noPlace: TextPlace = { length: 0, collection: 0, index: 0 }

const writeTexts = (texts: ReadonlyArray<Uint8Array>, append: Append): ReadonlyArray<TextPlace> => {
  const places = texts.map(() => noPlace)
  const kept = texts.map((data, text) => ({ data, text })).filter(({ data }) => data.length > 0)
  for (let start = 0; start < kept.length; start += textsOfCollection) {
    const some = kept.slice(start, start + textsOfCollection)
    const collection = append(heapCollection(some.map(({ data }) => data)))
    for (const [index, { data, text }] of some.entries()) {
      places[text] = { length: data.length, collection, index: index + 1 }
    }
  }
  return places
}

/** What a node holds comes before it: its header needs to know where. */
const writeNode = (node: Planned, places: ReadonlyArray<TextPlace>, append: Append): number => {
  const attributes = node.attributes.map(({ name, text }) => attribute(name, places[text]))
  const info = attributes.length === 0 ? [] : [attributeInfo]
  const messages = [...contentOf(node, places, append), ...info, ...attributes]
  if (messages.some(({ data }) => data.length > longestMessage)) complain(`${node.path}: a name in it is too long`)
  return append(objectHeader(messages))
}

const contentOf = ({ content }: Planned, places: ReadonlyArray<TextPlace>, append: Append): ReadonlyArray<Message> => {
  if (content.kind === "group") {
    return [...groupMessages, ...content.children.map(({ name, node }) => link(name, writeNode(node, places, append)))]
  }
  const { shape, data } = content.dataset
  const size = data.byteLength
  const address = size === 0 ? 0 : append(new Uint8Array(data.buffer, data.byteOffset, size))
  return datasetMessages(shape, { address, size })
}
