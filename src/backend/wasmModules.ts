/** Compiles and instantiates WebAssembly modules in Node, browsers and edge workers. The `wasm` backend uses it. */
import { messageOf } from "../config/text.ts"
import { arrayTypes, type TensorData } from "../graph/Tensor.ts"
import type { Place } from "../graph/wasm/compile.ts"
import { BackendUnavailable } from "./Backend.ts"

/** Compiles the bytes of a WebAssembly module to a `WebAssembly.Module`. */
export interface ModuleCompiler {
  readonly module: (bytes: Uint8Array<ArrayBuffer>) => object
  /** Returns warnings about the modules compiled so far. */
  readonly warnings: () => ReadonlyArray<string>
}

/** Declares the part of `WebAssembly` that this file uses. TypeScript declares it only in the types for browsers. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown }
  readonly validate: (bytes: Uint8Array<ArrayBuffer>) => boolean
}

/**
 * The exports of a module that `graph/wasm/compile.ts` made. `prepare` computes the values that depend only on states;
 * call it after writing a state. `run` computes the program once, and returns the number of minibatches computed.
 */
interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly prepare: () => void
  readonly run: () => number
}

const isExports = (value: unknown): value is Exports =>
  typeof value === "object" && value !== null && "memory" in value && "prepare" in value && "run" in value

/** Compiles modules with the default settings of the JavaScript engine. */
export const plainModules: ModuleCompiler = {
  module: (bytes) => {
    if (typeof WebAssembly === "undefined" || !WebAssembly.validate(bytes)) {
      throw new BackendUnavailable({
        backend: "wasm",
        missing:
          typeof WebAssembly === "undefined" ? "this engine has no WebAssembly" : "this engine has no WebAssembly SIMD",
        remedy: "Every current browser and Node since 16.4 has both; or choose another backend.",
      })
    }
    try {
      return new WebAssembly.Module(bytes)
    } catch (error) {
      // Edge workers, and pages with a strict content security policy, only run modules that were deployed with the program.
      throw new BackendUnavailable({
        backend: "wasm",
        missing: `this engine compiles no WebAssembly at run time (${messageOf(error)})`,
        remedy:
          "In an edge worker, provide Reference.layer, which needs none and is slower; " +
          "in a page, allow 'wasm-unsafe-eval' in its Content-Security-Policy.",
      })
    }
  },
  warnings: () => [],
}

/** Instantiates a module that `graph/wasm/compile.ts` made, and returns its exports. */
export const instantiate = (module: object): Exports => {
  const { exports } = new WebAssembly.Instance(module, {})
  if (!isExports(exports)) throw new Error("instantiate: the module lacks an export")
  return exports
}

/** Returns a view of the array at an address in a module's memory: no numbers are copied. */
export const viewOf = (buffer: ArrayBuffer, { dtype, address, length }: Place): TensorData =>
  new arrayTypes[dtype](buffer, address, length)
