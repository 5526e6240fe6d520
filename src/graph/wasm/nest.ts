/**
 * Writes loops over strided arrays: the code of every map and every reduction.
 *
 * One dimension is along the four lanes: the one that needs the fewest instructions. Arrays with the same strides share one
 * offset, and the address of an array is part of its instructions, so that a loop over contiguous arrays has only one
 * counter.
 *
 * Sums have a fixed order. Along the lanes there are up to four vectors of partial sums (element i goes to partial sum
 * i mod 16), which are added in pairs at the end. Across the lanes, elements are added one after another.
 */
import type { DType } from "../Tensor.ts"
import type { FunctionBuilder } from "./function.ts"
import { f32x4, i32, i32x4, type Local, loopWhile, v128, type V128 } from "../../formats/wasm/instructions.ts"
import { loadLanes, loadSplat, storeLanes } from "./lanes.ts"
import type { Block } from "./math.ts"

export interface Access {
  readonly dtype: DType
  readonly base: number
  /** The stride of each dimension, in bytes. */
  readonly strides: ReadonlyArray<number>
}

type Carry =
  /** Reduces all reduced dimensions to one value. */
  | { readonly kind: "reduce"; readonly fn: "sum" | "max" | "min"; readonly write: Access }
  /** Computes running sums along one dimension. */
  | { readonly kind: "scan"; readonly exclusive: boolean; readonly reverse: boolean; readonly write: Access }

interface Nest {
  readonly dims: ReadonlyArray<number>
  readonly carried: ReadonlyArray<boolean>
  readonly reads: ReadonlyArray<Access>
  readonly writes: ReadonlyArray<Access>
  /** The estimated number of instructions for each vector. */
  readonly weight: number
  /** Computes a block for each write, then the block that is carried. */
  readonly compute: (read: (index: number) => Block, width: number) => ReadonlyArray<Block>
  readonly carry: Carry | undefined
}

const accessesOf = (nest: Nest): ReadonlyArray<Access> => {
  const list = [...nest.reads, ...nest.writes]
  return nest.carry === undefined ? list : [...list, nest.carry.write]
}

