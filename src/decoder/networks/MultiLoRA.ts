import type { NamedArray, NamedTensors } from "../../tensor/graph/Parameters.ts"
import { sizeOf } from "../../tensor/graph/Tensor.ts"
import type { Stream } from "../../base/rng/Rng.ts"
import { adapterError, adapterLayoutOf, adapterParametersOf, type AdapterShape } from "./adapters.ts"
import type { DecoderConfig } from "./DecoderConfig.ts"

/** The settings of one adapter, whose output is multiplied by alpha / rank. */
export interface AdapterOptions {
  /** The rank of the adapter, at most the table's. */
  readonly rank: number
  readonly alpha: number
}

/**
 * Holds the adapters of several runs in one array, `table` [adapters, size], which is an input of a trainer's program. If an
 * adapter has a lower rank than the table, the unused rows of A and columns of B are zeros. Their gradients are zero, so they
 * stay zero.
 *
 * A slot that no run uses has only zeros and the scaling 0, so it does not change the base model.
 *
 * @example
 * ```ts
 * const shape = { rank: 16, targets: Decoder.projections }
 * const adapters = new Decoder.MultiLoRA(decoderConfig, shape, 8)
 * adapters.reset(0, { rank: 8, alpha: 16 }, Rng.stream(1, "adapter", "run_a"))
 * adapters.stateDictOf(0)["model.layers.0.self_attn.q_proj.lora_A.weight"].shape // [8, hiddenSize]
 * ```
 */
export class MultiLoRA {
  readonly shape: AdapterShape
  readonly adapters: number
  /** The number of elements of an adapter. */
  readonly size: number
  /** All adapters, one after another. */
  readonly table: Float32Array
  /** alpha / rank of each adapter: the program's input `scalings`. */
  readonly scalings: Float32Array
  private readonly declarations: ReturnType<typeof adapterParametersOf>
  private readonly offsets: ReadonlyMap<string, number>
  private readonly options: Array<AdapterOptions | undefined>

  constructor(config: DecoderConfig, shape: AdapterShape, adapters: number) {
    const { rank, targets } = shape
    if (!Number.isInteger(rank) || rank < 1) throw adapterError(`rank: expected an integer from 1 on, found ${rank}`)
    if (targets.length === 0) throw adapterError("targets: expected at least one projection, found none")
    this.shape = shape
    this.adapters = adapters
    this.declarations = adapterParametersOf(config, shape)
    const { offsets, size } = adapterLayoutOf(this.declarations)
    this.offsets = offsets
    this.size = size
    this.table = new Float32Array(adapters * size)
    this.scalings = new Float32Array(adapters)
    this.options = Array.from({ length: adapters })
  }

  /** Returns the numbers of one adapter as a view into `table`. */
  row(index: number): Float32Array {
    const at = this.checked(index) * this.size
    return this.table.subarray(at, at + this.size)
  }

  /** Returns the settings with which an adapter was reset or loaded; undefined for an unused slot. */
  optionsOf(index: number): AdapterOptions | undefined {
    return this.options[this.checked(index)]
  }

  /** Returns the parameters of an adapter with the rank of the table, as views into `table`, by name. */
  namedParametersOf(index: number): NamedTensors {
    const row = this.row(index)
    return this.mapParameters((name, shape) => {
      const offset = this.offsetOf(name)
      return { shape, data: row.subarray(offset, offset + sizeOf(shape)) }
    })
  }

  /** Returns copies of an adapter's parameters with the adapter's own rank, by name, as files store them. */
  stateDictOf(index: number): NamedTensors {
    const rank = this.options[this.checked(index)]?.rank
    if (rank === undefined) throw adapterError(`adapter ${index}: it was neither reset nor loaded`)
    const row = this.row(index)
    return this.mapParameters((name, whole) => {
      const shape = withRank(name, whole, rank)
      const data = new Float32Array(sizeOf(shape))
      const offset = this.offsetOf(name)
      eachUsedRow(whole, shape, (own, inTable, columns) => {
        const from = offset + inTable
        data.set(row.subarray(from, from + columns), own)
      })
      return { shape, data }
    })
  }

  /**
   * Makes a new adapter that does not change the model yet: A is drawn from `random` and the parameter's name, and B is zero.
   */
  reset(index: number, options: AdapterOptions, random: Stream): void {
    const draw = (name: string, shape: ReadonlyArray<number>): Float32Array =>
      this.declarations[name].init(random.child(name), shape)
    this.fill(index, options, (name, shape) => draw(name, shape))
  }

