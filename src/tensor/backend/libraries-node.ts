/** Compiles the programs of a WebAssembly module to a shared library, and loads it; checks what the compiler makes. */
import { createRequire } from "node:module"
import { cpus } from "node:os"
import { basename } from "node:path"
import { Effect } from "effect"
import { messageOf } from "../../base/text/text.ts"
import { type CompiledModule, exportOf } from "../graph/wasm/compile.ts"
import { cOf } from "../native/print.ts"
import type { BackendUnavailable } from "./Backend.ts"
import { type CCompiler, type CompilerLimits, unavailable } from "./compiler-node.ts"
import { isAsKept, objectOf } from "./objects-node.ts"
import { inFolder } from "./passed-check-node.ts"
import { controlBytes } from "../graph/wasm/slices.ts"
import type { Functions, NativeCompiler, NativeFunctions, NativeTeam } from "./wasmModules.ts"
import { checkModule, nativeDifference } from "./widthCheck.ts"

/** A function of a shared library. */
type NativeFunction = (memory: Uint8Array, count?: number) => unknown

/** Loads a shared library; returns what finds its functions by their declarations in C. */
export type Load = (file: string) => (declaration: string) => NativeFunction

/** The part of the package `koffi` that this file uses. Its types are not imported, because it is optional. */
interface Koffi {
  readonly load: (file: string) => { readonly func: (declaration: string) => NativeFunction }
}

const isKoffi = (value: unknown): value is Koffi =>
  typeof value === "object" && value !== null && "load" in value && typeof value.load === "function"

const require = createRequire(import.meta.url)

/** Loads the package `koffi`, which calls functions of shared libraries. */
export const loader: Effect.Effect<Load, BackendUnavailable> = Effect.try({
  try: (): Load => {
    const koffi: unknown = require("koffi")
    if (!isKoffi(koffi)) throw new Error("it has no function load")
    return (file) => {
      const library = koffi.load(file)
      return (declaration) => library.func(declaration)
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

const functionNamesOf = (names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.flatMap((name) => [exportOf("prepare", name), exportOf("run", name)])

/** The compiler of modules, and the folder that keeps the libraries. */
interface LibraryMaker {
  readonly compiler: CCompiler
  readonly folder: string
  readonly limits: CompilerLimits
}

/** Compiles the programs of a module to a library; returns its path. */
export const libraryOf = (
  { bytes, programs, shared }: Pick<CompiledModule, "bytes" | "programs" | "shared">,
  { compiler, folder, limits }: LibraryMaker,
): Effect.Effect<string, BackendUnavailable> =>
  Effect.suspend(() => {
    const { lanes } = compiler
    const code = cOf(bytes, functionNamesOf(Object.keys(programs)), { lanes, division: shared?.division })
    return objectOf(code, compiler, folder, limits)
  })

/** Loads a library of programs, which compute in this memory. Fails if it is no longer what was compiled. */
export const functionsIn = (
  file: string,
  { programs, shared }: Pick<CompiledModule, "programs" | "shared">,
  { load, memory }: { readonly load: Load; readonly memory: ArrayBufferLike },
): Effect.Effect<NativeFunctions, BackendUnavailable> =>
  Effect.try({
    try: () => {
      if (!isAsKept(file)) throw new Error("it was changed after it was compiled")
      const find = load(file)
      const bytes = new Uint8Array(memory)
      const entry = (index: number): (() => number) => {
        const call = find(`int entry_${index}(void *memory)`)
        return () => Number(call(bytes))
      }
      const functions = Object.keys(programs).map((name, i): readonly [string, Functions] => {
        const prepare = entry(2 * i)
        return [name, { prepare: () => void prepare(), run: entry(2 * i + 1) }]
      })
      const team = shared && teamIn(find, { bytes, control: shared.division.control })
      return { functions: Object.fromEntries(functions), team }
    },
    catch: (error) => unavailable(`the compiled program did not load (${messageOf(error)})`),
  })

/** Stops the helpers of all teams, which must not read memory that the end of the process frees. */
const running = new Set<() => void>()
const stopAll = (): void => {
  for (const stop of running) stop()
}

const teamIn = (
  find: ReturnType<Load>,
  { bytes, control }: { readonly bytes: Uint8Array; readonly control: number },
): NativeTeam => {
  const [begin, end] = [find("int start_threads(void *memory, int helpers)"), find("int stop_threads(void *memory)")]
  const stop = (): void => {
    if (!running.delete(stop)) return
    if (running.size === 0) process.off("exit", stopAll)
    end(bytes)
  }
  return {
    start: (helpers) => {
      // Threads of WebAssembly have left other numbers there.
      bytes.fill(0, control, control + controlBytes)
      begin(bytes, helpers)
      if (running.size === 0) process.once("exit", stopAll)
      running.add(stop)
    },
    stop,
  }
}

/** Makes the function that compiles modules and loads what it has compiled. */
export const nativeCompiler =
  (maker: LibraryMaker, load: Load): NativeCompiler =>
  (compiled, memory) =>
    Effect.flatMap(libraryOf(compiled, maker), (file) => functionsIn(file, compiled, { load, memory }))

/** Checks the compiler with a program of all kinds of ops, unless this library of it has passed before on this processor. */
export const checkCompiler = (maker: LibraryMaker, load: Load): Effect.Effect<void, BackendUnavailable> =>
  Effect.gen(function* () {
    const { lanes } = maker.compiler
    const file = yield* libraryOf(checkModule({ lanes }), maker)
    const { add, has } = inFolder(maker.folder, { build: basename(file), processor: cpus()[0]?.model ?? "" })
    if (has()) return
    const difference = yield* nativeDifference(nativeCompiler(maker, load), { lanes })
    if (difference !== undefined) return yield* differs(difference)
    add()
  })

/** Makes the error of a compiler whose code computes other bits. */
export const differs = (difference: string): BackendUnavailable =>
  unavailable(
    `the C compiler's code has other results than WebAssembly: ${difference}`,
    'Name another compiler in the environment variable CC; or choose the backend "wasm".',
  )
