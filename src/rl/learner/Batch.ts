/**
 * Declares the columns of a batch, and makes their arrays. A batch is a table with one row for each step and one column
 * for each quantity, such as the rewards. *Feeds* are the arrays from which a compiled program reads its inputs.
 */
import { type ActionSpace, isWhole, sizeOf as sizeOfSpace } from "../env/Space.ts"
import { type Shape, sizeOf, type Tensor } from "../../tensor/graph/Tensor.ts"

/**
 * Describes one column of a batch: the shape of its entry in a row, and whether it holds real numbers or whole numbers.
 *
 * A learner declares its columns once. From that declaration come the arrays that a rollout fills (`Arrays`), the inputs of
 * the graphs that read them (`Batch`), and their types: a misspelt column does not compile.
 *
 * @example
 * ```ts
 * const columns = { observations: f32(4), actions: actionColumn(Space.discrete(2)), advantages: f32() }
 * type Rows = Learner.Batch<typeof columns> // { observations: Tensor, actions: Tensor, advantages: Tensor }
 * ```
 */
export interface Column {
  readonly shape: Shape
  readonly dtype: "f32" | "i32"
  /** Says what has an entry in the column: each row (the default), each sequence of rows, or the update as a whole. */
  readonly per?: "sequence" | "update"
}

/** A column of real numbers, in a Float32Array. */
export interface F32 extends Column {
  readonly dtype: "f32"
}

/** A column of whole numbers, in an Int32Array. */
export interface I32 extends Column {
  readonly dtype: "i32"
}

/** A column of actions: whole numbers for choices and switches, otherwise vectors of real numbers. */
export type Action = Column

/** The columns of a batch by their names. */
export type Columns = Readonly<Record<string, Column>>

/** The columns of a batch as tensors of a graph. */
export type Batch<C> = { readonly [Name in keyof C]: Tensor }

/** The columns of a batch as arrays, row after row. */
export type Arrays<C> = {
  readonly [Name in keyof C]: C[Name] extends F32
    ? Float32Array
    : C[Name] extends I32
      ? Int32Array
      : Float32Array | Int32Array
}

/** Declares a column of real numbers whose rows have this shape: `f32()` has one number per row. */
export const f32 = (...shape: Shape): F32 => ({ shape, dtype: "f32" })

/** Declares a column of whole numbers. */
export const i32 = (...shape: Shape): I32 => ({ shape, dtype: "i32" })

/**
 * Declares a column with one entry for the whole update instead of one for each row: every minibatch reads all of it.
 *
 * @example
 * ```ts
 * const columns = { advantages: f32(), temperature: perUpdate(f32()) }
 * ```
 */
export const perUpdate = <C extends Column>(column: C): C => ({ ...column, per: "update" })

/** Declares the column of the actions of this space, as in `Action`. */
export const actionColumn = (space: ActionSpace): Action =>
  space._tag === "Discrete"
    ? { shape: [], dtype: "i32" }
    : { shape: [sizeOfSpace(space)], dtype: isWhole(space) ? "i32" : "f32" }

/**
 * Makes an array for each column, for `rows` rows. If `shared` has an array of the same name, type and length, that
 * array is used instead of a new one: `shared` can be a program's feeds, so that rows written there need no copy.
 *
 * @example
 * ```ts
 * arraysOf({ advantages: f32(), actions: i32() }, 512).advantages // a Float32Array of 512 numbers
 * ```
 */
export function arraysOf<C extends Columns>(
  columns: C,
  rows: number,
  shared?: Readonly<Record<string, unknown>>,
): Arrays<C>
export function arraysOf(columns: Columns, rows: number, shared: Readonly<Record<string, unknown>> = {}) {
  const arrayOf = (name: string, { shape, dtype, per }: Column): Float32Array | Int32Array => {
    const length = (per === "update" ? 1 : rows) * sizeOf(shape)
    const feed = shared[name]
    if (dtype === "i32") return feed instanceof Int32Array && feed.length === length ? feed : new Int32Array(length)
    return feed instanceof Float32Array && feed.length === length ? feed : new Float32Array(length)
  }
  return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, arrayOf(name, column)]))
}

/**
 * Picks the arrays of these columns from a compiled program's feeds, with their types. Throws a TypeError if the
 * program has no input of a column's name and type.
 *
 * @example
 * ```ts
 * const feeds = { advantages: new Float32Array(512) }
 * feedsOf({ advantages: f32() }, feeds).advantages.fill(0)
 * ```
 */
export function feedsOf<C extends Columns>(columns: C, feeds: Readonly<Record<string, unknown>>): Arrays<C>
export function feedsOf(columns: Columns, feeds: Readonly<Record<string, unknown>>) {
  const entries = Object.entries(columns).map(([name, { dtype }]) => {
    const feed = feeds[name]
    const fits = dtype === "i32" ? feed instanceof Int32Array : feed instanceof Float32Array
    if (!fits) throw new TypeError(`feedsOf: the program has no ${dtype} input "${name}"`)
    return [name, feed]
  })
  return Object.fromEntries(entries)
}

/**
 * Copies rows of an array to `into`, which has as many rows as `rows` has numbers: the first row of `into` is row `rows[0]`.
 *
 * @example
 * ```ts
 * const into = new Float32Array(4)
 * copyRows(Float32Array.of(1, 2, 3, 4, 5, 6), Int32Array.of(2, 0), into) // into is [5, 6, 1, 2]
 * ```
 */
export const copyRows = (
  from: ArrayLike<number>,
  rows: Int32Array,
  into: { readonly length: number; [index: number]: number },
): void => {
  const width = into.length / rows.length
  for (let row = 0; row < rows.length; row++) {
    const base = rows[row] * width
    for (let at = 0; at < width; at++) into[row * width + at] = from[base + at]
  }
}
