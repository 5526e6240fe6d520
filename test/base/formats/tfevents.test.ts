import { assert, describe, it } from "vitest"
import { ByteWriter } from "../../../src/base/formats/ByteWriter.ts"
import { crc32c, decode, intactBytes, writeHeader, writeScalars } from "../../../src/base/formats/tfevents.ts"

const written = (write: (to: ByteWriter) => void): Uint8Array => {
  const to = new ByteWriter()
  write(to)
  return to.written.slice()
}

const hex = (bytes: Uint8Array): string => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")

/** The checksum as its definition says, bit by bit: no table. */
const crcBitwise = (bytes: Uint8Array): number => {
  let crc = ~0
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
  }
  return ~crc >>> 0
}
const masked = (crc: number): number => Number((BigInt((crc >>> 15) | (crc << 17)) + 0xa282ead8n) & 0xffffffffn)

/** The payloads of a file, read by the format's text alone. */
const payloadsOf = (file: Uint8Array): ReadonlyArray<Uint8Array> => {
  const view = new DataView(file.buffer, file.byteOffset)
  const payloads: Array<Uint8Array> = []
  for (let at = 0; at < file.length;) {
    const length = view.getUint32(at, true)
    assert.strictEqual(view.getUint32(at + 4, true), 0)
    assert.strictEqual(view.getUint32(at + 8, true), masked(crcBitwise(file.subarray(at, at + 8))))
    const payload = file.subarray(at + 12, at + 12 + length)
    assert.strictEqual(view.getUint32(at + 12 + length, true), masked(crcBitwise(payload)))
    payloads.push(payload)
    at += 16 + length
  }
  return payloads
}

describe("CRC-32C", () => {
  it.each([
    ["123456789", 0xe3069283],
    ["", 0],
    ["\0".repeat(32), 0x8a9136aa],
  ])("of %j is that of the published examples", (text, crc) => {
    assert.strictEqual(crc32c(new TextEncoder().encode(text)), crc)
  })
})

describe("an event file", () => {
  it("begins with its version", () => {
    const bytes = written((to) => writeHeader(to, 0))
    assert.strictEqual(bytes.length, 24 + 16)
    // wall_time: field 1, a double; file_version: field 3, 13 characters.
    assert.strictEqual(
      hex(payloadsOf(bytes)[0]),
      `09${"00".repeat(8)}1a0d${hex(new TextEncoder().encode("brain.Event:2"))}`,
    )
    // The length 24 and its masked checksum, as every such file has them.
    assert.strictEqual(hex(bytes.subarray(0, 8)), "1800000000000000")
    assert.strictEqual(hex(bytes.subarray(8, 12)), "a37f4b22")
  })

  it("holds several scalars in one event", () => {
    const bytes = written((to) => writeScalars(to, 1.5, 300, { a: 1, bc: -2 }))
    const value = (name: string, number: string) => {
      const field = `0a${(name.length / 2).toString(16).padStart(2, "0")}${name}15${number}`
      return `0a${(field.length / 2).toString(16).padStart(2, "0")}${field}`
    }
    const summary = value("61", "0000803f") + value("6263", "000000c0")
    assert.strictEqual(
      hex(payloadsOf(bytes)[0]),
      `09000000000000f83f10ac022a${(summary.length / 2).toString(16).padStart(2, "0")}${summary}`,
    )
  })

  it("takes tags and events longer than a byte can count", () => {
    const tags = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`${"long/".repeat(40)}${index}`, index]))
    const bytes = written((to) => writeScalars(to, 1e9, 2 ** 40, tags))
    assert.strictEqual(payloadsOf(bytes).length, 1)
    assert.deepEqual(decode(bytes), {
      events: [{ wallSeconds: 1e9, step: 2 ** 40, scalars: tags }],
      intactBytes: bytes.length,
    })
  })

  const file = written((to) => {
    writeHeader(to, 1)
    writeScalars(to, 2, 128, { "losses/entropy": 0.5 })
    writeScalars(to, 3, 256, { "losses/entropy": NaN })
  })

  it("is read back", () => {
    assert.deepEqual(decode(file).events, [
      { wallSeconds: 1, step: 0, fileVersion: "brain.Event:2", scalars: {} },
      { wallSeconds: 2, step: 128, scalars: { "losses/entropy": 0.5 } },
      { wallSeconds: 3, step: 256, scalars: { "losses/entropy": NaN } },
    ])
  })

  it("is read up to the record in which it was cut off", () => {
    const ends = [0, 1, 2, 3].map(sizeOf)
    for (let size = 0; size <= file.length; size++) {
      const { events, intactBytes } = decode(file.subarray(0, size))
      assert.strictEqual(intactBytes, Math.max(...ends.filter((end) => end <= size)))
      assert.strictEqual(events.length, ends.filter((end) => end <= size).length - 1)
    }
  })

  it("can be cut back to a step", () => {
    for (const [step, count] of [
      [0, 1],
      [127, 1],
      [128, 2],
      [256, 3],
    ] as const)
      assert.strictEqual(intactBytes(file, step), sizeOf(count))
  })

  const sizeOf = (count: number): number =>
    payloadsOf(file)
      .slice(0, count)
      .reduce((size, payload) => size + payload.length + 16, 0)

  it("is read up to a record that is damaged", () => {
    for (let at = sizeOf(1); at < sizeOf(2); at++) {
      const damaged = file.slice()
      damaged[at] ^= 16
      assert.strictEqual(decode(damaged).events.length, 1, `byte ${at}`)
    }
  })
})
