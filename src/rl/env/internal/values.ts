/**
 * Converts values between their form in an env (numbers, arrays, objects) and flat rows of numbers, in which batches,
 * networks and files hold them. `Space.ts` exports the public functions.
 */
import { display as displayed } from "../../../base/config/Config.ts"
import { log } from "../../../base/rng/Elementary.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import { EnvError } from "../../../base/EnvError.ts"
import type { ActionSpace, Box, RowSpace, Space, ValueOf } from "../Space.ts"

/** A part of a space that has no parts of its own, with the position of its numbers in a flat row. */
export interface LeafPart {
  /**
   * The names of the part and of those around it, joined by dots: `robot.camera`, or `0` in a tuple; empty for the
   * whole space.
   */
  readonly path: string
  readonly space: ActionSpace
  readonly offset: number
  readonly size: number
}

const leafSize = (space: ActionSpace): number => {
  switch (space._tag) {
    case "Discrete":
      return 1
    case "Box":
      return space.low.length
    case "MultiDiscrete":
      return space.sizes.length
    case "MultiBinary":
      return space.n
  }
}

/**
 * Returns the parts of a space that have no parts of their own, in the order of their numbers in a flat row. For a
 * space without parts, that is the space itself. An action mask is not a part.
 *
 * @example
 * ```ts
 * partsOf(Space.dict({ map: Space.box(0, 1, [2, 8, 8]), keys: Space.discrete(4) }))[1] // { path: "keys", offset: 128, … }
 * ```
 */
export const partsOf = (space: RowSpace): ReadonlyArray<LeafPart> => {
  const parts: Array<LeafPart> = []
  let offset = 0
  const visit = (path: string, inner: Space): void => {
    const below = (name: string): string => (path === "" ? name : `${path}.${name}`)
    if (inner._tag === "Dict") {
      for (const [name, part] of Object.entries(inner.parts)) visit(below(name), part)
    } else if (inner._tag === "Tuple") {
      for (const [index, part] of inner.parts.entries()) visit(below(String(index)), part)
    } else {
      const size = leafSize(inner)
      parts.push({ path, space: inner, offset, size })
      offset += size
    }
  }
  visit("", space._tag === "Masked" ? space.space : space)
  return parts
}

/**
 * Returns the columns of a row that are no real numbers: choices, switches and the action mask. They are never
 * normalised.
 */
export const wholeColumns = (space: RowSpace): Int32Array => {
  const parts = partsOf(space).map(({ space: { _tag }, offset, size }) => ({ isReal: _tag === "Box", offset, size }))
  const masks = space._tag === "Masked" ? space.choices.reduce((sum, count) => sum + count, 0) : 0
  const end = parts.reduce((sum, { size }) => sum + size, 0)
  return Int32Array.from(
    [...parts, { isReal: false, offset: end, size: masks }].flatMap(({ isReal, offset, size }) =>
      isReal ? [] : Array.from({ length: size }, (_, index) => offset + index),
    ),
  )
}

const isArrayLike = (value: unknown): value is ArrayLike<unknown> =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))

/**
 * Writes a value to a flat row from `offset` on. Describes what is wrong with the value; returns undefined if it is
 * right.
 */
type Writer = (value: unknown, into: Float32Array | Array<number>, offset: number) => string | undefined

/**
 * Returns the function that writes values of a space to flat rows. A box's numbers must be finite, but may be outside of
 * its bounds, as in a batch; choices and switches must exist. `path` names the value in problems.
 */
export const writerOf = (space: Space, path = "value"): Writer => {
  switch (space._tag) {
    case "Discrete":
      return (value, into, offset) => {
        if (typeof value !== "number" || !isChoice(value, space.n)) return wrongChoice(path, value, space.n)
        into[offset] = value
        return undefined
      }
    case "Box":
      return listWriter(path, space.low.length, "numbers", (value, index) =>
        typeof value === "number" && Number.isFinite(Math.fround(value))
          ? undefined
          : `${path}[${index}] is ${displayed(value)}, not a finite number`,
      )
    case "MultiDiscrete":
      return listWriter(path, space.sizes.length, "choices", (value, index) =>
        typeof value === "number" && isChoice(value, space.sizes[index])
          ? undefined
          : wrongChoice(`${path}[${index}]`, value, space.sizes[index]),
      )
    case "MultiBinary":
      return listWriter(path, space.n, "zeros and ones", (value, index) =>
        value === 0 || value === 1 || typeof value === "boolean"
          ? undefined
          : `${path}[${index}] is ${displayed(value)}, not 0 or 1`,
      )
    case "Dict":
      return dictWriter(path, space.parts)
    case "Tuple":
      return tupleWriter(path, space.parts)
  }
}

