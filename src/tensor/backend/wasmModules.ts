/** Compiles and instantiates WebAssembly modules in Node, browsers and edge workers. The `wasm` backend uses it. */
import { type Effect, Record } from "effect"
import { messageOf } from "../../base/text/text.ts"
import { arrayTypes, type TensorData } from "../graph/Tensor.ts"
import type { ProgramSpec } from "../graph/Program.ts"
import type { Segment } from "../wasm/encode.ts"
import { type CompiledModule, type CompileOptions, exportOf, type ArrayAddress } from "../graph/wasm/compile.ts"
import type { Lanes } from "../graph/wasm/function.ts"
import { releaseExport } from "../graph/wasm/slices.ts"
import { BackendUnavailable } from "./Backend.ts"

/** Compiles the bytes of a WebAssembly module to a `WebAssembly.Module`. */
export interface ModuleCompiler {
  readonly module: (bytes: Uint8Array<ArrayBuffer>) => object
  /** How many numbers a register holds: 8 if it compiles pairs of vectors to one of 256 bits. */
  readonly lanes: () => Lanes
  /** Returns warnings about the modules compiled so far. */
  readonly warnings: () => ReadonlyArray<string>
  /** Keeps modules between processes. If left out, each process compiles its programs anew. */
  readonly kept?: KeptPrograms | undefined
  /** Compiles programs to machine code that runs instead of the module. If left out, the module runs. */
  readonly native?: NativeCompiler | undefined
  /** Gets each group of programs whose functions may be replaced later; returns the function that is called at its end. */
  readonly opened?: ((group: LoadedGroup) => () => void) | undefined
}

/** A group of programs that runs as WebAssembly, and can be replaced while nothing of it runs. */
export interface LoadedGroup {
  readonly specs: Readonly<Record<string, ProgramSpec>>
  readonly options: CompileOptions
  readonly compiled: CompiledModule
  readonly memory: WasmMemory
  /** Counts the runs of each program. */
  readonly runs: Readonly<Record<string, number>>
  /**
   * Has programs run by other functions, which compute the same bits in the same memory, with this table of constants. Waits
   * until no thread of WebAssembly helps any more. Returns whether they do: programs whose scope was closed stay as they are.
   */
  readonly replace: (by: NativeFunctions, constants: Segment) => Effect.Effect<boolean>
}

/**
 * Compiles the programs of a module to functions that compute the same bits in the module's memory. It fails if this
 * machine cannot compile or load them.
 */
export type NativeCompiler = (
  compiled: Pick<CompiledModule, "bytes" | "programs" | "shared">,
  memory: ArrayBufferLike,
) => Effect.Effect<NativeFunctions, BackendUnavailable>

/** The functions of programs in a library. */
export interface NativeFunctions {
  readonly functions: Readonly<Record<string, Functions>>
  /** The threads that help; undefined if no program of the module is divided. */
  readonly team: NativeTeam | undefined
}

/** Threads in C that help with the programs of a memory. No thread of WebAssembly may help meanwhile. */
export interface NativeTeam {
  readonly start: (helpers: number) => void
  /** Ends the threads, and waits for them. */
  readonly stop: () => void
}

/** Keeps the modules of groups of programs. The key is a description of everything that determines the module. */
export interface KeptPrograms {
  readonly get: (description: string) => CompiledModule | undefined
  readonly set: (description: string, compiled: CompiledModule) => void
}

/** Declares the part of `WebAssembly` that this file uses. TypeScript declares it only in the types for browsers. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown }
  readonly validate: (bytes: Uint8Array<ArrayBuffer>) => boolean
  readonly Memory: new (size: { initial: number; maximum: number; shared: boolean }) => WasmMemory
}

/** A memory of WebAssembly. */
interface WasmMemory {
  readonly buffer: ArrayBufferLike
}

/** The data with which another thread helps: it instantiates the module with the memory, and calls `help`. */
export interface SharedModule {
  readonly module: object
  readonly memory: WasmMemory
}

/**
 * The functions of one program in a module. `prepare` computes the values that depend only on states which this program
 * does not change; call it after such a state has changed. `run` computes the program once, and returns the number of
 * minibatches computed.
 */
export interface Functions {
  readonly prepare: () => void
  readonly run: () => number
}

type Exports = { readonly memory: WasmMemory } & Readonly<Record<string, () => number>>

const isExports = (value: unknown): value is Exports => typeof value === "object" && value !== null && "memory" in value

/** Compiles modules with the default settings of the JavaScript engine. */
export const plainModules: ModuleCompiler = {
  module: (bytes) => {
    try {
      return new WebAssembly.Module(bytes)
    } catch (error) {
      throw unavailable(bytes, error)
    }
  },
  lanes: () => 4,
  warnings: () => [],
}

/** Explains why the engine did not compile a module. */
const unavailable = (bytes: Uint8Array<ArrayBuffer>, error: unknown): BackendUnavailable => {
  if (typeof WebAssembly === "undefined" || !WebAssembly.validate(bytes)) {
    return new BackendUnavailable({
      backend: "wasm",
      missing:
        typeof WebAssembly === "undefined" ? "this engine has no WebAssembly" : "this engine has no WebAssembly SIMD",
      remedy: "Every current browser and Node since 16.4 has both; or choose another backend.",
    })
  }
  // Edge workers, and pages with a strict content security policy, only run modules that were deployed with the program.
  return new BackendUnavailable({
    backend: "wasm",
    missing: `this engine compiles no WebAssembly at run time (${messageOf(error)})`,
    remedy:
      "In an edge worker, provide Reference.layer, which needs none and is slower; " +
      "in a page, allow 'wasm-unsafe-eval' in its Content-Security-Policy.",
  })
}

/** Instantiates a module that `tensor/graph/wasm/compile.ts` made; returns its memory and the functions of its programs. */
export const instantiate = <Name extends string>(
  module: object,
  { programs, shared }: Pick<CompiledModule<Name>, "programs" | "shared">,
): {
  readonly memory: WasmMemory
  readonly functions: Readonly<Record<Name, Functions>>
  /** Ends the loops of threads that help; does nothing if the module needs none. */
  readonly release: () => void
} => {
  const memory = shared && new WebAssembly.Memory({ initial: shared.pages, maximum: shared.pages, shared: true })
  for (const { address, bytes } of shared?.segments ?? [])
    if (memory !== undefined) new Uint8Array(memory.buffer).set(bytes, address)
  const { exports } = new WebAssembly.Instance(module, memory === undefined ? {} : { env: { memory } })
  if (!isExports(exports)) throw new Error("instantiate: the module lacks its memory")
  const functions = Record.map(programs, (_, name) => {
    const [prepare, run] = [exports[exportOf("prepare", name)], exports[exportOf("run", name)]]
    if (prepare === undefined || run === undefined) throw new Error(`instantiate: the module lacks program "${name}"`)
    return { prepare, run }
  })
  return { memory: exports.memory, functions, release: () => void exports[releaseExport]?.() }
}

/** Returns a view of the array at an address in a module's memory: no numbers are copied. */
export const viewOf = (buffer: ArrayBufferLike, { dtype, address, length }: ArrayAddress): TensorData =>
  new arrayTypes[dtype](buffer, address, length)
