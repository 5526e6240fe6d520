/** Makes a graph of nodes and edges from a regular expression: each way from the first node to the last one is a text. */
import type { CharacterSet } from "./CharacterSet.ts"
import type { RegexPart } from "./parseRegex.ts"

/**
 * An edge reads one character of a set, or nothing: `empty` always, `begin` where no character was read before, and `end` where
 * none follows.
 */
export type RegexEdge =
  | { readonly type: "read"; readonly set: CharacterSet; readonly to: number }
  | { readonly type: "empty" | "begin" | "end"; readonly to: number }

export interface RegexGraph {
  readonly edges: ReadonlyArray<ReadonlyArray<RegexEdge>>
  readonly first: number
  readonly last: number
}

/**
 * Makes the graph of the texts that a regular expression matches as a whole. `spend` is called for each node, for each part
 * that has none, and for each edge beyond one of each node.
 */
export const regexGraph = (part: RegexPart, spend: () => void): RegexGraph => {
  const builder = new GraphBuilder(spend)
  const first = builder.node()
  return { last: builder.add(part, first), first, edges: builder.edges }
}

class GraphBuilder {
  readonly edges: Array<Array<RegexEdge>> = []
  private readonly spend: () => void

  constructor(spend: () => void) {
    this.spend = spend
  }

  node(): number {
    this.spend()
    return this.edges.push([]) - 1
  }

  edge(from: number, edge: RegexEdge): void {
    // Alternatives without characters have edges only.
    if (this.edges[from].length > 0) this.spend()
    this.edges[from].push(edge)
  }

  /** Adds the texts of a part. Returns the node after them. No edge of the part leads back to `from`. */
  add(part: RegexPart, from: number): number {
    switch (part.type) {
      case "begin":
      case "end":
        return this.empty(from, this.node(), part.type)
      case "characters": {
        const to = this.node()
        if (part.set.length > 0) this.edge(from, { type: "read", set: part.set, to })
        return to
      }
      case "sequence":
        // A part without nodes takes time, too.
        if (part.parts.length === 0) this.spend()
        return part.parts.reduce((at, inner) => this.add(inner, at), from)
      case "alternatives": {
        const to = this.node()
        for (const inner of part.parts) this.empty(this.add(inner, from), to)
        return to
      }
      case "repeated":
        return this.addRepeated(part, from)
    }
  }

  private addRepeated({ part, least, most }: Extract<RegexPart, { type: "repeated" }>, from: number): number {
    let at = from
    const addCopy = (): void => {
      // A copy of an empty part has no nodes, but takes time, too.
      this.spend()
      at = this.add(part, at)
    }
    for (let count = 0; count < least; count++) addCopy()
    if (most === Infinity) {
      const again = this.empty(at, this.node())
      this.empty(this.add(part, again), again)
      return again
    }
    const to = this.node()
    for (let count = least; count < most; count++) {
      this.empty(at, to)
      addCopy()
    }
    return this.empty(at, to)
  }

  private empty(from: number, to: number, type: "empty" | "begin" | "end" = "empty"): number {
    this.edge(from, { type, to })
    return to
  }
}
