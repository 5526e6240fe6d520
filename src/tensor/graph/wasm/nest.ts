/**
 * Emits nested loops over strided arrays: the code of maps (elementwise nodes), reductions and cumulative sums.
 *
 * Neighbours along one dimension fill the four lanes of a vector: the dimension that needs the fewest instructions.
 * Arrays with the same strides share one offset, a local variable; the start address of each array is a constant in its
 * instructions. So a loop over contiguous arrays has only one counter.
 *
 * Threads can compute parts of a nest: neighbours along one dimension whose results are apart. The dimension of the lanes
 * follows from the whole nest, so each result is computed alike in any part.
 *
 * Sums have a fixed order. Along the lanes there are up to four vectors of partial sums (with four, element i goes to
 * partial sum i mod 16), which are added in pairs at the end. Along other dimensions, elements are added in order.
 */
import type { DType } from "../Tensor.ts"
import type { FunctionBuilder } from "./function.ts"
import { f32x4, i32, type I32, i32x4, type Local, loopWhile, v128, type V128 } from "../../wasm/instructions.ts"
import { loadLanes, loadSplat, storeLanes } from "./lanes.ts"
import type { Block } from "./math.ts"

/** An array in memory, whose first element is at the address `base`. */
export interface Access {
  readonly dtype: DType
  readonly base: number
  /** The stride of each dimension, in bytes. */
  readonly strides: ReadonlyArray<number>
  /** Whether only the rows of a band are in memory. */
  readonly inBand?: boolean
}

/** A value that each element passes on to the next along some dimensions: for a reduction, or for running sums. */
interface Carry {
  readonly fn: "sum" | "max" | "min"
  /** Tells for each dimension whether the value is carried over it. */
  readonly over: ReadonlyArray<boolean>
  /** The array for the results: with `scan` the value at each element, otherwise the last value. */
  readonly write: Access
  readonly scan?: { readonly exclusive: boolean; readonly reverse: boolean }
  /** Whether the array holds the value of earlier bands, which goes on. */
  readonly continues?: boolean
  /** If lanes are added up, the address of the sums of lanes of earlier bands. */
  readonly waiting?: number | undefined
}

export interface Nest {
  readonly dims: ReadonlyArray<number>
  readonly reads: ReadonlyArray<Access>
  readonly writes: ReadonlyArray<Access>
  /** The estimated number of instructions for each vector; 0 by default. */
  readonly weight?: number
  /** Computes a block (a few vectors) for each of `writes`, and last the block that `carry` adds up or compares. */
  readonly compute: (read: (index: number) => Block, width: number) => ReadonlyArray<Block>
  readonly carry?: Carry | undefined
  /** The size of a band, if the loops are over the rows of one only. */
  readonly band?: number | undefined
}

const isCarried = ({ carry }: NestShape, d: number): boolean => carry?.over[d] === true

const accessesOf = (nest: NestShape): ReadonlyArray<Access> => {
  const list = [...nest.reads, ...nest.writes]
  return nest.carry === undefined ? list : [...list, nest.carry.write]
}

/** A nest without its computation, which is enough to plan its loops. */
export type NestShape = Omit<Nest, "compute">

/** Merges neighbouring dimensions that are contiguous in every array. */
const collapse = <N extends NestShape>(nest: N): N => {
  const accesses = accessesOf(nest)
  const groups: Array<Array<number>> = []
  nest.dims.forEach((size, d) => {
    if (size === 1) return
    const last = groups[groups.length - 1]
    const before = last === undefined ? undefined : last[last.length - 1]
    const merges =
      before !== undefined &&
      isCarried(nest, before) === isCarried(nest, d) &&
      !(isCarried(nest, d) && nest.carry?.scan !== undefined) &&
      accesses.every(({ strides }) => strides[before] === strides[d] * size)
    if (merges && last !== undefined) last.push(d)
    else groups.push([d])
  })
  const restrided = (access: Access): Access => ({
    ...access,
    strides: groups.map((group) => access.strides[group[group.length - 1]]),
  })
  return {
    ...nest,
    dims: groups.map((group) => group.reduce((size, d) => size * nest.dims[d], 1)),
    reads: nest.reads.map(restrided),
    writes: nest.writes.map(restrided),
    carry: nest.carry && {
      ...nest.carry,
      over: groups.map((group) => isCarried(nest, group[0])),
      write: restrided(nest.carry.write),
    },
  }
}

