import { cachedDataVersionTag } from "node:v8"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import { auto } from "../../../src/tensor/backend/auto.ts"
import { Backend } from "../../../src/tensor/backend/Backend.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { plainModules } from "../../../src/tensor/backend/wasmModules.ts"
import { canWiden, checked, widened, wideModules } from "../../../src/tensor/backend/wide-node.ts"
import { checkProgram, differenceBetween } from "../../../src/tensor/backend/widthCheck.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { simplify } from "../../../src/tensor/graph/simplify.ts"
import { compile } from "../../../src/tensor/graph/wasm/compile.ts"
import { join } from "node:path"
import { withFolder } from "../../command/cli/effect.ts"
import { inFolder } from "../../../src/tensor/backend/passed-check-node.ts"
import { keep } from "../../rl/train/inMemory.ts"

type Bytes = Uint8Array<ArrayBuffer>
const plain = plainModules.module

/** Adds two vectors where it should subtract them, the last time that the code does. */
const miscompiled = (bytes: Bytes): object => {
  const changed = bytes.slice()
  const subtract = changed.findLastIndex(
    (byte, at) => byte === 0xfd && changed[at + 1] === 0xe5 && changed[at + 2] === 0x01,
  )
  if (subtract >= 0) changed[subtract + 1] = 0xe4
  return plain(changed)
}

const x = G.input("x", [40])
const spec = { name: "less one", inputs: { x }, state: {}, outputs: { y: G.sub(x, G.constant(1)) } }

const runWith = (backend: Backend["Service"]) =>
  Effect.map(Effect.scoped(backend.compile(spec)), (program) => {
    program.feeds.x.fill(3)
    program.runSync?.()
    return program.results.y
  })

const withVariable = (value: string | undefined) =>
  Effect.provideService(
    wideModules,
    ConfigProvider.ConfigProvider,
    ConfigProvider.fromUnknown(value === undefined ? {} : { EFFECT_RL_WIDE: value }),
  )

describe("the check of widened kernels", () => {
  it("finds no difference between two plain compilations", () => assert.isUndefined(differenceBetween(plain, plain)))

  it.skipIf(!canWiden())("finds no difference between plain and widened kernels", () =>
    assert.isUndefined(differenceBetween(plain, widened)),
  )

  it("detects nearly every wrong instruction", { tags: "slow" }, () => {
    const { bytes } = compile(simplify(checkProgram()), { lanes: 8 })
    // 32-bit float additions and products of vectors; every 150th becomes a maximum.
    const places = [...bytes.keys()].filter(
      (at) => bytes[at] === 0xfd && (bytes[at + 1] === 0xe4 || bytes[at + 1] === 0xe6) && bytes[at + 2] === 0x01,
    )
    const tried = places.filter((_, index) => index % 150 === 0)
    const missed = tried.filter((place) => {
      const wrong = (original: Bytes): object => {
        const changed = original.slice()
        changed[place + 1] = 0xe9
        return plain(changed)
      }
      return differenceBetween(plain, wrong) === undefined
    })
    assert.isAbove(tried.length, 20)
    // Some only touch lanes that nobody reads.
    assert.isBelow(missed.length / tried.length, 0.1)
  })
})

describe("a check that passed", () => {
  const { bytes } = compile(simplify(spec), { lanes: 8 })
  /** Compiles a module as a new process does, and returns how often it widened one, and its warnings. */
  const compiled = (folder: string, widen = plain, { processor = "one", build = "library-aaaaaaaa.js" } = {}) => {
    let widenings = 0
    const modules = checked(
      (given) => {
        widenings++
        return widen(given)
      },
      () => inFolder(folder, { build, processor }),
    )
    modules.module(bytes)
    return [widenings, modules.warnings().length]
  }

  it("is not made again by the next process", () =>
    withFolder(async (folder) => {
      assert.deepStrictEqual(compiled(folder), [2, 0], "the check and the module")
      assert.deepStrictEqual(compiled(folder), [1, 0])
    }))

  it("is made again by another build, on another processor, and where nothing can be written", () =>
    withFolder(async (folder) => {
      compiled(folder)
      assert.deepStrictEqual(compiled(folder, plain, { build: "library-bbbbbbbb.js" }), [2, 0])
      assert.deepStrictEqual(compiled(folder, miscompiled, { processor: "two" }), [1, 1])
      for (let time = 0; time < 2; time++) assert.deepStrictEqual(compiled(join(folder, "absent")), [2, 0])
    }))

  it("is not one that found a difference", () =>
    withFolder(async (folder) => {
      for (let time = 0; time < 2; time++) assert.deepStrictEqual(compiled(folder, miscompiled), [1, 1])
    }))
})

