/**
 * Makes the WebAssembly module with which `gae.ts` computes advantages in float32, four elements at a time (SIMD).
 * The module is half a kilobyte; this file lists its instructions one by one. They are the same operations as in
 * `scalar32` of `gae.ts`, so results have the same bits with and without the module. `simd` is undefined if the
 * engine cannot run it.
 */
import { ModuleBuilder, type ValueType } from "../../tensor/wasm/encode.ts"
import {
  f32x4,
  i32,
  type I32,
  i32x4,
  local,
  loopWhile,
  type Statement,
  v128,
  type V128,
} from "../../tensor/wasm/instructions.ts"
import type { SweepColumns } from "./inputs.ts"

/**
 * The exports of the WebAssembly module. The caller writes the arrays of a rollout (rewards, values, …) to `memory`, and
 * reads the advantages and value targets there.
 */
interface Simd {
  readonly memory: { readonly buffer: ArrayBuffer; readonly grow: (pages: number) => number }
  readonly sweep: AdvantageKernel
  /** Does the same as `sweep` for rollouts with truncated episodes: it also reads `truncated` and `truncatedValues`. */
  readonly sweepTruncated: AdvantageKernel
}

/**
 * Computes advantages backwards, four elements at a time: first the elements `at` to `at` + 3, then the four before
 * them, and so on. The last group can begin at index −1, −2 or −3; then up to three elements before each array are read
 * and written, too. The parameters are the addresses of the arrays in `memory`, in bytes. A row (one time step of all
 * envs) must have at least four elements. Value targets overwrite the rewards.
 */
type AdvantageKernel = (
  at: number,
  rowBytes: number,
  rewards: number,
  values: number,
  advantages: number,
  terminated: number,
  truncated: number,
  truncatedValues: number,
  gamma: number,
  decay: number,
) => void

/** Declares the part of `WebAssembly` that this file uses. TypeScript declares it only in the types for browsers. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object
  readonly Instance: new (module: object) => { readonly exports: Simd }
}

// The parameters of the function, in the order of `AdvantageKernel`, then its local variables.
const [at, rowBytes, rewards, values, advantages] = [0, 1, 2, 3, 4].map((index) => local("i32", index))
const [terminated, truncated, truncatedValues] = [5, 6, 7].map((index) => local("i32", index))
const [gamma, decay] = [8, 9].map((index) => local("f32", index))
const offset = local("i32", 10)
const [gammas, decays, value, next, advantage] = [11, 12, 13, 14, 15].map((index) => local("v128", index))
const parameters: ReadonlyArray<ValueType> = [...new Array<ValueType>(8).fill("i32"), "f32", "f32"]
const locals: ReadonlyArray<ValueType> = ["i32", ...new Array<ValueType>(5).fill("v128")]

/**
 * Returns the address of the current row's element in a column; `after` returns the address of the next row's element.
 */
const here = (column: I32): I32 => i32.add(column, offset)
const after = (column: I32): I32 => i32.add(here(column), rowBytes)
/** Makes a mask of the four elements from index `at` on: all bits of an element are 1 if its flag is 0, else 0. */
const unset = (flags: I32): V128 => i32x4.eq(i32x4.extendLowBytes(v128.load32Zero(i32.add(flags, at))), v128.zero)

/** Makes the code for four elements of a row; `handlesTruncation` adds the code for truncated episodes. */
const row = (handlesTruncation: boolean): ReadonlyArray<Statement> => [
  offset.set(i32.shl(at, i32.const(2))),
  value.set(v128.load(here(values))),
  next.set(f32x4.add(f32x4.mul(v128.load(after(values)), gammas), f32x4.mul(v128.load(after(advantages)), decays))),
  handlesTruncation
    ? next.set(v128.bitselect(next, f32x4.mul(v128.load(here(truncatedValues)), gammas), unset(truncated)))
    : [],
  advantage.set(f32x4.add(f32x4.sub(v128.load(here(rewards)), value), v128.and(next, unset(terminated)))),
  v128.store(here(advantages), advantage),
  v128.store(here(rewards), f32x4.add(advantage, value)),
  at.set(i32.sub(at, i32.const(4))),
]

/** The largest size of the module's memory, in pages of 64 KiB. */
const largestMemory = 65_536

