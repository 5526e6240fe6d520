import { Effect } from "effect"
import { joined } from "../../config/bytes.ts"
import { deflate } from "../gzip.ts"
import type { Picture } from "./Picture.ts"
import { type Pixels, pixelsOf } from "./raster.ts"

/** For screens on which two pixels are where there was one. */
const scale = 2

/** A picture as a PNG file. */
export const pngOf = (picture: Picture): Effect.Effect<Uint8Array> =>
  Effect.suspend(() => encodePng(pixelsOf(picture, scale), scale * 96))

/** Pixels as a PNG file. */
export const encodePng = ({ wide, high, bytes }: Pixels, dotsPerInch: number): Effect.Effect<Uint8Array> => {
  const row = wide * 3
  // Each row begins with how it is written: 0, as it is.
  const rows = new Uint8Array((row + 1) * high)
  for (let y = 0; y < high; y++) rows.set(bytes.subarray(y * row, (y + 1) * row), y * (row + 1) + 1)
  const dotsPerMetre = Math.round(dotsPerInch / 0.0254)
  return Effect.map(deflate(rows), (packed) =>
    joined([
      Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a),
      // Eight bits for each of three colours; the rest is as it always is.
      chunk("IHDR", Uint8Array.of(...u32(wide), ...u32(high), 8, 2, 0, 0, 0)),
      chunk("pHYs", Uint8Array.of(...u32(dotsPerMetre), ...u32(dotsPerMetre), 1)),
      chunk("IDAT", packed),
      chunk("IEND", new Uint8Array(0)),
    ]),
  )
}

const u32 = (value: number): ReadonlyArray<number> => [
  value >>> 24,
  (value >>> 16) & 255,
  (value >>> 8) & 255,
  value & 255,
]

const chunk = (name: string, data: Uint8Array): Uint8Array => {
  const named = joined([new TextEncoder().encode(name), data])
  return joined([Uint8Array.of(...u32(data.length)), named, Uint8Array.of(...u32(crc32(named)))])
}

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? 0xedb88320 ^ (rest >>> 1) : rest >>> 1
  return rest
})

/** The checksum of PNG and zip. */
const crc32 = (bytes: Uint8Array): number => {
  let sum = 0xffffffff
  for (const byte of bytes) sum = table[(sum ^ byte) & 255] ^ (sum >>> 8)
  return (sum ^ 0xffffffff) >>> 0
}
