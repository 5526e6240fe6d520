/**
 * Writes a program as portable C: C99 that C++ compilers accept, too, without extensions, memory from the heap, or functions of
 * a mathematical library. The results have the bits of the backend `wasm`, if the compiler neither contracts nor reorders
 * arithmetic.
 *
 * The code is written from the groups of the WebAssembly compiler, not from its module: a module has vectors and one untyped
 * memory, while this code has loops over arrays with types, whose weights are constants that can stay in flash.
 */
import { fail } from "../graph/ops/core.ts"
import type { ProgramSpec } from "../graph/Program.ts"
import { simplify } from "../graph/simplify.ts"
import { arrayTypes, type DType, sizeOf, stridesOf, type Tensor, type TensorData } from "../graph/Tensor.ts"
import { validate } from "../graph/validate.ts"
import { fuse, type FusedGroup, nodesOf } from "../graph/wasm/fuse.ts"
import { bytesPer, type Node, type Ref } from "../graph/wasm/ir.ts"
import { lower } from "../graph/wasm/lower.ts"
import { functionsInC } from "./functions.ts"
import { writeGroup } from "./groups.ts"
import { arrayInC, typesInC } from "./literals.ts"
import { buffersFor } from "./memory.ts"
import { indexOf, Writer } from "./writer.ts"

interface ProgramOptions {
  /** The prefix of all names, such as `effect_policy_`. It must be the beginning of an identifier. */
  readonly prefix: string
  /** The names of the parameters of `compute` for inputs and outputs. The names in the program are not used. */
  readonly inputs: Readonly<Record<string, string>>
  readonly outputs: Readonly<Record<string, string>>
  /**
   * Finds tensors of the simplified program. `compute` also copies the numbers of those that are in memory to the parameter
   * `extra`, one after another, unless that is a null pointer.
   */
  readonly extra?: (outputs: ProgramSpec["outputs"]) => ReadonlyArray<Tensor>
}

/** A program as pieces of C, in the order in which a file needs them. */
export interface ProgramInC {
  /** Whether a constant is infinite, which needs the name INFINITY of <math.h>. */
  readonly hasInfinity: boolean
  readonly constants: ReadonlyArray<string>
  readonly functions: ReadonlyArray<string>
  /** The static memory, and the function `compute`, whose parameters are the inputs, the outputs, and `extra`, if there is any. */
  readonly compute: string
  /** How many numbers `extra` gets. */
  readonly extraSize: number
  /** The bytes of the constants, and of the static memory. */
  readonly bytes: { readonly constants: number; readonly memory: number }
}

/** The largest programs: numbers in constants, in memory and in inputs, groups, and multiplications. */
const mostConstants = 2 ** 22
const mostMemory = 2 ** 22
const mostInputs = 2 ** 20
const mostGroups = 2 ** 12
const mostSteps = 2 ** 32

/** Writes a program without states as C. Throws a `GraphError` if it does not fit, or if a weight is not a number. */
export const programInC = (spec: ProgramSpec, options: ProgramOptions): ProgramInC => {
  validate(spec)
  if (Object.keys(spec.state).length > 0) fail("c", `${spec.name} has states; expected a program without`)
  const simplified = simplify(spec)
  const lowered = lower(simplified)
  const groups = fuse(lowered)
  checkSize(groups, [...lowered.inputs.values()])
  const folded = foldedCopies(groups, lowered.results)
  const computed = groups.filter(({ stored }) => ![...stored].every((node) => folded.has(node)))
  const inMemory = new Set([...lowered.inputs.values(), ...computed.flatMap(({ stored }) => [...stored])])
  const extras = (options.extra?.(simplified.outputs) ?? [])
    .map((tensor) => lowered.refOf(tensor))
    .filter(({ node }) => inMemory.has(node))
  const names = new Map<Node, string>()
  const parameters = [
    ...Object.entries(options.inputs).flatMap(([key, name]) => parameter(lowered.inputs.get(key), name, "const ")),
    ...Object.entries(options.outputs).flatMap(([key, name]) => parameter(lowered.outputs.get(key), name, "")),
  ]
  for (const { name, node } of parameters) names.set(node, name)
  const kept = new Set(extras.map(({ node }) => node))
  const { buffers, sizes } = buffersFor(computed, (node) => names.has(node), kept)
  buffers.forEach(({ node }, i) => names.set(node, `v${i}`))
  const w = new Writer(options.prefix, names, folded)
  for (const { name, node } of parameters) if (!isRead(node, computed)) w.line(`(void)${name};`)
  for (const { node, offset } of buffers) {
    w.line(`${typesInC[node.dtype]} *const ${names.get(node)} = ${memoryName(options.prefix, node.dtype)} + ${offset};`)
  }
  for (const group of computed) writeGroup(w, group)
  writeExtras(w, extras)
  const list = [...parameters.map(({ text }) => text), ...(extras.length === 0 ? [] : ["float *extra"])]
  const declared = (["f32", "i32", "i8", "bool"] as const).flatMap((dtype) =>
    sizes[dtype] === 0 ? [] : [`static ${typesInC[dtype]} ${memoryName(options.prefix, dtype)}[${sizes[dtype]}];`],
  )
  const head = `static inline void ${options.prefix}compute(${list.join(", ")}) {`
  return {
    hasInfinity: w.constants.some(({ data }) => data.some((value) => !Number.isFinite(value))),
    constants: w.constants.map(({ data, dtype, name, shape }) => {
      checkNumbers(data, shape)
      const comment = shape.length === 0 ? "1" : shape.join(" x ")
      return `/* ${comment} */\n${arrayInC(name, dtype, data)}`
    }),
    functions: functionsInC(w.functions, options.prefix),
    compute: [...declared, ...(declared.length > 0 ? [""] : []), head, ...w.lines, "}"].join("\n"),
    extraSize: extras.reduce((sum, { shape }) => sum + sizeOf(shape), 0),
    bytes: {
      constants: w.constants.reduce((sum, { data, dtype }) => sum + data.length * bytesPer(dtype), 0),
      memory: 4 * sizes.f32 + 4 * sizes.i32 + sizes.bool,
    },
  }
}

