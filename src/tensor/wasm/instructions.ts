/**
 * Defines functions that make typed WebAssembly instructions; their names follow WebAssembly's text format. An
 * expression is code that leaves a value on the stack, together with the value's type; a statement is code that leaves
 * nothing. Both are plain values, composed by calling functions; `encode.ts` makes modules of them. A value of the type
 * `v128` is a vector of 16 bytes, divided into lanes: for `f32x4`, four floats.
 *
 * ```ts
 * const [index, sum] = [local("i32", 0), local("v128", 1)]
 * const next = i32.add(index, i32.const(16))
 * const loop = loopWhile([sum.set(f32x4.add(sum, v128.load(next)))], i32.ltU(index.tee(next), i32.const(256)))
 * ```
 */
import { type WasmCode, signed, signed64, unsigned, type ValueType } from "./encode.ts"

export interface Expression<T extends ValueType> {
  readonly type: T
  readonly code: WasmCode
}

export type I32 = Expression<"i32">
export type I64 = Expression<"i64">
type F32 = Expression<"f32">
export type F64 = Expression<"f64">
export type V128 = Expression<"v128">
export type Statement = WasmCode

/** A local variable: an expression that reads it. `set` writes it; `tee` writes it and leaves the value as well. */
export interface Local<T extends ValueType> extends Expression<T> {
  readonly set: (value: Expression<T>) => Statement
  readonly tee: (value: Expression<T>) => Expression<T>
}

export const local = <T extends ValueType>(type: T, index: number): Local<T> => {
  const number = unsigned(index)
  return {
    type,
    code: [0x20, number],
    set: (value) => [value.code, 0x21, number],
    tee: (value) => ({ type, code: [value.code, 0x22, number] }),
  }
}

/** Makes a function that encodes an instruction with one operand, of type A, and a result of type R. */
const unary =
  <A extends ValueType, R extends ValueType>(opcode: WasmCode, type: R) =>
  (a: Expression<A>): Expression<R> => ({ type, code: [a.code, opcode] })
/** Makes a function that encodes an instruction with two operands of type A, and a result of type R. */
const binary =
  <A extends ValueType, R extends ValueType>(opcode: WasmCode, type: R) =>
  (a: Expression<A>, b: Expression<A>): Expression<R> => ({ type, code: [a.code, b.code, opcode] })

// SIMD instructions (on vectors) begin with the byte 0xfd. A 1 or 2 in the names below is the number of operands.
const simd = (opcode: number): WasmCode => [0xfd, unsigned(opcode)]
const vectors1 = (opcode: number) => unary<"v128", "v128">(simd(opcode), "v128")
const vectors2 = (opcode: number) => binary<"v128", "v128">(simd(opcode), "v128")
const ints2 = (opcode: number) => binary<"i32", "i32">(opcode, "i32")
const longs2 = (opcode: number) => binary<"i64", "i64">(opcode, "i64")
const doubles1 = (opcode: number) => unary<"f64", "f64">(opcode, "f64")
const doubles2 = (opcode: number) => binary<"f64", "f64">(opcode, "f64")
const doublesTest = (opcode: number) => binary<"f64", "i32">(opcode, "i32")

/** Encodes an access to memory: no alignment is promised (0), and `offset` is added to the address. */
const memory = (opcode: WasmCode, offset: number): WasmCode => [opcode, 0x00, unsigned(offset)]
const load =
  <T extends ValueType>(opcode: WasmCode, type: T) =>
  (address: I32, offset = 0): Expression<T> => ({ type, code: [address.code, memory(opcode, offset)] })
const store =
  <T extends ValueType>(opcode: WasmCode) =>
  (address: I32, value: Expression<T>, offset = 0): Statement => [address.code, value.code, memory(opcode, offset)]
/** Makes a function that encodes a load of one lane; all other lanes are copied from the vector `into`. */
const loadLane =
  (opcode: number) =>
  (address: I32, into: V128, lane: number, offset = 0): V128 => ({
    type: "v128",
    code: [address.code, into.code, memory(simd(opcode), offset), lane],
  })
const storeLane =
  (opcode: number) =>
  (address: I32, value: V128, lane: number, offset = 0): Statement => [
    address.code,
    value.code,
    memory(simd(opcode), offset),
    lane,
  ]

const bytesOf = (fill: (view: DataView) => void, size: number): ReadonlyArray<number> => {
  const view = new DataView(new ArrayBuffer(size))
  fill(view)
  return [...new Uint8Array(view.buffer)]
}

