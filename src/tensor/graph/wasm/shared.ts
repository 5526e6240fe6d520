/**
 * Finds equal values in several programs of a module, for `compile.ts`. A value that depends only on states and
 * constants, such as a transposed copy of a weight, is computed by `prepare` and stays in memory. Programs with equal
 * values keep them at the same address, where each `prepare` writes the same numbers.
 */
import { exactText } from "../../../base/text/text.ts"
import type { TensorData } from "../Tensor.ts"
import type { FusedGroup } from "./fuse.ts"
import type { Node } from "./ir.ts"

/** Constants with at most this many elements are compared by their elements, larger ones by identity. */
const mostCompared = 64

export class SharedValues {
  private readonly texts = new Map<Node, string>()
  private readonly ids = new Map<string, number>()
  private readonly constants = new Map<TensorData, number>()

  /** Lists the stored nodes that `prepare` computes, with a key: equal keys have equal values in all programs. */
  keysOf(groups: ReadonlyArray<FusedGroup>): ReadonlyArray<readonly [string, Node]> {
    return groups
      .filter(({ phase }) => phase === 0)
      .flatMap(({ stored }) => [...stored].map((node) => [this.keyOf(node), node] as const))
  }

  /** Returns a short text that is equal for two nodes if they compute the same from the same states and constants. */
  private keyOf(node: Node): string {
    const existing = this.texts.get(node)
    if (existing !== undefined) return existing
    const inputs = node.inputs.map((ref) => [this.keyOf(ref.node), ref.shape, ref.strides, ref.offset])
    const { work } = node
    const own = work.kind === "constant" ? this.constantKey(work.data) : work
    const text = exactText([own, node.dtype, node.shape, inputs])
    const id = this.ids.get(text) ?? this.ids.size
    this.ids.set(text, id)
    const key = `value ${id}`
    this.texts.set(node, key)
    return key
  }

  private constantKey(data: TensorData): string {
    if (data.length <= mostCompared) return `${new Uint8Array(data.buffer, data.byteOffset, data.byteLength).join()}`
    const id = this.constants.get(data) ?? this.constants.size
    this.constants.set(data, id)
    return `constant ${id}`
  }
}
