import { assert, describe, it } from "vitest"
import { decodeGradients, encodeGradients } from "../../../src/trainer/trainer/gradientMessage.ts"

const gradients = [
  { index: 0, gradient: Float32Array.of(1, -0.5, NaN), loss: 0.1, sums: { tokens: 7, "losses/entropy": 0.3 } },
  { index: 12, gradient: Float32Array.of(Infinity, 1e-40), loss: NaN, sums: { tokens: 2 } },
]

describe("gradients in a message", () => {
  it("are unchanged, wherever the message begins in its buffer", () => {
    const message = encodeGradients(gradients)
    for (const start of [0, 1, 4, 8]) {
      const buffer = new Uint8Array(message.length + start)
      buffer.set(message, start)
      assert.deepStrictEqual(decodeGradients(buffer.subarray(start)), gradients)
    }
  })

  it("may be none", () => {
    assert.deepStrictEqual(decodeGradients(encodeGradients([])), [])
  })
})
