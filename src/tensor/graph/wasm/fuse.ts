/**
 * Decides which nodes are computed together in one loop; such nodes are a group.
 *
 * Nodes are visited from last to first. A map (elementwise node) joins a group that uses it element by element, so that
 * its value need not be stored. If other groups use the map too, its group also stores it. It does not join if two
 * groups would then need each other's values. If only one group of maps uses a matmul, the matmul becomes the core of
 * that group, and the maps run on its sums while these are in registers.
 */
import { commonDims, isWhole, type Node, type NodePhase, type Ref, restride } from "./ir.ts"
import type { Lowered } from "./lower.ts"

export interface FusedGroup {
  /**
   * The dimensions of the loop. It runs over the elements of the maps, of a reduction's input or of a matmul's output.
   */
  dims: ReadonlyArray<number>
  /** Tells for each dimension whether the reduction is over it. */
  reduced: ReadonlyArray<boolean>
  /** The maps that the group computes. */
  readonly members: Set<Node>
  /**
   * The node that is not a map: a reduction of the members, a matmul that they read, or a node that is alone in its
   * group.
   */
  core: Node | undefined
  /** The nodes whose values are stored to memory. */
  readonly stored: Set<Node>
  readonly phase: NodePhase
}

interface Use {
  readonly user: Node
  readonly ref: Ref
}

const maxMembers = 48

const squeezed = (shape: ReadonlyArray<number>): ReadonlyArray<number> => shape.filter((size) => size !== 1)

/** Finds the nodes that results depend on (`needed`), and for each node all nodes that read it (`uses`). */
const usesOf = ({ results }: Lowered) => {
  const needed = new Set<Node>()
  const uses: Array<Use> = []
  const pending = [...results]
  for (let user = pending.pop(); user !== undefined; user = pending.pop()) {
    if (needed.has(user)) continue
    needed.add(user)
    for (const ref of user.inputs) {
      uses.push({ user, ref })
      pending.push(ref.node)
    }
  }
  return { needed, uses: Map.groupBy(uses, ({ ref }) => ref.node) }
}

/** A program that is being divided into groups. */
interface Fusion {
  readonly lowered: Lowered
  /** All nodes that read a node. */
  readonly uses: ReadonlyMap<Node, ReadonlyArray<Use>>
  /** The group of each node that was visited. */
  readonly groups: Map<Node, FusedGroup>
}

/** Divides a program into groups, in an order in which they can run. */
export const fuse = (lowered: Lowered): ReadonlyArray<FusedGroup> => {
  const { needed, uses } = usesOf(lowered)
  const fusion: Fusion = { lowered, uses, groups: new Map() }
  for (const node of lowered.nodes.toReversed()) {
    if (!needed.has(node) || node.work.kind === "leaf" || node.work.kind === "constant") continue
    if (node.work.kind === "map") placeMap(fusion, node)
    else if (node.work.kind === "matmul") placeMatmul(fusion, node)
    else openGroup(fusion, node)
  }
  return inOrder(fusion.groups)
}

/** Returns the uses of a node by the groups of its users. */
const usesIn = ({ uses, groups }: Fusion, node: Node): Map<FusedGroup, Array<Use>> =>
  Map.groupBy(uses.get(node) ?? [], ({ user }) => {
    const group = groups.get(user)
    if (group === undefined) throw new Error("fuse: a node is used before its group is known")
    return group
  })

/** Makes a group of one node. */
const openGroup = ({ groups }: Fusion, node: Node): void => {
  const work = node.work
  const counted = work.kind === "reduce" ? node.inputs[0].shape : node.shape
  const kept = counted.map((_, axis) => axis).filter((axis) => work.kind === "matmul" || counted[axis] !== 1)
  const isMap = work.kind === "map"
  const group: FusedGroup = {
    dims: kept.map((axis) => counted[axis]),
    reduced: kept.map((axis) => work.kind === "reduce" && work.axes.includes(axis)),
    members: new Set(isMap ? [node] : []),
    core: isMap ? undefined : node,
    stored: new Set([node]),
    phase: node.phase,
  }
  groups.set(node, group)
}

