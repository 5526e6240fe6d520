/**
 * Joins the snapshots of a pool's threads into one of the whole batch (`merge`), and splits it again (`part`): a batch
 * saved with some number of workers continues with any other number, or none. Most arrays have the same number of
 * elements for each env. Two differ: `origin` (the seed and path of the random streams) is equal in all parts, and
 * `states` can be JSON text, a list with an item for each env.
 */
import type { Snapshot } from "../BatchEnv.ts"
import { fromText, toText } from "../internal/plainData.ts"
import { utf8 } from "../../../base/text/utf8.ts"

/** Removes the prefixes `inner.`: each wrapper of a batch puts one before the names of the inner batch's arrays. */
const lastPart = (key: string): string => key.slice(key.lastIndexOf(".") + 1)
const isOrigin = (key: string): boolean => lastPart(key) === "origin"
const isText = (key: string, column: Snapshot[string]): column is Uint8Array =>
  lastPart(key) === "states" && column instanceof Uint8Array

const listOf = (column: Uint8Array): ReadonlyArray<unknown> => {
  const states = fromText(utf8.decode(column))
  return Array.isArray(states) ? states : []
}

const textOf = (states: ReadonlyArray<unknown>): Uint8Array => utf8.encode(toText(states))

type SnapshotColumn = Snapshot[string]

const emptyLike = (column: SnapshotColumn, length: number): SnapshotColumn => {
  if (column instanceof Float64Array) return new Float64Array(length)
  if (column instanceof Float32Array) return new Float32Array(length)
  return column instanceof Int32Array ? new Int32Array(length) : new Uint8Array(length)
}

const joined = (columns: ReadonlyArray<SnapshotColumn>): SnapshotColumn => {
  const all = emptyLike(
    columns[0],
    columns.reduce((length, column) => length + column.length, 0),
  )
  let offset = 0
  for (const column of columns) {
    all.set(column, offset)
    offset += column.length
  }
  return all
}

/** Joins the snapshots of all threads, in the order of their envs. */
export const merge = (parts: ReadonlyArray<Snapshot>): Snapshot =>
  Object.fromEntries(
    Object.entries(parts[0]).map(([key, first]) => {
      if (isOrigin(key)) return [key, first]
      const columns = parts.map((part) => part[key])
      if (!isText(key, first)) return [key, joined(columns)]
      return [key, textOf(columns.flatMap((column) => (isText(key, column) ? listOf(column) : [])))]
    }),
  )

/** Returns the part of a snapshot of `total` envs that holds `count` envs, starting with env `first`. */
export const part = (whole: Snapshot, first: number, count: number, total: number): Snapshot =>
  Object.fromEntries(
    Object.entries(whole).map(([key, column]) => {
      if (isOrigin(key)) return [key, column]
      if (isText(key, column)) return [key, textOf(listOf(column).slice(first, first + count))]
      const each = column.length / total
      return [key, column.slice(first * each, (first + count) * each)]
    }),
  )
