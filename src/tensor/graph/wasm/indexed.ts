/**
 * Writes the WebAssembly functions for gather, which reads rows by index, and for its gradient, which adds to rows by
 * index. An index out of range counts as the last row.
 */
import type { FunctionBuilder } from "./function.ts"
import {
  choose,
  f32,
  f32x4,
  i32,
  type I32,
  type Local,
  loopWhile,
  memoryCopy,
  memoryFill,
  type Statement,
  v128,
} from "../../wasm/instructions.ts"

const bump = (pointer: Local<"i32">, bytes: number): Statement => pointer.set(i32.add(pointer, i32.const(bytes)))

/** Computes the address of the row whose index is stored at the address `indices`. */
const rowAddress = (f: FunctionBuilder, base: I32, indices: I32, rows: number, bytes: number): Local<"i32"> => {
  const index = f.let(i32.load(indices))
  const inRange = choose(i32.ltU(index, i32.const(rows)), index, i32.const(rows - 1))
  return f.let(i32.add(base, i32.mul(inRange, i32.const(bytes))))
}

/** Writes a loop over `count` indices: `write` emits its body, and the pointer `indices` moves to the next index. */
const eachIndex = (f: FunctionBuilder, indices: Local<"i32">, count: number, write: () => void): void => {
  const end = f.let(i32.add(indices, i32.const(4 * count)))
  f.emit(loopWhile(f.capture(write), i32.ltU(indices.tee(i32.add(indices, i32.const(4))), end)))
}

/** Writes a function that copies rows by index. Its parameters are the addresses of data, indices and output. */
export const writeGather = (f: FunctionBuilder, rows: number, bytes: number, count: number): void => {
  const [data, indices, out] = [0, 1, 2].map((i) => f.param("i32", i))
  eachIndex(f, indices, count, () => {
    const row = rowAddress(f, data, indices, rows, bytes)
    if (bytes > 256) f.emit(memoryCopy(out, row, i32.const(bytes)))
    else {
      let at = 0
      for (; at + 16 <= bytes; at += 16) f.emit(v128.store(out, v128.load(row, at), at))
      for (; at + 4 <= bytes; at += 4) f.emit(i32.store(out, i32.load(row, at), at))
      for (; at < bytes; at++) f.emit(i32.store8(out, i32.load8(row, at), at))
    }
    f.emit(bump(out, bytes))
  })
}

/** Writes a function that adds `count` updates to zeros; its parameters point to the indices, updates and output. */
export const writeScatterAdd = (f: FunctionBuilder, rows: number, width: number, count: number): void => {
  const [indices, updates, out] = [0, 1, 2].map((i) => f.param("i32", i))
  f.emit(memoryFill(out, i32.const(0), i32.const(4 * rows * width)))
  const vectors = Math.floor(width / 4)
  // With several vectors per row, a loop moves the pointers; with one, there is no loop.
  const moved = vectors > 1 ? 16 * vectors : 0
  eachIndex(f, indices, count, () => {
    const row = rowAddress(f, out, indices, rows, 4 * width)
    f.repeat(vectors, () => {
      f.emit(v128.store(row, f32x4.add(v128.load(row), v128.load(updates))))
      if (vectors > 1) f.emit([bump(row, 16), bump(updates, 16)])
    })
    for (let at = 16 * vectors - moved; at < 4 * width - moved; at += 4)
      f.emit(f32.store(row, f32.add(f32.load(row, at), f32.load(updates, at)), at))
    if (4 * width > moved) f.emit(bump(updates, 4 * width - moved))
  })
}
