/**
 * Reads the pickles of `torch.save` without running code. A pickle is a program. This interpreter knows only the few
 * instructions that build lists, dicts, tuples, numbers, strings and tensors, and a fixed list of names. It refuses any
 * other instruction or name before it has an effect.
 *
 * @example
 * ```ts
 * const value = readPickle(bytes) // { _tag: "Dict", entries: Map { "weight" => { _tag: "Tensor", … } } }
 * ```
 */
import type { Dtype } from "../dtypes.ts"
import { refusedOpcodes } from "./pickleOpcodes.ts"
import { refuse } from "./refuse.ts"
import { utf8 } from "../../text/utf8.ts"

type PickleValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | List
  | PickleTuple
  | PickleDict
  | Global
  | Storage
  | TensorView
type PickleKey = null | boolean | number | bigint | string

interface List {
  readonly _tag: "List"
  readonly items: Array<PickleValue>
}

interface PickleTuple {
  readonly _tag: "Tuple"
  readonly items: ReadonlyArray<PickleValue>
}

/** A dict or an OrderedDict. An OrderedDict may have attributes, which are ignored. */
export interface PickleDict {
  readonly _tag: "Dict"
  readonly ordered: boolean
  readonly entries: Map<PickleKey, PickleValue>
}

/** The name of a class in Python, such as `torch.FloatStorage`, or of a function that the instruction REDUCE calls. */
interface Global {
  readonly _tag: "Global"
  readonly name: string
}

/** A storage: a file of the archive that holds the numbers of one or several tensors. `key` is the file's name. */
interface Storage {
  readonly _tag: "Storage"
  readonly dtype: Dtype
  readonly key: string
  readonly elements: number
}

/** A tensor as a view of a storage, whose number `offset + i * stride[0] + j * stride[1]` is the element at [i, j]. */
export interface TensorView {
  readonly _tag: "Tensor"
  readonly storage: Storage
  readonly offset: number
  readonly shape: ReadonlyArray<number>
  readonly stride: ReadonlyArray<number>
}

const storages: ReadonlyMap<string, Dtype> = new Map([
  ["torch.DoubleStorage", "F64"],
  ["torch.FloatStorage", "F32"],
  ["torch.HalfStorage", "F16"],
  ["torch.BFloat16Storage", "BF16"],
  ["torch.LongStorage", "I64"],
  ["torch.IntStorage", "I32"],
  ["torch.ShortStorage", "I16"],
  ["torch.CharStorage", "I8"],
  ["torch.ByteStorage", "U8"],
  ["torch.BoolStorage", "BOOL"],
])
const orderedDict = "collections.OrderedDict"
const rebuildTensor = "torch._utils._rebuild_tensor_v2"
const rebuildParameter = "torch._utils._rebuild_parameter"
const allowed: ReadonlySet<string> = new Set([...storages.keys(), orderedDict, rebuildTensor, rebuildParameter])

/** Returns the value of a pickle. Throws a `FormatError` with the offset of the instruction. */
export const readPickle = (bytes: Uint8Array): PickleValue => new PickleMachine(bytes).run()

/** The largest number of objects in a pickle. `torch.save` writes about ten for each tensor, and an attacker one in each byte. */
const mostObjects = 2 ** 20

/** Executes the instructions of a pickle on a stack; `memo` keeps values that later instructions fetch by a number. */
class PickleMachine {
  readonly bytes: Uint8Array
  readonly view: DataView
  at = 0
  /** The offset of the current instruction in the pickle. */
  instruction = 0
  stack: Array<PickleValue> = []
  /** The stacks that MARK instructions have set aside; the stack of the last MARK is last. */
  readonly outerStacks: Array<Array<PickleValue>> = []
  readonly memo = new Map<number, PickleValue>()
  /** The number of values that take far more memory than the instruction that makes them. */
  objects = 0

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  run(): PickleValue {
    if (this.u8() !== 0x80) this.refuse("expected a pickle, which begins with byte 0x80")
    const protocol = this.u8()
    if (protocol !== 2) this.refuse(`it has protocol ${protocol}; torch.save writes protocol 2`)
    while (true) {
      this.instruction = this.at
      const opcode = this.u8()
      if (opcode === 0x2e) return this.stop()
      const execute = instructions[opcode] ?? this.refuseOpcode(opcode)
      execute(this)
    }
  }

  refuseOpcode(opcode: number): never {
    const name = refusedOpcodes.get(opcode)
    const code = `0x${opcode.toString(16).padStart(2, "0")}`
    return this.refuse(name === undefined ? `${code} is not an instruction` : `the instruction ${name} is not allowed`)
  }

  refuse(what: string): never {
    return refuse(`data.pkl, byte ${this.instruction}: ${what}`, this.instruction)
  }

  // ── Reading bytes

  /** Skips `size` bytes and returns the offset of the first of them. */
  take(size: number): number {
    if (this.at + size > this.bytes.length) this.refuse("the pickle ends too early")
    this.at += size
    return this.at - size
  }

