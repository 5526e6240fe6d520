/**
 * Combines neighbouring vectors of four lanes to wider ones, where all of them are computed in the same way. The arithmetic
 * of each lane stays the same, so the results have the same bits.
 *
 * Several locals that are always computed together become a pack: one variable that is two or four times as wide. The
 * statements that set them one after another become one statement, if each operand is a pack, too, or neighbouring memory,
 * or the same value in all lanes. Any other statement can still read and set a part of a pack. Loops inside others choose
 * their packs first.
 */
import type { Lanes } from "../graph/wasm/function.ts"
import { type DecodedFunction, type SetLocal, some, type Step, type Store, type Value } from "./code.ts"

export interface Merged extends DecodedFunction {
  /** The locals of each pack, from the lowest lanes to the highest. */
  readonly packs: ReadonlyArray<ReadonlyArray<number>>
  /** The pack that each packed local is a part of. */
  readonly places: ReadonlyMap<number, { readonly pack: number; readonly index: number }>
  /** The vectors with the same number in all lanes. */
  readonly uniform: ReadonlySet<number>
}

/** Combines the vectors of a function whose locals are separated (`webs.ts`), up to this number of lanes. */
export const merged = (fn: DecodedFunction, lanes: Lanes): Merged => {
  const defs = definitionsOf(fn)
  const uniform = uniformIn(defs)
  const merger = new Merger(defs, uniform, lanes / 4)
  const body = merger.steps(fn.body)
  return { ...fn, body, packs: merger.packs, places: merger.places, uniform }
}

/** A statement that sets a local: its value, its list of statements, and its index there. */
interface Definition {
  readonly value: Value
  readonly list: ReadonlyArray<Step>
  readonly index: number
}

type Definitions = ReadonlyMap<number, ReadonlyArray<Definition>>

/** Finds the statements that set each vector. Parameters are left out, because the caller sets them, too. */
const definitionsOf = (fn: DecodedFunction): Definitions => {
  const result = new Map<number, Array<Definition>>()
  const visit = (list: ReadonlyArray<Step>): void =>
    list.forEach((step, index) => {
      if (step.kind === "loop" || step.kind === "when") return visit(step.body)
      if (step.kind !== "set" || step.local < fn.params.length || fn.locals[step.local] !== "v128") return
      const own = result.get(step.local) ?? []
      own.push({ value: step.value, list, index })
      result.set(step.local, own)
    })
  visit(fn.body)
  return result
}

/** The operations on vectors that move numbers from one lane to another, or have lanes of another size. */
const crossing = /^v128\.shuffle|_lane$|^f64x2|^i16x8|^i8x16|extend_low|_zero$/

const isLanewise = (value: Value): value is Value & { readonly kind: "operation" } =>
  value.kind === "operation" && value.type === "v128" && !crossing.test(value.name)

const hasEqualWords = (words: ReadonlyArray<number>): boolean => words.every((word) => word === words[0])

/** Finds the vectors that have the same number in all lanes, wherever they are set. */
const uniformIn = (defs: Definitions): ReadonlySet<number> => {
  const result = new Set(defs.keys())
  const isUniform = (value: Value): boolean => {
    if (value.type !== "v128") return true
    if (value.kind === "local") return result.has(value.local)
    if (value.kind === "constant") return hasEqualWords(value.words)
    if (value.kind === "load") return value.name === "v128.load32_splat"
    return isLanewise(value) && value.args.every(isUniform)
  }
  let size: number
  do {
    size = result.size
    for (const local of result)
      if (!(defs.get(local) ?? []).every(({ value }) => isUniform(value))) result.delete(local)
  } while (result.size < size)
  return result
}

const sameValue = (a: Value, b: Value): boolean => JSON.stringify(a) === JSON.stringify(b)

const isLoad = (value: Value): boolean => value.kind === "load"

class Merger {
  readonly packs: Array<ReadonlyArray<number>> = []
  readonly places = new Map<number, { readonly pack: number; readonly index: number }>()
  private readonly defs: Definitions
  private readonly uniform: ReadonlySet<number>
  /** The largest number of vectors of four lanes that fit into one of the machine's. */
  private readonly most: number
  /** The packs that a statement needs and that do not exist yet. */
  private wanted: Array<ReadonlyArray<number>> = []

  constructor(defs: Definitions, uniform: ReadonlySet<number>, most: number) {
    this.defs = defs
    this.uniform = uniform
    this.most = most
  }

  steps(list: ReadonlyArray<Step>): ReadonlyArray<Step> {
    const inner = list.map((step) =>
      step.kind === "loop" || step.kind === "when" ? { ...step, body: this.steps(step.body) } : step,
    )
    const result: Array<Step> = []
    for (let at = 0; at < inner.length;) {
      const combined = this.combined(inner, at)
      result.push(combined?.step ?? inner[at])
      at += combined?.count ?? 1
    }
    return result
  }

  /** Combines the statements from one on, as many as possible; undefined if it must stay as it is. */
  private combined(list: ReadonlyArray<Step>, at: number): { readonly step: Step; readonly count: number } | undefined {
    for (let count = this.most; count >= 2; count /= 2) {
      const step = this.together(list.slice(at, at + count), count)
      if (step !== undefined) return { step, count }
    }
    return undefined
  }

  /** Returns one statement for several; undefined if there is none. */
  private together(list: ReadonlyArray<Step>, count: number): Step | undefined {
    if (list.length < count) return undefined
    const sets = list.filter((step) => step.kind === "set")
    if (sets.length === count) return this.setTogether(sets)
    const stores = list.filter((step) => step.kind === "store")
    return stores.length === count ? this.storeTogether(stores) : undefined
  }

