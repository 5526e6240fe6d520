/**
 * Reads the code of modules that `tensor/wasm/encode.ts` has made, as trees (`code.ts`). It knows the instructions of
 * `tensor/wasm/instructions.ts`, in the forms that it makes, and throws at any other.
 */
import { utf8 } from "../../base/text/utf8.ts"
import type { ValueType } from "../wasm/encode.ts"
import { type DecodedFunction, type DecodedModule, some, type Step, type Value } from "./code.ts"
import {
  laneLoads,
  laneStores,
  type Operation,
  plainLoads,
  plainOperations,
  plainStores,
  typeOf,
  vectorLoads,
  vectorOperations,
} from "./opcodes.ts"

interface Signature {
  readonly params: ReadonlyArray<ValueType>
  readonly results: ReadonlyArray<ValueType>
}

/** Reads the numbers of a module. */
class Reader {
  private readonly bytes: Uint8Array
  at = 0

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }

  get done(): boolean {
    return this.at >= this.bytes.length
  }

  byte(): number {
    if (this.done) throw new Error("decode: the module ends too early")
    return this.bytes[this.at++]
  }

  take(count: number): Uint8Array {
    this.at += count
    return this.bytes.subarray(this.at - count, this.at)
  }

  unsigned(): number {
    return Number(this.leb(false))
  }

  /** Reads a signed number of up to 64 bits. */
  signed(): bigint {
    return this.leb(true)
  }

  list<A>(read: () => A): ReadonlyArray<A> {
    return Array.from({ length: this.unsigned() }, read)
  }

  sized(): Reader {
    return new Reader(this.take(this.unsigned()))
  }

  text(): string {
    return utf8.decode(this.take(this.unsigned()))
  }

  words(count: number): ReadonlyArray<number> {
    const bytes = this.take(4 * count)
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    return Array.from({ length: count }, (_, i) => view.getInt32(4 * i, true))
  }

  private leb(signed: boolean): bigint {
    let value = 0n
    let shift = 0n
    for (;;) {
      const byte = this.byte()
      value |= BigInt(byte & 0x7f) << shift
      shift += 7n
      if ((byte & 0x80) !== 0) continue
      return signed && (byte & 0x40) !== 0 ? value - (1n << shift) : value
    }
  }
}

/** Reads a module. The functions `skipped` have no code in the result, because others take their places. */
export const decode = (
  bytes: Uint8Array,
  { skipped, dispatching }: { readonly skipped: ReadonlyArray<number>; readonly dispatching: number | undefined } = {
    skipped: [],
    dispatching: undefined,
  },
): DecodedModule => {
  const reader = new Reader(bytes)
  reader.take(8)
  let types: ReadonlyArray<Signature> = []
  let signatures: ReadonlyArray<Signature> = []
  let functions: ReadonlyArray<DecodedFunction> = []
  const exports = new Map<string, number>()
  const typeList = (from: Reader): ReadonlyArray<ValueType> => from.list(() => typeOf(from.byte()))
  while (!reader.done) {
    const id = reader.byte()
    const section = reader.sized()
    switch (id) {
      case 1:
        types = section.list(() => {
          section.byte()
          return { params: typeList(section), results: typeList(section) }
        })
        break
      case 2:
        if (dispatching === undefined)
          throw new Error("decode: it is unknown how threads divide the work of the module")
        break
      case 3:
        signatures = section.list(() => types[section.unsigned()])
        break
      case 7:
        section.list(() => {
          const name = section.text()
          const isFunction = section.byte() === 0
          const index = section.unsigned()
          if (isFunction) exports.set(name, index)
        })
        break
      case 10: {
        let next = 0
        functions = section.list(() => {
          const index = next++
          const code = section.sized()
          const signature = signatures[index]
          if (skipped.includes(index))
            return { params: signature.params, locals: signature.params, body: [], result: undefined }
          const reader = new FunctionReader(code, signature, signatures)
          return index === dispatching ? reader.readDispatch() : reader.read()
        })
        break
      }
      default:
    }
  }
  return { functions, exports }
}

/** Reads the code of one function: keeps the values of WebAssembly's stack as trees until a step takes them. */
class FunctionReader {
  private readonly reader: Reader
  private readonly signature: Signature
  private readonly signatures: ReadonlyArray<Signature>
  private readonly locals: Array<ValueType>
  private stack: Array<Value> = []
  private steps: Array<Step> = []