const isChoice = (value: number, n: number): boolean => value >>> 0 === value && value < n

const wrongChoice = (path: string, value: unknown, n: number): string =>
  `${path} is ${displayed(value)}; expected a whole number from 0 to ${n - 1}`

const listWriter =
  (
    path: string,
    length: number,
    what: string,
    problemAt: (value: unknown, index: number) => string | undefined,
  ): Writer =>
  (value, into, offset) => {
    if (!isArrayLike(value) || value.length !== length) {
      const found = isArrayLike(value) ? `${value.length}` : displayed(value)
      return `${path}: expected ${length} ${what}, found ${found}`
    }
    for (let index = 0; index < length; index++) {
      const element = value[index]
      const problem = problemAt(element, index)
      if (problem !== undefined) return problem
      into[offset + index] = Number(element)
    }
    return undefined
  }

const dictWriter = (path: string, parts: Readonly<Record<string, Space>>): Writer => {
  const names = Object.keys(parts)
  const writers = names.map((name) => writerOf(parts[name], path === "" ? name : `${path}.${name}`))
  const sizes = names.map((name) => partsSize(parts[name]))
  return (value, into, offset) => {
    if (typeof value !== "object" || value === null || isArrayLike(value)) {
      return `${path}: expected an object with ${names.join(", ")}, found ${displayed(value)}`
    }
    let at = offset
    for (let index = 0; index < names.length; index++) {
      const part: unknown = Reflect.get(value, names[index])
      if (part === undefined) return `${path}.${names[index]} is missing`
      const problem = writers[index](part, into, at)
      if (problem !== undefined) return problem
      at += sizes[index]
    }
    return undefined
  }
}

const tupleWriter = (path: string, parts: ReadonlyArray<Space>): Writer => {
  const writers = parts.map((part, index) => writerOf(part, `${path}[${index}]`))
  const sizes = parts.map(partsSize)
  return (value, into, offset) => {
    if (!Array.isArray(value) || value.length !== parts.length) {
      const found = Array.isArray(value) ? `${value.length}` : displayed(value)
      return `${path}: expected a list of ${parts.length} parts, found ${found}`
    }
    let at = offset
    for (let index = 0; index < parts.length; index++) {
      const problem = writers[index](value[index], into, at)
      if (problem !== undefined) return problem
      at += sizes[index]
    }
    return undefined
  }
}

const partsSize = (space: Space): number => partsOf(space).reduce((sum, { size }) => sum + size, 0)

/**
 * Returns the numbers of a value in one flat row: the parts follow each other in their order, and a choice is one
 * number. Throws an `EnvError` if the value does not fit the space.
 *
 * @example
 * ```ts
 * flatten(Space.tuple(Space.discrete(3), Space.multiBinary(2)), [2, [true, false]]) // [2, 1, 0]
 * ```
 */
export const flatten = <S extends Space>(space: S, value: ValueOf<S>): Float32Array => {
  const row = new Float32Array(partsSize(space))
  const problem = writerOf(space)(value, row, 0)
  if (problem !== undefined) throw new EnvError({ env: "Space", message: `flatten: ${problem}` })
  return row
}

/** Reads a value from the numbers of a flat row, from `offset` on, as plain numbers, arrays and objects. */
export function unflatten<S extends Space>(space: S, row: ArrayLike<number>, offset?: number): ValueOf<S>
export function unflatten(space: Space, row: ArrayLike<number>, offset = 0): unknown {
  return unflattened(space, row, offset)
}