  /**
   * Replaces an adapter by parameters from `stateDictOf` or from a file. Throws an `EngineError`, and changes nothing, if a
   * parameter is missing, unexpected or of another shape, or has a number that is not finite.
   */
  load(index: number, options: AdapterOptions, parameters: NamedTensors): void {
    for (const name of Object.keys(parameters))
      if (!this.offsets.has(name)) throw adapterError(`parameter "${name}": the adapters here have no such parameter`)
    for (const [name, { shape: whole }] of Object.entries(this.declarations)) {
      const shape = withRank(name, whole, options.rank)
      const parameter = parameters[name]
      if (parameter === undefined) throw adapterError(`parameter "${name}": it is missing`)
      if (parameter.shape.join() !== shape.join() || parameter.data.length !== sizeOf(shape))
        throw adapterError(
          `parameter "${name}": expected shape [${shape.join(", ")}], found [${parameter.shape.join(", ")}]`,
        )
      const wrong = firstNotFinite(parameter.data)
      if (wrong !== undefined) throw adapterError(`parameter "${name}": expected finite numbers, found ${wrong}`)
    }
    this.fill(index, options, (name) => parameters[name].data)
  }

  /** Frees a slot: sets all of its numbers to zero. */
  clear(index: number): void {
    this.row(index).fill(0)
    this.scalings[index] = 0
    this.options[index] = undefined
  }

  private fill(
    index: number,
    options: AdapterOptions,
    valuesOf: (name: string, shape: ReadonlyArray<number>) => Float32Array,
  ): void {
    const { rank, alpha } = options
    this.checked(index)
    if (!Number.isInteger(rank) || rank < 1 || rank > this.shape.rank)
      throw adapterError(`adapter ${index}: rank: expected an integer from 1 to ${this.shape.rank}, found ${rank}`)
    if (!Number.isFinite(alpha) || alpha <= 0)
      throw adapterError(`adapter ${index}: alpha: expected a positive number, found ${alpha}`)
    const row = this.row(index).fill(0)
    for (const [name, { shape: whole }] of Object.entries(this.declarations)) {
      const shape = withRank(name, whole, rank)
      const values = valuesOf(name, shape)
      const offset = this.offsetOf(name)
      eachUsedRow(whole, shape, (own, inTable, columns) =>
        row.set(values.subarray(own, own + columns), offset + inTable),
      )
    }
    this.scalings[index] = alpha / rank
    this.options[index] = options
  }

  private mapParameters(body: (name: string, shape: ReadonlyArray<number>) => NamedArray): NamedTensors {
    return Object.fromEntries(Object.entries(this.declarations).map(([name, { shape }]) => [name, body(name, shape)]))
  }

  private offsetOf(name: string): number {
    return this.offsets.get(name) ?? 0
  }

  private checked(index: number): number {
    if (!Number.isInteger(index) || index < 0 || index >= this.adapters)
      throw adapterError(`adapter ${index}: expected an index from 0 to ${this.adapters - 1}`)
    return index
  }
}

/** Returns the first number that is not finite. This loop is four times as fast as `find`. */
const firstNotFinite = (numbers: Float32Array): number | undefined => {
  for (let at = 0; at < numbers.length; at++) if (!Number.isFinite(numbers[at])) return numbers[at]
  return undefined
}

/** Returns the shape of a parameter with another rank: A is [rank, inputs], B is [outputs, rank]. */
const withRank = (name: string, shape: ReadonlyArray<number>, rank: number): ReadonlyArray<number> =>
  shape.with(name.endsWith("lora_A.weight") ? 0 : 1, rank)

/**
 * Visits the rows of the matrix `own`, which is the upper left part of the matrix `whole`, with the index of each row's
 * beginning in both.
 */
const eachUsedRow = (
  [, wholeColumns]: ReadonlyArray<number>,
  [rows, columns]: ReadonlyArray<number>,
  visit: (own: number, inWhole: number, columns: number) => void,
): void => {
  // If the rows have the same length, they are adjacent in both.
  if (columns === wholeColumns) return visit(0, 0, rows * columns)
  for (let row = 0; row < rows; row++) visit(row * columns, row * wholeColumns, columns)
}
