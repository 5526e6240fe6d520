/**
 * Defines the instructions with which threads that share a memory coordinate. All are sequentially consistent: a thread
 * that reads a number written by `store` or `add` also sees everything that the writer wrote before it. Addresses must
 * be multiples of the size of the number.
 */
import { type WasmCode, unsigned, type ValueType } from "./encode.ts"
import type { Expression, I32, I64, Statement } from "./instructions.ts"

/** Encodes an atomic access to memory; `alignment` is the power of two of the number's size. */
const atomic = (opcode: number, alignment: number): WasmCode => [0xfe, opcode, alignment, unsigned(0)]

const load =
  <T extends ValueType>(type: T, code: WasmCode) =>
  (address: I32): Expression<T> => ({ type, code: [address.code, code] })
const store =
  <T extends ValueType>(code: WasmCode) =>
  (address: I32, value: Expression<T>): Statement => [address.code, value.code, code]
/**
 * Makes a function that encodes an atomic change of a number. The instruction returns the number from before the
 * change.
 */
const change =
  <T extends ValueType>(type: T, code: WasmCode) =>
  (address: I32, value: Expression<T>): Expression<T> => ({ type, code: [address.code, value.code, code] })

export const atomic32 = {
  load: load("i32", atomic(0x10, 2)),
  store: store<"i32">(atomic(0x17, 2)),
  add: change("i32", atomic(0x1e, 2)),
}

export const atomic64 = {
  load: load("i64", atomic(0x11, 3)),
  store: store<"i64">(atomic(0x18, 3)),
  /** Writes `next` if the number at the address is `expected`. Returns the number from before. */
  compareExchange: (address: I32, expected: I64, next: I64): I64 => ({
    type: "i64",
    code: [address.code, expected.code, next.code, atomic(0x49, 3)],
  }),
}

/** Drops the result of an expression. */
export const discard = ({ code }: Expression<ValueType>): Statement => [code, 0x1a]

/** The time-out of a wait without a limit. */
const forever: WasmCode = [0x42, 0x7f]

/** Sleeps until another thread calls `notify` with the address. Does not sleep if the number there is not `expected`. */
export const wait32 = (address: I32, expected: I32): Statement => [
  address.code,
  expected.code,
  forever,
  atomic(0x01, 2),
  0x1a,
]
export const wait64 = (address: I32, expected: I64): Statement => [
  address.code,
  expected.code,
  forever,
  atomic(0x02, 3),
  0x1a,
]

/** Wakes all threads that sleep at the address. */
export const notify = (address: I32): Statement => [address.code, [0x41, 0x7f], atomic(0x00, 2), 0x1a]
