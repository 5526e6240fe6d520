/**
 * Emits the code of one tile of a matrix product: a few rows and columns of the result, whose sums stay in registers
 * along the inner dimension k. `matmul.ts` writes the loops over tiles, and says in which order sums are added up.
 */
import type { DType } from "../../Tensor.ts"
import type { FunctionBuilder } from "../function.ts"
import { f32x4, i32, type I32, type Local, loopWhile, v128, type V128 } from "../../../wasm/instructions.ts"
import { loadLanes, loadSplat, storeLanes } from "../lanes.ts"
import type { Block } from "../math.ts"
import { fourRows, isTransposed, rowVector } from "./panels.ts"

/** An array that is read or written along the result's [...batch, m, n]; strides are in bytes. */
interface TileOperand {
  readonly dtype: DType
  readonly strides: ReadonlyArray<number>
}

export interface Product {
  readonly along: "columns" | "rows" | "inner"
  readonly batch: ReadonlyArray<number>
  readonly m: number
  readonly k: number
  readonly n: number
  /** The strides of a [...batch, m, k] and b [...batch, k, n], in bytes. */
  readonly a: ReadonlyArray<number>
  readonly b: ReadonlyArray<number>
  /** The type of b: `f32`, or `i8` if the vectors are along columns. */
  readonly typeOfB: DType
  readonly reads: ReadonlyArray<TileOperand>
  readonly writes: ReadonlyArray<TileOperand>
  /** The address of memory for temporary values. */
  readonly scratch: I32
  /**
   * The address of the sums of earlier steps of the inner dimension (see `sumsBytes`). With `adds`, the sums of k more
   * steps are added to them; otherwise k is 0, and the maps are applied to these sums.
   */
  readonly sums?: { readonly address: I32; readonly adds: boolean } | undefined
  /** Applies the maps: computes the values for each of `writes` from sums; `read` loads from one of `reads`. */
  readonly finish: (product: Block, read: (index: number) => Block) => ReadonlyArray<Block>
}

/** A pointer that moves through an array, with the strides in bytes to the next row (`down`) and column (`across`). */
export interface Walker {
  readonly pointer: Local<"i32">
  readonly dtype: DType
  readonly batch: ReadonlyArray<number>
  readonly down: number
  readonly across: number
}

/** A vector of a tile: the row (`down`) and the column (`across`) of its first element. */
interface TileVector {
  readonly down: number
  readonly across: number
  /** The number of lanes of the vector that are used. */
  readonly count: number
}

/** The steps of the inner dimension for which a tile is computed. */
export interface TileSteps {
  readonly k: number
  /** Points to the sums of earlier steps; undefined if there are none. */
  readonly sums?: Walker
  /** Whether later steps follow, so that the sums are stored and no maps are applied yet. */
  readonly continued?: boolean
}

/** The sums of a tile, row by row. */
type Sums = ReadonlyArray<Local<"v128">>

/** Writes tiles of one product. The pointers of `reads` and `writes` are at the first element of the tile. */
export class TileWriter {
  private readonly f: FunctionBuilder
  private readonly p: Product
  private readonly reads: ReadonlyArray<Walker>
  private readonly writes: ReadonlyArray<Walker>

  constructor(f: FunctionBuilder, product: Product, reads: ReadonlyArray<Walker>, writes: ReadonlyArray<Walker>) {
    this.f = f
    this.p = product
    this.reads = reads
    this.writes = writes
  }

  /** Writes an unrolled loop that does `step(a, b, i)` for each i of the inner dimension, with copies of the pointers. */
  private alongInner(
    count: number,
    { pointer: left }: Walker,
    { pointer: right }: Walker,
    stepA: number,
    stepB: number,
    step: (a: Local<"i32">, b: Local<"i32">, i: number) => void,
  ): void {
    if (count === 0) return
    const { f } = this
    const unroll = count <= 16 ? count : 8
    const loops = Math.floor(count / unroll)
    const a = loops > 1 ? f.let(left) : left
    const b = loops > 1 ? f.let(right) : right
    const steps = (n: number): void => {
      for (let i = 0; i < n; i++) f.scoped(() => step(a, b, i))
    }
    if (loops === 1) {
      steps(count)
      return
    }
    const end = f.let(i32.add(b, i32.const(loops * unroll * stepB)))
    const counted = stepB !== 0
    const remaining = counted ? end : f.let(i32.const(loops))
    const body = f.capture(() => {
      steps(unroll)
      f.emit(a.set(i32.add(a, i32.const(unroll * stepA))))
      if (!counted) f.emit(b.set(i32.add(b, i32.const(unroll * stepB))))
    })
    const condition = counted
      ? i32.ne(b.tee(i32.add(b, i32.const(unroll * stepB))), end)
      : remaining.tee(i32.sub(remaining, i32.const(1)))
    f.emit(loopWhile(body, condition))
    steps(count - loops * unroll)
  }