const bytes = (): Uint8Array<ArrayBuffer> => {
  const module = new ModuleBuilder()
  for (const [name, handlesTruncation] of [
    ["sweep", false],
    ["sweepTruncated", true],
  ] as const) {
    const loop = loopWhile(row(handlesTruncation), i32.gtS(at, i32.const(-4)))
    const body = [gammas.set(f32x4.splat(gamma)), decays.set(f32x4.splat(decay)), loop]
    module.export(name, module.define({ params: parameters, results: [] }, locals, body))
  }
  return module.encode(1, largestMemory)
}

const instantiate = (): Simd | undefined => {
  try {
    return new WebAssembly.Instance(new WebAssembly.Module(bytes())).exports
  } catch {
    // The engine has no WebAssembly or no SIMD, or may not compile at run time.
    return undefined
  }
}

export const simd: Simd | undefined = instantiate()

/** Rows are computed in groups of about this many elements, so that a group fits into the cache of a core. */
const elementsPerGroup = 16_384
/**
 * The number of unused bytes before a column. The module computes backwards, four at a time; its final four can begin up to
 * three elements before the column.
 */
const front = 16

/** Returns views of the module's memory: four columns of float32, then two of flags, with `capacity` elements each. */
const layOut = (memory: ArrayBuffer, capacity: number) => {
  const floats = (column: number) => new Float32Array(memory, column * (4 * capacity + front) + front, capacity)
  const flags = (column: number) =>
    new Uint8Array(memory, 4 * (4 * capacity + front) + column * (capacity + front) + front, capacity)
  return {
    rewards: floats(0),
    values: floats(1),
    advantages: floats(2),
    truncatedValues: floats(3),
    terminated: flags(0),
    truncated: flags(1),
  }
}

type Scratch = ReturnType<typeof layOut>
let scratch: Scratch | undefined

/** Returns columns of at least `elements` elements in the module's memory, which later calls reuse. */
const scratchOf = ({ memory }: Simd, elements: number): Scratch => {
  if (scratch !== undefined && scratch.rewards.length >= elements) return scratch
  const capacity = Math.ceil(elements / 16) * 16
  const bytes = 4 * (4 * capacity + front) + 2 * (capacity + front)
  const missing = Math.ceil((bytes - memory.buffer.byteLength) / 65_536)
  if (missing > 0) memory.grow(missing)
  scratch = layOut(memory.buffer, capacity)
  return scratch
}

/**
 * Computes with the SIMD module, in groups of rows from the last to the first: copies a group's inputs to the module's
 * memory, runs the module, and copies the results back. A group also reads the first row of the group that follows it
 * in time.
 */
export const vector32 = (module: Simd, columns: SweepColumns<Float32Array>): void => {
  const { rewards, values, lastValues, terminated, truncated, truncatedValues, gamma, decay, advantages, targets } =
    columns
  const envs = lastValues.length
  const elements = envs * Math.max(1, Math.floor(elementsPerGroup / envs))
  const buffers = scratchOf(module, elements + envs)
  const sweep = truncated === undefined ? module.sweep : module.sweepTruncated
  if (truncated !== undefined && truncatedValues === undefined) buffers.truncatedValues.fill(0)

  for (let to = rewards.length; to > 0; to -= elements) {
    const from = Math.max(0, to - elements)
    const count = to - from
    buffers.rewards.set(rewards.subarray(from, to))
    buffers.terminated.set(terminated.subarray(from, to))
    if (truncated !== undefined) buffers.truncated.set(truncated.subarray(from, to))
    if (truncatedValues !== undefined) buffers.truncatedValues.set(truncatedValues.subarray(from, to))
    if (to === rewards.length) {
      buffers.values.set(values.subarray(from, to))
      buffers.values.set(lastValues, count)
      buffers.advantages.fill(0, count, count + envs)
    } else {
      buffers.values.set(values.subarray(from, to + envs))
      buffers.advantages.set(advantages.subarray(to, to + envs), count)
    }
    sweep(
      count - 4, // the module starts with the four elements at the end
      4 * envs,
      buffers.rewards.byteOffset,
      buffers.values.byteOffset,
      buffers.advantages.byteOffset,
      buffers.terminated.byteOffset,
      buffers.truncated.byteOffset,
      buffers.truncatedValues.byteOffset,
      gamma,
      decay,
    )
    advantages.set(buffers.advantages.subarray(0, count), from)
    // The module has replaced the rewards with the value targets.
    if (targets !== undefined) targets.set(buffers.rewards.subarray(0, count), from)
  }
}
