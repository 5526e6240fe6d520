/**
 * Emits copies of a few columns of a matrix to contiguous memory: a panel, whose rows are whole vectors of floats, as the
 * tiles of a product (`tiles.ts`) read it. Where the numbers of a column are neighbours, the copy transposes them in
 * registers; bytes become floats.
 */
import type { DType } from "../../Tensor.ts"
import type { FunctionBuilder } from "../function.ts"
import { bytesPer } from "../ir.ts"
import { loadLanes } from "../lanes.ts"
import { f32x4, i32, i32x4, type Local, v128, type V128 } from "../../../wasm/instructions.ts"
import { transposed } from "../transposed.ts"

/** A matrix, f32 or i8: the address of its first row, and the strides in bytes to the next row and column. */
interface PanelMatrix {
  readonly pointer: Local<"i32">
  readonly dtype: DType
  readonly down: number
  readonly across: number
}

/** The columns to copy. */
interface PanelColumns extends PanelMatrix {
  readonly count: number
}

/** Tells whether the numbers of a column are neighbours, and not those of a row. A single column is read as it is. */
export const isTransposed = ({ dtype, down, across, count }: Omit<PanelColumns, "pointer">): boolean =>
  count > 1 && down === bytesPer(dtype) && across !== down

/** Copies `k` rows of some columns to the address `to`. Both pointers move. */
export const writePanel = (f: FunctionBuilder, to: Local<"i32">, columns: PanelColumns, k: number): void => {
  const vectors = Math.ceil(columns.count / 4)
  const { pointer: from, down } = columns
  const copy = isTransposed(columns) ? copyTransposed : copyRows
  /** Repeats a copy of `rows` rows, and moves on. */
  const repeat = (times: number, rows: number): void =>
    f.repeat(times, () => {
      copy(f, to, columns, rows)
      f.emit(to.set(i32.add(to, i32.const(16 * vectors * rows))))
      f.emit(from.set(i32.add(from, i32.const(down * rows))))
    })
  repeat(Math.floor(k / 4), 4)
  if (k % 4 > 0) repeat(1, k % 4)
}

type CopyPanel = (f: FunctionBuilder, to: Local<"i32">, columns: PanelColumns, rows: number) => void

const copyRows: CopyPanel = (f, to, columns, rows) => {
  const vectors = Math.ceil(columns.count / 4)
  for (let i = 0; i < rows; i++) {
    const row = Array.from({ length: vectors }, (_, v) => rowVector(f, columns, i, v))
    // Store from last to first (see `lanes.ts`).
    for (let v = vectors - 1; v >= 0; v--) f.emit(v128.store(to, row[v], 16 * (i * vectors + v)))
  }
}

const copyTransposed: CopyPanel = (f, to, columns, rows) => {
  const vectors = Math.ceil(columns.count / 4)
  for (let v = 0; v < vectors; v++) {
    f.scoped(() =>
      fourRows(f, columns, 0, 4 * v)
        .slice(0, rows)
        .forEach((row, i) => f.emit(v128.store(to, row, 16 * (i * vectors + v)))),
    )
  }
}

/** Loads the vector `v` of a row whose numbers are neighbours. */
export const rowVector = (
  f: FunctionBuilder,
  { pointer, dtype, down }: PanelMatrix,
  row: number,
  v: number,
): Local<"v128"> => {
  const offset = row * down + 4 * bytesPer(dtype) * v
  if (dtype !== "i8") return f.let(v128.load(pointer, offset))
  return f.let(f32x4.convert(loadLanes(f, dtype, pointer, offset, 1, 4)))
}

/**
 * Loads four rows of four columns whose numbers are neighbours: from the row `row` and the column `first` on. Lanes of
 * columns that do not exist repeat the last column.
 */
export const fourRows = (
  f: FunctionBuilder,
  { pointer, dtype, down, across, count }: PanelColumns,
  row: number,
  first: number,
): ReadonlyArray<V128> => {
  const offsets = Array.from({ length: 4 }, (_, c) => row * down + Math.min(first + c, count - 1) * across)
  if (dtype !== "i8")
    return transposed(
      f,
      offsets.map((offset) => f.let(v128.load(pointer, offset))),
    )
  // Each lane holds four bytes of one column, the first in its lowest bits.
  let bytes = v128.load32Zero(pointer, offsets[0])
  for (let c = 1; c < 4; c++) bytes = v128.load32Lane(pointer, bytes, c, offsets[c])
  const columns = f.let(bytes)
  return [24, 16, 8, 0].map((bits) => f.let(f32x4.convert(i32x4.shrS(i32x4.shl(columns, bits), 24))))
}
