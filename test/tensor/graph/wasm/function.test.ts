import { assert, describe, it } from "@effect/vitest"
import { ModuleBuilder } from "../../../../src/tensor/wasm/encode.ts"
import {
  call,
  choose,
  f32x4,
  i32,
  loopWhile,
  memoryCopy,
  memoryFill,
  v128,
} from "../../../../src/tensor/wasm/instructions.ts"
import { ConstantPool, FunctionBuilder, type FunctionTarget } from "../../../../src/tensor/graph/wasm/function.ts"
import { bufferOf, functionOf, instantiate } from "./support.ts"

const newTarget = (): FunctionTarget => ({
  module: new ModuleBuilder(),
  pool: new ConstantPool(64, 1024),
  scratch: { address: 0, bytes: 0 },
  slices: undefined,
  turns: 0,
  lanes: 4,
  shared: new Map(),
})

describe("FunctionBuilder", () => {
  it("builds modules that engines run, with a loop, a call and a branch", () => {
    const target = newTarget()
    const square = new FunctionBuilder(target, { params: ["i32"], results: ["i32"] })
    const squareIndex = square.finish(i32.mul(square.param("i32", 0), square.param("i32", 0)))
    const f = new FunctionBuilder(target, { params: ["i32"], results: ["i32"] })
    const n = f.param("i32", 0)
    const sum = f.local("i32")
    const body = [sum.set(i32.add(sum, { type: "i32", code: call(squareIndex, [n]) })), n.set(i32.sub(n, i32.const(1)))]
    f.emit(loopWhile(body, n))
    target.module.export("squares", f.finish(choose(i32.gtU(sum, i32.const(1000)), i32.const(-1), sum)))
    const squares = functionOf(instantiate(target.module.encode(1)), "squares")
    assert.strictEqual(squares(4), 30)
    assert.strictEqual(squares(1000), -1)
  })

  it("puts data and constants into memory, and moves them there", () => {
    const target = newTarget()
    const f = new FunctionBuilder(target, { params: [], results: [] })
    f.emit(v128.store(i32.const(2048), f32x4.add(f.constant(1.5), f.constant(2))))
    f.emit(memoryCopy(i32.const(2064), i32.const(2048), i32.const(8)))
    f.emit(memoryFill(i32.const(2048), i32.const(0), i32.const(4)))
    target.module.export("go", f.finish())
    target.module.data(64, target.pool.bytes())
    target.module.data(4096, Uint8Array.of(1, 2, 3))
    const exports = instantiate(target.module.encode(1))
    functionOf(exports, "go")()
    assert.deepStrictEqual([...new Float32Array(bufferOf(exports), 2048, 7)], [0, 3.5, 3.5, 3.5, 3.5, 3.5, 0])
    assert.deepStrictEqual([...new Uint8Array(bufferOf(exports), 4096, 4)], [1, 2, 3, 0])
  })

  it("names functions, as profiles and stack traces show them", () => {
    const target = newTarget()
    const named = new FunctionBuilder(target, { params: ["i32"], results: ["i32"] }, "load 4x64: tanh")
    const index = named.finish(i32.load(named.param("i32", 0)))
    const f = new FunctionBuilder(target, { params: [], results: ["i32"] })
    target.module.export("outside", f.finish({ type: "i32", code: call(index, [i32.const(1 << 30)]) }))
    const outside = functionOf(instantiate(target.module.encode(1)), "outside")
    const stack = ((): string => {
      try {
        return `${outside()}`
      } catch (error) {
        return error instanceof Error ? `${error.stack}` : ""
      }
    })()
    assert.include(stack, "load 4x64: tanh")
  })

  it("reuses locals after the end of their scope", () => {
    const f = new FunctionBuilder(newTarget(), { params: [], results: [] })
    let first: unknown
    f.scoped(() => {
      first = f.local("v128").code
    })
    assert.deepStrictEqual(f.local("v128").code, first)
    assert.notDeepEqual(f.local("v128").code, first)
  })
})
