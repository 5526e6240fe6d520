/**
 * Plans the memory of a program in C: the arrays of intermediate values are parts of one static array for each type, and
 * arrays that are needed at different times share memory.
 */
import { type DType, sizeOf } from "../graph/Tensor.ts"
import { type FusedGroup, nodesOf } from "../graph/wasm/fuse.ts"
import type { Node } from "../graph/wasm/ir.ts"

/** An array that is a part of the memory of its type: `offset` and `size` are in elements. */
interface Buffer {
  readonly node: Node
  readonly offset: number
  readonly size: number
}

interface Buffers {
  readonly buffers: ReadonlyArray<Buffer>
  /** The number of elements that each type needs. */
  readonly sizes: Readonly<Record<DType, number>>
}

interface Taken {
  readonly from: number
  readonly to: number
  readonly start: number
  readonly end: number
}

/**
 * Assigns memory to the arrays that groups store and that `isOutside` does not exclude. Time is the index of the group that runs.
 * The arrays of `kept` are needed until the end.
 */
export const buffersFor = (
  groups: ReadonlyArray<FusedGroup>,
  isOutside: (node: Node) => boolean,
  kept: ReadonlySet<Node>,
): Buffers => {
  const last = new Map<Node, number>()
  groups.forEach((group, time) => {
    for (const { inputs } of nodesOf(group)) for (const { node } of inputs) last.set(node, time)
  })
  for (const node of kept) last.set(node, groups.length)
  const taken: Record<DType, Array<Taken>> = { f32: [], i32: [], i8: [], bool: [] }
  const sizes: Record<DType, number> = { f32: 0, i32: 0, i8: 0, bool: 0 }
  const buffers: Array<Buffer> = []
  groups.forEach((group, from) => {
    for (const node of group.stored) {
      if (isOutside(node)) continue
      const { dtype, shape } = node
      const [to, size] = [Math.max(from, last.get(node) ?? from), sizeOf(shape)]
      const offset = firstGap(taken[dtype], from, to, size)
      taken[dtype].push({ from, to, start: offset, end: offset + size })
      sizes[dtype] = Math.max(sizes[dtype], offset + size)
      buffers.push({ node, offset, size })
    }
  })
  return { buffers, sizes }
}

/** Returns the first offset at which an array fits between those that are needed at the same time. */
const firstGap = (taken: ReadonlyArray<Taken>, from: number, to: number, size: number): number => {
  const overlapping = taken.filter((other) => other.from <= to && from <= other.to).sort((a, b) => a.start - b.start)
  let start = 0
  for (const other of overlapping) {
    if (start + size <= other.start) break
    start = Math.max(start, other.end)
  }
  return start
}