export const i32 = {
  const: (value: number): I32 => ({ type: "i32", code: [0x41, signed(value)] }),
  add: ints2(0x6a),
  sub: ints2(0x6b),
  mul: ints2(0x6c),
  and: ints2(0x71),
  or: ints2(0x72),
  shl: ints2(0x74),
  shrU: ints2(0x76),
  eq: ints2(0x46),
  ne: ints2(0x47),
  ltU: ints2(0x49),
  gtS: ints2(0x4a),
  gtU: ints2(0x4b),
  eqz: unary<"i32", "i32">(0x45, "i32"),
  load: load(0x28, "i32"),
  load8: load(0x2d, "i32"),
  store: store<"i32">(0x36),
  store8: store<"i32">(0x3a),
  wrap: unary<"i64", "i32">(0xa7, "i32"),
}

export const i64 = {
  const: (value: bigint): I64 => ({ type: "i64", code: [0x42, signed64(value)] }),
  add: longs2(0x7c),
  sub: longs2(0x7d),
  eq: binary<"i64", "i32">(0x51, "i32"),
  shl: longs2(0x86),
  shrS: longs2(0x87),
  shrU: longs2(0x88),
  reinterpret: unary<"f64", "i64">(0xbd, "i64"),
  truncSat: unary<"f64", "i64">([0xfc, 0x06], "i64"),
  extendU: unary<"i32", "i64">(0xad, "i64"),
}

export const f32 = {
  add: binary<"f32", "f32">(0x92, "f32"),
  load: load(0x2a, "f32"),
  store: store<"f32">(0x38),
  demote: unary<"f64", "f32">(0xb6, "f32"),
}

export const f64 = {
  const: (value: number): F64 => ({ type: "f64", code: [0x44, bytesOf((view) => view.setFloat64(0, value, true), 8)] }),
  eq: doublesTest(0x61),
  ne: doublesTest(0x62),
  lt: doublesTest(0x63),
  gt: doublesTest(0x64),
  abs: doubles1(0x99),
  neg: doubles1(0x9a),
  floor: doubles1(0x9c),
  nearest: doubles1(0x9e),
  add: doubles2(0xa0),
  sub: doubles2(0xa1),
  mul: doubles2(0xa2),
  div: doubles2(0xa3),
  min: doubles2(0xa4),
  max: doubles2(0xa5),
  promote: unary<"f32", "f64">(0xbb, "f64"),
  reinterpret: unary<"i64", "f64">(0xbf, "f64"),
  convertS: unary<"i64", "f64">(0xb9, "f64"),
}

const zero: V128 = { type: "v128", code: [0xfd, 12, new Array<number>(16).fill(0)] }

export const v128 = {
  zero,
  load: load(simd(0), "v128"),
  load32Splat: load(simd(9), "v128"),
  load32Zero: load(simd(92), "v128"),
  store: store<"v128">(simd(11)),
  load8Lane: loadLane(84),
  load32Lane: loadLane(86),
  store8Lane: storeLane(88),
  store32Lane: storeLane(90),
  store64Lane: storeLane(91),
  /** Makes a constant vector of four 32-bit lanes. */
  const: (lanes: readonly [number, number, number, number]): V128 => ({
    type: "v128",
    code: [simd(12), bytesOf((view) => lanes.forEach((lane, i) => view.setInt32(4 * i, lane, true)), 16)],
  }),
  /** Selects four 32-bit lanes by index: 0 to 3 are the lanes of a, and 4 to 7 are the lanes of b. */
  shuffle: (a: V128, b: V128, lanes: readonly [number, number, number, number]): V128 => ({
    type: "v128",
    code: [a.code, b.code, simd(13), lanes.flatMap((lane) => [4 * lane, 4 * lane + 1, 4 * lane + 2, 4 * lane + 3])],
  }),
  not: vectors1(77),
  and: vectors2(78),
  or: vectors2(80),
  xor: vectors2(81),
  /** Selects the bits of a where the mask's bits are set, and the bits of b elsewhere. */
  bitselect: (a: V128, b: V128, mask: V128): V128 => ({ type: "v128", code: [a.code, b.code, mask.code, simd(82)] }),
}

