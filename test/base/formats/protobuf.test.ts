import { assert, describe, it } from "@effect/vitest"
import { ProtobufMessage } from "../../../src/base/formats/protobuf.ts"

const bytes = (message: ProtobufMessage): ReadonlyArray<number> => [...message.finish()]

describe("protobuf", () => {
  it("writes integers as varints, seven bits in each byte, lowest first", () => {
    assert.deepStrictEqual(bytes(new ProtobufMessage().int(1, 0)), [0x08, 0x00])
    assert.deepStrictEqual(bytes(new ProtobufMessage().int(1, 150)), [0x08, 0x96, 0x01])
    assert.deepStrictEqual(bytes(new ProtobufMessage().int(2, 2 ** 40)), [0x10, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20])
  })

  it("writes negative numbers in two's complement of 64 bits", () => {
    assert.deepStrictEqual(bytes(new ProtobufMessage().int(1, -1)), [0x08, ...new Array<number>(9).fill(0xff), 0x01])
  })

  it("writes fields above 15 with two bytes", () => {
    assert.deepStrictEqual(bytes(new ProtobufMessage().int(20, 2)), [0xa0, 0x01, 0x02])
  })

  it("writes text, bytes and messages after their length", () => {
    assert.deepStrictEqual(bytes(new ProtobufMessage().text(2, "tést")), [0x12, 0x05, 0x74, 0xc3, 0xa9, 0x73, 0x74])
    assert.deepStrictEqual(bytes(new ProtobufMessage().bytes(3, Uint8Array.of(7, 8))), [0x1a, 0x02, 0x07, 0x08])
    assert.deepStrictEqual(
      bytes(new ProtobufMessage().message(1, new ProtobufMessage().int(1, 1))),
      [0x0a, 0x02, 0x08, 0x01],
    )
    assert.deepStrictEqual(bytes(new ProtobufMessage().message(1, new ProtobufMessage())), [0x0a, 0x00])
  })

  it("writes floats in four bytes, little-endian", () => {
    assert.deepStrictEqual(bytes(new ProtobufMessage().float(2, 1.5)), [0x15, 0x00, 0x00, 0xc0, 0x3f])
  })
})
