/**
 * Plans where a compiled program keeps its arrays in memory, for `compile.ts`. Feeds, results, states and constants
 * have memory of their own; arrays that are needed only for a part of a run (temporaries) share memory if they are needed
 * at different times. All programs of a module use the same memory for temporaries, because one runs at a time. The pieces
 * of a concatenation are computed directly in its memory, and the next value of a state in the state's memory if nothing
 * reads the old value later. Time is counted in steps (`lifetimes.ts`).
 */
import { sizeOf } from "../Tensor.ts"
import type { Outline } from "../validate.ts"
import type { Stage } from "./stage.ts"
import { type FusedGroup, nodesOf } from "./fuse.ts"
import { lifetimesOf } from "./lifetimes.ts"
import { bytesPer, isContiguous, isWhole, type Node } from "./ir.ts"
import type { Lowered } from "./lower.ts"
import { laneSumBytes } from "./nest.ts"
import { waitingBytes } from "./products/tileSizes.ts"

const alignment = 64

export const bytesOf = ({ shape, dtype }: Outline): number => sizeOf(shape) * bytesPer(dtype)

/** Rounds bytes up, so that the next array is aligned too. */
export const aligned = (bytes: number): number => Math.ceil(Math.max(bytes, 1) / alignment) * alignment

/** The addresses that several programs of a module share: of nodes (see `shared.ts`) and of memory areas. */
interface CommonAddresses {
  readonly nodes: ReadonlyMap<Node, number>
  readonly areas: ReadonlyMap<string, number>
}

/** The addresses of a program's arrays, in bytes. */
export interface MemoryPlan {
  readonly addressOf: (node: Node) => number
  /** The addresses of memory areas that belong to no node: for whole inputs, stacked outputs and indices. */
  readonly areas: ReadonlyMap<string, number>
  /** The pieces of concatenations that are computed in place. */
  readonly inPlace: ReadonlySet<Node>
  /** The states whose next value must be copied at the end of a run. */
  readonly copied: ReadonlyMap<Node, Node>
  /**
   * The arrays that hold only one band (see `bands.ts`), and (`localBytes`) their total size; each thread has its own
   * copy.
   */
  readonly local: ReadonlySet<Node>
  readonly localBytes: number
  /** Returns the address of a node's sums over all rows that wait between bands; undefined if its sums do not wait. */
  readonly sumsAt: (node: Node) => number | undefined
}

/**
 * Assigns memory to arrays that are needed during intervals of time. Each array gets the first gap that is free during
 * its whole interval.
 */
class IntervalMemory {
  /** For each array, the interval of steps that need it, and its range of bytes. */
  private readonly taken: Array<{
    readonly from: number
    readonly to: number
    readonly start: number
    readonly end: number
  }> = []
  size = 0

  /** Returns the offset of an array of `bytes` bytes that the steps `from` to `to` need. */
  place(from: number, to: number, bytes: number): number {
    const overlapping = this.taken
      .filter((other) => other.from <= to && from <= other.to)
      .sort((a, b) => a.start - b.start)
    let start = 0
    for (const other of overlapping) {
      if (start + bytes <= other.start) break
      start = Math.max(start, other.end)
    }
    const end = start + Math.ceil(bytes / alignment) * alignment
    this.taken.push({ from, to, start, end })
    this.size = Math.max(this.size, end)
    return start
  }
}

/** Finds the nodes that are computed directly in the memory of a concatenation, and their offsets in it, in bytes. */
const placements = (lowered: Lowered, groups: ReadonlyArray<FusedGroup>) => {
  const stored = new Set(groups.flatMap((group) => [...group.stored]))
  const placed = new Map<Node, { readonly parent: Node; readonly offset: number }>()
  for (let i = lowered.nodes.length - 1; i >= 0; i--) {
    const parent = lowered.nodes[i]
    const { work } = parent
    if (!stored.has(parent) || work.kind !== "assemble" || work.fill !== undefined || work.accumulate) continue
    parent.inputs.forEach((ref, p) => {
      const { offset, strides } = work.pieces[p]
      const fits =
        stored.has(ref.node) &&
        !lowered.results.has(ref.node) &&
        !placed.has(ref.node) &&
        isWhole(ref) &&
        ref.node.phase === parent.phase &&
        isContiguous({ ...ref, strides })
      if (fits) placed.set(ref.node, { parent, offset: offset * bytesPer(parent.dtype) })
    })
  }
  return placed
}

/** Tells whether a group can write `next` over `state`: it must read each old element only in the step that replaces it. */
const readsOnlyInStep = (group: FusedGroup, state: Node, next: Node): boolean =>
  nodesOf(group).every((node) =>
    node.inputs.every(
      (ref) => ref.node !== state || (isWhole(ref) && group.members.has(node) && group.members.has(next)),
    ),
  )

/**
 * Returns the size in bytes of the sums over all rows that wait between bands; 0 if they wait in the array of the
 * result.
 */
export const waitingBytesOf = ({ shape, work }: Node): number => {
  if (work.kind === "matmul") return waitingBytes(shape[0], shape[1])
  return sizeOf(shape) === 1 ? laneSumBytes : 0
}

/**
 * Plans the memory of one program. `sizes` has the sizes in bytes of the memory areas that belong to no node, and
 * `common` the addresses that are already fixed. The plan is relative to three blocks of memory, and the caller decides
 * where they begin: `own` bytes that belong to the program alone, and two blocks that other programs may overwrite
 * between its runs, of `temporary` bytes and, for each thread, `local` bytes.
 */