  u8(): number {
    return this.view.getUint8(this.take(1))
  }

  u32(): number {
    return this.view.getUint32(this.take(4), true)
  }

  text(size: number): string {
    const at = this.take(size)
    try {
      return utf8.decodeExact(this.bytes.subarray(at, at + size))
    } catch {
      return this.refuse("a text is not UTF-8")
    }
  }

  line(): string {
    const end = this.bytes.indexOf(0x0a, this.at)
    if (end < 0) this.refuse("the pickle ends too early")
    const line = this.text(end - this.at)
    this.at = end + 1
    return line
  }

  /** Reads a little-endian integer of `size` bytes in two's complement; returns a bigint if it is beyond ±2^53. */
  long(size: number): number | bigint {
    const at = this.take(size)
    let value = 0n
    for (let index = size - 1; index >= 0; index--) value = (value << 8n) | BigInt(this.bytes[at + index])
    const signed = BigInt.asIntN(8 * size, value)
    return Number.isSafeInteger(Number(signed)) ? Number(signed) : signed
  }

  // ── The stack

  push(value: PickleValue): void {
    if (typeof value === "object") this.countObject()
    this.stack.push(value)
  }

  countObject(): void {
    if (++this.objects > mostObjects) this.refuse(`it makes more than ${mostObjects} lists, dicts, tuples and marks`)
  }

  pop(): PickleValue {
    const value = this.stack.pop()
    return value === undefined ? this.refuse("the stack is empty") : value
  }

  top(): PickleValue {
    const value = this.stack.at(-1)
    return value === undefined ? this.refuse("the stack is empty") : value
  }

  mark(): void {
    this.countObject()
    this.outerStacks.push(this.stack)
    this.stack = []
  }

  /** Returns the values since the last MARK instruction, and restores the stack from before it. */
  popMark(): Array<PickleValue> {
    const items = this.stack
    this.stack = this.outerStacks.pop() ?? this.refuse("there is no mark")
    return items
  }

  pushTuple(size: number): void {
    this.push({ _tag: "Tuple", items: Array.from({ length: size }, () => this.pop()).reverse() })
  }

  remembered(index: number): PickleValue {
    const value = this.memo.get(index)
    return value === undefined ? this.refuse(`the memo has no value ${index}`) : value
  }

  stop(): PickleValue {
    const value = this.pop()
    if (this.stack.length > 0 || this.outerStacks.length > 0) this.refuse("it ends with more than one value")
    if (this.at !== this.bytes.length) this.refuse("expected the end of the file after STOP")
    return value
  }

  // ── Building values

  append(items: ReadonlyArray<PickleValue>): void {
    const list = this.top()
    if (!isList(list)) return this.refuse(`a ${tagOf(list)} cannot be appended to`)
    for (const item of items) list.items.push(item)
  }

  set(items: ReadonlyArray<PickleValue>): void {
    const dict = this.top()
    if (!isDict(dict)) return this.refuse(`a ${tagOf(dict)} has no entries`)
    if (items.length % 2 !== 0) this.refuse("a key has no value")
    for (let index = 0; index < items.length; index += 2) {
      const key = items[index]
      if (typeof key === "object" && key !== null) return this.refuse(`a ${tagOf(key)} cannot be a key here`)
      dict.entries.set(key, items[index + 1])
    }
  }

  pushGlobal(): void {
    const name = `${this.line()}.${this.line()}`
    if (!allowed.has(name)) this.refuse(`the name ${JSON.stringify(name.slice(0, 200))} is not allowed`)
    this.push({ _tag: "Global", name })
  }

  /** Makes a storage from a reference such as `("storage", torch.FloatStorage, "0", "cpu", 12)`; ignores the device. */
  storage(id: PickleValue): Storage {
    const [kind, type, key, , elements] = isTuple(id) && id.items.length === 5 ? id.items : []
    const dtype = isGlobal(type) ? storages.get(type.name) : undefined
    if (kind !== "storage" || dtype === undefined || typeof key !== "string" || !isSize(elements)) {
      return this.refuse("a persistent id does not refer to a storage")
    }
    return { _tag: "Storage", dtype, key, elements }
  }

  /** Executes REDUCE, which calls a function: only the three allowed ones, and none of them runs as Python code. */
  reduce(): void {
    const args = this.pop()
    const callee = this.pop()
    if (!isGlobal(callee) || !isTuple(args)) return this.refuse(`a ${tagOf(callee)} cannot be called`)
    const wrong = () => this.refuse(`${callee.name} has arguments that torch.save does not write`)
    if (callee.name === orderedDict) {
      return args.items.length === 0 ? this.push({ _tag: "Dict", ordered: true, entries: new Map() }) : wrong()
    }
    if (callee.name === rebuildTensor) return this.push(tensorOf(args.items) ?? wrong())
    if (callee.name === rebuildParameter) {
      const [tensor] = args.items
      return args.items.length === 3 && isTensor(tensor) ? this.push(tensor) : wrong()
    }
    return this.refuse(`${callee.name} cannot be called`)
  }

