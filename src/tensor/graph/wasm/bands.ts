/**
 * Decides which groups (nodes of one loop) of a program run in bands. A band is some rows of a large batch: all groups
 * compute one band, then the next. So a layer finds the results of the layer before it in a cache, which the whole
 * arrays of a large batch would not fit into. An array that is read only in the band that computes it needs memory for
 * only one band.
 *
 * A row is the part of an array with one index along the first axis. A group can run in bands if each of its rows
 * depends only on the same row of the other groups in the bands, or if it adds up all rows, as gradients of weights do.
 * Rows are added in the same order as without bands, so the results have the same bits.
 */
import { sizeOf } from "../Tensor.ts"
import { nestOf } from "./emit.ts"
import { expressionsOf } from "./expression.ts"
import { type FusedGroup, nodesOf } from "./fuse.ts"
import { type Node, type Ref, restride } from "./ir.ts"
import type { Lowered } from "./lower.ts"
import { bytesOf } from "./memory.ts"
import { addsInOrder } from "./nest.ts"
import { evenSize } from "./products/tileSizes.ts"
import type { Bands, Stage } from "./stage.ts"
import { highest } from "../../../base/statistics/extremes.ts"

/** The sizes that decide when bands are worth it, and how large they are. */
export interface BandSizes {
  /** Groups run in bands only if they write at least this many bytes of rows. */
  readonly worth: number
  /** The largest number of bytes that a band writes, unless it has only `rows` rows. */
  readonly band: number
  /** The smallest number of rows of a band, a multiple of 16. */
  readonly rows: number
  /**
   * Groups do not run in bands if each band would read more bytes than this of weights and of sums of their gradients.
   */
  readonly weights: number
}

/**
 * The usual sizes, measured with networks of 32 to 512 units and 128 to 32,768 rows: larger bands exceed the
 * second-level cache.
 */
export const usualBandSizes: BandSizes = { worth: 1 << 20, band: 3 << 17, rows: 64, weights: 3 << 20 }

/**
 * The number of rows of a band is a multiple of this, so that each element of a sum goes to the same lane as without
 * bands.
 */
const unit = 16

/**
 * Divides groups into stages. The groups must be in an order in which they can run. `gathered` are the inputs whose
 * rows the program gathers, and `threads` is the number of threads that share the bands.
 */
export const stagesOf = (
  { results }: Lowered,
  groups: ReadonlyArray<FusedGroup>,
  gathered: ReadonlySet<Node>,
  sizes: BandSizes,
  threads = 1,
): ReadonlyArray<Stage> => {
  const plain = [{ groups, bands: undefined }]
  const rows = commonRows(groups)
  if (rows < 2 * sizes.rows) return plain
  const roles = rolesOf(groups, rows)
  const levels = levelsOf(groups, roles)
  const reads = groups.flatMap((group) => readsOf(group, roles.get(group)).map((read) => ({ ...read, group })))
  const uses = Map.groupBy(reads, ({ node }) => node)

  const bandsOf = (banded: ReadonlyArray<FusedGroup>): Bands | undefined => {
    const inside = new Set(banded)
    const sums = new Set(banded.flatMap((group) => (roles.get(group)?.addsRows === true ? (group.core ?? []) : [])))
    const totals = new Set(banded.flatMap((group) => totalsOf(group, roles.get(group))))
    const written = banded.flatMap(({ stored }) => [...stored].filter((node) => !totals.has(node)))
    const isLocal = (node: Node): boolean =>
      !results.has(node) && uses.get(node)?.every(({ aligned, group }) => aligned && inside.has(group)) === true
    // A gathered input has the rows of the minibatch. Bands can gather it only if the graph has not reshaped it to
    // other rows.
    const inputs = [...gathered].filter(({ shape }) => shape[0] === rows)
    const local = new Set([...written, ...inputs].filter(isLocal))
    const bytes = written.reduce((sum, node) => sum + bytesOf(node), 0)
    if (local.size === 0 || bytes < sizes.worth || bytesOfWeights(banded, roles) > sizes.weights) return undefined
    // Give each thread several bands, so that all threads end at nearly the same time.
    const shared = threads === 1 ? rows : Math.ceil(rows / (4 * threads))
    const most = Math.max(sizes.rows, Math.min(shared, Math.floor((rows * sizes.band) / bytes)))
    const size = evenSize(rows, Math.min(rows, most), unit)
    return size < rows ? { rows, size, local, sums } : undefined
  }

  const stages = Array.from({ length: highest(levels.values()) + 2 }, (_, i): ReadonlyArray<Stage> => {
    const own = groups.filter((group) => levels.get(group) === i - 1)
    const banded = own.filter((group) => roles.has(group))
    const rest = own.filter((group) => !roles.has(group))
    return [
      { groups: banded, bands: bandsOf(banded) },
      { groups: rest, bands: undefined },
    ]
  }).flat()
  return stages.some(({ bands }) => bands !== undefined) ? stages : plain
}

/**
 * Returns the bytes that every band reads, however small it is: the second factors of products, and the sums of
 * products.
 */
const bytesOfWeights = (groups: ReadonlyArray<FusedGroup>, roles: ReadonlyMap<FusedGroup, Role>): number =>
  groups.reduce((sum, group) => {
    const { core } = group
    if (core?.work.kind !== "matmul") return sum
    return sum + 4 * sizeOf(roles.get(group)?.addsRows === true ? core.shape : core.inputs[1].shape)
  }, 0)

