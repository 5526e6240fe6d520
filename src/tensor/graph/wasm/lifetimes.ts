/**
 * Finds when each array of a program is first written and last read, for `memory.ts`. Time is counted in steps: running
 * a group is one step. An array that outlives a band is needed during all bands of its stage. Products that add up all
 * rows have one more step after the bands, in which their sums become results.
 */
import type { Bands, Stage } from "./stage.ts"
import { type FusedGroup, nodesOf } from "./fuse.ts"
import type { Node } from "./ir.ts"

/** An array that is needed from one step to another. */
interface Lifetime {
  readonly node: Node
  readonly from: number
  readonly to: number
}

interface Lifetimes {
  /** The steps that first write and last read or write each array. */
  readonly first: ReadonlyMap<Node, number>
  readonly last: Map<Node, number>
  /** For each group, the step that writes its stored nodes. A group whose rows are written in bands has none. */
  readonly writing: ReadonlyMap<FusedGroup, number>
  /** The nodes whose sums wait in memory between bands, with the steps during which they wait. */
  readonly waiting: ReadonlyArray<Lifetime>
  /** The arrays that hold only one band, with the share of all rows that a band has. */
  readonly local: ReadonlyMap<Node, number>
  /** The number of steps. */
  readonly steps: number
}

/** Finds the lifetimes of arrays. A node may be computed inside another node's array, which `rootOf` returns. */
export const lifetimesOf = (stages: ReadonlyArray<Stage>, rootOf: (node: Node) => Node): Lifetimes => {
  const first = new Map<Node, number>()
  const last = new Map<Node, number>()
  const writing = new Map<FusedGroup, number>()
  const waiting: Array<Lifetime> = []
  const local = new Map<Node, number>()
  let step = 0
  const write = (node: Node, from: number, to: number): void => {
    const root = rootOf(node)
    if (!first.has(root)) first.set(root, from)
    last.set(root, to)
  }
  const read = (node: Node, to: number): void => void last.set(rootOf(node), to)
  const inputsOf = (nodes: ReadonlyArray<Node>): ReadonlyArray<Node> =>
    nodes.flatMap(({ inputs }) => inputs.map(({ node }) => node))

  const runOnce = (group: FusedGroup): void => {
    for (const node of group.stored) write(node, step, step)
    for (const node of inputsOf(nodesOf(group))) read(node, step)
    writing.set(group, step)
    step++
  }

  const runInBands = (groups: ReadonlyArray<FusedGroup>, bands: Bands): void => {
    const [begin, end] = [step, step + groups.length - 1]
    for (const node of bands.local) {
      local.set(node, bands.size / bands.rows)
      if (node.work.kind === "leaf") write(node, begin, begin)
    }
    const isLate = ({ core }: FusedGroup): boolean => core?.work.kind === "matmul" && bands.sums.has(core)
    for (const group of groups) {
      const within = (node: Node): readonly [number, number] => (bands.local.has(node) ? [step, step] : [begin, end])
      if (!isLate(group)) for (const node of group.stored) write(node, ...within(node))
      const now = isLate(group) ? (group.core?.inputs ?? []).map(({ node }) => node) : inputsOf(nodesOf(group))
      for (const node of now) read(node, within(node)[1])
      step++
    }
    for (const group of groups.filter(isLate)) {
      if (group.core !== undefined) waiting.push({ node: group.core, from: begin, to: step })
      for (const node of group.stored) write(node, step, step)
      for (const node of inputsOf([...group.members])) read(node, step)
      writing.set(group, step)
      step++
    }
    for (const node of bands.sums) if (node.work.kind !== "matmul") waiting.push({ node, from: begin, to: end })
  }

  for (const { bands, groups } of stages) {
    if (bands === undefined) groups.forEach(runOnce)
    else runInBands(groups, bands)
  }
  return { first, last, writing, waiting, local, steps: step }
}