describe("kernels that widening would change", () => {
  it.effect("are compiled without widening, and a warning tells the user", () =>
    Effect.gen(function* () {
      const widenings: Array<number> = []
      const modules = checked((bytes) => {
        widenings.push(bytes.length)
        return miscompiled(bytes)
      })
      const backend = Wasm.make(modules)
      assert.deepStrictEqual(yield* backend.warnings ?? Effect.succeed(["none"]), [])
      for (let time = 0; time < 2; time++) assert.isTrue((yield* runWith(backend)).every((value) => value === 2))
      assert.lengthOf(widenings, 1, "only the check was compiled that way")
      const [warning, ...more] = modules.warnings()
      assert.match(
        warning,
        /^WebAssembly kernels stay at 128 bits, which is slower and gives the same results: in a check, element \d+ of "\w+" was \S+ instead of \S+$/,
      )
      assert.lengthOf(more, 0)
    }),
  )

  it.effect("cause a warning of the run, also with the auto backend", () =>
    Effect.gen(function* () {
      const wasm = Wasm.make(checked(miscompiled))
      const backends = [wasm, auto({ wasm, session: Effect.die("the graphs are small enough for wasm") })]
      for (const backend of backends) {
        const input = { env: CartPole.env, algorithm: Ppo.make({ nsteps: 8 }), totalSteps: 32 }
        const { events } = yield* keep(input, Layer.succeed(Backend, backend))
        const warnings = events.flatMap((event) => (event._tag === "Warning" ? [event.message] : []))
        assert.lengthOf(warnings, 1)
        assert.match(warnings[0], /^WebAssembly kernels stay at 128 bits/)
      }
    }),
  )
})

describe("widening", () => {
  it.effect("is switched off by EFFECT_RL_WIDE=0 and its synonyms only", () =>
    Effect.gen(function* () {
      for (const value of ["0", "false", "no", "off"]) {
        assert.strictEqual(yield* withVariable(value), plainModules, value)
      }
      for (const value of [undefined, "1", "true"]) {
        assert.strictEqual((yield* withVariable(value)) === plainModules, !canWiden(), value)
      }
      const failure = yield* Effect.flip(withVariable("maybe"))
      assert.strictEqual(
        failure.message,
        'Backend "wasm" is not available: the environment variable EFFECT_RL_WIDE is neither 0 nor 1. ' +
          "Set it to 0 to keep WebAssembly kernels at 128 bits, or leave it out.",
      )
    }),
  )

  it.skipIf(!canWiden())("leaves V8's flags as they were, whether or not a module can be compiled", () => {
    const before = cachedDataVersionTag()
    widened(compile(spec).bytes)
    assert.strictEqual(cachedDataVersionTag(), before)
    assert.throws(() => widened(Uint8Array.of(0, 1, 2)))
    assert.strictEqual(cachedDataVersionTag(), before)
  })

  it("is only tried where V8 has the flag and allows changing it", () => {
    const engine = {
      arch: "x64",
      versions: { v8: "13.6.233.17-node.53" },
      config: { variables: { v8_enable_wasm_simd256_revec: 1 } },
      execArgv: ["--enable-source-maps"],
    }
    assert.isTrue(canWiden(engine))
    const others = {
      "another processor": { arch: "arm64" },
      "a V8 before the flag": { versions: { v8: "11.3.244.8-node.30" } },
      "a V8 that would end the process": { versions: { v8: "14.6.202.34-node.34" } },
      "a V8 that nobody has tried": { versions: { v8: "13.60.1-node.1" } },
      "no V8 version": { versions: { v8: "" } },
      "a V8 built without it": { config: { variables: { v8_enable_wasm_simd256_revec: 0 } } },
      "a V8 that says nothing of it": { config: { variables: {} } },
      "flags frozen": { execArgv: ["--freeze-flags-after-init"] },
      "the flag set by whoever started Node": { execArgv: ["--no-experimental-wasm-revectorize"] },
      "another compiler chosen": { execArgv: ["--liftoff_only"] },
    }
    for (const [what, other] of Object.entries(others)) assert.isFalse(canWiden({ ...engine, ...other }), what)
  })
})
