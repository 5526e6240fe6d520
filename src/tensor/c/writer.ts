/** Collects the code of a program in C: its lines, its constants, and the functions that it calls. */
import type { DType, TensorData } from "../graph/Tensor.ts"
import type { Node, Ref } from "../graph/wasm/ir.ts"
import type { CFunction } from "./functions.ts"
import { numberInC } from "./literals.ts"

/** A loop over `size` elements; the variable is named by the loop's level. */
export interface Loop {
  readonly variable: string
  readonly size: number
}

/** An array of constants. */
interface ConstantArray {
  readonly name: string
  readonly dtype: DType
  readonly data: TensorData
  /** The sizes of its dimensions, for a comment. */
  readonly shape: ReadonlyArray<number>
}

export class Writer {
  readonly prefix: string
  readonly lines: Array<string> = []
  readonly functions = new Set<CFunction>()
  readonly constants: Array<ConstantArray> = []
  private readonly names: ReadonlyMap<Node, string>
  private readonly folded: ReadonlyMap<Node, TensorData>
  private readonly constantNames = new Map<TensorData, string>()
  private depth = 1

  /** `names` has the names of arrays that hold the values of nodes, and `folded` the numbers of nodes that are constants. */
  constructor(prefix: string, names: ReadonlyMap<Node, string>, folded: ReadonlyMap<Node, TensorData>) {
    this.prefix = prefix
    this.names = names
    this.folded = folded
  }

  line(text: string): void {
    this.lines.push(`${"    ".repeat(this.depth)}${text}`)
  }

  /** Writes a block around the lines of `write`. */
  block(head: string, write: () => void): void {
    this.line(head === "" ? "{" : `${head} {`)
    this.depth++
    write()
    this.depth--
    this.line("}")
  }

  /** Writes nested loops around the lines of `write`. */
  loops(loops: ReadonlyArray<Loop>, write: () => void): void {
    const [first, ...others] = loops
    if (first === undefined) return write()
    const { variable, size } = first
    this.block(`for (int32_t ${variable} = 0; ${variable} < ${size}; ${variable}++)`, () => this.loops(others, write))
  }

  /** Returns the name of a function, which becomes part of the program. */
  fn(name: CFunction): string {
    this.functions.add(name)
    return `${this.prefix}${name}`
  }

  number(dtype: DType, value: number): string {
    if (dtype === "f32" && Number.isNaN(value)) return `${this.fn("of_bits")}(0x7fc00000u)`
    if (dtype === "f32" && !Number.isFinite(value))
      return `${this.fn("of_bits")}(${value > 0 ? "0x7f800000u" : "0xff800000u"})`
    return numberInC(dtype, value)
  }

  /** Returns the numbers of a node that is a constant; undefined for other nodes. */
  numbersOf(node: Node): TensorData | undefined {
    return node.work.kind === "constant" ? node.work.data : this.folded.get(node)
  }

  /** Returns the name of the array with a node's numbers. */
  array(node: Node): string {
    const data = this.numbersOf(node)
    if (data !== undefined) return this.constant(node.dtype, data, node.shape)
    const name = this.names.get(node)
    if (name === undefined) throw new Error(`c: node ${node.id} has no array`)
    return name
  }

  /** Returns the name of an array of constants, which becomes part of the program; the same array only once. */
  constant(dtype: DType, data: TensorData, shape: ReadonlyArray<number>): string {
    const existing = this.constantNames.get(data)
    if (existing !== undefined) return existing
    const name = `${this.prefix}weights_${this.constants.length}`
    this.constants.push({ name, dtype, data, shape })
    this.constantNames.set(data, name)
    return name
  }

  /** Returns the element of an array at which loops are; `strides` has one stride for each loop, in elements. */
  element({ node, offset }: Ref, loops: ReadonlyArray<Loop>, strides: ReadonlyArray<number>): string {
    return `${this.array(node)}[${indexOf(offset, loops, strides)}]`
  }
}

/** Writes `offset + i · stride + …` without what is 0. */
export const indexOf = (offset: number, loops: ReadonlyArray<Loop>, strides: ReadonlyArray<number>): string => {
  const terms = loops.flatMap(({ size, variable }, level) => {
    if (size === 1 || strides[level] === 0) return []
    return [strides[level] === 1 ? variable : `${variable} * ${strides[level]}`]
  })
  return [...(offset === 0 && terms.length > 0 ? [] : [String(offset)]), ...terms].join(" + ")
}
