/**
 * The sweep of `gae` over float32 rows, four elements at a time: a WebAssembly module of half a kilobyte, put together
 * here instruction by instruction. It does what `scalar32` in `sweep.ts` does, operation for operation in float32, so
 * results have the same bits with and without it; `undefined` where the engine can't.
 */
export interface Simd {
  readonly memory: { readonly buffer: ArrayBuffer; readonly grow: (pages: number) => number }
  readonly sweep: Kernel
  /** The same with truncation; `sweep` leaves those two columns alone. */
  readonly sweepCut: Kernel
}

/**
 * From the four elements at `at` down to the first. Columns are addresses in bytes; up to three elements in front of
 * them are read and written. A row has four elements or more. Value targets take the place of the rewards.
 */
type Kernel = (
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

/** As much of the engine's interface as is used: TypeScript declares it only together with the browser's. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object
  readonly Instance: new (module: object) => { readonly exports: Simd }
}

// The instructions used, as the WebAssembly specification numbers them.
const [i32, f32, v128] = [0x7f, 0x7d, 0x7b]
const vector = (code: number): ReadonlyArray<number> =>
  code < 0x80 ? [0xfd, code] : [0xfd, (code & 0x7f) | 0x80, code >>> 7]
const localGet = (index: number): ReadonlyArray<number> => [0x20, index]
const localSet = (index: number): ReadonlyArray<number> => [0x21, index]
const constant = (value: number): ReadonlyArray<number> => [0x41, value & 0x7f]
const [add, subtract, shiftLeft, greater] = [0x6a, 0x6b, 0x74, 0x4a]
const [voidType, loop, branchIf, end] = [0x40, 0x03, [0x0d, 0x00], 0x0b]
const load = [...vector(0x00), 0x00, 0x00]
const load4Bytes = [...vector(0x5c), 0x00, 0x00]
const store = [...vector(0x0b), 0x00, 0x00]
const [splat, plus, minus, times] = [vector(0x13), vector(0xe4), vector(0xe5), vector(0xe6)]
const [and, select, widen8, widen16, equal] = [vector(0x4e), vector(0x52), vector(0x89), vector(0xa9), vector(0x37)]
const zeros = [...vector(0x0c), ...new Array<number>(16).fill(0)]

// Parameters, then locals, in the order of Kernel's.
const [at, rowBytes, rewards, values, advantages, terminated, truncated, truncatedValues, gamma, decay] = Array.from(
  { length: 10 },
  (_, index) => index,
)
const [offset, gammas, decays, value, next, advantage] = [10, 11, 12, 13, 14, 15]

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
  ...[...element(rewards), ...load, ...localGet(value), ...minus],
  ...[...localGet(next), ...unset(terminated), ...and, ...plus, ...localSet(advantage)],
  ...[...element(advantages), ...localGet(advantage), ...store],
  // the target, A + V
  ...[...element(rewards), ...localGet(advantage), ...localGet(value), ...plus, ...store],
  ...[...localGet(at), ...constant(4), subtract, ...localSet(at)],
  ...[...localGet(at), ...constant(-4), greater, ...branchIf, end],
  end,
]

const bytes = (): Uint8Array<ArrayBuffer> => {
  const number = (value: number): ReadonlyArray<number> =>
    value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...number(value >>> 7)]
  const sized = (content: ReadonlyArray<number>): ReadonlyArray<number> => [...number(content.length), ...content]
  const section = (id: number, content: ReadonlyArray<number>): ReadonlyArray<number> => [id, ...sized(content)]
  const name = (text: string): ReadonlyArray<number> => sized([...text].map((letter) => letter.charCodeAt(0)))
  const code = (cuts: boolean): ReadonlyArray<number> => sized([2, 1, i32, 5, v128, ...body(cuts)])
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

const instantiate = (): Simd | undefined => {
  try {
    return new WebAssembly.Instance(new WebAssembly.Module(bytes())).exports
  } catch {
    // No WebAssembly here, none with SIMD, or none that may be compiled at run time.
    return undefined
  }
}

export const simd: Simd | undefined = instantiate()