export const planMemory = (
  lowered: Lowered,
  stages: ReadonlyArray<Stage>,
  sizes: ReadonlyMap<string, number>,
  common: CommonAddresses = { nodes: new Map(), areas: new Map() },
) => {
  const groups = stages.flatMap((stage) => stage.groups)
  const placed = placements(lowered, groups)
  const rootOf = (node: Node): Node => {
    const place = placed.get(node)
    return place === undefined ? node : rootOf(place.parent)
  }

  const { first, last, local, steps, waiting, writing } = lifetimesOf(stages, rootOf)

  const addresses = new Map<Node, Address>()
  const areas = new Map<string, number>()
  let own = 0
  const reserve = (bytes: number): Address => {
    const offset = own
    own += aligned(bytes)
    return { block: "own", offset }
  }
  for (const [node, offset] of common.nodes) addresses.set(node, { block: "common", offset })
  for (const node of [...lowered.states.values(), ...lowered.inputs.values()])
    if (!addresses.has(node) && !local.has(node)) addresses.set(node, reserve(bytesOf(node)))
  for (const [name, bytes] of sizes) areas.set(name, reserve(bytes).offset)

  const concatenations = new Set([...placed.values()].map(({ parent }) => parent))
  /** Tells whether the next value of a state can be computed in the state's memory. */
  const canOverwrite = (state: Node, next: Node, writer: FusedGroup): boolean =>
    !concatenations.has(next) &&
    (last.get(state) ?? -1) <= (writing.get(writer) ?? -2) &&
    readsOnlyInStep(writer, state, next)
  const copied = new Map<Node, Node>()
  for (const [name, next] of lowered.nexts) {
    const state = lowered.states.get(name)
    const writer = groups.find((group) => group.stored.has(next))
    if (state === undefined || writer === undefined) continue
    const address = addresses.get(state)
    if (address !== undefined && canOverwrite(state, next, writer)) addresses.set(next, address)
    else {
      copied.set(state, next)
      last.set(next, steps)
    }
  }
  for (const node of [...lowered.outputs.values(), ...lowered.stacked.values()])
    if (!addresses.has(node)) addresses.set(node, reserve(bytesOf(node)))
  for (const node of last.keys()) {
    const hasOwnMemory = node.work.kind === "constant" || (node.phase < 2 && node.work.kind !== "leaf")
    if (hasOwnMemory && rootOf(node) === node && !addresses.has(node)) addresses.set(node, reserve(bytesOf(node)))
  }
  if (lowered.continueWhile !== undefined) last.set(rootOf(lowered.continueWhile), steps)

  const shared = new IntervalMemory()
  const inBands = new IntervalMemory()
  for (const [node, from] of [...first].sort((a, b) => bytesOf(b[0]) - bytesOf(a[0]))) {
    if (addresses.has(node)) continue
    const share = local.get(node)
    const bytes = bytesOf(node) * (share ?? 1)
    const offset = (share === undefined ? shared : inBands).place(from, last.get(node) ?? from, bytes)
    addresses.set(node, { block: share === undefined ? "temporary" : "local", offset })
  }

  const sums = new Map(
    waiting.flatMap(({ from, node, to }) => {
      const bytes = waitingBytesOf(node)
      return bytes === 0 ? [] : [[node, shared.place(from, to, bytes)] as const]
    }),
  )

  const layout = { placed, addresses, areas, sums, common, copied, local, localBytes: inBands.size }
  return {
    own,
    temporary: shared.size,
    local: inBands.size,
    at: (starts: BlockStarts): MemoryPlan => planAt(layout, starts),
  }
}

/** The addresses at which a program's blocks of memory begin. */
type BlockStarts = Readonly<Record<"own" | "temporary" | "local", number>>

/** The offsets of a program's arrays in its blocks of memory. */
interface MemoryLayout {
  readonly placed: ReturnType<typeof placements>
  readonly addresses: ReadonlyMap<Node, Address>
  /** The offsets of the memory areas that belong to no node. */
  readonly areas: ReadonlyMap<string, number>
  /** The offsets of sums over all rows that wait between bands. */
  readonly sums: ReadonlyMap<Node, number>
  readonly common: CommonAddresses
  readonly copied: ReadonlyMap<Node, Node>
  readonly local: ReadonlyMap<Node, number>
  readonly localBytes: number
}

/** Returns the plan for blocks of memory that begin at these addresses. */
const planAt = (layout: MemoryLayout, starts: BlockStarts): MemoryPlan => {
  const { placed, addresses, areas, sums, common, copied, local, localBytes } = layout
  const addressOf = (node: Node): number => {
    const place = placed.get(node)
    if (place !== undefined) return addressOf(place.parent) + place.offset
    const address = addresses.get(node)
    if (address === undefined) throw new Error("memory: a node has no address")
    return address.offset + (address.block === "common" ? 0 : starts[address.block])
  }
  const moved = [...areas].map(([name, offset]) => [name, starts.own + offset] as const)
  const sumsAt = (node: Node): number | undefined => {
    const offset = sums.get(node)
    return offset === undefined ? undefined : starts.temporary + offset
  }
  const all = new Map([...common.areas, ...moved])
  const inPlace = new Set(placed.keys())
  return { addressOf, areas: all, inPlace, copied, local: new Set(local.keys()), localBytes, sumsAt }
}

/**
 * The position of an array: an offset in one of the program's blocks of memory, or an address that other programs use
 * too.
 */
interface Address {
  readonly block: "own" | "temporary" | "local" | "common"
  readonly offset: number
}
