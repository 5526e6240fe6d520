/**
 * The sweep of `gae` over float32 rows, four envs at a time: a WebAssembly module of half a kilobyte, written here
 * instruction by instruction. Scalar JavaScript takes five times as long as copying what GAE reads and writes; this
 * takes less than twice as long, the copies into its memory and out of it included.
 *
 * It does what `sweep32` of `sweep.ts` does, operation for operation in float32, so that results have the same bits
 * with and without it.
 */
import type { Sweep } from "./sweep.ts"

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer; readonly grow: (pages: number) => number }
  readonly sweep: Kernel
  readonly sweepCut: Kernel
}

/** From row element `start` down to the first, four at a time; columns are addresses in bytes. */
type Kernel = (
  start: number,
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

// What of WebAssembly's interface is needed: its types are not in the language's own library.
declare const WebAssembly:
  | {
      readonly Module: new (bytes: Uint8Array) => object
      readonly Instance: new (module: object) => { readonly exports: Exports }
    }
  | undefined

// The instructions used, as the WebAssembly specification numbers them.
const [i32, f32, v128] = [0x7f, 0x7d, 0x7b]
const simd = (code: number): ReadonlyArray<number> => (code < 0x80 ? [0xfd, code] : [0xfd, code & 0x7f | 0x80, code >>> 7])
const localGet = (index: number): ReadonlyArray<number> => [0x20, index]
const localSet = (index: number): ReadonlyArray<number> => [0x21, index]
const constant = (value: number): ReadonlyArray<number> => [0x41, value & 0x7f]
const [add, subtract, shiftLeft, greater] = [0x6a, 0x6b, 0x74, 0x4a]
const [voidType, loop, branchIf, end] = [0x40, 0x03, [0x0d, 0x00], 0x0b]
const load = [...simd(0x00), 0x00, 0x00]
const load4Bytes = [...simd(0x5c), 0x00, 0x00]
const store = [...simd(0x0b), 0x00, 0x00]
const [splat, plus, minus, times] = [simd(0x13), simd(0xe4), simd(0xe5), simd(0xe6)]
const [and, select, widen8, widen16, equal] = [simd(0x4e), simd(0x52), simd(0x89), simd(0xa9), simd(0x37)]
const zeros = [...simd(0x0c), ...new Array<number>(16).fill(0)]

// Parameters, then locals, in the order of Kernel's.
const [at, rowBytes, rewards, values, advantages, terminated, truncated, truncatedValues, gamma, decay] = Array.from(
  { length: 10 },
  (_, index) => index,
)
const [offset, gammas, decays, value, next] = [10, 11, 12, 13, 14]

/** The address of a column's element. */
const element = (column: number): ReadonlyArray<number> => [...localGet(column), ...localGet(offset), add]
/** The address of the element one row on. */
const nextElement = (column: number): ReadonlyArray<number> => [...element(column), ...localGet(rowBytes), add]
/** All bits set in the lanes whose flag is 0. */
const unset = (flags: number): ReadonlyArray<number> => [
  ...[...localGet(flags), ...localGet(at), add, ...load4Bytes, ...widen8, ...widen16],
  ...[...zeros, ...equal],
]

const body = (cuts: boolean): ReadonlyArray<number> => [
  ...[...localGet(gamma), ...splat, ...localSet(gammas)],
  ...[...localGet(decay), ...splat, ...localSet(decays)],
  ...[loop, voidType],
  ...[...localGet(at), ...constant(2), shiftLeft, ...localSet(offset)],
  ...[...element(values), ...load, ...localSet(value)],
  // next = γ V' + γλ A'
  ...[...nextElement(values), ...load, ...localGet(gammas), ...times],
  ...[...nextElement(advantages), ...load, ...localGet(decays), ...times, ...plus, ...localSet(next)],
  // where truncated, γ times the value of the final observation instead
  ...(cuts
    ? [
        ...[...localGet(next), ...element(truncatedValues), ...load, ...localGet(gammas), ...times],
        ...[...unset(truncated), ...select, ...localSet(next)],
      ]
    : []),
  // A = (r − V) + (next where not terminated)
  ...element(advantages),
  ...[...element(rewards), ...load, ...localGet(value), ...minus],
  ...[...localGet(next), ...unset(terminated), ...and, ...plus, ...store],
  ...[...localGet(at), ...constant(4), subtract, ...localSet(at)],
  ...[...localGet(at), ...constant(-4), greater, ...branchIf, end],
  end,
]

const bytes = (): Uint8Array => {
  const number = (value: number): ReadonlyArray<number> => (value < 0x80 ? [value] : [value & 0x7f | 0x80, ...number(value >>> 7)])
  const sized = (content: ReadonlyArray<number>): ReadonlyArray<number> => [...number(content.length), ...content]
  const section = (id: number, content: ReadonlyArray<number>): ReadonlyArray<number> => [id, ...sized(content)]
  const name = (text: string): ReadonlyArray<number> => sized([...text].map((letter) => letter.charCodeAt(0)))
  const code = (cuts: boolean): ReadonlyArray<number> => sized([2, 1, i32, 4, v128, ...body(cuts)])
  const parameters = [...new Array<number>(8).fill(i32), f32, f32]
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...section(1, [1, 0x60, ...sized(parameters), 0]),
    ...section(3, [2, 0, 0]),
    ...section(5, [1, 0x00, 1]),
    ...section(7, [3, ...name("memory"), 2, 0, ...name("sweep"), 0, 0, ...name("sweepCut"), 0, 1]),
    ...section(10, [2, ...code(false), ...code(true)]),
  ])
}

/** Rows are taken in turns of about this many elements: what one needs of memory stays in a core's own cache. */
const elementsATurn = 16_384
/** The last four elements may begin up to three before the first: room in front of each column, in bytes. */
const front = 16

const scratchFor = (exports: Exports) => {
  let capacity = 0
  let columns = columnsOf(new ArrayBuffer(0), 0)
  return (elements: number) => {
    if (elements <= capacity) return columns
    const wanted = Math.ceil(columnsOf.bytes(elements) / 65_536)
    exports.memory.grow(wanted - exports.memory.buffer.byteLength / 65_536)
    capacity = elements
    columns = columnsOf(exports.memory.buffer, elements)
    return columns
  }
}
