/**
 * A reader of Python's pickles that builds data and nothing else. A pickle is a program that can call any function there
 * is; this one knows dictionaries, lists, tuples, numbers, text, and the handful of functions by which PyTorch describes
 * a tensor. Whatever else it meets, an instruction or a name, is an error.
 */

export class PickleError extends Error {}

/** What a pickle can hold here. */
export type Value = null | boolean | number | string | List | Tuple | Dictionary | Name | Storage | PickledTensor

export interface List {
  readonly kind: "list"
  readonly items: Array<Value>
}
export interface Tuple {
  readonly kind: "tuple"
  readonly items: ReadonlyArray<Value>
}
export interface Dictionary {
  readonly kind: "dict"
  readonly entries: Map<Value, Value>
}
/** A class or function, by its name. */
export interface Name {
  readonly kind: "name"
  readonly name: string
}
/** The numbers of one or more tensors: in which file, and of which type. */
export interface Storage {
  readonly kind: "storage"
  readonly type: string
  readonly key: string
  readonly size: number
}
export interface PickledTensor {
  readonly kind: "tensor"
  readonly storage: Storage
  readonly offset: number
  readonly shape: ReadonlyArray<number>
  readonly strides: ReadonlyArray<number>
}

export const storageTypes = [
  "DoubleStorage",
  "FloatStorage",
  "HalfStorage",
  "BFloat16Storage",
  "LongStorage",
  "IntStorage",
  "ShortStorage",
  "CharStorage",
  "ByteStorage",
  "BoolStorage",
] as const

const orderedDict = "collections.OrderedDict"
const rebuildTensor = "torch._utils._rebuild_tensor_v2"
const rebuildParameter = "torch._utils._rebuild_parameter"
const allowed: ReadonlySet<string> = new Set([
  orderedDict,
  rebuildTensor,
  rebuildParameter,
  ...storageTypes.map((type) => `torch.${type}`),
])

const isOf = <K extends string>(value: Value | undefined, kind: K): value is Extract<Value, { readonly kind: K }> =>
  typeof value === "object" && value !== null && value.kind === kind

/** Nesting and sizes beyond this are no weights. */
const deepest = 100_000

