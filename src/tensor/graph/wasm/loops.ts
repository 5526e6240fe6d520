/**
 * Emits nested loops over strided arrays, which `nest.ts` describes.
 *
 * Arrays with the same strides share one offset, a local variable; the start address of each array is a constant in its
 * instructions. So a loop over contiguous arrays has only one counter.
 *
 * Sums have a fixed order. Along the dimension whose elements fill the lanes, there are up to four vectors of partial
 * sums (with four, element i goes to partial sum i mod 16), which are added in pairs at the end. Along other
 * dimensions, elements are added in order.
 */
import { bytesPer } from "./ir.ts"
import { i32, type I32, type Local, loopWhile, v128, type V128 } from "../../wasm/instructions.ts"
import type { FunctionBuilder } from "./function.ts"
import { loadLanes, loadSplat, storeLanes } from "./lanes.ts"
import type { Block } from "./math.ts"
import {
  type Access,
  type Carry,
  combine,
  type Division,
  divisionOf,
  identity,
  isCarried,
  type Nest,
  planned,
  vectorsTogether,
} from "./nest.ts"

/** An array with its offset, a local variable that loops change. The address of an element is base + offset. */
interface Placed extends Access {
  readonly offset: Local<"i32">
}

/** The order of the loops over a nest, and how many vectors a step of them computes. */
interface LoopOrder {
  readonly nest: Nest
  /** The sizes of the dimensions. If threads divide the nest, these are the sizes of one part. */
  readonly dims: ReadonlyArray<number>
  readonly divided: Division | undefined
  /**
   * The dimension along which neighbours share a vector (−1 if there is none), and (`lanesOfWhole`) its size without
   * bands.
   */
  readonly along: number
  readonly lanesOfWhole: number
  /** Whether the lanes of a vector are parts of one reduction. */
  readonly carriesLanes: boolean
  readonly isReversed: boolean
  /**
   * The largest number of vectors that are computed together. It determines the order of sums along the lanes, where it
   * is fixed; elsewhere it is larger if a register holds several vectors.
   */
  readonly widest: number
  /**
   * The largest number of vectors in a step of the loop along the lanes: several times `widest` if only sums are kept.
   */
  readonly longest: number
  /** The dimensions from the outermost loop to the innermost. */
  readonly levels: ReadonlyArray<number>
  /** The first level whose inner loops all belong to the nest's reduction. */
  readonly firstCarried: number
}

/** The loops over a nest that are written into a function. */
interface Loops extends LoopOrder {
  readonly f: FunctionBuilder
  readonly reads: ReadonlyArray<Placed>
  readonly writes: ReadonlyArray<Placed>
  readonly carry: (Carry & { readonly write: Placed }) | undefined
  /** All arrays, and (`distinct`) one array for each offset. */
  readonly placed: ReadonlyArray<Placed>
  readonly distinct: ReadonlyArray<Placed>
  /** The values that do not change in the inner loops, by the index of their read. */
  readonly hoisted: Map<number, Block>
  /** The values of the reduction so far. */
  sums: ReadonlyArray<Local<"v128">>
}

/**
 * Writes the loops over `wholeNest` into the function `f`. With `elements`, the loops cover only that many elements of
 * the dimension that `divisible` found, beginning at the index in the function's first parameter. In a band, the
 * parameters are its first row, and the offset of arrays that hold only one band.
 */
export const writeNest = (f: FunctionBuilder, wholeNest: Nest, elements?: number): void => {
  const loops = placedLoops(f, orderOf(f, wholeNest, elements))
  hoist(loops, -1)
  // If no dimension fills the lanes, only one lane of one vector is used.
  const used = loops.along < 0 ? 1 : 0
  writeLoops(loops, 0, used, used)
}