/** Chooses the dimension whose neighbours share a SIMD register, by the lowest estimated cost; −1 if none can. */
const chooseLanes = (nest: NestShape): number => {
  let best = -1
  let bestCost = Infinity
  const total = nest.dims.reduce((product, size) => product * size, 1)
  nest.dims.forEach((size, d) => {
    if (isCarried(nest, d) && nest.carry?.scan !== undefined) return
    const accessCost = ({ dtype, strides }: Access): number =>
      strides[d] === 0 ? 0.5 : strides[d] === (dtype === "bool" ? 1 : 4) ? 1 : 5
    let cost = nest.weight ?? 0
    for (const access of nest.reads) cost += accessCost(access)
    for (const access of nest.writes) cost += accessCost(access)
    cost *= (total / size) * Math.ceil(size / 4)
    if (isCarried(nest, d))
      cost += 8 * nest.dims.reduce((product, extent, e) => (isCarried(nest, e) ? product : product * extent), 1)
    if (cost <= bestCost) {
      bestCost = cost
      best = d
    }
  })
  return best
}

/** Returns the bits of the value that a reduction starts with, such as 0 for a sum and −∞ for a maximum. */
const identity = ({ fn, write: { dtype } }: Carry): number => {
  if (fn === "sum") return 0
  if (dtype === "f32") return fn === "max" ? -0x800000 : 0x7f800000 // the bits of −∞ and +∞
  return fn === "max" ? -0x80000000 : 0x7fffffff
}

const combine = ({ fn, write: { dtype } }: Carry): ((a: V128, b: V128) => V128) => {
  const lanes = dtype === "f32" ? f32x4 : i32x4
  return fn === "sum" ? lanes.add : lanes[fn]
}

/** The dimension of a nest that can be divided, its size, and the number of elements that should stay together. */
interface Division {
  readonly d: number
  readonly size: number
  readonly unit: number
}

/** The largest number of lanes in a step of the inner loop of usual nests. */
const laneUnit = 32

/** Finds the dimension that can be divided into the most pieces; among several that are fine enough, the outermost. */
const divisionOf = (nest: NestShape, along: number): Division | undefined => {
  const candidates = nest.dims.flatMap((size, d): ReadonlyArray<Division> =>
    isCarried(nest, d) ? [] : [{ d, size, unit: d === along ? laneUnit : 1 }],
  )
  const units = ({ size, unit }: Division): number => Math.min(64, size / unit)
  return candidates.reduce<Division | undefined>(
    (best, next) => (best === undefined || units(next) > units(best) ? next : best),
    undefined,
  )
}

/**
 * Plans a nest: returns it with fewer dimensions, the dimension whose neighbours share a SIMD register (−1 if there is
 * none), and the size that this dimension has without bands. It follows from the whole nest, so a band computes the bits of
 * the whole.
 */
const planned = <N extends NestShape>(wholeNest: N) => {
  const whole = collapse(wholeNest)
  const along = chooseLanes(whole)
  const { band, dims } = wholeNest
  // The first dimension is that of the rows, perhaps merged with others.
  const sizes = band === undefined ? whole.dims : whole.dims.with(0, (whole.dims[0] / dims[0]) * band)
  return { nest: { ...whole, dims: sizes }, along, lanesOfWhole: whole.dims[along] }
}

/** Tells how a nest can be divided among threads: the number of elements of a dimension, and how many stay together. */
export const divisible = (wholeNest: NestShape): { readonly size: number; readonly unit: number } | undefined => {
  const { along, nest } = planned(wholeNest)
  return divisionOf(nest, along)
}

/** Tells whether a sum over all rows can be computed band by band, with all additions in the same order. */
export const addsInOrder = (wholeNest: NestShape): boolean => {
  const { along, nest } = planned(wholeNest)
  return along >= 0 && (!isCarried(nest, along) || nest.dims.length === 1)
}

/** The bytes of the sums of lanes that wait between bands. */
export const laneSumBytes = 64

/** An array with its offset, a local variable that loops change. The address of an element is base + offset. */
interface Placed extends Access {
  readonly offset: Local<"i32">
}

/**
 * Writes the loops over `wholeNest` into the function `f`. With `elements`, the loops are over that many of the
 * dimension that `divisible` found, from the index on that is the function's first parameter. The parameters of a band are its
 * first row, and the offset of arrays that have the rows of one band only.
 */
