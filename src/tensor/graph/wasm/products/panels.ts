/**
 * Emits copies of a few columns of a matrix to contiguous memory: a panel, whose rows are whole vectors, as the tiles of a
 * product (`tiles.ts`) read it. Where the numbers of a column are neighbours, the copy transposes them in registers.
 */
import type { FunctionBuilder } from "../function.ts"
import { i32, type Local, v128, type V128 } from "../../../wasm/instructions.ts"
import { transposed } from "../transposed.ts"

/** The columns to copy: the address of their first row, and the strides in bytes to the next row and column. */
interface PanelColumns {
  readonly pointer: Local<"i32">
  readonly down: number
  readonly across: number
  readonly count: number
}

/** Tells whether the numbers of a column are neighbours, and not those of a row. A single column is read as it is. */
export const isTransposed = ({ down, across, count }: Omit<PanelColumns, "pointer">): boolean =>
  count > 1 && down === 4 && across !== 4

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

const copyRows: CopyPanel = (f, to, { pointer, down, count }, rows) => {
  const vectors = Math.ceil(count / 4)
  for (let i = 0; i < rows; i++) {
    const row = Array.from({ length: vectors }, (_, v) => f.let(v128.load(pointer, i * down + 16 * v)))
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

/**
 * Loads four rows of four columns, from the column `first` on, whose numbers are neighbours along the columns. `offset` is
 * that of the first row, in bytes. Lanes of columns that do not exist repeat the last column.
 */
export const fourRows = (
  f: FunctionBuilder,
  { pointer, across, count }: PanelColumns,
  offset: number,
  first: number,
): ReadonlyArray<V128> =>
  transposed(
    f,
    Array.from({ length: 4 }, (_, c) => f.let(v128.load(pointer, offset + Math.min(first + c, count - 1) * across))),
  )
