import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import type { BackendUnavailable } from "../../../src/tensor/backend/Backend.ts"
import * as Native from "../../../src/tensor/backend/native-node.ts"
import { checkProgram } from "../../../src/tensor/backend/widthCheck.ts"
import { simplify } from "../../../src/tensor/graph/simplify.ts"
import { compile } from "../../../src/tensor/graph/wasm/compile.ts"
import { decode } from "../../../src/tensor/native/decode.ts"
import { merged } from "../../../src/tensor/native/merge.ts"
import { cOf } from "../../../src/tensor/native/print.ts"
import { separated } from "../../../src/tensor/native/webs.ts"
import type { DecodedFunction, Step, Value } from "../../../src/tensor/native/code.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { withFolder } from "../../command/cli/effect.ts"

const x = G.input('x"; system("true"); //', [64])
const named = { name: "*/ named", inputs: { 'x"; system("true"); //': x }, state: {}, outputs: { "y\n": G.sqrt(x) } }

const entries = ["prepare:program", "run:program"]

/** Counts the statements of a function by their kinds. */
const countsOf = (steps: ReadonlyArray<Step>): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  const visit = (list: ReadonlyArray<Step>): void => {
    for (const step of list) {
      counts[step.kind] = (counts[step.kind] ?? 0) + 1
      if (step.kind === "loop" || step.kind === "when") visit(step.body)
    }
  }
  visit(steps)
  return counts
}

describe("C of a module", () => {
  it("contains no name of the graph", () => {
    const text = cOf(compile(named).bytes, entries, { lanes: 16 })
    for (const part of ["system", "named", 'x"']) assert.notInclude(text, part)
    assert.include(text, "int entry_1(void *memory)")
  })

  it("has all functions of the check program, at every width", () => {
    for (const lanes of [4, 8, 16] as const) {
      const { bytes } = compile(simplify(checkProgram()), { lanes })
      const text = cOf(bytes, entries, { lanes })
      const { functions } = decode(bytes)
      functions.forEach((_, index) => assert.match(text, new RegExp(`f${index}\\(unsigned char \\*const m`)))
    }
  })

  it("names the export that a module lacks", () => {
    assert.throws(
      () => cOf(compile(named).bytes, ["run:other"], { lanes: 4 }),
      'the module does not export "run:other"',
    )
  })

  it("throws at code that it does not know, instead of translating a part", () => {
    const { bytes } = compile(named)
    const sqrt = bytes.findLastIndex((byte, at) => byte === 0xfd && bytes[at + 1] === 0xe3 && bytes[at + 2] === 0x01)
    // The opcode of `f64x2.abs`, which we do not use.
    const changed = bytes.slice()
    changed[sqrt + 1] = 0xec
    assert.throws(() => decode(changed), "decode: unknown instruction 0xfd 236")
  })
})

describe("merged vectors", () => {
  const [a, b] = [G.input("a", [16, 32]), G.input("b", [32, 64])]
  const spec = { name: "product", inputs: { a, b }, state: {}, outputs: { c: G.matmul(a, b) } }
  const product = compile(spec, { lanes: 16 })

  it("leave no narrow sum in the loop of a product", () => {
    const [fn] = decode(product.bytes).functions.filter(({ params }) => params.length > 0)
    const wide = merged(separated(fn), 16)
    assert.isAbove(countsOf(wide.body)["setPack"] ?? 0, 16)
    assert.isTrue(wide.packs.every((locals) => locals.length === 4))
    assert.isUndefined(countsOf(wide.body)["store"])
  })

  it("leave out parameters, because the caller sets them, too", () => {
    const local = (number: number): Value => ({ kind: "local", type: "v128", local: number })
    const doubled = (number: number): Step => {
      const args = [local(number), local(number)]
      return {
        kind: "set",
        local: number,
        value: { kind: "operation", type: "v128", name: "f32x4.add", args, lanes: [] },
      }
    }
    const condition: Value = { kind: "constant", type: "i32", words: [0] }
    const fn: DecodedFunction = {
      params: ["v128", "v128"],
      locals: ["v128", "v128"],
      body: [{ kind: "loop", body: [doubled(0), doubled(1)], condition }],
      result: local(0),
    }
    assert.deepStrictEqual(merged(separated(fn), 16).packs, [])
  })

  it("stay apart where the machine's vectors have four lanes", () => {
    const [fn] = decode(product.bytes).functions.filter(({ params }) => params.length > 0)
    assert.deepStrictEqual(merged(separated(fn), 4).packs, [])
  })
})

describe("the backend native", () => {
  /** Makes the backend in an environment with these variables, and a cache in a folder of its own. */
  const failureWith = (variables: Readonly<Record<string, string>>): Effect.Effect<BackendUnavailable | string> =>
    Effect.promise(() =>
      withFolder((caches) =>
        Effect.runPromise(
          Native.make({ caches }).pipe(
            Effect.flip,
            Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(variables)),
            Effect.catchCause(() => Effect.succeed("no failure")),
          ),
        ),
      ),
    )

  const messages: ReadonlyArray<readonly [Readonly<Record<string, string>>, RegExp]> = [
    [{ CC: "/nowhere/cc" }, /there is no C compiler "\/nowhere\/cc"|package koffi/],
    [{ CC: "/bin/true" }, /"\/bin\/true" is not a C compiler like GCC or Clang|there is no C compiler|package koffi/],
    [{ CC: " " }, /the environment variable CC is empty|package koffi/],
    [{ EFFECT_RL_NATIVE_BITS: "1024" }, /EFFECT_RL_NATIVE_BITS is not 128, 256 or 512|package koffi/],
  ]
  for (const [variables, expected] of messages)
    it.effect.skipIf(process.platform === "win32")(`says what is wrong with ${JSON.stringify(variables)}`, () =>
      Effect.map(failureWith(variables), (error) => {
        assert.match(typeof error === "string" ? error : error.message, expected)
      }),
    )
})
