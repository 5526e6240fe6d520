/** Compiles the programs of a WebAssembly module to a shared library, and loads it, for the backend `native`. */
import { createRequire } from "node:module"
import { Effect } from "effect"
import { messageOf } from "../../base/config/text.ts"
import { type CompiledModule, exportOf } from "../graph/wasm/compile.ts"
import { cOf } from "../native/print.ts"
import type { BackendUnavailable } from "./Backend.ts"
import { type CCompiler, type CompilerLimits, unavailable } from "./compiler-node.ts"
import { isAsKept, objectOf } from "./objects-node.ts"
import type { Functions, NativeCompiler } from "./wasmModules.ts"

/** Loads a shared library; returns its functions by number. */
export type Load = (file: string, functions: number) => ReadonlyArray<(memory: Uint8Array) => unknown>

/** The part of the package `koffi` that this file uses. Its types are not imported, because it is optional. */
interface Koffi {
  readonly load: (file: string) => { readonly func: (declaration: string) => (memory: Uint8Array) => unknown }
}

const isKoffi = (value: unknown): value is Koffi =>
  typeof value === "object" && value !== null && "load" in value && typeof value.load === "function"

const require = createRequire(import.meta.url)

/** Loads the package `koffi`, which calls functions of shared libraries. */
export const loader: Effect.Effect<Load, BackendUnavailable> = Effect.try({
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

const functionNamesOf = (names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.flatMap((name) => [exportOf("prepare", name), exportOf("run", name)])

/** What compiles modules, and where the libraries are kept. */
export interface LibraryMaker {
  readonly compiler: CCompiler
  readonly folder: string
  readonly limits: CompilerLimits
}

/** Compiles the programs of a module to a library; returns its path. */
export const libraryOf = (
  { bytes, programs }: Pick<CompiledModule, "bytes" | "programs">,
  { compiler, folder, limits }: LibraryMaker,
): Effect.Effect<string, BackendUnavailable> =>
  Effect.suspend(() =>
    objectOf(cOf(bytes, functionNamesOf(Object.keys(programs)), compiler.lanes), compiler, folder, limits),
  )

/** Loads a library of programs, which compute in this memory. Fails if it is no longer what was compiled. */
export const functionsIn = <Name extends string>(
  file: string,
  names: ReadonlyArray<Name>,
  { load, memory }: { readonly load: Load; readonly memory: ArrayBufferLike },
): Effect.Effect<Readonly<Record<string, Functions>>, BackendUnavailable> =>
  Effect.try({
    try: () => {
      if (!isAsKept(file)) throw new Error("it was changed after it was compiled")
      const functions = load(file, 2 * names.length)
      const bytes = new Uint8Array(memory)
      return Object.fromEntries(
        names.map((name, i): readonly [string, Functions] => {
          const [prepare, run] = [functions[2 * i], functions[2 * i + 1]]
          return [name, { prepare: () => void prepare(bytes), run: () => Number(run(bytes)) }]
        }),
      )
    },
    catch: (error) => unavailable(`the compiled program did not load (${messageOf(error)})`),
  })

/** Makes the function that compiles modules and loads what it has compiled. */
export const nativeCompiler =
  (maker: LibraryMaker, load: Load): NativeCompiler =>
  (compiled, memory) =>
    Effect.flatMap(libraryOf(compiled, maker), (file) =>
      functionsIn(file, Object.keys(compiled.programs), { load, memory }),
    )