/** Instructions on vectors of four signed 32-bit integers. */
export const i32x4 = {
  splat: unary<"i32", "v128">(simd(17), "v128"),
  eq: vectors2(55),
  ne: vectors2(56),
  lt: vectors2(57),
  gt: vectors2(59),
  le: vectors2(61),
  ge: vectors2(63),
  neg: vectors1(161),
  add: vectors2(174),
  sub: vectors2(177),
  mul: vectors2(181),
  min: vectors2(182),
  max: vectors2(184),
  shl: (a: V128, bits: number): V128 => ({ type: "v128", code: [a.code, i32.const(bits).code, simd(171)] }),
  shrS: (a: V128, bits: number): V128 => ({ type: "v128", code: [a.code, i32.const(bits).code, simd(172)] }),
  truncSat: vectors1(248),
  /** Converts the bytes 0 to 3 of a vector, as unsigned numbers, to four 32-bit lanes. */
  extendLowBytes: (a: V128): V128 => ({ type: "v128", code: [a.code, simd(137), simd(169)] }),
  /** Converts four 32-bit lanes, each from 0 to 255, to the bytes 0 to 3. */
  narrowToBytes: (a: V128): V128 => ({ type: "v128", code: [a.code, zero.code, simd(133), zero.code, simd(102)] }),
}

export const f32x4 = {
  splat: unary<"f32", "v128">(simd(19), "v128"),
  extract: (a: V128, lane: number): F32 => ({ type: "f32", code: [a.code, simd(31), lane] }),
  replace: (a: V128, lane: number, value: F32): V128 => ({ type: "v128", code: [a.code, value.code, simd(32), lane] }),
  eq: vectors2(65),
  ne: vectors2(66),
  lt: vectors2(67),
  gt: vectors2(68),
  le: vectors2(69),
  ge: vectors2(70),
  floor: vectors1(104),
  abs: vectors1(224),
  neg: vectors1(225),
  sqrt: vectors1(227),
  add: vectors2(228),
  sub: vectors2(229),
  mul: vectors2(230),
  div: vectors2(231),
  /** Returns the smaller number, or NaN if either is NaN. */
  min: vectors2(232),
  max: vectors2(233),
  /** Computes b < a ? b : a, which is a if either is NaN. On x86 it is one instruction, while `min` is seven. */
  pmin: vectors2(234),
  /** Computes a < b ? b : a, which is a if either is NaN. */
  pmax: vectors2(235),
  convert: vectors1(250),
}

export const f64x2 = {
  splat: unary<"f64", "v128">(simd(20), "v128"),
  floor: vectors1(117),
  nearest: vectors1(148),
  sub: vectors2(241),
  mul: vectors2(242),
  /** Converts the first two floats of a vector to doubles; `demoteZero` does the reverse, and sets the rest to 0. */
  promoteLow: vectors1(95),
  demoteZero: vectors1(94),
  truncSatZero: vectors1(252),
}

const bulk =
  (opcode: WasmCode) =>
  (to: I32, source: I32, bytes: I32): Statement => [to.code, source.code, bytes.code, opcode]
/** Copies `bytes` bytes from the address `source` to the address `to`. */
export const memoryCopy = bulk([0xfc, 0x0a, 0x00, 0x00])
/** Sets `bytes` bytes from the address `to` on; here `source` is not an address but the value of each byte. */
export const memoryFill = bulk([0xfc, 0x0b, 0x00])

/** Runs the body once, and again as long as the condition is not 0 after it. */
export const loopWhile = (body: ReadonlyArray<Statement>, condition: I32): Statement => [
  0x03,
  0x40,
  body,
  condition.code,
  0x0d,
  0x00,
  0x0b,
]

/** Runs the body if the condition is not 0. */
export const when = (condition: I32, body: ReadonlyArray<Statement>): Statement => [
  condition.code,
  0x04,
  0x40,
  body,
  0x0b,
]

/** Runs the case with this index; none if the index is out of range. */
export const dispatch = (index: I32, cases: ReadonlyArray<Statement>): Statement => {
  const last = cases.length
  // Block i ends where case i begins, so a branch out of block i runs case i. Each case then leaves the outermost block.
  return [
    cases.map(() => [0x02, 0x40]),
    [0x02, 0x40],
    [index.code, 0x0e, unsigned(last), cases.map((_, i) => unsigned(i)), unsigned(last)],
    cases.map((statement, i) => [0x0b, statement, 0x0c, unsigned(last - 1 - i)]),
    0x0b,
  ]
}

/** Returns `then` if the condition is not 0, else `otherwise`. Both are computed in any case. */
export const choose = <T extends ValueType>(
  condition: I32,
  then: Expression<T>,
  otherwise: Expression<T>,
): Expression<T> => ({ type: then.type, code: [then.code, otherwise.code, condition.code, 0x1b] })

export const call = (index: number, args: ReadonlyArray<Expression<ValueType>> = []): Statement => [
  args.map((argument) => argument.code),
  0x10,
  unsigned(index),
]

/** Calls the function with this index in the module; `type` is the type of its result. Use `call` if it has none. */
export const callFor = <T extends ValueType>(
  type: T,
  index: number,
  args: ReadonlyArray<Expression<ValueType>>,
): Expression<T> => ({ type, code: call(index, args) })