/** Decides the order of the loops. */
const orderOf = (f: FunctionBuilder, wholeNest: Nest, elements: number | undefined): LoopOrder => {
  const { along, lanesOfWhole, nest } = planned(wholeNest)
  const divided = elements === undefined ? undefined : divisionOf(nest, along)
  const dims = elements === undefined || divided === undefined ? nest.dims : nest.dims.with(divided.d, elements)
  const carriesLanes = along >= 0 && isCarried(nest, along)
  const registers = vectorsTogether(nest)
  /** Whether each lane has a reduction of its own, whose value stays in a register. */
  const reducesLanes = nest.carry !== undefined && nest.carry.scan === undefined && !carriesLanes && along >= 0
  const widest = !carriesLanes && !reducesLanes ? (registers * f.target.lanes) / 4 : registers
  const others = dims.map((_, d) => d).filter((d) => d !== along)
  const outer = others.filter((d) => !isCarried(nest, d))
  const inner = others.filter((d) => isCarried(nest, d))
  const lanesLevel = along < 0 ? [] : [along]
  return {
    nest,
    dims,
    divided,
    along,
    lanesOfWhole,
    carriesLanes,
    isReversed: nest.carry?.scan?.reverse === true,
    widest,
    longest: reducesLanes ? (registers * f.target.lanes) / 2 : widest,
    levels: carriesLanes ? [...outer, ...inner, ...lanesLevel] : [...outer, ...lanesLevel, ...inner],
    firstCarried: outer.length + (carriesLanes ? 0 : lanesLevel.length),
  }
}

/** Declares the offsets of the arrays. Those with the same strides share one. */
const placedLoops = (f: FunctionBuilder, order: LoopOrder): Loops => {
  const { nest } = order
  const offsets = new Map<string, Local<"i32">>()
  const place = (access: Access): Placed => {
    const key = `${access.strides.join()} ${access.inBand === true}`
    const offset = offsets.get(key) ?? f.let(startOf(f, order, access))
    offsets.set(key, offset)
    return { ...access, offset }
  }
  const reads = nest.reads.map(place)
  const writes = nest.writes.map(place)
  const carry = nest.carry && { ...nest.carry, write: place(nest.carry.write) }
  const placed = [...reads, ...writes, ...(carry === undefined ? [] : [carry.write])]
  const distinct = [...new Map(placed.map((access) => [access.offset, access])).values()]
  return { ...order, f, reads, writes, carry, placed, distinct, hoisted: new Map(), sums: [] }
}

/** Returns the offset at which the loops begin to read or write an array. A reverse scan starts at the end. */
const startOf = (f: FunctionBuilder, { nest, dims, divided, isReversed }: LoopOrder, access: Access): I32 => {
  const { inBand, strides } = access
  if (nest.band !== undefined) {
    // A nest in a band has no scan and is not divided.
    const [row, own] = [f.param("i32", 0), f.param("i32", 1)]
    if (inBand === true) return own
    // The first dimension may be merged with others: then one row has several elements of it.
    return strides[0] === 0 ? i32.const(0) : i32.mul(row, i32.const((strides[0] * dims[0]) / nest.band))
  }
  const atEnd = (sum: number, stride: number, d: number): number =>
    isCarried(nest, d) ? sum + stride * (dims[d] - 1) : sum
  const first = i32.const(isReversed ? strides.reduce(atEnd, 0) : 0)
  const stride = divided === undefined ? 0 : strides[divided.d]
  return stride === 0 ? first : i32.add(first, i32.mul(f.param("i32", 0), i32.const(stride)))
}

/** Moves all offsets by some steps of a dimension. */
const move = ({ f, nest, isReversed, distinct }: Loops, d: number, steps: number): void => {
  const direction = isReversed && isCarried(nest, d) ? -1 : 1
  for (const { strides, offset } of distinct) {
    if (strides[d] !== 0) f.emit(offset.set(i32.add(offset, i32.const(strides[d] * steps * direction))))
  }
}

