/**
 * Describes nested loops over strided arrays, called nests, for maps (elementwise nodes), reductions and cumulative
 * sums. `loops.ts` emits their code.
 *
 * The four lanes of a vector hold neighbours along one dimension, the one that needs the fewest instructions.
 *
 * A nest can be divided among threads along a dimension that is not reduced. The dimension of the lanes is chosen for
 * the whole nest, so each result is computed in the same way in every part.
 */
import type { DType } from "../Tensor.ts"
import { f32x4, i32x4, type V128 } from "../../wasm/instructions.ts"
import { bytesPer } from "./ir.ts"
import type { Block } from "./math.ts"

/** An array in memory, whose first element is at the address `base`. */
export interface Access {
  readonly dtype: DType
  readonly base: number
  /** The stride of each dimension, in bytes. */
  readonly strides: ReadonlyArray<number>
  /** Whether only the rows of one band are in memory. */
  readonly inBand?: boolean
}

/** A value that each element passes on to the next along some dimensions: for a reduction, or for running sums. */
export interface Carry {
  readonly fn: "sum" | "max" | "min"
  /** Tells for each dimension whether the value is carried along this dimension. */
  readonly over: ReadonlyArray<boolean>
  /** The array for the results: with `scan` the value at each element, otherwise the last value. */
  readonly write: Access
  readonly scan?: { readonly exclusive: boolean; readonly reverse: boolean }
  /** Whether the value continues from the one of earlier bands, which is in the array. */
  readonly continues?: boolean
  /** The address where the sums of single lanes wait from one band to the next, if lanes are added up. */
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
  /** The number of rows of a band, if the loops cover only one band. */
  readonly band?: number | undefined
}

export const isCarried = ({ carry }: NestShape, d: number): boolean => carry?.over[d] === true

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
      strides[d] === 0 ? 0.5 : strides[d] === bytesPer(dtype) ? 1 : 5
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

/**
 * Returns how many vectors of a nest's elements are computed together. If the lanes of vectors are parts of one reduction, this
 * is also the number of vectors of partial sums, so it decides the order of the additions.
 */
export const vectorsTogether = ({ weight = 0, reads, writes }: NestShape): number =>
  weight > 40 || reads.length + writes.length > 8 ? 2 : 4

/** Returns the bits of the value that a reduction starts with, such as 0 for a sum and −∞ for a maximum. */
export const identity = ({ fn, write: { dtype } }: Carry): number => {
  if (fn === "sum") return 0
  if (dtype === "f32") return fn === "max" ? -0x800000 : 0x7f800000 // the bits of −∞ and +∞
  return fn === "max" ? -0x80000000 : 0x7fffffff
}

export const combine = ({ fn, write: { dtype } }: Carry): ((a: V128, b: V128) => V128) => {
  const lanes = dtype === "f32" ? f32x4 : i32x4
  return fn === "sum" ? lanes.add : lanes[fn]
}

/** A dimension along which a nest can be divided, its size, and how many elements should stay together. */
export interface Division {
  readonly d: number
  readonly size: number
  readonly unit: number
}

/** The largest number of lanes in a step of the inner loop of usual nests. */
const laneUnit = 32

/**
 * Finds the dimension that can be divided into the most pieces, where 64 pieces are enough; the outermost of several.
 */
export const divisionOf = (nest: NestShape, along: number): Division | undefined => {
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
 * none), and the size that this dimension has without bands. The plan depends only on the whole nest, so a band
 * computes the same bits.
 */
export const planned = <N extends NestShape>(wholeNest: N) => {
  const whole = collapse(wholeNest)
  const along = chooseLanes(whole)
  const { band, dims } = wholeNest
  // The first dimension has the rows, perhaps merged with other dimensions.
  const sizes = band === undefined ? whole.dims : whole.dims.with(0, (whole.dims[0] / dims[0]) * band)
  return { nest: { ...whole, dims: sizes }, along, lanesOfWhole: whole.dims[along] }
}

/**
 * Returns how a nest can be divided among threads: the size of a dimension, and how many of its elements stay together.
 */
export const divisible = (wholeNest: NestShape): { readonly size: number; readonly unit: number } | undefined => {
  const { along, nest } = planned(wholeNest)
  return divisionOf(nest, along)
}

/** Tells whether a sum over all rows can be computed band by band, with all additions in the same order. */
export const addsInOrder = (wholeNest: NestShape): boolean => {
  const { along, nest } = planned(wholeNest)
  return along >= 0 && (!isCarried(nest, along) || nest.dims.length === 1)
}

/** The size in bytes of the sums of single lanes that wait between bands. */
export const laneSumBytes = 64
