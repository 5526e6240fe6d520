import { assert, describe, it } from "@effect/vitest"
import { type WasmCode, flatten, ModuleBuilder, signed, signed64, unsigned } from "../../../src/tensor/wasm/encode.ts"
import { i32 } from "../../../src/tensor/wasm/instructions.ts"

const bytes = (code: WasmCode): ReadonlyArray<number> => [...flatten(code)]

describe("encode", () => {
  it("writes integers as LEB128", () => {
    assert.deepStrictEqual(bytes(unsigned(0)), [0])
    assert.deepStrictEqual(bytes(unsigned(127)), [127])
    assert.deepStrictEqual(bytes(unsigned(624485)), [0xe5, 0x8e, 0x26])
    assert.deepStrictEqual(bytes(unsigned(2 ** 32 - 1)), [0xff, 0xff, 0xff, 0xff, 0x0f])
    assert.deepStrictEqual(bytes(signed(63)), [63])
    assert.deepStrictEqual(bytes(signed(64)), [0xc0, 0x00])
    assert.deepStrictEqual(bytes(signed(-64)), [0x40])
    assert.deepStrictEqual(bytes(signed(-123456)), [0xc0, 0xbb, 0x78])
    assert.deepStrictEqual(bytes(signed64(-1n)), [0x7f])
    assert.deepStrictEqual(bytes(signed64(2n ** 62n)), [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0xc0, 0x00])
  })

  it("stores equal functions with parameters once", () => {
    const module = new ModuleBuilder()
    const type = { params: ["i32"], results: ["i32"] } as const
    const one = module.define(type, [], i32.const(1).code)
    assert.strictEqual(module.define(type, [], i32.const(1).code), one)
    assert.notStrictEqual(module.define(type, [], i32.const(2).code), one)
    assert.notStrictEqual(module.define({ params: ["i32", "i32"], results: ["i32"] }, [], i32.const(1).code), one)
  })
})