interface Parameter {
  readonly node: Node
  readonly name: string
  readonly text: string
}

const parameter = (node: Node | undefined, name: string, qualifier: string): ReadonlyArray<Parameter> =>
  node === undefined ? [] : [{ node, name, text: `${qualifier}${typesInC[node.dtype]} *${name}` }]

const memoryNames: Readonly<Record<DType, string>> = {
  f32: "floats",
  i32: "integers",
  i8: "small_integers",
  bool: "bytes",
}
const memoryName = (prefix: string, dtype: DType): string => `${prefix}${memoryNames[dtype]}`

const isRead = (node: Node, groups: ReadonlyArray<FusedGroup>): boolean =>
  groups.some(
    (group) => group.stored.has(node) || nodesOf(group).some(({ inputs }) => inputs.some((ref) => ref.node === node)),
  )

/** Writes the code that copies tensors to the parameter `extra`. */
const writeExtras = (w: Writer, refs: ReadonlyArray<Ref>): void => {
  if (refs.length === 0) return
  w.block("if (extra)", () => {
    let offset = 0
    for (const ref of refs) {
      const loops = ref.shape.map((size, level) => ({ variable: `i${level}`, size }))
      const strides = stridesOf(ref.shape)
      const from = w.element(ref, loops, ref.strides)
      const to = `extra[${indexOf(offset, loops, strides)}]`
      w.loops(
        loops.filter(({ size }) => size > 1),
        () => w.line(`${to} = ${from};`),
      )
      offset += sizeOf(ref.shape)
    }
  })
}

/** Returns the numbers of nodes that only rearrange constants, which are then constants themselves. */
const foldedCopies = (groups: ReadonlyArray<FusedGroup>, results: ReadonlySet<Node>): ReadonlyMap<Node, TensorData> => {
  const folded = new Map<Node, TensorData>()
  for (const { core, members } of groups) {
    const [node, ...others] = members
    if (core !== undefined || others.length > 0 || node?.work.kind !== "map" || node.work.fn !== "copy") continue
    if (results.has(node)) continue
    const [ref] = node.inputs
    const data = ref.node.work.kind === "constant" ? ref.node.work.data : folded.get(ref.node)
    if (data !== undefined) folded.set(node, rearranged(ref, data))
  }
  return folded
}

const rearranged = ({ node, offset, shape, strides }: Ref, data: TensorData): TensorData => {
  const own = stridesOf(shape)
  const result = new arrayTypes[node.dtype](sizeOf(shape))
  for (let at = 0; at < result.length; at++) {
    const from = shape.reduce((sum, size, axis) => sum + (Math.floor(at / own[axis]) % size) * strides[axis], offset)
    result[at] = data[from]
  }
  return result
}

/** Throws if a program is too large for a file of C, before anything is written. */
const checkSize = (groups: ReadonlyArray<FusedGroup>, inputs: ReadonlyArray<Node>): void => {
  const most = (what: string, found: number, limit: number): void => {
    if (found > limit) fail("c", `expected at most ${limit} ${what}, found ${found}`)
  }
  most("steps of computation", groups.length, mostGroups)
  const constants = new Set(
    groups.flatMap((group) => nodesOf(group).flatMap(({ inputs }) => inputs.map(({ node }) => node))),
  )
  const total = [...constants].reduce((sum, { work }) => sum + (work.kind === "constant" ? work.data.length : 0), 0)
  most("numbers in weights", total, mostConstants)
  const inputSize = inputs.reduce((sum, { shape }) => sum + sizeOf(shape), 0)
  most("numbers in inputs", inputSize, mostInputs)
  const memory = groups.reduce(
    (sum, { stored }) => sum + [...stored].reduce((own, { shape }) => own + sizeOf(shape), 0),
    0,
  )
  most("numbers in memory", memory, mostMemory)
  const steps = groups.reduce((sum, { core, dims }) => {
    const inner = core?.work.kind === "matmul" ? (core.inputs[0].shape.at(-1) ?? 1) : 1
    return sum + sizeOf(dims) * inner
  }, 0)
  most("multiplications", steps, mostSteps)
}

/** Throws if weights are damaged: bounds of actions may be infinite, but no number may be NaN, and no matrix infinite. */
const checkNumbers = (data: TensorData, shape: ReadonlyArray<number>): void => {
  const isMatrix = shape.filter((size) => size > 1).length > 1
  const wrong = data.find((value) => Number.isNaN(value) || (isMatrix && !Number.isFinite(value)))
  if (wrong !== undefined) fail("c", `weights [${shape.join(", ")}]: expected finite numbers, found ${wrong}`)
}
