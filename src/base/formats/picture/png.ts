/**
 * Reads PNG files, such as programs of other languages render, and writes pictures as PNG files. It reads all kinds of
 * pixels but no interlaced files.
 */
import { Effect } from "effect"
import { FormatError } from "../FormatError.ts"
import { joined } from "../../text/bytes.ts"
import { crc32 } from "../crc.ts"
import { pack, unpack } from "../gzip.ts"
import { mostPixels, type Picture } from "./Picture.ts"

const signature = [137, 80, 78, 71, 13, 10, 26, 10]

/** The number of values of a pixel by the file's kind of colours: grey, RGB, palette, grey with opacity, RGBA. */
const channelsOf: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }

const failed = (problem: string): FormatError => new FormatError({ message: `PNG: ${problem}` })

/** Returns the picture in a PNG file. */
export const decodePng = Effect.fnUntraced(function* (bytes: Uint8Array): Effect.fn.Return<Picture, FormatError> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bytes.length < 33 || signature.some((byte, at) => bytes[at] !== byte)) {
    return yield* failed("expected a PNG file, found other bytes")
  }
  const [width, height] = [view.getUint32(16), view.getUint32(20)]
  const [depth, kind, interlaced] = [bytes[24], bytes[25], bytes[28]]
  const channels = channelsOf[kind]
  if (channels === undefined || ![1, 2, 4, 8, 16].includes(depth)) {
    return yield* failed(`expected a known kind of colours, found kind ${kind} with ${depth} bits`)
  }
  if (interlaced !== 0) return yield* failed("expected rows in their order, found an interlaced file")
  if (width * height > mostPixels || width === 0 || height === 0) {
    return yield* failed(`expected 1 to ${mostPixels} pixels, found ${width} × ${height}`)
  }
  const data: Array<Uint8Array> = []
  let [palette, opacity] = [new Uint8Array(0), new Uint8Array(0)]
  for (let at = 8; at + 12 <= bytes.length;) {
    const length = view.getUint32(at)
    const name = String.fromCharCode(...bytes.subarray(at + 4, at + 8))
    const content = bytes.slice(at + 8, at + 8 + length)
    if (name === "IDAT") data.push(content)
    if (name === "PLTE") palette = content
    if (name === "tRNS") opacity = content
    at += 12 + length
  }
  const rowBytes = Math.ceil((width * channels * depth) / 8)
  const size = height * (rowBytes + 1)
  const raw = yield* Effect.mapError(unpack(joined(data), "deflate", size), () => failed("its pixels are damaged"))
  if (raw.length < size) return yield* failed("its pixels are cut off")
  if (raw.length > size) return yield* failed(`it has more pixels than its size, ${width} × ${height}, says`)
  const step = Math.max(1, (channels * depth) >> 3)
  const rgba = new Uint8ClampedArray(4 * width * height)
  let before: Uint8Array = new Uint8Array(rowBytes)
  for (let row = 0; row < height; row++) {
    const start = row * (rowBytes + 1)
    const line = raw.subarray(start + 1, start + 1 + rowBytes)
    unfilter(line, before, raw[start], step)
    for (let column = 0; column < width; column++) {
      const to = 4 * (row * width + column)
      /** Returns a channel's value of the pixel, unscaled. */
      const value = (channel: number): number => {
        const at = column * channels + channel
        if (depth === 16) return line[2 * at]
        if (depth === 8) return line[at]
        const perByte = 8 / depth
        return (line[Math.floor(at / perByte)] >> (8 - depth * ((at % perByte) + 1))) & ((1 << depth) - 1)
      }
      if (kind === 3) {
        const index = value(0)
        for (let channel = 0; channel < 3; channel++) rgba[to + channel] = palette[3 * index + channel]
        rgba[to + 3] = opacity[index] ?? 255
        continue
      }
      const scale = depth < 8 ? 255 / ((1 << depth) - 1) : 1
      for (let channel = 0; channel < 3; channel++) rgba[to + channel] = value(channels < 3 ? 0 : channel) * scale
      rgba[to + 3] = channels % 2 === 0 ? value(channels - 1) : 255
    }
    before = line
  }
  return { width, height, rgba }
})

/** Computes the bytes of a row from the differences that the file has: to the left, the row above, or both. */
const unfilter = (line: Uint8Array, above: Uint8Array, filter: number, step: number): void => {
  for (let at = 0; at < line.length; at++) {
    const left = at < step ? 0 : line[at - step]
    const up = above[at]
    if (filter === 1) line[at] += left
    else if (filter === 2) line[at] += up
    else if (filter === 3) line[at] += (left + up) >> 1
    else if (filter === 4) {
      const corner = at < step ? 0 : above[at - step]
      const guess = left + up - corner
      const [toLeft, toUp, toCorner] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)]
      line[at] += toLeft <= toUp && toLeft <= toCorner ? left : toUp <= toCorner ? up : corner
    }
  }
}

/** Returns the bytes of a PNG file with a picture, whose pixels keep their opacity. */
export const encodePng = Effect.fnUntraced(function* ({ width, height, rgba }: Picture) {
  const rowBytes = 4 * width
  // Each row begins with the number of its filter, which is 0 for none.
  const rows = new Uint8Array(height * (rowBytes + 1))
  for (let row = 0; row < height; row++) {
    rows.set(rgba.subarray(row * rowBytes, (row + 1) * rowBytes), row * (rowBytes + 1) + 1)
  }
  const header = new Uint8Array(13)
  const view = new DataView(header.buffer)
  view.setUint32(0, width)
  view.setUint32(4, height)
  header.set([8, 6], 8)
  return joined([
    Uint8Array.from(signature),
    chunkOf("IHDR", header),
    chunkOf("IDAT", yield* pack(rows, "deflate")),
    chunkOf("IEND", new Uint8Array(0)),
  ])
})

const chunkOf = (name: string, content: Uint8Array): Uint8Array => {
  const chunk = new Uint8Array(content.length + 12)
  const view = new DataView(chunk.buffer)
  view.setUint32(0, content.length)
  for (let at = 0; at < 4; at++) chunk[4 + at] = name.charCodeAt(at)
  chunk.set(content, 8)
  view.setUint32(content.length + 8, crc32(chunk, 4, content.length + 8))
  return chunk
}
