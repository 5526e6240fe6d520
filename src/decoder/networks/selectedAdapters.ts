/**
 * Builds low-rank adapters for generating, where each sequence may have its own adapter. The matrices of all adapters are
 * adjacent, so one product computes all adapters for all sequences, and each sequence keeps only the results of its own. With
 * dozens of adapters, this is faster than a copy of the matrices for each sequence, which `adapters.ts` uses for blocks of
 * tokens.
 */
import { constant, equal, input, matmul, reshape, slice, state, where } from "../../tensor/graph/ops.ts"
import type { NamedArray } from "../../tensor/graph/Parameters.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { type AdapterShape, siblings } from "./adapters.ts"
import type { DecoderConfig } from "./DecoderConfig.ts"
import type { Adapt } from "./layers.ts"
import { type Projection, projectionName, projectionSizes, projectionsOf } from "./parameters.ts"

interface SelectedOptions {
  readonly shape: AdapterShape
  /** The number of adapters that can be loaded. */
  readonly slots: number
  /**
   * The number of sequences. In the graph, the tokens of the first sequence come first, then those of the second, and so on.
   */
  readonly rows: number
}

/** The tensors of selected adapters in a program. */
export interface SelectedAdapters {
  /** `slots` i32 [rows]: the slot of each sequence's adapter, −1 for none. */
  readonly inputs: Readonly<Record<"slots", Tensor>>
  /** The matrices of all adapters, which `fillSlot` fills. All numbers must be finite. */
  readonly states: Readonly<Record<string, Tensor>>
  readonly adapt: Adapt
}

/** The content of a slot: the parameters of an adapter, with the rank of all slots, and its alpha / rank. */
interface SlotContents {
  readonly slot: number
  readonly parameters: Readonly<Record<string, NamedArray>>
  readonly scaling: number
}

/** Returns the projections with a common input that have an adapter. */
const groupsOf = (config: DecoderConfig, { targets }: AdapterShape): ReadonlyArray<ReadonlyArray<Projection>> => {
  const adapted = projectionsOf(config).filter((projection) => targets.includes(projection))
  return siblings
    .map((group) => group.filter((projection) => adapted.includes(projection)))
    .filter(({ length }) => length > 0)
}

const nameOfA = (layer: number, [first]: ReadonlyArray<Projection>): string =>
  `${projectionName(layer, first)}.lora_A.all`
const nameOfB = (layer: number, projection: Projection): string => `${projectionName(layer, projection)}.lora_B.all`

/**
 * Makes the tensors of adapters, and the function for the parameter `adapt` of a forward graph.
 *
 * The output of an adapter does not depend on the other slots, not even in the last bit.
 *
 * @example
 * ```ts
 * const shape = { rank: 8, targets: Decoder.projections }
 * const weights = Decoder.statesOf(Decoder.parametersOf(decoderConfig))
 * const { adapt, inputs, states } = Decoder.selectedAdapters(decoderConfig, { shape, slots: 4, rows: 32 })
 * const step = Decoder.rowStep(decoderConfig, weights, { rows: 32, segments: [64, 64] }, adapt)
 * ```
 */
export const selectedAdapters = (config: DecoderConfig, { shape, slots, rows }: SelectedOptions): SelectedAdapters => {
  const { rank } = shape
  const groups = groupsOf(config, shape)
  const inputs = { slots: input("slots", [rows], "i32") }
  const states: Record<string, Tensor> = {}
  for (let layer = 0; layer < config.layers; layer++) {
    for (const group of groups) {
      const name = nameOfA(layer, group)
      states[name] = state(name, [group.length * slots * rank, projectionSizes(config, group[0]).inputs])
      for (const projection of group) {
        const name = nameOfB(layer, projection)
        states[name] = state(name, [projectionSizes(config, projection).outputs, slots * rank])
      }
    }
  }
  const slotOfColumn = Int32Array.from({ length: slots * rank }, (_, column) => Math.floor(column / rank))
  const isOwn = reshape(equal(reshape(inputs.slots, [rows, 1]), constant(slotOfColumn)), [rows, 1, 1, slots * rank])

  const adapt: Adapt = (x, layer, asked) => {
    const group = groups.find(([first]) => asked.includes(first))
    if (group === undefined) return []
    const [tokens] = x.shape
    const shrunk = matmul(x, states[nameOfA(layer, group)], { transposeB: true })
    const parts = reshape(shrunk, [rows, tokens / rows, group.length, slots * rank])
    // Select instead of multiplying by zeros: large numbers of another adapter could make the product not finite.
    const own = reshape(where(isOwn, parts, 0), [tokens, group.length * slots * rank])
    return asked.map((projection) => {
      const index = group.indexOf(projection)
      if (index === -1) return undefined
      const part = slice(own, [0, index * slots * rank], [tokens, slots * rank])
      return matmul(part, states[nameOfB(layer, projection)], { transposeB: true })
    })
  }
  return { inputs, states, adapt }
}

/**
 * Writes an adapter into the numbers of the states: its parameters, with the rank of `shape`, as `MultiLoRA` returns them, and
 * its scaling alpha / rank.
 *
 * @example
 * ```ts
 * const shape = { rank: 8, targets: Decoder.projections }
 * const { states } = Decoder.selectedAdapters(decoderConfig, { shape, slots: 4, rows: 32 })
 * const numbers = Record.map(states, ({ shape: [rows, columns] }) => new Float32Array(rows * columns))
 * const parameters = new Decoder.MultiLoRA(decoderConfig, shape, 1).namedParametersOf(0)
 * Decoder.fillSlot(decoderConfig, { shape, slots: 4 }, numbers, { slot: 2, parameters, scaling: 2 })
 * ```
 */
export const fillSlot = (
  config: DecoderConfig,
  { shape, slots }: Pick<SelectedOptions, "shape" | "slots">,
  numbers: Readonly<Record<string, Float32Array>>,
  { slot, parameters, scaling }: SlotContents,
): void => {
  const { rank } = shape
  for (let layer = 0; layer < config.layers; layer++) {
    for (const group of groupsOf(config, shape)) {
      group.forEach((projection, index) => {
        const name = projectionName(layer, projection)
        const a = parameters[`${name}.lora_A.weight`].data
        numbers[nameOfA(layer, group)].set(a, (index * slots + slot) * a.length)
        const b = parameters[`${name}.lora_B.weight`].data
        const to = numbers[nameOfB(layer, projection)]
        for (let from = 0, line = slot * rank; from < b.length; from += rank, line += slots * rank)
          for (let at = 0; at < rank; at++) to[line + at] = limited(scaling * b[from + at])
      })
    }
  }
}

const largest = 3.4028234663852886e38 // float32

/**
 * Limits a number to the range of float32: an infinite one would affect other sequences, because they multiply it by zero.
 */
const limited = (number: number): number => Math.max(-largest, Math.min(largest, number))