  private setTogether(sets: ReadonlyArray<SetLocal>): Step | undefined {
    const locals = sets.map(({ local }) => local)
    const isOrdered = sets.every(({ value }, i) => {
      const earlier = locals.slice(0, i)
      return !some(value, (part) => part.kind === "local" && earlier.includes(part.local))
    })
    if (!isOrdered || locals.some((local) => !this.defs.has(local))) return undefined
    this.wanted = []
    if (!this.packOf(locals, false)) return undefined
    const value = this.wide(sets.map((set) => set.value))
    if (value === undefined) return undefined
    this.make()
    const place = this.places.get(locals[0])
    return place && { kind: "setPack", pack: place.pack, value, vectors: sets.length }
  }

  private storeTogether(stores: ReadonlyArray<Store>): Step | undefined {
    // Neighbouring vectors are stored from the last to the first.
    const upward = stores.toReversed()
    const [first] = upward
    const isNeighbour = ({ address, name, offset, value }: Store, i: number): boolean =>
      name === "v128.store" &&
      offset === first.offset + 16 * i &&
      !some(value, isLoad) &&
      sameValue(address, first.address)
    if (!upward.every(isNeighbour)) return undefined
    this.wanted = []
    const value = this.wide(upward.map((store) => store.value))
    if (value === undefined) return undefined
    this.make()
    const { address, offset } = first
    return { kind: "storePack", address, offset, value, vectors: stores.length }
  }

  private make(): void {
    for (const locals of this.wanted) {
      const pack = this.packs.push(locals) - 1
      locals.forEach((local, index) => this.places.set(local, { pack, index }))
    }
    this.wanted = []
  }

  /** Tells whether locals are a pack, or can become one. With `together`, they must be set by neighbouring statements. */
  private packOf(locals: ReadonlyArray<number>, together: boolean): boolean {
    const place = this.places.get(locals[0])
    if (place !== undefined) {
      const pack = this.packs[place.pack]
      return pack.length === locals.length && pack.every((local, i) => local === locals[i])
    }
    if (this.wanted.some((pack) => pack.length === locals.length && pack.every((local, i) => local === locals[i])))
      return true
    const taken = this.wanted.flat()
    if (new Set(locals).size < locals.length) return false
    if (locals.some((local) => this.places.has(local) || this.uniform.has(local) || taken.includes(local))) return false
    if (together && !this.areSetTogether(locals)) return false
    this.wanted.push(locals)
    return true
  }

  /** Tells whether all statements that set these locals are neighbours, so that a pack of them is set by wide statements. */
  private areSetTogether(locals: ReadonlyArray<number>): boolean {
    const all = locals.map((local) => this.defs.get(local) ?? [])
    const [first] = all
    return (
      first.length > 0 &&
      all.every(
        (own, i) =>
          own.length === first.length &&
          own.every(({ index, list }, k) => list === first[k].list && index === first[k].index + i),
      )
    )
  }

  /** Returns one wide value for several vectors of four lanes; undefined if there is none. */
  private wide(values: ReadonlyArray<Value>): Value | undefined {
    const [first] = values
    switch (first.kind) {
      case "local":
        return this.wideLocal(values, first)
      case "constant": {
        const words = values.flatMap((value) => (value.kind === "constant" ? value.words : []))
        return words.length === 4 * values.length ? { ...first, words } : undefined
      }
      case "load": {
        const isSplat = first.name === "v128.load32_splat"
        if (first.name !== "v128.load" && !isSplat) return undefined
        const step = isSplat ? 0 : 16
        const isNeighbour = (value: Value, i: number): boolean =>
          value.kind === "load" &&
          value.name === first.name &&
          value.offset === first.offset + step * i &&
          sameValue(value.address, first.address)
        return values.every(isNeighbour) ? first : undefined
      }
      case "operation":
        return this.wideOperation(values, first)
    }
  }

  private wideLocal(values: ReadonlyArray<Value>, first: Value & { readonly kind: "local" }): Value | undefined {
    const locals = values.flatMap((value) => (value.kind === "local" ? [value.local] : []))
    if (locals.length < values.length) return undefined
    if (locals.every((local) => local === first.local)) return this.uniform.has(first.local) ? first : undefined
    const words = locals.flatMap((local) => this.constantOf(local))
    if (words.length === 4 * locals.length) return { kind: "constant", type: "v128", words }
    // In a wide value, the first local of a pack stands for the whole pack.
    return this.packOf(locals, true) ? first : undefined
  }

  /** Returns the words of a local that is always the same constant; none for any other local. */
  private constantOf(local: number): ReadonlyArray<number> {
    const [first, ...others] = this.defs.get(local) ?? []
    return others.length === 0 && first?.value.kind === "constant" ? first.value.words : []
  }

  private wideOperation(
    values: ReadonlyArray<Value>,
    first: Value & { readonly kind: "operation" },
  ): Value | undefined {
    if (!isLanewise(first)) return undefined
    const args: Array<Value> = []
    for (let i = 0; i < first.args.length; i++) {
      const own = values.flatMap((value) => (isSame(value, first) ? [value.args[i]] : []))
      if (own.length < values.length) return undefined
      const arg = first.args[i].type === "v128" ? this.wide(own) : own.every((one) => sameValue(one, own[0])) && own[0]
      if (arg === undefined || arg === false) return undefined
      args.push(arg)
    }
    return { ...first, args }
  }
}

const isSame = (
  value: Value,
  first: Value & { readonly kind: "operation" },
): value is Value & { readonly kind: "operation" } => value.kind === "operation" && value.name === first.name
