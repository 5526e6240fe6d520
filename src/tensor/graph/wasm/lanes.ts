/**
 * Emits code that loads and stores up to four elements of a vector (its lanes). Numbers of four bytes have the same bits
 * in memory and in lanes; a bool is a byte in memory, and a mask (all bits set or none) in a lane; an i8 is a byte in memory, and
 * the i32 of the same value in a lane.
 *
 * Callers store neighbouring vectors from last to first. The reason: V8 combines two stores to one of 256 bits. If the
 * first store were at the lower address, V8 would store that vector once more, in case the upper address is out of
 * bounds.
 */
import type { DType } from "../Tensor.ts"
import type { FunctionBuilder } from "./function.ts"
import { bytesPer } from "./ir.ts"
import { i32, type I32, i32x4, v128, type V128 } from "../../wasm/instructions.ts"

const { zero } = v128

/** Converts the lanes of a bool or an i8, whose lowest bytes are those in memory. */
const converted = (dtype: DType, lanes: V128): V128 =>
  dtype === "bool" ? i32x4.ne(lanes, zero) : i32x4.shrS(i32x4.shl(lanes, 24), 24)

const fromBytes = (dtype: DType, bytes: V128): V128 => converted(dtype, i32x4.extendLowBytes(bytes))

/** Loads one element to all four lanes. */
export const loadSplat = (f: FunctionBuilder, dtype: DType, address: I32, offset: number): V128 =>
  f.let(
    bytesPer(dtype) === 1
      ? converted(dtype, i32x4.splat(i32.load8(address, offset)))
      : v128.load32Splat(address, offset),
  )

/** Loads `count` elements (1 to 4) that are `stride` bytes apart; the other lanes are undefined. */
export const loadLanes = (
  f: FunctionBuilder,
  dtype: DType,
  address: I32,
  offset: number,
  stride: number,
  count: number,
): V128 => {
  if (bytesPer(dtype) === 1) {
    if (stride === 1) return f.let(fromBytes(dtype, v128.load32Zero(address, offset)))
    let lanes = zero
    for (let lane = 0; lane < count; lane++) lanes = v128.load8Lane(address, lanes, lane, offset + lane * stride)
    return f.let(fromBytes(dtype, lanes))
  }
  // Every array has room for a whole vector after its last element.
  if (stride === 4) return f.let(v128.load(address, offset))
  if (stride === 8) {
    const [low, high] = [v128.load(address, offset), v128.load(address, offset + 16)]
    return f.let(v128.shuffle(low, high, [0, 2, 4, 6]))
  }
  let lanes = v128.load32Zero(address, offset)
  for (let lane = 1; lane < count; lane++) lanes = v128.load32Lane(address, lanes, lane, offset + lane * stride)
  return f.let(lanes)
}

export const storeLanes = (
  f: FunctionBuilder,
  dtype: DType,
  address: I32,
  offset: number,
  stride: number,
  count: number,
  value: V128,
): void => {
  if (bytesPer(dtype) === 1) {
    const bytes = f.let(i32x4.narrowToBytes(v128.and(value, f.word(dtype === "bool" ? 1 : 255))))
    if (stride === 1 && count === 4) f.emit(v128.store32Lane(address, bytes, 0, offset))
    else for (let lane = 0; lane < count; lane++) f.emit(v128.store8Lane(address, bytes, lane, offset + lane * stride))
    return
  }
  if (stride === 4 && count === 4) {
    f.emit(v128.store(address, value, offset))
    return
  }
  const lanes = f.let(value)
  if (stride === 4 && count >= 2) {
    f.emit(v128.store64Lane(address, lanes, 0, offset))
    if (count === 3) f.emit(v128.store32Lane(address, lanes, 2, offset + 8))
    return
  }
  for (let lane = 0; lane < count; lane++) f.emit(v128.store32Lane(address, lanes, lane, offset + lane * stride))
}
