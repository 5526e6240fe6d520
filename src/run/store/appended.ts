/** Hashes the growing files of a run as they grow, so that a resume can detect changed files. */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { sha256, Sha256 } from "../../base/text/sha256.ts"
import type { FileTree } from "./FileTree.ts"
import { utf8 } from "../../base/text/utf8.ts"

/** The sizes of a run's growing files at some moment, and the digests of their content then, both by path. */
export const Appended = Schema.Struct({
  sizes: Schema.Record(Schema.String, Schema.Int),
  digests: Schema.Record(Schema.String, Schema.String),
})
export type Appended = typeof Appended.Type

/** The hash of the first bytes of a file, which can be continued when the file grows. */
export interface Prefix {
  readonly size: number
  /** The digests of the complete blocks. */
  readonly blocks: ReadonlyArray<string>
  /** The hash of the bytes after the complete blocks. */
  readonly rest: Sha256
  readonly digest: string
}

const blockSize = 1 << 20
const nothing: Pick<Prefix, "size" | "blocks" | "rest"> = { size: 0, blocks: [], rest: new Sha256() }

/**
 * Hashes the first `size` bytes of a file: the SHA-256, in hex, of the SHA-256 digests of its blocks of 1 MiB. If `before` is
 * an earlier hash of the file, only the bytes after it are read; if it covers more than `size` bytes, those after its last
 * complete block within them.
 */
export const hashPrefix = Effect.fnUntraced(function* (
  tree: Pick<FileTree, "stream">,
  file: string,
  size: number,
  before?: Prefix,
) {
  const known = before === undefined ? nothing : within(before, size)
  const blocks = [...known.blocks]
  let rest = new Sha256(known.rest)
  const take = (part: Uint8Array): void => {
    for (let at = 0; at < part.length;) {
      const piece = part.subarray(at, at + blockSize - rest.size)
      rest.update(piece)
      at += piece.length
      if (rest.size < blockSize) continue
      blocks.push(rest.hex())
      rest = new Sha256()
    }
  }
  const part = { offset: known.size, bytes: size - known.size }
  if (part.bytes > 0) yield* Stream.runForEach(tree.stream(file, part), (bytes) => Effect.sync(() => take(bytes)))
  const digests = [...blocks, new Sha256(rest).hex()].join("")
  return { size, blocks, rest, digest: yield* sha256(utf8.encode(digests)) }
})

/** Returns a hash that covers at most the first `size` bytes: the same, or its complete blocks within them. */
const within = (before: Prefix, size: number): typeof nothing => {
  if (before.size <= size) return before
  const blocks = before.blocks.slice(0, Math.floor(size / blockSize))
  return { size: blocks.length * blockSize, blocks, rest: new Sha256() }
}