/** Adds a map to a group that uses it element by element; opens a group if there is none. */
const placeMap = (fusion: Fusion, node: Node): void => {
  const byGroup = usesIn(fusion, node)
  for (const [group, own] of byGroup) {
    if (group.phase !== node.phase || group.members.size >= maxMembers) continue
    const pointwise = own.every(
      ({ user, ref }) => isWhole(ref) && (group.members.has(user) || user.work.kind === "reduce"),
    )
    if (!pointwise) continue
    if ([...byGroup.keys()].some((other) => other !== group && reaches(fusion, other, group))) continue
    if (!join(fusion, node, group)) continue
    if (byGroup.size > 1 || fusion.lowered.results.has(node)) group.stored.add(node)
    return
  }
  openGroup(fusion, node)
}

/** Adds a map to a group if the group's loop can compute it too; returns whether it was added. */
const join = ({ groups }: Fusion, node: Node, group: FusedGroup): boolean => {
  if (group.core?.work.kind === "matmul") {
    if (!node.inputs.every((ref) => restride(ref.shape, ref.strides, group.dims) !== undefined)) return false
  } else {
    const dims = commonDims(group.dims, squeezed(node.shape))
    if (dims === undefined) return false
    group.reduced = refineFlags(group.dims, group.reduced, dims)
    group.dims = dims
  }
  group.members.add(node)
  groups.set(node, group)
  return true
}

/** Makes a matmul the core of the only group that uses it, if that is one of maps; else opens a group. */
const placeMatmul = (fusion: Fusion, node: Node): void => {
  const byGroup = usesIn(fusion, node)
  const [entry] = byGroup
  if (byGroup.size === 1 && entry !== undefined && !fusion.lowered.results.has(node)) {
    const [group, own] = entry
    const fits =
      group.core === undefined &&
      group.phase === node.phase &&
      own.every(({ user, ref }) => isWhole(ref) && group.members.has(user)) &&
      [...group.members].every((member) =>
        member.inputs.every((ref) => restride(ref.shape, ref.strides, node.shape) !== undefined),
      )
    if (fits) {
      group.core = node
      group.dims = node.shape
      group.reduced = node.shape.map(() => false)
      fusion.groups.set(node, group)
      return
    }
  }
  openGroup(fusion, node)
}

/** Tells whether `to` depends on a value that `from` computes. */
const reaches = ({ uses, groups }: Fusion, from: FusedGroup, to: FusedGroup): boolean => {
  const seen = new Set<FusedGroup>()
  const pending = [from]
  for (let group = pending.pop(); group !== undefined; group = pending.pop()) {
    if (group === to) return true
    if (seen.has(group)) continue
    seen.add(group)
    for (const node of group.stored) {
      for (const { user } of uses.get(node) ?? []) {
        const next = groups.get(user)
        if (next !== undefined && next !== group) pending.push(next)
      }
    }
  }
  return false
}

/** Sorts groups so that each follows the groups that it depends on; otherwise keeps the order of the graph. */
const inOrder = (groups: ReadonlyMap<Node, FusedGroup>): ReadonlyArray<FusedGroup> => {
  const result: Array<FusedGroup> = []
  const visited = new Set<FusedGroup>()
  const visit = (group: FusedGroup): void => {
    if (visited.has(group)) return
    visited.add(group)
    for (const { node } of nodesOf(group).flatMap(({ inputs }) => inputs)) {
      const earlier = groups.get(node)
      if (earlier !== undefined) visit(earlier)
    }
    result.push(group)
  }
  for (const [node, group] of [...groups].sort(([a], [b]) => a.id - b.id)) if (group.stored.has(node)) visit(group)
  return result
}

/** Returns a flag for each dimension of `finer`: the flag of the dimension of `dims` that it is a part of. */
const refineFlags = (
  dims: ReadonlyArray<number>,
  flags: ReadonlyArray<boolean>,
  finer: ReadonlyArray<number>,
): ReadonlyArray<boolean> => {
  const result: Array<boolean> = []
  let at = finer.length - 1
  for (let d = dims.length - 1; d >= 0; d--) {
    for (let left = dims[d]; left > 1; at--) {
      left /= finer[at]
      result.unshift(flags[d])
    }
  }
  return result
}

/** Lists all nodes that the group computes, in topological order. */
export const nodesOf = (group: FusedGroup): ReadonlyArray<Node> => {
  const nodes = [...group.members]
  if (group.core !== undefined) nodes.push(group.core)
  return nodes.sort((a, b) => a.id - b.id)
}
