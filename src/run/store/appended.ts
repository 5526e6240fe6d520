/** Hashes the growing files of a run block by block, so that a resume can detect changed files. */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { sha256 } from "../../base/config/sha256.ts"
import type { FileTree } from "./FileTree.ts"
import { utf8 } from "../../base/config/utf8.ts"

/** The sizes of a run's growing files at some moment, and the digests of their content then, both by path. */
export const Appended = Schema.Struct({
  sizes: Schema.Record(Schema.String, Schema.Int),
  digests: Schema.Record(Schema.String, Schema.String),
})
export type Appended = typeof Appended.Type

/** The hash of the first bytes of a file, which can be continued when the file grows. */
export interface Prefix {
  readonly size: number
  /** The digests of the complete blocks. These blocks are not read again when the file has grown. */
  readonly blocks: ReadonlyArray<string>
  readonly digest: string
}

const blockSize = 1 << 20
const nothing: Prefix = { size: 0, blocks: [], digest: "" }

/**
 * Hashes the first `size` bytes of a file: the SHA-256, in hex, of the SHA-256 digests of its blocks of 1 MiB. It works in
 * blocks because the platform's fast hash needs whole arrays. If `before` is an earlier hash of the file, its complete blocks
 * are not read again.
 */
export const hashPrefix = Effect.fnUntraced(function* (
  tree: Pick<FileTree, "stream">,
  file: string,
  size: number,
  before: Prefix = nothing,
) {
  const blocks = before.blocks.slice(0, Math.floor(size / blockSize))
  const offset = blocks.length * blockSize
  const block = new Uint8Array(Math.min(blockSize, size - offset))
  let filled = 0
  const take = Effect.fnUntraced(function* (part: Uint8Array) {
    for (let at = 0; at < part.length;) {
      const piece = part.subarray(at, at + block.length - filled)
      block.set(piece, filled)
      filled += piece.length
      at += piece.length
      if (filled < blockSize) continue
      blocks.push(yield* sha256(block))
      filled = 0
    }
  })
  if (size > offset) yield* Stream.runForEach(tree.stream(file, { offset, bytes: size - offset }), take)
  const rest = yield* sha256(block.subarray(0, filled))
  return { size, blocks, digest: yield* sha256(utf8.encode([...blocks, rest].join(""))) }
})
