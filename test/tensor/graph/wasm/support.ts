import { compile, type CompileOptions } from "../../../../src/tensor/graph/wasm/compile.ts"
import type { ProgramSpec } from "../../../../src/tensor/graph/Program.ts"

/** The engine, as far as tests use it. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object
  readonly Instance: new (module: object, imports: object) => { readonly exports: Readonly<Record<string, unknown>> }
}

export const instantiate = (bytes: Uint8Array<ArrayBuffer>): Readonly<Record<string, unknown>> =>
  new WebAssembly.Instance(new WebAssembly.Module(bytes), {}).exports

export const functionOf = (
  exports: Readonly<Record<string, unknown>>,
  name: string,
): ((...args: ReadonlyArray<number>) => number) => {
  const exported = exports[name]
  if (typeof exported !== "function") throw new Error(`${name} is not exported`)
  return (...args) => Number(exported(...args))
}

export const bufferOf = (exports: Readonly<Record<string, unknown>>): ArrayBuffer => {
  const { memory } = exports
  if (
    typeof memory !== "object" ||
    memory === null ||
    !("buffer" in memory) ||
    !(memory.buffer instanceof ArrayBuffer)
  ) {
    throw new Error("no memory is exported")
  }
  return memory.buffer
}

/** A program of float inputs and outputs, compiled without a backend. */
export const load = (spec: ProgramSpec, options?: CompileOptions) => {
  const { bytes, programs, state } = compile(spec, options)
  const module = { bytes, state, ...programs.program }
  const exports = instantiate(module.bytes)
  const buffer = bufferOf(exports)
  const floats = (place: { readonly address: number; readonly length: number }) =>
    new Float32Array(buffer, place.address, place.length)
  return {
    module,
    feed: (name: string) => floats(module.feeds[name]),
    result: (name: string) => floats(module.results[name]),
    /** The result's bytes, whatever its kind. */
    bytes: (name: string) => {
      const { address, dtype, length } = module.results[name]
      return new Uint8Array(buffer, address, dtype === "bool" ? length : 4 * length)
    },
    state: (name: string) => floats(module.state[name]),
    prepare: functionOf(exports, "prepare:program"),
    run: functionOf(exports, "run:program"),
  }
}

/** Numbers between −2 and 2 that look random and never change. */
export const numbers = (count: number, seed = 1): Float32Array => {
  let word = seed
  return Float32Array.from({ length: count }, () => {
    word = (Math.imul(word, 1664525) + 1013904223) >>> 0
    return word / 2 ** 30 - 2
  })
}