/**
 * Returns the number of rows that occurs most, weighted by the bytes of the stored arrays: usually the size of the
 * batch.
 */
const commonRows = (groups: ReadonlyArray<FusedGroup>): number => {
  const bytes = new Map<number, number>()
  for (const { stored } of groups)
    for (const node of stored) {
      const [rows = 1] = node.shape
      bytes.set(rows, (bytes.get(rows) ?? 0) + bytesOf(node))
    }
  return [...bytes].reduce((best, next) => (next[1] > best[1] ? next : best), [1, 0])[0]
}

/** An array that a group reads. It is `aligned` if the group reads one row of it for each row that it computes. */
interface GroupRead {
  readonly node: Node
  readonly aligned: boolean
}

/** The way in which a group would run in bands. */
interface Role {
  readonly reads: ReadonlyArray<GroupRead>
  /** Whether the group's core is a sum over all rows. */
  readonly addsRows: boolean
}

const readsOf = (group: FusedGroup, role: Role | undefined): ReadonlyArray<GroupRead> => {
  if (role !== undefined) return role.reads
  return nodesOf(group).flatMap(({ inputs }) => inputs.map(({ node }) => ({ node, aligned: false })))
}

/**
 * Lists the stored nodes that are complete only after all rows: a sum, and the maps that are applied to a sum of
 * products.
 */
const totalsOf = ({ core, stored }: FusedGroup, role: Role | undefined): ReadonlyArray<Node> => {
  if (role?.addsRows !== true || core === undefined) return []
  return core.work.kind === "matmul" ? [...stored] : [core]
}

/** Finds the groups that can compute a batch of this many rows in bands, and how each does it. */
const rolesOf = (groups: ReadonlyArray<FusedGroup>, rows: number): Map<FusedGroup, Role> =>
  new Map(
    groups.flatMap((group) => {
      const role = roleOf(group, rows)
      return role === undefined ? [] : [[group, role] as const]
    }),
  )

/** Describes how a group would compute this many rows in bands; undefined if it cannot. */
const roleOf = (group: FusedGroup, rows: number): Role | undefined => {
  const { core, dims } = group
  const operands = expressionsOf(group).operands.map((ref) => readAlong(ref, dims, 0, rows))
  if (core?.work.kind === "matmul") {
    const [a, b] = core.inputs
    const [m, k] = a.shape
    if (dims.length !== 2) return undefined
    if (m === rows) {
      const reads = [readAlong(a, a.shape, 0, rows), { node: b.node, aligned: false }, ...operands]
      return { reads, addsRows: false }
    }
    if (k !== rows || core.work.along === "inner") return undefined
    // The maps can be applied only when all rows have been added.
    const others = operands.map(({ node }) => ({ node, aligned: false }))
    return { reads: [readAlong(a, a.shape, 1, rows), readAlong(b, b.shape, 0, rows), ...others], addsRows: true }
  }
  if ((core !== undefined && core.work.kind !== "reduce") || dims[0] !== rows) return undefined
  if (group.reduced[0] !== true) return { reads: operands, addsRows: false }
  const adds = core?.work.kind === "reduce" && core.work.fn === "sum" && addsInOrder(nestOf(group))
  return adds ? { reads: operands, addsRows: true } : undefined
}

/** Describes how a loop over `dims`, whose rows are along an axis, reads an array. */
const readAlong = (ref: Ref, dims: ReadonlyArray<number>, axis: number, rows: number): GroupRead => {
  const strides = restride(ref.shape, ref.strides, dims) ?? []
  return { node: ref.node, aligned: strides[axis] === sizeOf(ref.node.shape) / rows }
}

/**
 * Finds the level of each group. First run the groups of level −1, which do not run in bands; then the bands of level 0
 * and the other groups of level 0; and so on. A sum over all rows that depends on nothing computed in bands gets no
 * role, so it runs before them: then groups that depend on it, such as a normalisation by the batch's mean, can run in
 * the first bands.
 */
const levelsOf = (groups: ReadonlyArray<FusedGroup>, roles: Map<FusedGroup, Role>): ReadonlyMap<FusedGroup, number> => {
  const levels = new Map<FusedGroup, number>()
  const producers = new Map(groups.flatMap((group) => [...group.stored].map((node) => [node, group] as const)))
  for (const group of groups) {
    const producersOf = readsOf(group, roles.get(group)).flatMap(({ node }) => producers.get(node) ?? [])
    const isEarly = producersOf.every((producer) => producer === group || levels.get(producer) === -1)
    if (isEarly && group.core?.work.kind === "reduce" && roles.get(group)?.addsRows === true) roles.delete(group)
    const role = roles.get(group)
    const earliest = readsOf(group, role).map(({ aligned, node }) => {
      const producer = producers.get(node)
      const level = producer === undefined || producer === group ? undefined : levels.get(producer)
      if (producer === undefined || level === undefined) return -1
      const others = roles.get(producer)
      const isTotal = totalsOf(producer, others).includes(node)
      const together = role !== undefined && others !== undefined && aligned && !isTotal
      return together || role === undefined ? level : level + 1
    })
    levels.set(group, Math.max(role === undefined ? -1 : 0, ...earliest))
  }
  return levels
}
