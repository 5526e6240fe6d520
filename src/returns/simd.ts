/**
 * Implements the sweep of `gae` over float32 rows, four elements at a time, as a WebAssembly module of half a kilobyte
 * that is written here instruction by instruction. It does the same float32 operations as `scalar32` in `sweep.ts`, so
 * results have the same bits with and without it. The module is undefined if the engine cannot run it.
 */
export interface Simd {
  readonly memory: { readonly buffer: ArrayBuffer; readonly grow: (pages: number) => number }
  readonly sweep: Kernel
  /** Does the same with truncation. `sweep` does not read the columns `truncated` and `truncatedValues`. */
  readonly sweepCut: Kernel
}

/**
 * Sweeps from the four elements at `at` down to the first. Columns are addresses in bytes; up to three elements before them
 * are read and written too. A row has at least four elements. Value targets overwrite the rewards.
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

/** Declares the part of `WebAssembly` that this file uses. TypeScript declares it only in the types for browsers. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object
  readonly Instance: new (module: object) => { readonly exports: Simd }
}

type Code = ReadonlyArray<number>

/** Makes an instruction from its number in the WebAssembly specification, after the code of its operands. */
const instruction =
  (...code: Code) =>
  (...operands: ReadonlyArray<Code>): Code => [...operands.flat(), ...code]

const [i32, f32, v128] = [0x7f, 0x7d, 0x7b]
const get = (local: number): Code => [0x20, local]
const set = (local: number, value: Code): Code => [...value, 0x21, local]
/** Makes an integer constant from −64 to 63. */
const constant = (value: number): Code => [0x41, value & 0x7f]
const add = instruction(0x6a)
const subtract = instruction(0x6b)
const shiftLeft = instruction(0x74)
const greater = instruction(0x4a)
const repeatWhile = (condition: Code, ...code: ReadonlyArray<Code>): Code => [
  0x03,
  0x40,
  ...code.flat(),
  ...condition,
  0x0d,
  0x00,
  0x0b,
]
const load = instruction(0xfd, 0x00, 0, 0)
const store = instruction(0xfd, 0x0b, 0, 0)
const load4Bytes = instruction(0xfd, 0x5c, 0, 0)
const widen8 = instruction(0xfd, 0x89, 1)
const widen16 = instruction(0xfd, 0xa9, 1)
const zeros: Code = [0xfd, 0x0c, ...new Array<number>(16).fill(0)]
const splat = instruction(0xfd, 0x13)
const plus = instruction(0xfd, 0xe4, 1)
const minus = instruction(0xfd, 0xe5, 1)
const times = instruction(0xfd, 0xe6, 1)
const and = instruction(0xfd, 0x4e)
const equal = instruction(0xfd, 0x37)
/** Selects the first vector's bits where the third vector's bits are set, and the second vector's bits elsewhere. */
const select = instruction(0xfd, 0x52)

// The indices of the parameters, in the order of Kernel, then of the locals: a number, then vectors.
const [at, rowBytes, rewards, values, advantages, terminated, truncated, truncatedValues, gamma, decay] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
]
const [offset, gammas, decays, value, next, advantage] = [10, 11, 12, 13, 14, 15]

/** The address of this row's element of a column, then of the next row's. */
const here = (column: number): Code => add(get(column), get(offset))
const after = (column: number): Code => add(here(column), get(rowBytes))
/** Makes a mask: all bits are set in the lanes whose flag is 0. */
const unset = (flags: number): Code => equal(widen16(widen8(load4Bytes(add(get(flags), get(at))))), zeros)

const body = (cuts: boolean): Code =>
  [
    set(gammas, splat(get(gamma))),
    set(decays, splat(get(decay))),
    repeatWhile(
      greater(get(at), constant(-4)),
      set(offset, shiftLeft(get(at), constant(2))),
      set(value, load(here(values))),
      set(next, plus(times(load(after(values)), get(gammas)), times(load(after(advantages)), get(decays)))),
      cuts ? set(next, select(get(next), times(load(here(truncatedValues)), get(gammas)), unset(truncated))) : [],
      set(advantage, plus(minus(load(here(rewards)), get(value)), and(get(next), unset(terminated)))),
      store(here(advantages), get(advantage)),
      store(here(rewards), plus(get(advantage), get(value))),
      set(at, subtract(get(at), constant(4))),
    ),
    [0x0b],
  ].flat()

const bytes = (): Uint8Array<ArrayBuffer> => {
  const number = (value: number): Code => (value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...number(value >>> 7)])
  const sized = (content: Code): Code => [...number(content.length), ...content]
  const section = (id: number, content: Code): Code => [id, ...sized(content)]
  const name = (text: string): Code => sized([...text].map((letter) => letter.charCodeAt(0)))
  const code = (cuts: boolean): Code => sized([2, 1, i32, 5, v128, ...body(cuts)])
  const parameters = [...new Array<number>(8).fill(i32), f32, f32]
  const header = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]
  return Uint8Array.from([
    ...header,
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
    // The engine has no WebAssembly or no SIMD, or may not compile at run time.
    return undefined
  }
}

export const simd: Simd | undefined = instantiate()
