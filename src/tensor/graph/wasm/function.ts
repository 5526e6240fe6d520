/**
 * Builds a WebAssembly function: it collects the function's locals, the constants that it reads, and its statements.
 *
 * Constants of vector code are in the module's memory, four bytes each: loading one to all lanes is one instruction, while
 * engines compile `v128.const` to four instructions.
 */
import type { FusedGroup } from "./fuse.ts"
import type { FunctionType, ModuleBuilder, ValueType } from "../../wasm/encode.ts"
import {
  type Expression,
  i32,
  type I32,
  type Local,
  local,
  loopWhile,
  type Statement,
  v128,
  type V128,
} from "../../wasm/instructions.ts"

const bits = new DataView(new ArrayBuffer(4))

const bitsOf = (value: number): number => {
  bits.setFloat32(0, value)
  return bits.getInt32(0)
}

/** A table of 32-bit constants at a fixed address in memory. */
export class ConstantPool {
  private readonly words = new Map<number, number>()
  readonly address: number
  readonly capacity: number

  constructor(address: number, capacity: number) {
    this.address = address
    this.capacity = capacity
  }

  /** Returns the address of a constant, which is added to the table if needed; undefined if the table is full. */
  word(value: number): number | undefined {
    const existing = this.words.get(value | 0)
    if (existing !== undefined) return existing
    const address = this.address + 4 * this.words.size
    if (4 * this.words.size >= this.capacity) return undefined
    this.words.set(value | 0, address)
    return address
  }

  bytes(): Uint8Array {
    return new Uint8Array(Int32Array.from(this.words.keys()).buffer)
  }
}

/** A part of a dimension: `size` elements from the index `from` on. */
export interface Slice {
  readonly from: number
  readonly size: number
}

/** Divides the work of groups among threads. `SliceFunctions` implements it. */
export interface WorkDivision {
  /** The number of the current thread, from 0 on, for use in the statements of slices. */
  readonly thread: I32
  /** Divides a dimension of a group into slices of whole units; undefined if the group is too small to be divided. */
  readonly of: (
    dimension: { readonly size: number; readonly unit: number },
    group: FusedGroup,
  ) => ReadonlyArray<Slice> | undefined
  /**
   * Returns a statement that computes slices, one by each of these statements. Any thread may compute any slice; they
   * begin in this order.
   */
  readonly run: (slices: ReadonlyArray<Statement>) => Statement
  /**
   * Returns statements that wait until the number at an address is `turn`, run `statements`, and then set the number to
   * `next`. Slices begin in their order, so a slice may wait for an earlier one.
   */
  readonly inTurn: (
    address: number,
    turn: I32,
    next: I32,
    statements: ReadonlyArray<Statement>,
  ) => ReadonlyArray<Statement>
}

/**
 * How many numbers a register of the machine holds: four, or more if neighbouring vectors are combined, by the JavaScript
 * engine or by `tensor/native`.
 */
export type Lanes = 4 | 8 | 16

/** The parts of a WebAssembly module that its functions share while the module is compiled. */
export interface FunctionTarget {
  readonly module: ModuleBuilder
  readonly pool: ConstantPool
  /**
   * The memory for temporary values of a function while it runs: its address and size. Each slice of a group and each
   * thread has a part of this size.
   */
  readonly scratch: { readonly address: number; readonly bytes: number }
  /** The address of the numbers that say which band may add next to the sums over all rows (see `emitBands.ts`). */
  readonly turns: number
  /** How many numbers a register of the machine holds. It changes no result. */
  readonly lanes: Lanes
  /** Divides large groups among threads; undefined if one thread computes everything. */
  readonly slices: WorkDivision | undefined
  /** The indices of helper functions by name, such as `pow`; the first function that needs a helper adds it. */
  readonly shared: Map<string, number>
}

export class FunctionBuilder {
  readonly target: FunctionTarget
  readonly type: FunctionType
  private readonly name: string | undefined
  private readonly locals: Array<ValueType> = []
  private readonly free: Readonly<Record<ValueType, Array<number>>> = { i32: [], i64: [], f32: [], f64: [], v128: [] }
  private scope: Array<{ readonly type: ValueType; readonly index: number }> = []
  private statements: Array<Statement> = []

  /** The name is shown by profilers, such as Node's `--cpu-prof`. */
  constructor(target: FunctionTarget, type: FunctionType, name?: string) {
    this.target = target
    this.type = type
    this.name = name
  }

  param<T extends ValueType>(type: T, index: number): Local<T> {
    return local(type, index)
  }

  local<T extends ValueType>(type: T): Local<T> {
    const index = this.free[type].pop() ?? this.type.params.length + this.locals.push(type) - 1
    this.scope.push({ type, index })
    return local(type, index)
  }

  /** Emits code that stores a value in a new local, and returns the local. */
  let<T extends ValueType>(value: Expression<T>): Local<T> {
    const result = this.local(value.type)
    this.emit(result.set(value))
    return result
  }

  emit(statement: Statement): void {
    this.statements.push(statement)
  }

  /** Runs `write`, then frees the locals that it made, so that later code can use them for other values. */
  scoped(write: () => void): void {
    const outer = this.scope
    this.scope = []
    write()
    for (const { type, index } of this.scope) this.free[type].push(index)
    this.scope = outer
  }

  /** Runs `write` and returns the statements that it emits, instead of adding them to the function's body. */
  capture(write: () => void): ReadonlyArray<Statement> {
    const outer = this.statements
    this.statements = []
    this.scoped(write)
    const inner = this.statements
    this.statements = outer
    return inner
  }

  /** Emits a loop that runs the statements of `write` `count` times; there is no loop if `count` is 1. */
  repeat(count: number, write: () => void): void {
    if (count <= 0) return
    if (count === 1) {
      this.scoped(write)
      return
    }
    this.scoped(() => {
      const left = this.let(i32.const(count))
      this.emit(loopWhile(this.capture(write), left.tee(i32.sub(left, i32.const(1)))))
    })
  }

  /** Returns a vector of four copies of a float32; `word` does so for a 32-bit integer. */
  constant(value: number): V128 {
    return this.word(bitsOf(value))
  }

  word(value: number): V128 {
    const address = this.target.pool.word(value)
    return address === undefined ? v128.const([value, value, value, value]) : v128.load32Splat(i32.const(0), address)
  }

  /** Adds the function to the module and returns its index. */
  finish(result?: Expression<ValueType>): number {
    const code = [this.statements, result === undefined ? [] : result.code]
    return this.target.module.define(this.type, this.locals, code, this.name)
  }

  /** Completes a function whose index the module has declared. */
  finishAs(index: number): void {
    this.target.module.complete(index, this.locals, [this.statements])
  }
}

/** Returns the types of `count` parameters that are addresses. */
export const addresses = (count: number): ReadonlyArray<ValueType> => new Array<ValueType>(count).fill("i32")
