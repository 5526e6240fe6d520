/**
 * Decides which nodes are computed together in one loop; such nodes are a group.
 *
 * Nodes are visited from last to first. A map joins a group that uses it element by element, so that its value need not be
 * stored; if other groups use it too, its group also stores it, unless that makes a cycle between groups. A matmul that
 * only one group of maps uses becomes the core of that group: the maps run on its accumulators before they are stored.
 */
import { commonDims, isWhole, type Node, type Phase, type Ref, restride } from "./ir.ts"
import type { Lowered } from "./lower.ts"

export interface Group {
  /** The dimensions of the loop, over the elements of the members or of a matmul's output. */
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
  readonly phase: Phase
}

interface Use {
  readonly user: Node
  readonly ref: Ref
}

const maxMembers = 48

const squeezed = (shape: ReadonlyArray<number>): ReadonlyArray<number> => shape.filter((size) => size !== 1)

/** Lists all nodes that results depend on, each with its users. */
const usesOf = (lowered: Lowered): Map<Node, Array<Use>> => {
  const uses = new Map<Node, Array<Use>>()
  const pending = [...lowered.outputs.values(), ...lowered.nexts.values()]
  if (lowered.continueWhile !== undefined) pending.push(lowered.continueWhile)
  for (const node of pending) if (!uses.has(node)) uses.set(node, [])
  const visited = new Set<Node>()
  while (pending.length > 0) {
    const user = pending.pop()
    if (user === undefined || visited.has(user)) continue
    visited.add(user)
    for (const ref of user.inputs) {
      const list = uses.get(ref.node)
      if (list === undefined) uses.set(ref.node, [{ user, ref }])
      else list.push({ user, ref })
      pending.push(ref.node)
    }
  }
  return uses
}

class Fuser {
  private readonly uses: Map<Node, Array<Use>>
  private readonly groupOf = new Map<Node, Group>()
  private readonly required: Set<Node>
  private readonly lowered: Lowered

  constructor(lowered: Lowered) {
    this.lowered = lowered
    this.uses = usesOf(lowered)
    this.required = new Set([...lowered.outputs.values(), ...lowered.nexts.values()])
    if (lowered.continueWhile !== undefined) this.required.add(lowered.continueWhile)
  }

  run(): ReadonlyArray<Group> {
    for (let i = this.lowered.nodes.length - 1; i >= 0; i--) {
      const node = this.lowered.nodes[i]
      if (!this.uses.has(node) || node.work.kind === "leaf" || node.work.kind === "constant") continue
      if (node.work.kind === "map") this.placeMap(node)
      else if (node.work.kind === "matmul") this.placeMatmul(node)
      else this.open(node)
    }
    return this.ordered()
  }

  private usesIn(node: Node): Map<Group, Array<Use>> {
    const result = new Map<Group, Array<Use>>()
    for (const use of this.uses.get(node) ?? []) {
      const group = this.groupOf.get(use.user)
      if (group === undefined) throw new Error("fuse: a user has no group")
      const list = result.get(group)
      if (list === undefined) result.set(group, [use])
      else list.push(use)
    }
    return result
  }

  private open(node: Node): void {
    const work = node.work
    const counted = work.kind === "reduce" ? node.inputs[0].shape : node.shape
    const kept = counted.map((_, axis) => axis).filter((axis) => work.kind === "matmul" || counted[axis] !== 1)
    const isMap = work.kind === "map"
    const group: Group = {
      dims: kept.map((axis) => counted[axis]),
      reduced: kept.map((axis) => work.kind === "reduce" && work.axes.includes(axis)),
      members: new Set(isMap ? [node] : []),
      core: isMap ? undefined : node,
      stored: new Set([node]),
      phase: node.phase,
    }
    this.groupOf.set(node, group)
  }

  private placeMap(node: Node): void {
    const byGroup = this.usesIn(node)
    for (const [group, uses] of byGroup) {
      if (group.phase !== node.phase || group.members.size >= maxMembers) continue
      const pointwise = uses.every(
        ({ user, ref }) => isWhole(ref) && (group.members.has(user) || user.work.kind === "reduce"),
      )
      if (!pointwise) continue
      if ([...byGroup.keys()].some((other) => other !== group && this.reaches(other, group))) continue
      if (!this.join(node, group)) continue
      if (byGroup.size > 1 || this.required.has(node)) group.stored.add(node)
      return
    }
    this.open(node)
  }

  private join(node: Node, group: Group): boolean {
    if (group.core?.work.kind === "matmul") {
      if (!node.inputs.every((ref) => restride(ref.shape, ref.strides, group.dims) !== undefined)) return false
    } else {
      const dims = commonDims(group.dims, squeezed(node.shape))
      if (dims === undefined) return false
      group.reduced = refineFlags(group.dims, group.reduced, dims)
      group.dims = dims
    }
    group.members.add(node)
    this.groupOf.set(node, group)
    return true
  }

  private placeMatmul(node: Node): void {
    const byGroup = this.usesIn(node)
    const [entry] = byGroup
    if (byGroup.size === 1 && entry !== undefined && !this.required.has(node)) {
      const [group, uses] = entry
      const fits =
        group.core === undefined &&
        group.phase === node.phase &&
        uses.every(({ user, ref }) => isWhole(ref) && group.members.has(user)) &&
        [...group.members].every((member) =>
          member.inputs.every((ref) => restride(ref.shape, ref.strides, node.shape) !== undefined),
        )
      if (fits) {
        group.core = node
        group.dims = node.shape
        group.reduced = node.shape.map(() => false)
        this.groupOf.set(node, group)
        return
      }
    }
    this.open(node)
  }

  /** Whether `to` depends on something that `from` computes. */
  private reaches(from: Group, to: Group): boolean {
    const seen = new Set<Group>()
    const pending = [from]
    for (let group = pending.pop(); group !== undefined; group = pending.pop()) {
      if (group === to) return true
      if (seen.has(group)) continue
      seen.add(group)
      for (const node of group.stored) {
        for (const { user } of this.uses.get(node) ?? []) {
          const next = this.groupOf.get(user)
          if (next !== undefined && next !== group) pending.push(next)
        }
      }
    }
    return false
  }

  /** Sorts groups so that each follows the groups that it depends on; otherwise keeps the order of the graph. */
  private ordered(): ReadonlyArray<Group> {
    const result: Array<Group> = []
    const done = new Set<Group>()
    const visit = (group: Group): void => {
      if (done.has(group)) return
      done.add(group)
      for (const node of nodesOf(group)) {
        for (const ref of node.inputs) {
          const needed = this.groupOf.get(ref.node)
          if (needed !== undefined) visit(needed)
        }
      }
      result.push(group)
    }
    const nodes = [...this.groupOf.keys()].sort((a, b) => a.id - b.id)
    for (const node of nodes) {
      const group = this.groupOf.get(node)
      if (group !== undefined && group.stored.has(node)) visit(group)
    }
    return result
  }
}

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
export const nodesOf = (group: Group): ReadonlyArray<Node> => {
  const nodes = [...group.members]
  if (group.core !== undefined) nodes.push(group.core)
  return nodes.sort((a, b) => a.id - b.id)
}

/** Divides a program into groups, in an order in which they can run. */
export const fuse = (lowered: Lowered): ReadonlyArray<Group> => new Fuser(lowered).run()
