/**
 * Writes logs of records as Weights & Biases has them in `.wandb` files: the log format of LevelDB after seven bytes that
 * name the format, with the checksum of zlib. The log is a list of blocks of 32 KiB. A record that does not fit into the
 * rest of a block is divided into chunks; each has its checksum (four bytes), its length (two) and its kind (one) before it.
 * https://github.com/google/leveldb/blob/main/doc/log_format.md
 *
 * @example
 * ```ts
 * const log = new ByteWriter()
 * writeLogHeader(log)
 * writeLogRecord(log, Uint8Array.of(8, 1))
 * log.written // 3a 57 26 42 e1 be 00, then the record
 * ```
 */
import type { ByteWriter } from "./ByteWriter.ts"
import { crc32 } from "./crc.ts"

const blockBytes = 32 * 1024
/** The number of bytes before the contents of a chunk. */
const chunkHeader = 7
const kinds = { whole: 1, first: 2, middle: 3, last: 4 }

/** Writes the beginning of a log: the letters `:W&B`, the number 0xbee1 and the version 0. They are a part of the first block. */
export const writeLogHeader = (to: ByteWriter): void => {
  to.text(":W&B")
  for (const byte of [0xe1, 0xbe, 0]) to.byte(byte)
}

/** Appends a record to a log that begins at the start of the writer's buffer. */
export const writeLogRecord = (to: ByteWriter, record: Uint8Array): void => {
  let at = 0
  for (let isFirst = true; isFirst || at < record.length; isFirst = false) {
    const rest = blockBytes - (to.length % blockBytes)
    // The end of a block that has no room for a chunk is filled with zeros.
    if (rest < chunkHeader) for (let byte = 0; byte < rest; byte++) to.byte(0)
    const room = (rest < chunkHeader ? blockBytes : rest) - chunkHeader
    const size = Math.min(record.length - at, room)
    const isLast = at + size === record.length
    const start = to.length
    to.uint32(0)
    to.byte(size & 255)
    to.byte(size >> 8)
    if (isFirst) to.byte(isLast ? kinds.whole : kinds.first)
    else to.byte(isLast ? kinds.last : kinds.middle)
    to.piece(record.subarray(at, at + size))
    to.setUint32(start, crc32(to.bytes, start + 6, to.length))
    at += size
  }
}