/** Does the same as `unflatten`, but returns `unknown`. */
export const unflattened = (space: Space, row: ArrayLike<number>, offset: number): unknown => {
  if (space._tag === "Discrete") return row[offset]
  let at = offset
  const next = (part: Space): unknown => {
    const value = unflattened(part, row, at)
    at += partsSize(part)
    return value
  }
  if (space._tag === "Dict") {
    return Object.fromEntries(Object.entries(space.parts).map(([name, part]) => [name, next(part)]))
  }
  if (space._tag === "Tuple") return space.parts.map(next)
  return Array.from({ length: leafSize(space) }, (_, index) => row[offset + index])
}

/** Tells whether a value is in the space. In a box, each number must be finite and within its bounds. */
export const contains = (space: Space, value: unknown): boolean => problemOf(space, value) === undefined

/** Says why a value is not in the space; undefined if it is. `path` names the value. */
export const problemOf = (space: Space, value: unknown, path = "value"): string | undefined => {
  const row = Array.from({ length: partsSize(space) }, () => 0)
  const problem = writerOf(space, path)(value, row, 0)
  if (problem !== undefined) return problem
  const unknownPart = unknownPartOf(space, value, path)
  if (unknownPart !== undefined) return unknownPart
  for (const part of partsOf(space)) {
    if (part.space._tag !== "Box") continue
    const outside = outsideOf(part.space, row, part.offset)
    if (outside < 0) continue
    const where = [path, part.path].filter((text) => text !== "").join(".")
    const range = `from ${part.space.low[outside]} to ${part.space.high[outside]}`
    return `${where}[${outside}] is ${row[part.offset + outside]}; expected a number ${range}`
  }
  return undefined
}

/** Returns the index of the first number outside of the bounds; −1 if there is none. */
const outsideOf = ({ low, high }: Box, row: ArrayLike<number>, offset: number): number => {
  for (let index = 0; index < low.length; index++) {
    const element = row[offset + index]
    // A bound such as 0.07 is not a float32: a value rounded to float32 may be slightly outside.
    if (element < Math.min(low[index], Math.fround(low[index]))) return index
    if (element > Math.max(high[index], Math.fround(high[index]))) return index
  }
  return -1
}

const unknownPartOf = (space: Space, value: unknown, path: string): string | undefined => {
  if (space._tag === "Dict" && typeof value === "object" && value !== null) {
    const extra = Object.keys(value).find((name) => !Object.hasOwn(space.parts, name))
    if (extra !== undefined) return `${path}.${extra} is no part; expected ${Object.keys(space.parts).join(", ")}`
    return firstOf(Object.entries(space.parts), ([name, part]) =>
      unknownPartOf(part, Reflect.get(value, name), `${path}.${name}`),
    )
  }
  if (space._tag === "Tuple" && Array.isArray(value)) {
    return firstOf([...space.parts.entries()], ([index, part]) =>
      unknownPartOf(part, value[index], `${path}[${index}]`),
    )
  }
  return undefined
}

const firstOf = <A>(items: ReadonlyArray<A>, check: (item: A) => string | undefined): string | undefined => {
  for (const item of items) {
    const problem = check(item)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Writes a random value in the space to `into`, from index `offset` on. `sampleElement` draws each number of a box. */
export const sampleInto = (
  space: Space,
  random: Stream,
  into: Float32Array | Int32Array | Array<number>,
  offset = 0,
): void => {
  for (const part of partsOf(space)) {
    const from = offset + part.offset
    const { space: leaf } = part
    for (let index = 0; index < part.size; index++) {
      into[from + index] =
        leaf._tag === "Box"
          ? sampleElement(leaf.low[index], leaf.high[index], random)
          : random.integer(leaf._tag === "Discrete" ? leaf.n : leaf._tag === "MultiBinary" ? 2 : leaf.sizes[index])
    }
  }
}

/** Draws a number: uniform between two finite bounds, exponential from one finite bound, standard normal without. */
const sampleElement = (low: number, high: number, random: Stream): number => {
  const below = low > Number.NEGATIVE_INFINITY
  const above = high < Number.POSITIVE_INFINITY
  if (below && above) return random.between(low, high)
  if (!below && !above) return random.normal()
  const distance = -log(1 - random.uniformDouble())
  return below ? low + distance : high - distance
}
