/**
 * Emits code for matrix products c = a · b, and for the maps (elementwise nodes) that follow, which are applied while
 * the sums are still in registers.
 *
 * The result is computed in tiles of a few rows and columns. A tile has up to nine vectors, as the sixteen registers
 * must also hold operands; more if the machine's registers hold several vectors. Large products are computed
 * in blocks of rows, whose operands are copied to contiguous memory that fits the caches; so is a matrix b whose columns are
 * contiguous, such as a weight [outputs, inputs], or which has bytes. If k is large, the sums of
 * all tiles are computed for a part of k, and wait in memory for the next part. All this changes the order of memory
 * accesses, but never the order of additions, so the bits are the same. Vectors are along columns or along the inner
 * dimension k (or along rows: this is the transposed product along columns). Along columns, each step of k multiplies
 * single elements of a with vectors of b, and each element of c is a sum in the order of k. Along k, a vector has four
 * partial sums of one element of c, each of every fourth product, which are added at the end.
 *
 * The functions take the addresses of their arrays as parameters, so that products of one shape share one function.
 */
import type { DType } from "../../Tensor.ts"
import type { FunctionBuilder } from "../function.ts"
import { i32, memoryFill } from "../../../wasm/instructions.ts"
import { isTransposed, writePanel } from "./panels.ts"
import { type Product, type TileSteps, TileWriter, type Walker } from "./tiles.ts"
import {
  blockRowsFor,
  depthFor,
  firstCacheBytes,
  longDepthFor,
  packedBytes,
  panelBytes,
  panelWidth,
  pieces,
  rowsFor,
  shortDepthFor,
  sumsBytes,
  vectorsFor,
} from "./tileSizes.ts"

const swapLast = (strides: ReadonlyArray<number>): ReadonlyArray<number> => [
  ...strides.slice(0, -2),
  strides[strides.length - 1],
  strides[strides.length - 2],
]

/** Exchanges the operands, which gives the transposed product: cᵀ = bᵀ · aᵀ. */
const transposed = (product: Product): Product => ({
  ...product,
  along: product.along === "rows" ? "columns" : product.along,
  m: product.n,
  n: product.m,
  a: swapLast(product.b),
  b: swapLast(product.a),
  reads: product.reads.map((operand) => ({ ...operand, strides: swapLast(operand.strides) })),
  writes: product.writes.map((operand) => ({ ...operand, strides: swapLast(operand.strides) })),
})

/** Writes the loops of one product: over the batch, over tiles of the result, and over the inner dimension. */
class ProductWriter {
  private readonly f: FunctionBuilder
  private readonly p: Product
  private readonly a: Walker
  private readonly b: Walker
  private readonly tiles: TileWriter
  /**
   * The pointers that move together with the result: those of `reads` and `writes`, and of the sums that wait in
   * memory.
   */
  private results: ReadonlyArray<Walker>

  constructor(f: FunctionBuilder, product: Product, [left, right]: readonly [number, number]) {
    this.f = f
    this.p = product
    const rank = product.batch.length
    const walker = (index: number, dtype: DType, strides: ReadonlyArray<number>): Walker => ({
      pointer: f.param("i32", index),
      dtype,
      batch: strides.slice(0, rank),
      down: strides[rank],
      across: strides[rank + 1],
    })
    this.a = walker(left, "f32", product.a)
    this.b = walker(right, product.typeOfB, product.b)
    this.results = [...product.reads, ...product.writes].map(({ dtype, strides }, i) => walker(2 + i, dtype, strides))
    const reads = this.results.slice(0, product.reads.length)
    this.tiles = new TileWriter(f, product, reads, this.results.slice(product.reads.length))
  }

  write(level = 0): void {
    const { batch } = this.p
    if (level === batch.length) {
      this.f.scoped(() => (this.p.along === "inner" ? this.innerTiles() : this.columns()))
      return
    }
    const move = (times: number): void => {
      if (batch[level] === 1) return
      for (const walker of [this.a, this.b, ...this.results]) this.advance(walker, times * walker.batch[level])
    }
    this.f.repeat(batch[level], () => {
      this.write(level + 1)
      move(1)
    })
    if (level > 0) move(-batch[level])
  }