/** Loads the values that do not change in the inner loops before these loops begin. */
const hoist = ({ f, along, levels, widest, reads, hoisted }: Loops, level: number): void =>
  reads.forEach(({ dtype, base, strides, offset }, index) => {
    const deepest = levels.findLastIndex((d) => strides[d] !== 0)
    const hasLanes = along >= 0 && strides[along] !== 0
    if (deepest !== level || hasLanes || level === levels.length - 1) return
    hoisted.set(index, new Array<V128>(widest).fill(loadSplat(f, dtype, offset, base)))
  })

/** Returns the distance in bytes between neighbours that share a vector. */
const strideOf = ({ along }: LoopOrder, { dtype, strides }: Access): number => {
  if (along >= 0) return strides[along]
  return bytesPer(dtype)
}

/** Loads `width` vectors of an array, beginning with vector `from` of the step. */
const load = (loops: Loops, index: number, from: number, width: number, lanes: number): Block => {
  const { f, reads, hoisted } = loops
  const existing = hoisted.get(index)
  if (existing !== undefined) return existing.slice(0, width)
  const { dtype, base, offset } = reads[index]
  const stride = strideOf(loops, reads[index])
  if (stride === 0) return new Array<V128>(width).fill(loadSplat(f, dtype, offset, base))
  return Array.from({ length: width }, (_, i) => {
    const v = from + i
    return loadLanes(f, dtype, offset, base + 4 * v * stride, stride, Math.min(4, lanes - 4 * v))
  })
}

const store = (loops: Loops, access: Placed, from: number, block: Block, lanes: number): void => {
  const stride = strideOf(loops, access)
  // Store from last to first (see `lanes.ts`).
  for (let v = from + block.length - 1; v >= from; v--) {
    const count = Math.min(4, lanes - 4 * v)
    storeLanes(loops.f, access.dtype, access.offset, access.base + 4 * v * stride, stride, count, block[v - from])
  }
}

/**
 * Writes the loops from level `at` on. Inside the loop along the lanes, each step computes `lanes` elements (see
 * `writeStep`).
 */
const writeLoops = (loops: Loops, at: number, width: number, lanes: number): void => {
  const { f, dims, along, levels, carry, firstCarried } = loops
  if (carry !== undefined && at === firstCarried) {
    const count = loops.carriesLanes ? Math.min(loops.widest, Math.ceil(loops.lanesOfWhole / 4)) : width
    loops.sums = Array.from({ length: count }, (_, v) => f.let(firstSum(loops, carry, v, lanes)))
  }
  if (at === levels.length) writeStep(loops, width, lanes)
  else if (levels[at] === along) writeLanesLoop(loops, at)
  else {
    const d = levels[at]
    f.repeat(dims[d], () => {
      hoist(loops, at)
      writeLoops(loops, at + 1, width, lanes)
      move(loops, d, 1)
    })
    if (at > 0) move(loops, d, -dims[d])
  }
  if (carry !== undefined && carry.scan === undefined && at === firstCarried) storeReduced(loops, carry, width, lanes)
}

/** Writes the loop over the vectors along the lanes, and the code for the elements that do not fill a whole step. */
const writeLanesLoop = (loops: Loops, at: number): void => {
  const { f, nest, dims, divided, along, isReversed } = loops
  const step = 4 * loops.longest
  const blocks = Math.floor(dims[along] / step)
  const rest = dims[along] - blocks * step
  const block = (lanes: number): void => {
    hoist(loops, at)
    writeLoops(loops, at + 1, Math.ceil(lanes / 4), lanes)
  }
  const wholeBlock = (): void => {
    block(step)
    move(loops, along, step)
  }
  const counter = loops.placed.find(({ strides }) => strides[along] > 0)
  if (at === 0 && blocks > 1 && counter !== undefined && !isReversed) {
    const bytes = i32.const(blocks * step * counter.strides[along])
    const startsAtZero = divided === undefined && nest.band === undefined
    const end = startsAtZero ? bytes : f.let(i32.add(counter.offset, bytes))
    f.emit(loopWhile(f.capture(wholeBlock), i32.ltU(counter.offset, end)))
  } else f.repeat(blocks, wholeBlock)
  if (rest > 0) f.scoped(() => block(rest))
  if (at > 0 && blocks > 0) move(loops, along, -blocks * step)
}

