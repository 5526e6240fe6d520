/**
 * Implements the backend `native`: programs run as machine code that this machine's C compiler has made. It compiles a
 * program to a WebAssembly module first, as the backend `wasm` does, and then translates the module's functions to C, so the
 * programs have the same plan of memory, and the same bits. The functions compute in the memory of the module.
 */
import { createRequire } from "node:module"
import { Effect, Record } from "effect"
import { messageOf } from "../../base/config/text.ts"
import { exportOf } from "../graph/wasm/compile.ts"
import { compileCache } from "../../base/config/compile-cache-node.ts"
import type { Lanes } from "../graph/wasm/function.ts"
import { cOf } from "../native/print.ts"
import type { Backend, BackendUnavailable } from "./Backend.ts"
import { type CCompiler, type CompilerLimits, findCompiler, unavailable, usualLimits } from "./compiler-node.ts"
import { objectOf, objectsFolder } from "./objects-node.ts"
import { inFolder, never, type PassedCheck } from "./passed-check-node.ts"
import * as wasm from "./wasm.ts"
import { type Functions, type KeptPrograms, type NativeCompiler, plainModules } from "./wasmModules.ts"
import { nativeDifference } from "./widthCheck.ts"

/** Options that tests set. */
interface NativeOptions {
  readonly kept?: KeptPrograms | undefined
  /** The folder for caches, instead of the user's own. */
  readonly caches?: string
  readonly limits?: CompilerLimits
  /** How many numbers a vector holds; by default, as many as a register of this processor. */
  readonly lanes?: Lanes
  /** How many threads the user wants; programs run in one. */
  readonly threads?: number
  /** The name of this build of the library, by which a passed check is remembered; by default, that of the package. */
  readonly build?: string | undefined
}

/**
 * Makes the backend. It fails if this machine has no C compiler, or lacks the package `koffi`, which loads the compiled
 * programs; and if a check program has other bits than on `wasm`.
 */
export const make = (options: NativeOptions = {}): Effect.Effect<Backend["Service"], BackendUnavailable> =>
  Effect.gen(function* () {
    const { kept, caches, lanes, limits = usualLimits, threads = 1, build = compileCache()?.build } = options
    const load = yield* loader
    const found = yield* findCompiler(limits)
    const compiler = { ...found, lanes: lanes ?? found.lanes }
    const folder = yield* objectsFolder(caches)
    const native = nativeCompiler({ compiler, folder, limits, load })
    const passed =
      build === undefined ? never : inFolder(folder, { build, processor: `${compiler.identity}\n${compiler.lanes}` })
    const check = yield* Effect.cached(checked(native, compiler, passed))
    const afterCheck: NativeCompiler = (compiled, memory) => Effect.andThen(check, native(compiled, memory))
    const warnings = threads > 1 ? [`programs on the backend native run in one thread, not in ${threads}`] : []
    const modules = { ...plainModules, lanes: () => compiler.lanes, warnings: () => warnings, kept }
    return wasm.make({ ...modules, native: afterCheck })
  })

/** Loads a shared library; returns its functions by number. */
type Load = (file: string, functions: number) => ReadonlyArray<(memory: Uint8Array) => unknown>

/** The part of the package `koffi` that this file uses. Its types are not imported, because it is optional. */
interface Koffi {
  readonly load: (file: string) => { readonly func: (declaration: string) => (memory: Uint8Array) => unknown }
}

const isKoffi = (value: unknown): value is Koffi =>
  typeof value === "object" && value !== null && "load" in value && typeof value.load === "function"

const require = createRequire(import.meta.url)

/** Loads the package `koffi`, which calls functions of shared libraries. */
const loader: Effect.Effect<Load, BackendUnavailable> = Effect.try({
  try: (): Load => {
    const koffi: unknown = require("koffi")
    if (!isKoffi(koffi)) throw new Error("it has no function load")
    return (file, functions) => {
      const library = koffi.load(file)
      return Array.from({ length: functions }, (_, i) => library.func(`int entry_${i}(void *memory)`))
    }
  },
  catch: (error) => {
    const isMissing = error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND"
    return unavailable(
      isMissing
        ? "the package koffi, which calls compiled programs, is not installed"
        : `the package koffi does not load: ${messageOf(error)}`,
      'Install it with "npm install koffi@3.3.4"; or choose the backend "wasm", which has the same results.',
    )
  },
})

/** Makes the function that compiles modules. */
const nativeCompiler =
  (options: {
    readonly compiler: CCompiler
    readonly folder: string
    readonly limits: CompilerLimits
    readonly load: Load
  }): NativeCompiler =>
  (compiled, memory) =>
    Effect.gen(function* () {
      const { compiler, folder, limits, load } = options
      const names = Object.keys(compiled.programs)
      const entries = names.flatMap((name) => [exportOf("prepare", name), exportOf("run", name)])
      const code = cOf(compiled.bytes, entries, compiler.lanes)
      const file = yield* objectOf(code, compiler, folder, limits)
      const functions = yield* Effect.try({
        try: () => load(file, entries.length),
        catch: (error) => unavailable(`the compiled program did not load (${messageOf(error)})`),
      })
      const bytes = new Uint8Array(memory)
      return Record.map(compiled.programs, (_, name): Functions => {
        const at = 2 * names.indexOf(name)
        const [prepare, run] = [functions[at], functions[at + 1]]
        return { prepare: () => void prepare(bytes), run: () => Number(run(bytes)) }
      })
    })

/** Checks that a program with all kinds of ops has the same bits as on `wasm`, unless the check has passed before. */
const checked = (
  native: NativeCompiler,
  { lanes }: CCompiler,
  passed: PassedCheck,
): Effect.Effect<void, BackendUnavailable> =>
  Effect.gen(function* () {
    if (passed.has()) return
    const difference = yield* nativeDifference(native, { lanes })
    if (difference === undefined) return passed.add()
    return yield* unavailable(
      `the C compiler's code has other results than WebAssembly: ${difference}`,
      'Name another compiler in the environment variable CC; or choose the backend "wasm".',
    )
  })