  constructor(reader: Reader, signature: Signature, signatures: ReadonlyArray<Signature>) {
    this.reader = reader
    this.signature = signature
    this.signatures = signatures
    this.locals = [...signature.params]
  }

  private readLocals(): void {
    const { reader, locals } = this
    reader.list(() => {
      const count = reader.unsigned()
      const type = typeOf(reader.byte())
      for (let i = 0; i < count; i++) locals.push(type)
    })
  }

  /** Reads a function whose body is a `dispatch`: one of many cases, chosen by the first parameter. */
  readDispatch(): DecodedFunction {
    const { reader, locals, signature } = this
    this.readLocals()
    let code = reader.byte()
    for (; code === 0x02; code = reader.byte()) this.expect([0x40], "a block")
    for (; code !== 0x0e; code = reader.byte()) this.instruction(code)
    const index = this.pop()
    const count = reader.list(() => reader.unsigned()).length
    // The last number of the table leaves the function.
    if (reader.unsigned() !== count) throw new Error("decode: a choice among cases has an unknown form")
    const body = Array.from({ length: count }, (_, i): Step => {
      this.expect([0x0b], "a case")
      this.steps = []
      for (code = reader.byte(); code !== 0x0c; code = reader.byte()) this.instruction(code)
      if (reader.unsigned() !== count - 1 - i) throw new Error("decode: a case does not end the choice")
      const value: Value = { kind: "constant", type: "i32", words: [i] }
      const condition: Value = { kind: "operation", type: "i32", name: "i32.eq", args: [index, value], lanes: [] }
      return { kind: "when", body: this.steps, condition }
    })
    this.expect([0x0b, 0x0b], "a choice among cases")
    return { params: signature.params, locals, body, result: undefined }
  }

  read(): DecodedFunction {
    const { locals } = this
    this.readLocals()
    this.block()
    const result = this.signature.results.length === 0 ? undefined : this.pop()
    return { params: this.signature.params, locals, body: this.steps, result }
  }

  private pop(): Value {
    const value = this.stack.pop()
    if (value === undefined) throw new Error("decode: an instruction lacks an operand")
    return value
  }

  private popAll(count: number): ReadonlyArray<Value> {
    return Array.from({ length: count }, () => this.pop()).toReversed()
  }

  /** Computes the values on the stack for which a test holds, because a step would change what they read. */
  private settle(changes: (part: Value) => boolean): void {
    this.stack = this.stack.map((value) => {
      if (!some(value, changes)) return value
      const local = this.locals.push(value.type) - 1
      this.steps.push({ kind: "set", local, value })
      return { kind: "local", type: value.type, local }
    })
  }

  private set(local: number, value: Value): void {
    this.settle((part) => part.kind === "local" && part.local === local)
    this.steps.push({ kind: "set", local, value })
  }

  /** Adds a step that changes memory. */
  private change(step: Step): void {
    this.settle((part) => part.kind === "load")
    this.steps.push(step)
  }

  /** Reads instructions up to the end of the block. A loop ends with a jump to its start, whose condition is returned. */
  private block(): Value | undefined {
    for (;;) {
      const code = this.reader.byte()
      if (code === 0x0b) return undefined
      if (code === 0x0d) {
        this.expect([0x00, 0x0b], "a jump")
        return this.pop()
      }
      this.instruction(code)
    }
  }

  private expect(bytes: ReadonlyArray<number>, what: string): void {
    for (const byte of bytes) if (this.reader.byte() !== byte) throw new Error(`decode: ${what} has an unknown form`)
  }

  private inside(): { readonly body: ReadonlyArray<Step>; readonly condition: Value | undefined } {
    this.expect([0x40], "a block")
    // A step inside the block could change what the waiting values read.
    if (this.stack.length > 0) throw new Error("decode: values wait on the stack while a block begins")
    const outer = this.steps
    this.steps = []
    const condition = this.block()
    const body = this.steps
    this.steps = outer
    return { body, condition }
  }

