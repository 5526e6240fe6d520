/** Adds arrays to networks. */
import type { Plain } from "../../base/config/plain.ts"
import { resolved } from "./alternatives.ts"
import type { Compiler } from "./Compiler.ts"
import { addText } from "./jsonParts.ts"
import { countedLength, type Lengths, lengthsOf } from "./lengths.ts"
import { formatError } from "./Network.ts"

/** The largest number of values of which each may be in an array once, because each set of them is a state. */
const mostUnique = 10

/** Adds the arrays that fit a schema. */
export const addArray = (compiler: Compiler, schema: Plain, from: number, to: number, path: string): void => {
  const { builder, shared } = compiler
  const first: unknown = schema.prefixItems ?? []
  if (!Array.isArray(first)) throw formatError(`${path}.prefixItems`, "expected a list of schemas")
  if (Array.isArray(schema.items)) throw formatError(`${path}.items`, "expected a schema; write a list as prefixItems")
  const counts = lengthsOf(schema, { least: "minItems", most: "maxItems" }, path)
  const most = schema.items === false ? Math.min(counts.most, first.length) : counts.most
  const lengths = { least: counts.least, most }
  const end = builder.state()
  builder.read(end, 0x5d, 0x5d, to)
  const begun = builder.state()
  builder.call(addText(builder, from, "["), shared.space, begun)
  if (lengths.least === 0) builder.jump(begun, end)
  if (schema.uniqueItems === true && most > 1)
    return addUnique(compiler, { values: uniqueValues(compiler, schema, path), lengths }, begun, end)
  addList(compiler, { first, rest: schema.items ?? true, lengths, path }, begun, end)
}

/** Adds a comma where it is needed before an item. Returns the state before the item. */
const addComma = ({ builder, shared }: Compiler, from: number, count: number): number => {
  if (count === 0) return from
  const item = builder.state()
  builder.call(addText(builder, from, ","), shared.space, item)
  return item
}

interface ItemList {
  /** The schemas of the first items, and that of all others. */
  readonly first: ReadonlyArray<unknown>
  readonly rest: unknown
  readonly lengths: Lengths
  readonly path: string
}

/** Adds one or more items. */
const addList = (compiler: Compiler, { first, rest, lengths, path }: ItemList, from: number, end: number): void => {
  const { builder, shared } = compiler
  const { least, most } = lengths
  const others = first.length < most ? compiler.network(rest, `${path}.items`) : -1
  const last = most === Infinity ? Math.max(least, first.length, 1) : countedLength(lengths)
  const addItem = (state: number, count: number, next: number): void => {
    const item = addComma(compiler, state, count)
    if (count < first.length) compiler.value(first[count], item, next, `${path}.prefixItems[${count}]`)
    else builder.call(item, others, next)
  }
  let at = from
  for (let count = 0; count < last; count++) {
    const next = builder.state()
    addItem(at, count, next)
    at = next
    if (count + 1 >= least) builder.call(at, shared.space, end)
  }
  if (most === Infinity) addItem(at, last, at)
}

/** Makes a network of each value that an item can have, of which no two are equal. */
const uniqueValues = (compiler: Compiler, schema: Plain, path: string): ReadonlyArray<number> => {
  const items = resolved(compiler.root, schema.items)
  const values = items?.enum
  const isScalar = (value: unknown): boolean => value === null || typeof value !== "object"
  const isListed = Array.isArray(values) && schema.prefixItems === undefined && values.every(isScalar)
  const distinct = isListed ? [...new Map(values.map((value) => [JSON.stringify(value), value])).values()] : []
  if (distinct.length === 0 || distinct.length > mostUnique) {
    const problem = `only supported for items with an enum of at most ${mostUnique} values that are no objects and no arrays; leave it out`
    throw formatError(`${path}.uniqueItems`, problem)
  }
  // The whole schema of the items is compiled only to check it.
  compiler.network(schema.items, `${path}.items`)
  return distinct.map((value) => compiler.network({ ...items, enum: [value] }, `${path}.items`))
}

interface UniqueItems {
  /** The network of each value. */
  readonly values: ReadonlyArray<number>
  readonly lengths: Lengths
}

/** Adds one or more of the values, each at most once. */
const addUnique = (compiler: Compiler, { values, lengths }: UniqueItems, from: number, end: number): void => {
  const { builder, shared } = compiler
  /** The state after each set of values, which has a bit for each value. */
  const states = new Map<number, number>([[0, from]])
  const stateOf = (set: number): number => {
    const state = states.get(set) ?? builder.state()
    states.set(set, state)
    return state
  }
  // A set is smaller as a number than any set with one value more, so it has its state before its turn.
  for (let set = 0; set < 2 ** values.length; set++) {
    const state = states.get(set)
    if (state === undefined) continue
    const count = values.filter((_, value) => (set >> value) % 2 === 1).length
    if (count > 0 && count >= lengths.least) builder.call(state, shared.space, end)
    if (count === values.length || count >= lengths.most) continue
    const item = addComma(compiler, state, count)
    for (const [value, network] of values.entries())
      if ((set >> value) % 2 === 0) builder.call(item, network, stateOf(set | (1 << value)))
  }
}