/** Writes the code that computes `lanes` elements in `width` vectors; the last vector can have fewer than four. */
const writeStep = (loops: Loops, width: number, lanes: number): void => {
  const { f, widest } = loops
  for (let from = 0; from < width; from += widest) {
    f.scoped(() => writeVectors(loops, from, Math.min(widest, width - from), lanes))
  }
}

/** Writes the code of `width` vectors of a step, beginning with vector `from`. */
const writeVectors = (loops: Loops, from: number, width: number, lanes: number): void => {
  const { f, nest, writes, carry, carriesLanes, sums } = loops
  const blocks = nest.compute((index) => load(loops, index, from, width, lanes), width)
  writes.forEach((access, i) => store(loops, access, from, blocks[i], lanes))
  if (carry === undefined) return
  const add = combine(carry)
  const own = sums.slice(from, from + width)
  if (carry.scan?.exclusive === true) store(loops, carry.write, from, own, lanes)
  blocks[writes.length].forEach((value, i) => {
    const valid = lanes - 4 * (from + i)
    f.emit(own[i].set(add(own[i], !carriesLanes || valid >= 4 ? value : masked(f, carry, value, valid))))
  })
  if (carry.scan?.exclusive === false) store(loops, carry.write, from, own, lanes)
}

/** Replaces the lanes beyond the end by the neutral element of the reduction. */
const masked = (f: FunctionBuilder, carry: Carry, value: V128, valid: number): V128 => {
  const lane = (index: number): number => (index < valid ? -1 : 0)
  const mask = v128.const([lane(0), lane(1), lane(2), lane(3)])
  return v128.bitselect(value, f.word(identity(carry)), mask)
}

/** Returns the value with which a sum begins: the sum of earlier bands, if there are any. */
const firstSum = (loops: Loops, carry: NonNullable<Loops["carry"]>, v: number, lanes: number): V128 => {
  const { base, dtype, offset } = carry.write
  if (carry.waiting !== undefined) return v128.load(i32.const(carry.waiting), 16 * v)
  const stride = strideOf(loops, carry.write)
  return carry.continues === true
    ? loadLanes(loops.f, dtype, offset, base + 4 * v * stride, stride, Math.min(4, lanes - 4 * v))
    : loops.f.word(identity(carry))
}

/** Stores the value of a reduction. If a sum is spread over several lanes, adds the lanes first. */
const storeReduced = (loops: Loops, carry: NonNullable<Loops["carry"]>, width: number, lanes: number): void => {
  const { f, sums } = loops
  const to = carry.write
  if (!loops.carriesLanes) return store(loops, to, 0, sums.slice(0, width), lanes)
  const add = combine(carry)
  const { waiting } = carry
  // Store from last to first (see `lanes.ts`).
  if (waiting !== undefined) {
    for (let v = sums.length - 1; v >= 0; v--) f.emit(v128.store(i32.const(waiting), sums[v], 16 * v))
  }
  let parts: ReadonlyArray<V128> = sums
  while (parts.length > 1) {
    const half = Math.ceil(parts.length / 2)
    const upper = parts.slice(half)
    parts = parts.slice(0, half).map((part, i) => (i < upper.length ? f.let(add(part, upper[i])) : part))
  }
  const pairs = f.let(add(parts[0], v128.shuffle(parts[0], parts[0], [2, 3, 0, 1])))
  const total = f.let(add(pairs, v128.shuffle(pairs, pairs, [1, 0, 3, 2])))
  f.emit(v128.store32Lane(to.offset, total, 0, to.base))
}