  private instruction(code: number): void {
    const { reader, stack } = this
    const operation = plainOperations.get(code)
    if (operation !== undefined) return this.operate(operation)
    const load = plainLoads.get(code)
    if (load !== undefined) {
      const [address] = this.popAll(1)
      stack.push({ kind: "load", ...load, address, offset: this.offset() })
      return
    }
    const store = plainStores.get(code)
    if (store !== undefined) return this.store(store, false)
    switch (code) {
      case 0x03: {
        const { body, condition } = this.inside()
        if (condition === undefined) throw new Error("decode: a loop has no condition")
        this.steps.push({ kind: "loop", body, condition })
        return
      }
      case 0x04: {
        const condition = this.pop()
        this.steps.push({ kind: "when", body: this.inside().body, condition })
        return
      }
      case 0x10:
        return this.call(reader.unsigned())
      case 0x1a:
        this.pop()
        return
      case 0x1b:
        return this.operate({ name: "select", takes: 3, type: stack[stack.length - 2].type })
      case 0x20: {
        const local = reader.unsigned()
        stack.push({ kind: "local", type: this.locals[local], local })
        return
      }
      case 0x21:
        return this.set(reader.unsigned(), this.pop())
      case 0x22: {
        const local = reader.unsigned()
        this.set(local, this.pop())
        this.stack.push({ kind: "local", type: this.locals[local], local })
        return
      }
      case 0x41:
        stack.push({ kind: "constant", type: "i32", words: [Number(BigInt.asIntN(32, reader.signed()))] })
        return
      case 0x42: {
        const value = reader.signed()
        const words = [Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n))]
        stack.push({ kind: "constant", type: "i64", words })
        return
      }
      case 0x44:
        stack.push({ kind: "constant", type: "f64", words: reader.words(2) })
        return
      case 0xfc:
        return this.prefixed(reader.unsigned())
      case 0xfd:
        return this.vector(reader.unsigned())
      default:
        throw new Error(`decode: unknown instruction ${code}`)
    }
  }

  private offset(): number {
    this.expect([0x00], "an access to memory")
    return this.reader.unsigned()
  }

  private operate({ lanes = 0, name, takes, type }: Operation): void {
    const args = this.popAll(takes)
    this.stack.push({ kind: "operation", type, name, args, lanes: [...this.reader.take(lanes)] })
  }

  private store(name: string, hasLane: boolean): void {
    const offset = this.offset()
    const lane = hasLane ? { lane: this.reader.byte() } : {}
    const [address, value] = this.popAll(2)
    this.change({ kind: "store", name, address, value, offset, ...lane })
  }

  private call(fn: number): void {
    const { params, results } = this.signatures[fn]
    const args = this.popAll(params.length)
    if (results.length === 0) return this.change({ kind: "call", fn, args })
    const local = this.locals.push(results[0]) - 1
    this.change({ kind: "call", fn, args, result: local })
    this.stack.push({ kind: "local", type: results[0], local })
  }

  private prefixed(code: number): void {
    if (code === 0x06) return this.operate({ name: "i64.trunc_sat_f64_s", takes: 1, type: "i64" })
    if (code !== 0x0a && code !== 0x0b) throw new Error(`decode: unknown instruction 0xfc ${code}`)
    this.expect(code === 0x0a ? [0x00, 0x00] : [0x00], "a copy")
    const [to, source, bytes] = this.popAll(3)
    this.change({ kind: "bulk", name: code === 0x0a ? "copy" : "fill", to, source, bytes })
  }

  private vector(code: number): void {
    const { reader } = this
    const operation = vectorOperations.get(code)
    if (operation !== undefined) return this.operate(operation)
    const load = vectorLoads.get(code)
    if (load !== undefined) {
      const [address] = this.popAll(1)
      this.stack.push({ kind: "load", type: "v128", name: load, address, offset: this.offset() })
      return
    }
    const laneLoad = laneLoads.get(code)
    if (laneLoad !== undefined) {
      const [address, into] = this.popAll(2)
      const offset = this.offset()
      this.stack.push({ kind: "load", type: "v128", name: laneLoad, address, offset, into, lane: reader.byte() })
      return
    }
    if (code === 11) return this.store("v128.store", false)
    const laneStore = laneStores.get(code)
    if (laneStore !== undefined) return this.store(laneStore, true)
    if (code === 12) {
      this.stack.push({ kind: "constant", type: "v128", words: reader.words(4) })
      return
    }
    if (code !== 13) throw new Error(`decode: unknown instruction 0xfd ${code}`)
    // All shuffles are of lanes of four bytes.
    const args = this.popAll(2)
    const lanes = [...reader.take(16)].filter((_, i) => i % 4 === 0).map((byte) => byte / 4)
    this.stack.push({ kind: "operation", type: "v128", name: "v128.shuffle", args, lanes })
  }
}