/** Merges neighbouring dimensions that are contiguous in every array. */
const collapse = (nest: Nest): Nest => {
  const accesses = accessesOf(nest)
  const groups: Array<Array<number>> = []
  nest.dims.forEach((size, d) => {
    if (size === 1) return
    const last = groups[groups.length - 1]
    const before = last === undefined ? undefined : last[last.length - 1]
    const merges =
      before !== undefined &&
      nest.carried[before] === nest.carried[d] &&
      !(nest.carried[d] && nest.carry?.kind === "scan") &&
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
    carried: groups.map((group) => nest.carried[group[0]]),
    reads: nest.reads.map(restrided),
    writes: nest.writes.map(restrided),
    carry: nest.carry === undefined ? undefined : { ...nest.carry, write: restrided(nest.carry.write) },
  }
}

/** Chooses the dimension whose neighbours share a SIMD register, by the lowest estimated cost; −1 if none can. */
const chooseLanes = (nest: Nest): number => {
  let best = -1
  let bestCost = Infinity
  const total = nest.dims.reduce((product, size) => product * size, 1)
  nest.dims.forEach((size, d) => {
    if (nest.carried[d] && nest.carry?.kind === "scan") return
    const touch = ({ dtype, strides }: Access): number =>
      strides[d] === 0 ? 0.5 : strides[d] === (dtype === "bool" ? 1 : 4) ? 1 : 5
    let cost = nest.weight
    for (const access of nest.reads) cost += touch(access)
    for (const access of nest.writes) cost += touch(access)
    cost *= (total / size) * Math.ceil(size / 4)
    if (nest.carried[d])
      cost += 8 * nest.dims.reduce((product, extent, e) => (nest.carried[e] ? product : product * extent), 1)
    if (cost <= bestCost) {
      bestCost = cost
      best = d
    }
  })
  return best
}

const identity = (fn: "sum" | "max" | "min", dtype: DType): number => {
  if (fn === "sum") return 0
  if (dtype === "f32") return fn === "max" ? -0x800000 : 0x7f800000 // the bits of −∞ and +∞
  return fn === "max" ? -0x80000000 : 0x7fffffff
}

const combine = (fn: "sum" | "max" | "min", dtype: DType): ((a: V128, b: V128) => V128) => {
  const table =
    dtype === "f32"
      ? { sum: f32x4.add, max: f32x4.max, min: f32x4.min }
      : { sum: i32x4.add, max: i32x4.maxS, min: i32x4.minS }
  return table[fn]
}

class NestWriter {
  private readonly f: FunctionBuilder
  private readonly nest: Nest
  /** The dimension whose neighbours share a SIMD register; −1 if there is none. */
  private readonly along: number
  private readonly width: number
  private readonly levels: ReadonlyArray<number>
  private readonly offsets = new Map<string, Local<"i32">>()
  private readonly hoisted = new Map<number, Block>()
  private accumulators: ReadonlyArray<Local<"v128">> = []

  constructor(f: FunctionBuilder, nest: Nest) {
    this.f = f
    this.nest = nest
    this.along = chooseLanes(nest)
    this.width = nest.weight > 40 || nest.reads.length + nest.writes.length > 8 ? 2 : 4
    const outer: Array<number> = []
    const inner: Array<number> = []
    nest.dims.forEach((_, d) => {
      if (d !== this.along) (nest.carried[d] ? inner : outer).push(d)
    })
    const lanes = this.along < 0 ? [] : [this.along]
    const carriesLanes = this.along >= 0 && nest.carried[this.along]
    this.levels = carriesLanes ? [...outer, ...inner, ...lanes] : [...outer, ...lanes, ...inner]
  }

  write(): void {
    for (const access of accessesOf(this.nest)) this.offsetOf(access)
    this.hoist(-1)
    this.level(0, this.along < 0 ? 1 : 0, this.along < 0 ? 1 : 0)
  }

  private get firstCarried(): number {
    const first = this.levels.findIndex((d) => this.nest.carried[d])
    return first < 0 ? this.levels.length : first
  }

  private get carriesLanes(): boolean {
    return this.along >= 0 && this.nest.carried[this.along]
  }

  /** Returns the offset that all arrays with these strides share. A reverse scan starts at the end. */
  private offsetOf(access: Access): Local<"i32"> {
    const key = access.strides.join()
    const existing = this.offsets.get(key)
    if (existing !== undefined) return existing
    const start = this.reversed
      ? access.strides.reduce(
          (sum, stride, d) => (this.nest.carried[d] ? sum + stride * (this.nest.dims[d] - 1) : sum),
          0,
        )
      : 0
    const made = this.f.let(i32.const(start))
    this.offsets.set(key, made)
    return made
  }

  private get reversed(): boolean {
    return this.nest.carry?.kind === "scan" && this.nest.carry.reverse
  }

  private move(d: number, steps: number): void {
    const direction = this.reversed && this.nest.carried[d] ? -1 : 1
    const seen = new Set<string>()
    for (const { strides } of accessesOf(this.nest)) {
      const key = strides.join()
      const offset = this.offsets.get(key)
      if (strides[d] === 0 || seen.has(key) || offset === undefined) continue
      seen.add(key)
      this.f.emit(offset.set(i32.add(offset, i32.const(strides[d] * steps * direction))))
    }
  }

  /** Loads the values that do not change in the inner loops before these loops begin. */
  private hoist(level: number): void {
    this.nest.reads.forEach((access, index) => {
      let deepest = -1
      this.levels.forEach((d, at) => {
        if (access.strides[d] !== 0) deepest = at
      })
      const lanes = this.along >= 0 && access.strides[this.along] !== 0
      if (deepest !== level || lanes || level === this.levels.length - 1) return
      const loaded = loadSplat(this.f, access.dtype, this.offsetOf(access), access.base)
      this.hoisted.set(index, new Array<V128>(this.width).fill(loaded))
    })
  }

  /**
   * Writes the loop at level `at`. From the level of the lanes on, it computes `width` vectors, the last with `lanes`
   * elements.
   */
  private level(at: number, width: number, lanes: number): void {
    const { f, nest } = this
    const carrying = nest.carry !== undefined && at === this.firstCarried
    if (carrying) this.startCarry(width)
    if (at === this.levels.length) {
      this.body(width, lanes)
    } else {
      const d = this.levels[at]
      const size = nest.dims[d]
      if (d === this.along) this.lanesLoop(at, size)
      else {
        f.repeat(size, () => {
          this.hoist(at)
          this.level(at + 1, width, lanes)
          this.move(d, 1)
        })
        if (at > 0) this.move(d, -size)
      }
    }
    if (carrying) this.finishCarry(width, lanes)
  }

  private lanesLoop(at: number, size: number): void {
    const { f } = this
    const step = 4 * this.width
    const blocks = Math.floor(size / step)
    const rest = size - blocks * step
    const block = (lanes: number): void => {
      this.hoist(at)
      this.level(at + 1, Math.ceil(lanes / 4), lanes)
    }
    const counter = accessesOf(this.nest).find(({ strides }) => strides[this.along] > 0)
    if (at === 0 && blocks > 1 && counter !== undefined && !this.reversed) {
      const offset = this.offsetOf(counter)
      const body = f.capture(() => {
        block(step)
        this.move(this.along, step)
      })
      f.emit(loopWhile(body, i32.ltU(offset, i32.const(blocks * step * counter.strides[this.along]))))
    } else {
      f.repeat(blocks, () => {
        block(step)
        this.move(this.along, step)
      })
    }
    if (rest > 0) f.scoped(() => block(rest))
    if (at > 0 && blocks > 0) this.move(this.along, -blocks * step)
  }

  private strideOf(access: Access): number {
    return this.along < 0 ? (access.dtype === "bool" ? 1 : 4) : access.strides[this.along]
  }

  private load(index: number, width: number, lanes: number): Block {
    const existing = this.hoisted.get(index)
    if (existing !== undefined) return existing.slice(0, width)
    const access = this.nest.reads[index]
    const stride = this.strideOf(access)
    const offset = this.offsetOf(access)
    if (stride === 0) return new Array<V128>(width).fill(loadSplat(this.f, access.dtype, offset, access.base))
    return Array.from({ length: width }, (_, v) =>
      loadLanes(this.f, access.dtype, offset, access.base + 4 * v * stride, stride, Math.min(4, lanes - 4 * v)),
    )
  }

  private store(access: Access, block: Block, lanes: number): void {
    const stride = this.strideOf(access)
    block.forEach((value, v) => {
      const count = Math.min(4, lanes - 4 * v)
      storeLanes(this.f, access.dtype, this.offsetOf(access), access.base + 4 * v * stride, stride, count, value)
    })
  }

  private body(width: number, lanes: number): void {
    const { f, nest } = this
    f.scoped(() => {
      const blocks = nest.compute((index) => this.load(index, width, lanes), width)
      nest.writes.forEach((access, i) => this.store(access, blocks[i], lanes))
      if (nest.carry === undefined) return
      const value = blocks[nest.writes.length]
      const sums = this.accumulators
      if (nest.carry.kind === "scan") {
        if (nest.carry.exclusive) this.store(nest.carry.write, sums, lanes)
        value.forEach((v, i) => f.emit(sums[i].set(this.add(nest.carry, sums[i], v))))
        if (!nest.carry.exclusive) this.store(nest.carry.write, sums, lanes)
        return
      }
      value.forEach((v, i) => {
        const valid = lanes - 4 * i
        const full = !this.carriesLanes || valid >= 4
        f.emit(sums[i].set(this.add(nest.carry, sums[i], full ? v : this.masked(v, valid))))
      })
    })
  }

  private add(carry: Carry | undefined, a: V128, b: V128): V128 {
    if (carry === undefined) throw new Error("nest: nothing is carried")
    return combine(carry.kind === "scan" ? "sum" : carry.fn, carry.write.dtype)(a, b)
  }

  /** Replaces the lanes beyond the end by the neutral element of the reduction. */
  private masked(value: V128, valid: number): V128 {
    const carry = this.nest.carry
    const lane = (index: number): number => (index < valid ? -1 : 0)
    const mask = v128.const([lane(0), lane(1), lane(2), lane(3)])
    const none = carry?.kind === "reduce" ? identity(carry.fn, carry.write.dtype) : 0
    return v128.bitselect(value, this.f.word(none), mask)
  }

  private startCarry(width: number): void {
    const { nest } = this
    const carry = nest.carry
    if (carry === undefined) return
    const count = this.carriesLanes ? Math.min(this.width, Math.ceil(nest.dims[this.along] / 4)) : width
    const start = carry.kind === "reduce" ? identity(carry.fn, carry.write.dtype) : 0
    this.accumulators = Array.from({ length: count }, () => this.f.let(this.f.word(start)))
  }

  private finishCarry(width: number, lanes: number): void {
    const { f, nest } = this
    const carry = nest.carry
    if (carry === undefined || carry.kind === "scan") return
    const add = (a: V128, b: V128): V128 => this.add(carry, a, b)
    if (!this.carriesLanes) {
      this.store(carry.write, this.accumulators.slice(0, width), lanes)
      return
    }
    let parts: ReadonlyArray<V128> = this.accumulators
    while (parts.length > 1) {
      const half = Math.ceil(parts.length / 2)
      parts = Array.from({ length: half }, (_, i) =>
        i + half < parts.length ? f.let(add(parts[i], parts[i + half])) : parts[i],
      )
    }
    const pairs = f.let(add(parts[0], v128.shuffle(parts[0], parts[0], [2, 3, 0, 1])))
    const total = f.let(add(pairs, v128.shuffle(pairs, pairs, [1, 0, 3, 2])))
    f.emit(v128.store32Lane(this.offsetOf(carry.write), total, 0, carry.write.base))
  }
}

/** Writes the loops into the function. */
export const writeNest = (f: FunctionBuilder, nest: Nest): void => new NestWriter(f, collapse(nest)).write()