/** Reads one pickle. Throws a PickleError that names what it met, and where. */
export const readPickle = (bytes: Uint8Array): Value => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text = new TextDecoder("utf-8", { fatal: true })
  const stack: Array<Value> = []
  const marks: Array<number> = []
  const memory = new Map<number, Value>()
  let at = 0
  let instruction = 0

  const fail = (message: string): never => {
    throw new PickleError(`at byte ${instruction}: ${message}`)
  }
  const take = (length: number): number => {
    const from = at
    if (length < 0 || at + length > bytes.length) fail("the pickle ends in the middle of an instruction")
    at += length
    return from
  }
  const string = (length: number): string => {
    const from = take(length)
    try {
      return text.decode(bytes.subarray(from, from + length))
    } catch {
      return fail("a text that is not UTF-8")
    }
  }
  const line = (): string => {
    const end = bytes.indexOf(0x0a, at)
    if (end < 0) fail("a line without end")
    const found = string(end - at)
    at++
    return found
  }
  const push = (value: Value): void => {
    if (stack.length > deepest) fail("the stack is too deep")
    stack.push(value)
  }
  const pop = (): Value => {
    const value = stack.length > (marks.at(-1) ?? 0) ? stack.pop() : undefined
    return value === undefined ? fail("there is nothing on the stack") : value
  }
  const top = (): Value => {
    const value = pop()
    stack.push(value)
    return value
  }
  const sinceMark = (): Array<Value> => stack.splice(marks.pop() ?? fail("there is no mark on the stack"))
  const name = (full: string): void =>
    allowed.has(full) ? push({ kind: "name", name: full }) : fail(`it asks for "${full}", which no weights need`)
  const recall = (key: number): void => push(memory.get(key) ?? fail(`nothing was remembered as ${key}`))
  const append = (items: ReadonlyArray<Value>): void => {
    const list = top()
    if (!isOf(list, "list")) return fail("it appends to something that is no list")
    list.items.push(...items)
  }
  const setItems = (items: ReadonlyArray<Value>): void => {
    const dictionary = top()
    if (!isOf(dictionary, "dict") || items.length % 2 !== 0)
      return fail("it sets items of something that is no dictionary")
    for (let index = 0; index < items.length; index += 2) dictionary.entries.set(items[index], items[index + 1])
  }
  const reduce = (): void => {
    const given = pop()
    const called = pop()
    if (!isOf(called, "name") || !isOf(given, "tuple")) return fail("it calls something that is no name")
    push(call(called.name, given.items, fail))
  }
  const build = (): void => {
    pop()
    // PyTorch hangs remarks (`_metadata`) on the dictionary of weights; anything else has no state to set.
    if (!isOf(top(), "dict")) fail("it sets the state of something that is no dictionary")
  }
  const long = (): number => {
    const length = bytes[take(1)]
    let value = 0n
    for (let index = 0, from = take(length); index < length; index++)
      value |= BigInt(bytes[from + index]) << BigInt(8 * index)
    const signed = Number(BigInt.asIntN(8 * length, value))
    return Number.isSafeInteger(signed) ? signed : fail(`the number ${signed} is too large`)
  }

  for (;;) {
    instruction = at
    const code = bytes[take(1)]
    const letter = String.fromCharCode(code)
    if (letter === ".") {
      const value = pop()
      return stack.length === 0 ? value : fail("it ends with more than one value")
    } else if (code === 0x80) {
      const protocol = bytes[take(1)]
      if (protocol > 5) fail(`protocol ${protocol}`)
    } else if (code === 0x95) take(8)
    else if (letter === "}") push({ kind: "dict", entries: new Map() })
    else if (letter === "]") push({ kind: "list", items: [] })
    else if (letter === ")") push({ kind: "tuple", items: [] })
    else if (letter === "(") marks.push(stack.length)
    else if (letter === "N") push(null)
    else if (code === 0x88 || code === 0x89) push(code === 0x88)
    else if (letter === "K") push(bytes[take(1)])
    else if (letter === "M") push(view.getUint16(take(2), true))
    else if (letter === "J") push(view.getInt32(take(4), true))
    else if (letter === "G") push(view.getFloat64(take(8)))
    else if (code === 0x8a) push(long())
    else if (letter === "X") push(string(view.getUint32(take(4), true)))
    else if (code === 0x8c) push(string(bytes[take(1)]))
    else if (letter === "t") push({ kind: "tuple", items: sinceMark() })
    else if (code >= 0x85 && code <= 0x87) {
      const items: Array<Value> = []
      for (let count = code - 0x84; count > 0; count--) items.unshift(pop())
      push({ kind: "tuple", items })
    } else if (letter === "a") {
      const item = pop()
      append([item])
    } else if (letter === "e") append(sinceMark())
    else if (letter === "s") {
      const value = pop()
      const key = pop()
      setItems([key, value])
    } else if (letter === "u") setItems(sinceMark())
    else if (letter === "q") memory.set(bytes[take(1)], top())
    else if (letter === "r") memory.set(view.getUint32(take(4), true), top())
    else if (code === 0x94) memory.set(memory.size, top())
    else if (letter === "h") recall(bytes[take(1)])
    else if (letter === "j") recall(view.getUint32(take(4), true))
    else if (letter === "c") {
      const module = line()
      name(`${module}.${line()}`)
    } else if (code === 0x93) {
      const attribute = pop()
      name(`${String(pop())}.${String(attribute)}`)
    } else if (letter === "Q") push(storageOf(pop(), fail))
    else if (letter === "R") reduce()
    else if (letter === "b") build()
    else fail(`instruction 0x${code.toString(16).padStart(2, "0")}, which no weights need`)
  }
}

type Fail = (message: string) => never

/** ("storage", type, key, where it was, size) */
const storageOf = (id: Value, fail: Fail): Storage => {
  const [tag, type, key, , size] = isOf(id, "tuple") ? id.items : []
  if (tag !== "storage" || !isOf(type, "name") || typeof key !== "string" || typeof size !== "number") {
    return fail("a reference to something that is no storage")
  }
  return { kind: "storage", type: type.name.replace("torch.", ""), key, size }
}

const sizesOf = (value: Value | undefined): ReadonlyArray<number> | undefined =>
  isOf(value, "tuple") && value.items.every((item) => typeof item === "number" && Number.isInteger(item) && item >= 0)
    ? value.items.map(Number)
    : undefined

const call = (name: string, given: ReadonlyArray<Value>, fail: Fail): Value => {
  if (name === orderedDict && given.length === 0) return { kind: "dict", entries: new Map() }
  if (name === rebuildParameter && isOf(given[0], "tensor")) return given[0]
  if (name === rebuildTensor) {
    const [storage, offset] = given
    const [shape, strides] = [sizesOf(given[2]), sizesOf(given[3])]
    const fits = typeof offset === "number" && Number.isInteger(offset) && offset >= 0
    if (isOf(storage, "storage") && fits && shape !== undefined && strides?.length === shape.length) {
      return { kind: "tensor", storage, offset, shape, strides }
    }
  }
  return fail(`it calls ${name} with something else than PyTorch does`)
}