  private zeros(count: number): ReadonlyArray<Local<"v128">> {
    return Array.from({ length: count }, () => this.f.let(v128.zero))
  }

  /** Writes a tile whose vectors are along the columns. `left` and `right` point to its first row and column. */
  columnTile(rows: number, columns: number, left: Walker, right: Walker, steps: TileSteps): void {
    this.f.scoped(() => this.writeColumnTile(rows, columns, left, right, steps))
  }

  /** Writes a tile whose vectors are along the inner dimension. */
  innerTile(rows: number, columns: number, left: Walker, right: Walker): void {
    this.f.scoped(() => this.writeInnerTile(rows, columns, left, right))
  }

  private writeColumnTile(rows: number, columns: number, left: Walker, right: Walker, steps: TileSteps): void {
    const { f } = this
    const vectors = Math.ceil(columns / 4)
    const { sums: earlier } = steps
    const offset = (i: number, { down }: Walker): number => Math.floor(i / vectors) * down + 16 * (i % vectors)
    const sums =
      earlier === undefined
        ? this.zeros(rows * vectors)
        : Array.from({ length: rows * vectors }, (_, i) => f.let(v128.load(earlier.pointer, offset(i, earlier))))
    if (isTransposed({ ...right, count: columns })) this.transposedSteps(columns, sums, left, right, steps.k)
    else this.columnSteps(vectors, sums, left, right, steps.k)
    if (earlier !== undefined && steps.continued === true) {
      // Store from last to first (see `lanes.ts`).
      for (let i = sums.length - 1; i >= 0; i--) f.emit(v128.store(earlier.pointer, sums[i], offset(i, earlier)))
      return
    }
    // Run the maps on several rows at a time, so that they compute four vectors of the machine together.
    const atOnce = Math.max(1, Math.floor(f.target.lanes / vectors))
    for (let row = 0; row < rows; row += atOnce) {
      const places: Array<TileVector> = []
      for (let r = row; r < Math.min(rows, row + atOnce); r++) {
        for (let v = 0; v < vectors; v++) {
          places.push({ down: r, across: 4 * v, count: Math.min(4, columns - 4 * v) })
        }
      }
      this.finish(places, sums.slice(row * vectors, (row + atOnce) * vectors), "across")
    }
  }

  /** Adds the products of `k` steps to the sums of a tile, in the order of these steps. */
  private columnSteps(vectors: number, sums: Sums, left: Walker, right: Walker, k: number): void {
    const { f } = this
    this.alongInner(k, left, right, left.across, right.down, (a, b, i) => {
      const rowOfB = Array.from({ length: vectors }, (_, v) => rowVector(f, { ...right, pointer: b }, i, v))
      for (let row = 0; row < sums.length / vectors; row++) {
        const element = f.let(v128.load32Splat(a, row * left.down + i * left.across))
        for (let v = 0; v < vectors; v++) {
          const sum = sums[row * vectors + v]
          f.emit(sum.set(f32x4.add(sum, f32x4.mul(element, rowOfB[v]))))
        }
      }
    })
  }

  /** Does the same for a matrix b whose columns are contiguous: four steps at a time. */
  private transposedSteps(columns: number, sums: Sums, left: Walker, right: Walker, k: number): void {
    const { f } = this
    const vectors = Math.ceil(columns / 4)
    const addSteps = (a: Local<"i32">, b: Local<"i32">, i: number, count: number): void => {
      for (let v = 0; v < vectors; v++) {
        f.scoped(() => {
          const rows = fourRows(f, { ...right, pointer: b, count: columns }, 4 * i, 4 * v)
          for (let row = 0; row < sums.length / vectors; row++) {
            const sum = sums[row * vectors + v]
            for (let step = 0; step < count; step++) {
              const element = v128.load32Splat(a, row * left.down + (4 * i + step) * left.across)
              f.emit(sum.set(f32x4.add(sum, f32x4.mul(element, rows[step]))))
            }
          }
        })
      }
    }
    const whole = Math.floor(k / 4)
    this.alongInner(whole, left, right, 4 * left.across, 4 * right.down, (a, b, i) => addSteps(a, b, i, 4))
    // The loop moves copies of the pointers, so the addresses for the remainder are relative to the start.
    if (k % 4 > 0) addSteps(left.pointer, right.pointer, whole, k % 4)
  }

