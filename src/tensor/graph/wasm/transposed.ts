/**
 * Emits copies whose source is contiguous along another dimension than their result, such as a transposed matrix. They are
 * copied in tiles of four rows and four columns, which shuffles turn round in registers: reading the elements of each vector
 * one by one takes about three times as long.
 */
import type { FunctionBuilder } from "./function.ts"
import { bytesPer } from "./ir.ts"
import { storeLanes } from "./lanes.ts"
import { type Access, type NestShape, planned } from "./nest.ts"
import { i32, type Local, v128, type V128 } from "../../wasm/instructions.ts"

/** A copy of `rows` × `columns` elements of four bytes for each index of the outer dimensions. Strides are in bytes. */
interface TransposedCopy {
  readonly from: Access
  readonly to: Access
  /** The dimensions along which the source and the result are contiguous. */
  readonly rows: number
  readonly columns: number
  readonly dims: ReadonlyArray<number>
}

/** Describes the nest of one map, a copy, if it transposes; undefined if it can be copied along one dimension. */
export const transposedCopyOf = (nest: NestShape): TransposedCopy | undefined => {
  const { dims, reads, writes } = planned(nest).nest
  const [from, to] = [reads[0], writes[0]]
  if (from === undefined || to === undefined || reads.length + writes.length > 2 || bytesPer(to.dtype) !== 4)
    return undefined
  const columns = to.strides.indexOf(4)
  const rows = from.strides.indexOf(4)
  if (columns < 0 || rows < 0 || columns === rows || Math.min(dims[rows], dims[columns]) < 4) return undefined
  return { from, to, rows, columns, dims }
}

/** The number of rows that are copied together: those in a line of the cache. */
const rowsTogether = 16

/** Writes the loops of a copy, whose addresses are constants. */
export const writeTransposedCopy = (f: FunctionBuilder, { columns, dims, from, rows, to }: TransposedCopy): void => {
  const source = f.let(i32.const(from.base))
  const target = f.let(i32.const(to.base))
  const move = (d: number, steps: number): void => {
    for (const [pointer, { strides }] of [
      [source, from],
      [target, to],
    ] as const)
      if (strides[d] * steps !== 0) f.emit(pointer.set(i32.add(pointer, i32.const(strides[d] * steps))))
  }
  /** Repeats `write` for pieces of a dimension, and moves back to its start. */
  const pieces = (d: number, size: number, write: (count: number) => void): void => {
    const whole = Math.floor(dims[d] / size)
    f.repeat(whole, () => {
      write(size)
      move(d, size)
    })
    if (dims[d] % size > 0) f.scoped(() => write(dims[d] % size))
    move(d, -whole * size)
  }
  const tile = (row: number, rowCount: number, columnCount: number): void => {
    const loaded = Array.from({ length: 4 }, (_, column) =>
      f.let(v128.load(source, 4 * row + Math.min(column, columnCount - 1) * from.strides[columns])),
    )
    transposed(f, loaded)
      .slice(0, rowCount)
      .forEach((vector, i) => storeLanes(f, to.dtype, target, (row + i) * to.strides[rows], 4, columnCount, vector))
  }
  const matrix = (): void =>
    pieces(rows, Math.min(rowsTogether, dims[rows]), (rowCount) =>
      pieces(columns, 4, (columnCount) => {
        for (let row = 0; row < rowCount; row += 4) f.scoped(() => tile(row, Math.min(4, rowCount - row), columnCount))
      }),
    )
  const outer = dims.map((_, d) => d).filter((d) => d !== rows && d !== columns)
  outer.reduceRight<() => void>((inner, d) => () => pieces(d, 1, inner), matrix)()
}

/** Exchanges the rows and the columns of four vectors. */
export const transposed = (f: FunctionBuilder, [a, b, c, d]: ReadonlyArray<Local<"v128">>): ReadonlyArray<V128> => {
  const pair = (x: V128, y: V128, lanes: readonly [number, number, number, number]): Local<"v128"> =>
    f.let(v128.shuffle(x, y, lanes))
  const [lowAb, highAb] = [pair(a, b, [0, 4, 1, 5]), pair(a, b, [2, 6, 3, 7])]
  const [lowCd, highCd] = [pair(c, d, [0, 4, 1, 5]), pair(c, d, [2, 6, 3, 7])]
  return [
    pair(lowAb, lowCd, [0, 1, 4, 5]),
    pair(lowAb, lowCd, [2, 3, 6, 7]),
    pair(highAb, highCd, [0, 1, 4, 5]),
    pair(highAb, highCd, [2, 3, 6, 7]),
  ]
}