  /**
   * Whether the numbers of b are transposed in registers. With four rows or more, this is done once for all of them; so is the
   * conversion of bytes.
   */
  private get transposes(): boolean {
    return isTransposed({ ...this.b, count: this.p.n })
  }

  private advance(walker: Walker, bytes: number): void {
    if (bytes !== 0) this.f.emit(walker.pointer.set(i32.add(walker.pointer, i32.const(bytes))))
  }

  /**
   * Repeats the code of `write` for each piece of a list. `move` moves the pointers after each piece, and back at the
   * end.
   */
  private blocks(
    list: ReadonlyArray<{ readonly size: number; readonly times: number }>,
    move: (elements: number) => void,
    write: (size: number) => void,
  ): void {
    let moved = 0
    list.forEach(({ size, times }, i) => {
      const last = i === list.length - 1
      this.f.repeat(times, () => {
        write(size)
        if (!last || times > 1) move(size)
      })
      if (!last || times > 1) moved += size * times
    })
    if (moved > 0) move(-moved)
  }

  /** Writes the product along the columns, for all steps of the inner dimension or for one part after another. */
  private columns(): void {
    const { f } = this
    const { m, k, n } = this.p
    const largest = this.a.down === 4 ? depthFor(m, k, n) : longDepthFor(m, k, n)
    const depth = this.transposes ? largest : Math.min(largest, shortDepthFor(m, k, n))
    const { scratch, sums: earlierSums } = this.p
    if (depth === k && earlierSums === undefined) return this.columnTiles({ k })
    const pointer = f.let(earlierSums?.address ?? i32.add(scratch, i32.const(packedBytes(depth, f.target.lanes))))
    const sums: Walker = { pointer, dtype: "f32", batch: [], down: sumsBytes(1, n), across: 4 }
    const outside = this.results
    this.results = [...outside, sums]
    if (earlierSums === undefined) f.emit(memoryFill(pointer, i32.const(0), i32.const(sumsBytes(m, n))))
    const rest = k % depth || depth
    const move = (steps: number): void => {
      this.advance(this.a, steps * this.a.across)
      this.advance(this.b, steps * this.b.down)
    }
    f.repeat(k === 0 ? 0 : (k - rest) / depth, () => {
      this.columnTiles({ k: depth, sums, continued: true })
      move(depth)
    })
    this.columnTiles({ k: rest, sums, continued: earlierSums?.adds === true })
    move(rest - k)
    this.results = outside
  }

  /**
   * Writes loops over rows with loops over columns inside; or over blocks, if fewer reads then miss the first-level
   * cache.
   */
  private columnTiles(steps: TileSteps): void {
    const { m, n } = this.p
    const { k } = steps
    const vectors = Math.ceil(n / 4)
    const { lanes } = this.f.target
    const rowsOutside = m * k + Math.ceil(m / 4) * n * k
    const columnsOutside = n * k + Math.ceil(n / 8) * m * k
    const large = 4 * n * k > firstCacheBytes / 2 && columnsOutside <= rowsOutside && m >= 16
    if (large || ((this.transposes || this.b.dtype === "i8") && m >= 4)) this.columnBlocks(steps)
    else {
      this.byRows(rowsFor(m, vectors), (rows) =>
        this.byColumns(4 * vectorsFor(rows, this.transposes ? Math.min(vectors, 4) : vectors, lanes), (columns) =>
          this.tiles.columnTile(rows, columns, this.a, this.b, steps),
        ),
      )
    }
  }