  /**
   * Executes BUILD, which sets attributes. Only an OrderedDict may have them, and its attributes (e.g. `_metadata`) are
   * ignored.
   */
  build(): void {
    const state = this.pop()
    const built = this.top()
    if (!isDict(built) || !built.ordered)
      return this.refuse(`the instruction BUILD is not allowed on a ${tagOf(built)}`)
    if (!isDict(state)) return this.refuse(`the attributes are a ${tagOf(state)}`)
  }
}

/** The instructions that `torch.save` writes, by their codes, with their names in Python's `pickle`. */
const instructions: Readonly<Record<number, (machine: PickleMachine) => void>> = {
  0x28: (m) => m.mark(), // MARK
  0x4e: (m) => m.push(null), // NONE
  0x88: (m) => m.push(true), // NEWTRUE
  0x89: (m) => m.push(false), // NEWFALSE
  0x4a: (m) => m.push(m.view.getInt32(m.take(4), true)), // BININT
  0x4b: (m) => m.push(m.u8()), // BININT1
  0x4d: (m) => m.push(m.view.getUint16(m.take(2), true)), // BININT2
  0x8a: (m) => m.push(m.long(m.u8())), // LONG1
  0x47: (m) => m.push(m.view.getFloat64(m.take(8))), // BINFLOAT
  0x58: (m) => m.push(m.text(m.u32())), // BINUNICODE
  0x5d: (m) => m.push({ _tag: "List", items: [] }), // EMPTY_LIST
  0x29: (m) => m.push({ _tag: "Tuple", items: [] }), // EMPTY_TUPLE
  0x7d: (m) => m.push({ _tag: "Dict", ordered: false, entries: new Map() }), // EMPTY_DICT
  0x61: (m) => m.append([m.pop()]), // APPEND
  0x65: (m) => m.append(m.popMark()), // APPENDS
  0x73: (m) => m.set([m.pop(), m.pop()].reverse()), // SETITEM
  0x75: (m) => m.set(m.popMark()), // SETITEMS
  0x74: (m) => m.push({ _tag: "Tuple", items: m.popMark() }), // TUPLE
  0x85: (m) => m.pushTuple(1), // TUPLE1
  0x86: (m) => m.pushTuple(2), // TUPLE2
  0x87: (m) => m.pushTuple(3), // TUPLE3
  0x71: (m) => m.memo.set(m.u8(), m.top()), // BINPUT
  0x72: (m) => m.memo.set(m.u32(), m.top()), // LONG_BINPUT
  0x68: (m) => m.push(m.remembered(m.u8())), // BINGET
  0x6a: (m) => m.push(m.remembered(m.u32())), // LONG_BINGET
  0x63: (m) => m.pushGlobal(), // GLOBAL
  0x51: (m) => m.push(m.storage(m.pop())), // BINPERSID
  0x52: (m) => m.reduce(), // REDUCE
  0x62: (m) => m.build(), // BUILD
}

/** Makes a tensor from the arguments of `_rebuild_tensor_v2`; returns undefined if they are not what torch writes. */
const tensorOf = (args: ReadonlyArray<PickleValue>): TensorView | undefined => {
  const [storage, offset, shape, stride] = args
  // The others are requires_grad, backward_hooks and, in newer versions, metadata.
  if (args.length !== 6 && args.length !== 7) return undefined
  if (!isStorage(storage) || !isSize(offset) || !isTuple(shape) || !isTuple(stride)) return undefined
  if (shape.items.length > mostAxes) return undefined
  const sizes = shape.items.filter(isSize)
  const strides = stride.items.filter(isSize)
  if (sizes.length !== shape.items.length || strides.length !== stride.items.length) return undefined
  return sizes.length === strides.length
    ? { _tag: "Tensor", storage, offset, shape: sizes, stride: strides }
    : undefined
}

/** The largest number of axes of a tensor, which is torch's own limit. */
const mostAxes = 64

const isSize = (value: PickleValue | undefined): value is number => Number.isSafeInteger(value) && Number(value) >= 0

/** Names the type of a value, for messages. */
export const tagOf = (value: PickleValue): string =>
  value === null ? "None" : typeof value === "object" ? value._tag : typeof value

const has = (value: PickleValue | undefined, tag: string): boolean =>
  typeof value === "object" && value !== null && value._tag === tag
const isList = (value: PickleValue): value is List => has(value, "List")
const isTuple = (value: PickleValue): value is PickleTuple => has(value, "Tuple")
export const isDict = (value: PickleValue): value is PickleDict => has(value, "Dict")
const isGlobal = (value: PickleValue | undefined): value is Global => has(value, "Global")
const isStorage = (value: PickleValue): value is Storage => has(value, "Storage")
export const isTensor = (value: PickleValue): value is TensorView => has(value, "Tensor")
