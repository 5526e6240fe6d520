/**
 * Defines the code of a WebAssembly function as a tree, between `decode.ts`, which reads it from a module, and `print.ts`,
 * which writes it as C. Values are computed without side effects, and steps run one after another.
 */
import type { ValueType } from "../wasm/encode.ts"

/** A value. The names of operations are those of WebAssembly's text format, such as `f32x4.add`. */
export type Value =
  | { readonly kind: "local"; readonly type: ValueType; readonly local: number }
  /** A constant as 32-bit words, the lowest first: one for `i32`, two for `i64` and `f64`, four for a vector. */
  | { readonly kind: "constant"; readonly type: ValueType; readonly words: ReadonlyArray<number> }
  /** An operation; `lanes` has the numbers of lanes that are part of some instructions. */
  | {
      readonly kind: "operation"
      readonly type: ValueType
      readonly name: string
      readonly args: ReadonlyArray<Value>
      readonly lanes: ReadonlyArray<number>
    }
  | {
      readonly kind: "load"
      readonly type: ValueType
      readonly name: string
      readonly address: Value
      readonly offset: number
      /** For a load of one lane: the vector with the other lanes. */
      readonly into?: Value
      readonly lane?: number
    }

export interface Store {
  readonly kind: "store"
  readonly name: string
  readonly address: Value
  readonly value: Value
  readonly offset: number
  readonly lane?: number
}

export interface SetLocal {
  readonly kind: "set"
  readonly local: number
  readonly value: Value
}

export type Step =
  | SetLocal
  | Store
  | {
      readonly kind: "call"
      readonly fn: number
      readonly args: ReadonlyArray<Value>
      /** The local that gets the function's result. */
      readonly result?: number
    }
  /** Copies bytes, or sets bytes to the value `source`. */
  | {
      readonly kind: "bulk"
      readonly name: "copy" | "fill"
      readonly to: Value
      readonly source: Value
      readonly bytes: Value
    }
  /** Runs the body once, and again as long as the condition is not 0 after it. */
  | { readonly kind: "loop"; readonly body: ReadonlyArray<Step>; readonly condition: Value }
  | { readonly kind: "when"; readonly body: ReadonlyArray<Step>; readonly condition: Value }
  /** Sets a pack of locals, or stores a wider vector, of `vectors` times four lanes. */
  | { readonly kind: "setPack"; readonly pack: number; readonly value: Value; readonly vectors: number }
  | {
      readonly kind: "storePack"
      readonly address: Value
      readonly offset: number
      readonly value: Value
      readonly vectors: number
    }

export interface DecodedFunction {
  readonly params: ReadonlyArray<ValueType>
  /** The types of all locals, with the parameters first. Other locals are 0 at first. */
  readonly locals: ReadonlyArray<ValueType>
  readonly body: ReadonlyArray<Step>
  readonly result: Value | undefined
}

export interface DecodedModule {
  readonly functions: ReadonlyArray<DecodedFunction>
  /** The indices of the exported functions by name. */
  readonly exports: ReadonlyMap<string, number>
}

/** Returns a value in which `change` has replaced each local. */
export const mapLocals = (value: Value, change: (local: Value & { readonly kind: "local" }) => Value): Value => {
  switch (value.kind) {
    case "local":
      return change(value)
    case "operation":
      return value.args.length === 0 ? value : { ...value, args: value.args.map((arg) => mapLocals(arg, change)) }
    case "load": {
      const address = mapLocals(value.address, change)
      return value.into === undefined
        ? { ...value, address }
        : { ...value, address, into: mapLocals(value.into, change) }
    }
    case "constant":
      return value
  }
}

/** Lists the values that a step reads itself, without those of steps inside it. */
export const valuesOf = (step: Step): ReadonlyArray<Value> => {
  switch (step.kind) {
    case "set":
    case "setPack":
      return [step.value]
    case "store":
    case "storePack":
      return [step.address, step.value]
    case "call":
      return step.args
    case "bulk":
      return [step.to, step.source, step.bytes]
    case "loop":
    case "when":
      return [step.condition]
  }
}

/** Returns the step with other values of its own; `change` is called for each of `valuesOf`, in order. */
export const mapValues = (step: Step, change: (value: Value) => Value): Step => {
  switch (step.kind) {
    case "set":
    case "setPack":
      return { ...step, value: change(step.value) }
    case "store":
    case "storePack":
      return { ...step, address: change(step.address), value: change(step.value) }
    case "call":
      return { ...step, args: step.args.map(change) }
    case "bulk":
      return { ...step, to: change(step.to), source: change(step.source), bytes: change(step.bytes) }
    case "loop":
    case "when":
      return { ...step, condition: change(step.condition) }
  }
}

/** Tells whether a test holds for a value or a part of it. */
export const some = (value: Value, test: (part: Value) => boolean): boolean => {
  if (test(value)) return true
  if (value.kind === "operation") return value.args.some((arg) => some(arg, test))
  if (value.kind !== "load") return false
  return some(value.address, test) || (value.into !== undefined && some(value.into, test))
}