  private finish(places: ReadonlyArray<TileVector>, sums: ReadonlyArray<V128>, lanes: "across" | "down"): void {
    const { f } = this
    f.scoped(() => {
      const offset = (walker: Walker, place: TileVector): number =>
        place.down * walker.down + place.across * walker.across
      const values = this.p.finish(sums, (index) => {
        const walker = this.reads[index]
        const stride = walker[lanes]
        const seen = new Map<number, V128>()
        return places.map((place) => {
          const at = offset(walker, place)
          const existing = seen.get(at)
          if (existing !== undefined) return existing
          const loaded =
            stride === 0
              ? loadSplat(f, walker.dtype, walker.pointer, at)
              : loadLanes(f, walker.dtype, walker.pointer, at, stride, place.count)
          seen.set(at, loaded)
          return loaded
        })
      })
      this.writes.forEach((walker, i) => {
        // Store from last to first (see `lanes.ts`).
        for (const [j, place] of [...places.entries()].toReversed()) {
          const value = values[i][j]
          storeLanes(f, walker.dtype, walker.pointer, offset(walker, place), walker[lanes], place.count, value)
        }
      })
    })
  }

  private writeInnerTile(rows: number, columns: number, left: Walker, right: Walker): void {
    const { f, p } = this
    const sums = this.zeros(rows * columns)
    const step = (a: Local<"i32">, b: Local<"i32">, i: number, mask: V128 | undefined): void => {
      const load = (pointer: Local<"i32">, offset: number): V128 => {
        const loaded = v128.load(pointer, offset)
        return f.let(mask === undefined ? loaded : v128.and(loaded, mask))
      }
      const columnsOfB = Array.from({ length: columns }, (_, c) => load(b, c * right.across + 16 * i))
      for (let row = 0; row < rows; row++) {
        const rowOfA = load(a, row * left.down + 16 * i)
        for (let c = 0; c < columns; c++) {
          const sum = sums[row * columns + c]
          f.emit(sum.set(f32x4.add(sum, f32x4.mul(rowOfA, columnsOfB[c]))))
        }
      }
    }
    const whole = Math.floor(p.k / 4)
    const rest = p.k % 4
    // The loop moves copies of the pointers, so the addresses for the remainder are relative to the start.
    this.alongInner(whole, left, right, 16, 16, (a, b, i) => step(a, b, i, undefined))
    if (rest > 0) {
      const mask = f.let(v128.const([-1, rest > 1 ? -1 : 0, rest > 2 ? -1 : 0, 0]))
      step(left.pointer, right.pointer, whole, mask)
    }
    const places: Array<TileVector> = []
    const totals: Array<V128> = []
    for (let row = 0; row < rows; row += 4) {
      for (let c = 0; c < columns; c++) {
        const count = Math.min(4, rows - row)
        const own = Array.from({ length: 4 }, (_, r) => sums[Math.min(row + r, rows - 1) * columns + c])
        places.push({ down: row, across: c, count })
        totals.push(this.across(own))
      }
    }
    this.finish(places, totals, "down")
  }

  /** Sums the lanes of each of four vectors, as (0 + 2) + (1 + 3), into the lanes of one vector. */
  private across(sums: ReadonlyArray<V128>): V128 {
    const { f } = this
    const pair = (x: V128, y: V128): V128 =>
      f.let(f32x4.add(v128.shuffle(x, y, [0, 4, 1, 5]), v128.shuffle(x, y, [2, 6, 3, 7])))
    const low = pair(sums[0], sums[1])
    const high = pair(sums[2], sums[3])
    return f.let(f32x4.add(v128.shuffle(low, high, [0, 1, 4, 5]), v128.shuffle(low, high, [2, 3, 6, 7])))
  }
}
