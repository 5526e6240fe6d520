/// <reference path="./jsfive.d.ts" />
/**
 * Reads the bytes of HDF5 files, such as h5py writes them: groups, and datasets of numbers and booleans, whole or in chunks,
 * also compressed by gzip. It reads no file itself; `rl/learner/transitions/minari.ts` calls it.
 *
 * @example
 * ```ts
 * const lengths = Effect.gen(function* () {
 *   const file = yield* read(bytes)
 *   return (yield* file.numbers("table/lengths")).data
 * })
 * ```
 */
import { Effect } from "effect"
import type { Dataset as Leaf, Group as Inner } from "jsfive"
import type { Inflate } from "pako"
import { joined } from "../../text/bytes.ts"
import { messageOf } from "../../text/text.ts"
import { FormatError } from "../FormatError.ts"

/** An array of numbers with its shape; booleans are 0 and 1. */
interface NumberArray {
  readonly shape: ReadonlyArray<number>
  readonly data: Float64Array
}

/**
 * An HDF5 file in memory. A path is the names of the groups and of the dataset, joined by `/`; "" is the root of the
 * file.
 */
export interface Hdf5File {
  /** Returns the names of a group's children; undefined if there is no group at the path. */
  readonly namesIn: (path: string) => Effect.Effect<ReadonlyArray<string> | undefined, FormatError>
  /** Returns a dataset of numbers. */
  readonly numbers: (path: string) => Effect.Effect<NumberArray, FormatError>
}

type TreeNode = Inner | Leaf

/** Opens an HDF5 file. A dataset is decoded when `numbers` is called. */
export const read = Effect.fnUntraced(function* (bytes: Uint8Array): Effect.fn.Return<Hdf5File, FormatError> {
  // Loaded here so that programs that read no HDF5 file do not load the package.
  const [{ Dataset, File, Filters, Group }, { Inflate }] = yield* Effect.promise(() =>
    Promise.all([import("jsfive"), import("pako")]),
  )
  /** Calls the package, which may throw a text as well as an error. */
  const attempt = <A>(what: string, decode: () => A): Effect.Effect<A, FormatError> =>
    Effect.try({
      try: () => {
        reading.begin()
        return decode()
      },
      catch: (error) =>
        error instanceof FormatError ? error : new FormatError({ message: `${what}: ${messageOf(error)}` }),
    })
  const reading = new Hdf5Reading(bytes.length)
  const file = yield* attempt("not an HDF5 file", () => new File(countedCopy(bytes, reading), ""))

  const most = Math.max(alwaysAllowed, numbersPerByte * bytes.length)
  /** How many numbers each dataset had that was read so far. */
  const claimed = new Map<string, number>()

  /** Returns the group or dataset at a path; undefined if there is none. */
  const at = (path: string): TreeNode | undefined => {
    let node: TreeNode | null = file
    for (const name of path.split("/").filter((part) => part !== "")) {
      if (!(node instanceof Group) || !node.keys.includes(name)) return undefined
      node = node.get(name)
    }
    return node ?? undefined
  }
  return {
    namesIn: (path) =>
      attempt(path, () => {
        const node = at(path)
        return node instanceof Group ? node.keys : undefined
      }),
    numbers: (path) =>
      attempt(path, () => {
        const node = at(path)
        if (!(node instanceof Dataset)) throw new FormatError({ message: `${path}: expected a dataset, found none` })
        // The package would make an array of any shape, and unpack a chunk of any size, so that a small file could fill the memory.
        const chunk = node._dataobjects.chunks ?? node.shape.map(() => 0)
        const inChunk = countIn(chunk)
        const chunks = countIn(node.shape.map((size, axis) => (chunk[axis] > 0 ? Math.ceil(size / chunk[axis]) : 1)))
        claimed.set(path, countIn(node.shape))
        const all = Array.from(claimed.values()).reduce((sum, count) => sum + count, 0)
        for (const count of [inChunk, chunks * inChunk, all]) {
          if (!(count <= most)) {
            const problem = `it claims more than ${most} numbers, too many for a file of ${bytes.length} bytes`
            throw new FormatError({ message: `${path}: ${problem}` })
          }
        }
        refuseFalseShape(path, node, bytes)
        reading.begin(chunks)
        Filters.set(gzip, (chunk, itemSize) => inflated(new Inflate(), chunk, inChunk * itemSize + checksumBytes))
        const { shape, value } = node
        return { shape, data: Float64Array.from(value, (element) => numberOf(path, element)) }
      }),
  }
})

