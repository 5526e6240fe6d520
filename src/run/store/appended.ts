import { Effect, Stream } from "effect"
import { sha256 } from "../../config/sha256.ts"
import type { FileTree } from "./FileTree.ts"
import type { RunStoreError } from "./RunStoreError.ts"
import { utf8 } from "../../config/utf8.ts"

/** How far the files that grow had come at some moment, by their paths: their sizes, and digests of so many bytes. */
export interface Appended {
  readonly sizes: Readonly<Record<string, number>>
  readonly digests: Readonly<Record<string, string>>
}

/** The beginning of a file, hashed. */
export interface Prefix {
  readonly size: number
  /** The digests of its whole blocks: where it goes on from when the file has grown. */
  readonly blocks: ReadonlyArray<string>
  readonly digest: string
}

const blockSize = 1 << 20
const nothing: Prefix = { size: 0, blocks: [], digest: "" }

/**
 * Hashes the first `size` bytes of a file: SHA-256 over the SHA-256 digests of its blocks of 1 MiB, in hex. By blocks, so
 * that the platform's own hash can be used, and what was hashed `before` need not be read again.
 */
export const hashPrefix = Effect.fnUntraced(function* (
  tree: Pick<FileTree, "stream">,
  file: string,
  size: number,
  before: Prefix = nothing,
): Effect.fn.Return<Prefix, RunStoreError> {
  const blocks = before.blocks.slice(0, Math.floor(size / blockSize))
  const offset = blocks.length * blockSize
  const block = new Uint8Array(Math.min(blockSize, size - offset))
  let filled = 0
  const take = Effect.fnUntraced(function* (part: Uint8Array): Effect.fn.Return<void> {
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