  /** Writes loops over blocks of rows, inside them loops over panels of columns, and inside these loops over tiles. */
  private columnBlocks(steps: TileSteps): void {
    const { m, n } = this.p
    const { k } = steps
    const most = 4 * vectorsFor(4, Math.ceil(n / 4), this.f.target.lanes)
    // The columns of a transposed a are far apart in memory, and evict each other from the cache.
    const strided = this.a.across !== 4 && this.a.down === 4 && this.a.across * k > firstCacheBytes && n > most
    this.byRows(blockRowsFor(m, k), (rows) => {
      const block = strided && rows % panelWidth === 0 ? this.packRows(rows, k) : undefined
      this.byColumns(most, (columns) => {
        const vectors = Math.ceil(columns / 4)
        const panel = this.packColumns(columns, k)
        const tiles = (count: number, left: Walker): void =>
          this.blocks(
            pieces(count, rowsFor(count, vectors)),
            (down) => this.moveRows(left, down),
            (size) => this.tiles.columnTile(size, columns, left, panel, steps),
          )
        if (block === undefined) return tiles(rows, this.a)
        this.blocks(
          pieces(rows, panelWidth),
          (down) => {
            this.advance(block, down * 4 * k)
            for (const walker of this.results) this.advance(walker, down * walker.down)
          },
          () => tiles(panelWidth, block),
        )
      })
    })
  }

  /** Copies some columns of b to contiguous scratch memory, so that they do not evict each other from the cache. */
  private packColumns(count: number, k: number): Walker {
    const { f, b } = this
    const to = f.let(this.p.scratch)
    writePanel(f, to, { ...b, pointer: f.let(b.pointer), count }, k)
    return { ...b, dtype: "f32", pointer: f.let(this.p.scratch), down: 16 * Math.ceil(count / 4), across: 4 }
  }

  /** Copies a block of rows of a transposed a to scratch memory, as pieces of 16 rows with all their columns. */
  private packRows(rows: number, k: number): Walker {
    const { f } = this
    const address = i32.add(this.p.scratch, i32.const(panelBytes(k, f.target.lanes)))
    f.scoped(() => {
      const to = f.let(address)
      const first = f.let(this.a.pointer)
      f.repeat(rows / panelWidth, () => {
        writePanel(f, to, { ...this.a, pointer: f.let(first), down: this.a.across, across: 4, count: panelWidth }, k)
        f.emit(first.set(i32.add(first, i32.const(4 * panelWidth))))
      })
    })
    return { ...this.a, pointer: f.let(address), down: 4, across: 4 * panelWidth }
  }

  /** Moves to rows further down, in the left operand and in the results. */
  private moveRows(left: Walker, rows: number): void {
    for (const walker of [left, ...this.results]) this.advance(walker, rows * walker.down)
  }

  private moveAcross(columns: number): void {
    for (const walker of [this.b, ...this.results]) this.advance(walker, columns * walker.across)
  }

  /** Writes loops over rows, in pieces of `size`. */
  private byRows(size: number, write: (rows: number) => void): void {
    this.blocks(pieces(this.p.m, size), (rows) => this.moveRows(this.a, rows), write)
  }

  private byColumns(size: number, write: (columns: number) => void): void {
    this.blocks(pieces(this.p.n, size), (columns) => this.moveAcross(columns), write)
  }

  private innerTiles(): void {
    const { m, n } = this.p
    const wide = Math.min(n, 2)
    this.byRows(Math.min(m, wide === 1 ? 8 : 4), (rows) =>
      this.byColumns(wide, (columns) => this.tiles.innerTile(rows, columns, this.a, this.b)),
    )
  }
}

/** Writes the product into a function whose parameters are the addresses of a, b, the reads and the writes. */
export const writeProduct = (f: FunctionBuilder, product: Product): void => {
  const { along, m, n } = product
  // Along the inner dimension, four rows are summed up together, so a product of fewer rows is transposed.
  const exchanged = along === "rows" || (along === "inner" && m < 4 && n > m)
  const writer = exchanged ? new ProductWriter(f, transposed(product), [1, 0]) : new ProductWriter(f, product, [0, 1])
  writer.write()
}
