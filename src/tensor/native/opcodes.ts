/** Lists the instructions that `tensor/wasm/instructions.ts` can make, by their opcodes. */
import type { ValueType } from "../wasm/encode.ts"

/** An instruction that takes values from the stack and leaves one. */
export interface Operation {
  readonly name: string
  readonly takes: number
  readonly type: ValueType
  /** How many bytes with numbers of lanes follow the opcode. */
  readonly lanes?: number
}

const operations = (
  type: ValueType,
  takes: number,
  codes: Readonly<Record<string, number>>,
): ReadonlyArray<readonly [number, Operation]> =>
  Object.entries(codes).map(([name, code]) => [code, { name, takes, type }])

/** The instructions whose opcode is one byte. */
export const plainOperations: ReadonlyMap<number, Operation> = new Map([
  ...operations("i32", 2, {
    "i32.add": 0x6a,
    "i32.sub": 0x6b,
    "i32.mul": 0x6c,
    "i32.and": 0x71,
    "i32.or": 0x72,
    "i32.shl": 0x74,
    "i32.shr_u": 0x76,
    "i32.eq": 0x46,
    "i32.ne": 0x47,
    "i32.lt_u": 0x49,
    "i32.gt_s": 0x4a,
    "i32.gt_u": 0x4b,
    "i64.eq": 0x51,
    "f64.eq": 0x61,
    "f64.ne": 0x62,
    "f64.lt": 0x63,
    "f64.gt": 0x64,
  }),
  ...operations("i32", 1, { "i32.eqz": 0x45, "i32.wrap_i64": 0xa7 }),
  ...operations("i64", 2, { "i64.add": 0x7c, "i64.sub": 0x7d, "i64.shl": 0x86, "i64.shr_s": 0x87, "i64.shr_u": 0x88 }),
  ...operations("i64", 1, { "i64.reinterpret_f64": 0xbd, "i64.extend_i32_u": 0xad }),
  ...operations("f32", 2, { "f32.add": 0x92 }),
  ...operations("f32", 1, { "f32.demote_f64": 0xb6 }),
  ...operations("f64", 2, {
    "f64.add": 0xa0,
    "f64.sub": 0xa1,
    "f64.mul": 0xa2,
    "f64.div": 0xa3,
    "f64.min": 0xa4,
    "f64.max": 0xa5,
  }),
  ...operations("f64", 1, {
    "f64.abs": 0x99,
    "f64.neg": 0x9a,
    "f64.floor": 0x9c,
    "f64.nearest": 0x9e,
    "f64.promote_f32": 0xbb,
    "f64.reinterpret_i64": 0xbf,
    "f64.convert_i64_s": 0xb9,
  }),
])

/** The instructions on vectors, whose opcode follows the byte 0xfd. */
export const vectorOperations: ReadonlyMap<number, Operation> = new Map([
  ...operations("v128", 1, {
    "i32x4.splat": 17,
    "f32x4.splat": 19,
    "f64x2.splat": 20,
    "v128.not": 77,
    "f64x2.demote_zero": 94,
    "f64x2.promote_low": 95,
    "f32x4.floor": 104,
    "f64x2.floor": 117,
    "i16x8.extend_low_u8": 137,
    "f64x2.nearest": 148,
    "i32x4.neg": 161,
    "i32x4.extend_low_u16": 169,
    "f32x4.abs": 224,
    "f32x4.neg": 225,
    "f32x4.sqrt": 227,
    "i32x4.trunc_sat": 248,
    "f32x4.convert": 250,
    "i32x4.trunc_sat_f64_zero": 252,
  }),
  ...operations("v128", 2, {
    "i32x4.eq": 55,
    "i32x4.ne": 56,
    "i32x4.lt": 57,
    "i32x4.gt": 59,
    "i32x4.le": 61,
    "i32x4.ge": 63,
    "f32x4.eq": 65,
    "f32x4.ne": 66,
    "f32x4.lt": 67,
    "f32x4.gt": 68,
    "f32x4.le": 69,
    "f32x4.ge": 70,
    "v128.and": 78,
    "v128.or": 80,
    "v128.xor": 81,
    "i8x16.narrow_u16": 102,
    "i16x8.narrow_s32": 133,
    "i32x4.shl": 171,
    "i32x4.shr_s": 172,
    "i32x4.add": 174,
    "i32x4.sub": 177,
    "i32x4.mul": 181,
    "i32x4.min": 182,
    "i32x4.max": 184,
    "f32x4.add": 228,
    "f32x4.sub": 229,
    "f32x4.mul": 230,
    "f32x4.div": 231,
    "f32x4.min": 232,
    "f32x4.max": 233,
    "f32x4.pmin": 234,
    "f32x4.pmax": 235,
    "f64x2.sub": 241,
    "f64x2.mul": 242,
  }),
  ...operations("v128", 3, { "v128.bitselect": 82 }),
  [31, { name: "f32x4.extract_lane", takes: 1, type: "f32", lanes: 1 }],
  [32, { name: "f32x4.replace_lane", takes: 2, type: "v128", lanes: 1 }],
])

/** The loads by their opcodes. */
export const plainLoads: ReadonlyMap<number, { readonly name: string; readonly type: ValueType }> = new Map([
  [0x28, { name: "i32.load", type: "i32" }],
  [0x2a, { name: "f32.load", type: "f32" }],
  [0x2d, { name: "i32.load8_u", type: "i32" }],
])
export const plainStores: ReadonlyMap<number, string> = new Map([
  [0x36, "i32.store"],
  [0x38, "f32.store"],
  [0x3a, "i32.store8"],
])
export const vectorLoads: ReadonlyMap<number, string> = new Map([
  [0, "v128.load"],
  [9, "v128.load32_splat"],
  [92, "v128.load32_zero"],
])
export const laneLoads: ReadonlyMap<number, string> = new Map([
  [84, "v128.load8_lane"],
  [86, "v128.load32_lane"],
])
export const laneStores: ReadonlyMap<number, string> = new Map([
  [88, "v128.store8_lane"],
  [90, "v128.store32_lane"],
  [91, "v128.store64_lane"],
])

/** The types of values by the bytes that name them in a module. */
export const typeOf = (byte: number): ValueType => {
  const type = typesByByte.get(byte)
  if (type === undefined) throw new Error(`decode: there is no type ${byte}`)
  return type
}

const typesByByte = new Map<number, ValueType>([
  [0x7f, "i32"],
  [0x7e, "i64"],
  [0x7d, "f32"],
  [0x7c, "f64"],
  [0x7b, "v128"],
])