export const writeNest = (f: FunctionBuilder, wholeNest: Nest, elements?: number): void => {
  const { along, lanesOfWhole, nest } = planned(wholeNest)
  const divided = elements === undefined ? undefined : divisionOf(nest, along)
  const dims = elements === undefined || divided === undefined ? nest.dims : nest.dims.with(divided.d, elements)
  const carriesLanes = along >= 0 && isCarried(nest, along)
  const registers = (nest.weight ?? 0) > 40 || nest.reads.length + nest.writes.length > 8 ? 2 : 4
  /** Whether each lane has a reduction of its own, whose value stays in a register. */
  const reducesLanes = nest.carry !== undefined && nest.carry.scan === undefined && !carriesLanes && along >= 0
  /**
   * The largest number of vectors that are computed together. It is part of the order of sums along the lanes; elsewhere it
   * is doubled if registers hold two vectors each.
   */
  const widest = f.target.wide && !carriesLanes && !reducesLanes ? 2 * registers : registers
  /** The largest number of vectors in a step of the lanes' loop: several times `widest` where only sums are kept. */
  const longest = reducesLanes ? (f.target.wide ? 4 : 2) * registers : widest
  const others = dims.map((_, d) => d).filter((d) => d !== along)
  const outer = others.filter((d) => !isCarried(nest, d))
  const inner = others.filter((d) => isCarried(nest, d))
  const lanesLevel = along < 0 ? [] : [along]
  const levels = carriesLanes ? [...outer, ...inner, ...lanesLevel] : [...outer, ...lanesLevel, ...inner]
  const firstCarried = outer.length + (carriesLanes ? 0 : lanesLevel.length)

  const isReversed = nest.carry?.scan?.reverse === true
  const offsets = new Map<string, Local<"i32">>()
  /** Returns the offset of a band, whose nest has no scan and is not divided. */
  const bandStart = ({ inBand, strides }: Access): I32 => {
    const [row, own] = [f.param("i32", 0), f.param("i32", 1)]
    if (inBand === true) return own
    // The first dimension may be merged with others: one row has several of its elements then.
    return strides[0] === 0 ? i32.const(0) : i32.mul(row, i32.const((strides[0] * dims[0]) / (nest.band ?? 1)))
  }
  /** Arrays with the same strides share an offset. A reverse scan starts at the end. */
  const place = (access: Access): Placed => {
    const key = `${access.strides.join()} ${access.inBand === true}`
    const atEnd = (sum: number, stride: number, d: number): number =>
      isCarried(nest, d) ? sum + stride * (dims[d] - 1) : sum
    const first = i32.const(isReversed ? access.strides.reduce(atEnd, 0) : 0)
    const stride = divided === undefined ? 0 : access.strides[divided.d]
    const start = stride === 0 ? first : i32.add(first, i32.mul(f.param("i32", 0), i32.const(stride)))
    const offset = offsets.get(key) ?? f.let(nest.band === undefined ? start : bandStart(access))
    offsets.set(key, offset)
    return { ...access, offset }
  }
  const reads = nest.reads.map(place)
  const writes = nest.writes.map(place)
  const carry = nest.carry && { ...nest.carry, write: place(nest.carry.write) }
  const placed = [...reads, ...writes, ...(carry === undefined ? [] : [carry.write])]
  /** One array for each offset. */
  const distinct = [...new Map(placed.map((access) => [access.offset, access])).values()]

  const move = (d: number, steps: number): void => {
    const direction = isReversed && isCarried(nest, d) ? -1 : 1
    for (const { strides, offset } of distinct)
      if (strides[d] !== 0) f.emit(offset.set(i32.add(offset, i32.const(strides[d] * steps * direction))))
  }

  const hoisted = new Map<number, Block>()
  /** Loads the values that do not change in the inner loops before these loops begin. */
  const hoist = (level: number): void =>
    reads.forEach(({ dtype, base, strides, offset }, index) => {
      const deepest = levels.findLastIndex((d) => strides[d] !== 0)
      const hasLanes = along >= 0 && strides[along] !== 0
      if (deepest !== level || hasLanes || level === levels.length - 1) return
      hoisted.set(index, new Array<V128>(widest).fill(loadSplat(f, dtype, offset, base)))
    })

  const strideOf = ({ dtype, strides }: Access): number => (along < 0 ? (dtype === "bool" ? 1 : 4) : strides[along])

  /** Loads `width` vectors of an array, of which the first is the vector `from` of the step. */
  const load = (index: number, from: number, width: number, lanes: number): Block => {
    const existing = hoisted.get(index)
    if (existing !== undefined) return existing.slice(0, width)
    const { dtype, base, offset } = reads[index]
    const stride = strideOf(reads[index])
    if (stride === 0) return new Array<V128>(width).fill(loadSplat(f, dtype, offset, base))
    return Array.from({ length: width }, (_, i) => {
      const v = from + i
      return loadLanes(f, dtype, offset, base + 4 * v * stride, stride, Math.min(4, lanes - 4 * v))
    })
  }

  const store = (access: Placed, from: number, block: Block, lanes: number): void => {
    const stride = strideOf(access)
    // From last to first (see `lanes.ts`).
    for (let v = from + block.length - 1; v >= from; v--) {
      const count = Math.min(4, lanes - 4 * v)
      storeLanes(f, access.dtype, access.offset, access.base + 4 * v * stride, stride, count, block[v - from])
    }
  }

  let sums: ReadonlyArray<Local<"v128">> = []

  /** Writes the code that computes `lanes` elements in `width` vectors; the last vector can have fewer than four. */
  const body = (width: number, lanes: number): void => {
    for (let from = 0; from < width; from += widest) f.scoped(() => part(from, Math.min(widest, width - from), lanes))
  }

  /** Writes the code of `width` vectors of a step, from the vector `from` on. */
  const part = (from: number, width: number, lanes: number): void => {
    const blocks = nest.compute((index) => load(index, from, width, lanes), width)
    writes.forEach((access, i) => store(access, from, blocks[i], lanes))
    if (carry === undefined) return
    const add = combine(carry)
    const own = sums.slice(from, from + width)
    if (carry.scan?.exclusive === true) store(carry.write, from, own, lanes)
    blocks[writes.length].forEach((value, i) => {
      const valid = lanes - 4 * (from + i)
      f.emit(own[i].set(add(own[i], !carriesLanes || valid >= 4 ? value : masked(carry, value, valid))))
    })
    if (carry.scan?.exclusive === false) store(carry.write, from, own, lanes)
  }

  /** Replaces the lanes beyond the end by the neutral element of the reduction. */
  const masked = (carried: Carry, value: V128, valid: number): V128 => {
    const lane = (index: number): number => (index < valid ? -1 : 0)
    const mask = v128.const([lane(0), lane(1), lane(2), lane(3)])
    return v128.bitselect(value, f.word(identity(carried)), mask)
  }

  /** Stores the value of a reduction; sums that are in several lanes are added first. */
  const storeReduced = (reduction: Carry, to: Placed, width: number, lanes: number): void => {
    if (!carriesLanes) return store(to, 0, sums.slice(0, width), lanes)
    const add = combine(reduction)
    const { waiting } = reduction
    // From last to first (see `lanes.ts`).
    if (waiting !== undefined)
      for (let v = sums.length - 1; v >= 0; v--) f.emit(v128.store(i32.const(waiting), sums[v], 16 * v))
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

  /** Returns the value that a sum begins with: that of earlier bands, if there are any. */
  const firstSum = (carried: Carry & { readonly write: Placed }, v: number, lanes: number): V128 => {
    const { base, dtype, offset } = carried.write
    if (carried.waiting !== undefined) return v128.load(i32.const(carried.waiting), 16 * v)
    const stride = strideOf(carried.write)
    return carried.continues === true
      ? loadLanes(f, dtype, offset, base + 4 * v * stride, stride, Math.min(4, lanes - 4 * v))
      : f.word(identity(carried))
  }

  /** Writes the loops from level `at` on. Inside the lanes' loop, each step computes `lanes` elements (see `body`). */
  const loops = (at: number, width: number, lanes: number): void => {
    if (carry !== undefined && at === firstCarried) {
      const count = carriesLanes ? Math.min(widest, Math.ceil(lanesOfWhole / 4)) : width
      sums = Array.from({ length: count }, (_, v) => f.let(firstSum(carry, v, lanes)))
    }
    if (at === levels.length) body(width, lanes)
    else if (levels[at] === along) lanesLoop(at)
    else {
      const d = levels[at]
      f.repeat(dims[d], () => {
        hoist(at)
        loops(at + 1, width, lanes)
        move(d, 1)
      })
      if (at > 0) move(d, -dims[d])
    }
    if (carry !== undefined && carry.scan === undefined && at === firstCarried)
      storeReduced(carry, carry.write, width, lanes)
  }

  const lanesLoop = (at: number): void => {
    const step = 4 * longest
    const blocks = Math.floor(dims[along] / step)
    const rest = dims[along] - blocks * step
    const block = (lanes: number): void => {
      hoist(at)
      loops(at + 1, Math.ceil(lanes / 4), lanes)
    }
    const wholeBlock = (): void => {
      block(step)
      move(along, step)
    }
    const counter = placed.find(({ strides }) => strides[along] > 0)
    if (at === 0 && blocks > 1 && counter !== undefined && !isReversed) {
      const bytes = i32.const(blocks * step * counter.strides[along])
      const startsAtZero = divided === undefined && nest.band === undefined
      const end = startsAtZero ? bytes : f.let(i32.add(counter.offset, bytes))
      f.emit(loopWhile(f.capture(wholeBlock), i32.ltU(counter.offset, end)))
    } else f.repeat(blocks, wholeBlock)
    if (rest > 0) f.scoped(() => block(rest))
    if (at > 0 && blocks > 0) move(along, -blocks * step)
  }

  hoist(-1)
  // Without a dimension along the lanes, one lane of one vector is used.
  const used = along < 0 ? 1 : 0
  loops(0, used, used)
}