/**
 * Limits how much the package reads from a file. In an intact file, every node of the tree has bytes of its own. In a
 * damaged file a node can be its own child, or be listed a thousand times on each of a hundred levels, and the package
 * would read it again each time.
 */
class Hdf5Reading {
  private readonly length: number
  private places = 0
  private copied = 0
  private most = 0

  constructor(length: number) {
    this.length = length
  }

  /** Starts to count for one call; if it reads the values of a dataset, `chunks` is the number of its chunks. */
  begin(chunks?: number): void {
    this.places = 0
    this.copied = 0
    // The tree of chunks has no more inner nodes than leaves (chunks); any other node takes at least eight bytes of the
    // file.
    this.most = fewPlaces + (chunks === undefined ? this.length / 8 : placesOfChunk * chunks)
  }

  count(bytes: number): void {
    this.places++
    this.copied += bytes
    if (this.places > this.most || this.copied > copies * this.length + this.most * 8) {
      throw new FormatError({ message: "the HDF5 file is damaged: it uses the same places again and again" })
    }
  }
}

/** The number of reads that every file is allowed, in addition to those that its size allows. */
const fewPlaces = 1000
/** The number of reads per chunk: the chunk itself, its copies by a few filters, and its node in the tree. */
const placesOfChunk = 8
/** How many times the file's size the filters may copy. */
const copies = 8

/** Copies a file into a buffer that counts each part that is sliced from it, or from such a part. */
const countedCopy = (bytes: Uint8Array, reading: Hdf5Reading): ArrayBuffer => {
  class Counted extends ArrayBuffer {
    override slice(from?: number, to?: number): ArrayBuffer {
      const part = super.slice(from, to)
      reading.count(part.byteLength)
      return part
    }
  }
  const copy = new Counted(bytes.length)
  new Uint8Array(copy).set(bytes)
  return copy
}

/**
 * How many numbers the datasets that are read may have in total: per byte of the file, and a number that is always
 * allowed.
 */
const numbersPerByte = 100
const alwaysAllowed = 2 ** 23

const countIn = (shape: ReadonlyArray<number>): number => shape.reduce((product, size) => product * size, 1)

/** The number of the messages about the storage of a dataset, the version from which they have a size, and storage as a whole. */
const storageMessage = 8
const sizedVersion = 3
const whole = 1

/** Throws if a dataset that is stored as a whole has fewer bytes than its shape needs: the others would be those of other objects. */
const refuseFalseShape = (path: string, { shape, dtype, _dataobjects }: Leaf, bytes: Uint8Array): void => {
  const message = _dataobjects.find_msg_type(storageMessage).at(0)?.get("offset_to_message")
  const itemSize = typeof dtype === "string" ? Number(/\d+$/.exec(dtype)?.[0]) : NaN
  if (message === undefined || Number.isNaN(itemSize)) return
  const [version, , storage, address] = _dataobjects._get_data_message_properties(message)
  if (version < sizedVersion || storage !== whole) return
  const stored = Number(new DataView(bytes.buffer, bytes.byteOffset, bytes.length).getBigUint64(address + 8, true))
  const needed = countIn(shape) * itemSize
  if (needed <= stored) return
  const problem = `the shape [${shape.join(", ")}] needs ${needed} bytes, but the dataset has ${stored}`
  throw new FormatError({ message: `${path}: ${problem}` })
}

/** HDF5's number of the gzip filter. */
const gzip = 1

/** The number of bytes by which another filter, such as a checksum, may enlarge a chunk before compression. */
const checksumBytes = 4

/** Unpacks a chunk of at most `most` bytes; throws if it is larger. */
const inflated = (stream: Inflate, chunk: ArrayBuffer, most: number): ArrayBuffer => {
  const parts: Array<Uint8Array> = []
  let length = 0
  stream.onData = (part) => {
    length += part.length
    if (length > most) throw new Error(`a chunk has more than its ${most} bytes`)
    parts.push(part)
  }
  stream.push(new Uint8Array(chunk), true)
  if (stream.err !== 0) throw new Error(`a chunk is damaged: ${stream.msg}`)
  return joined(parts).buffer
}

const numberOf = (path: string, element: unknown): number => {
  if (typeof element === "number" || typeof element === "bigint") return Number(element)
  throw new FormatError({ message: `${path}: expected numbers or booleans, found ${typeof element}` })
}
