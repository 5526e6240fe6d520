/**
 * Converts plain data to JSON text and back, exactly: also −0, NaN, the infinities, undefined, bigints and typed
 * arrays, which JSON lacks. For other values (a function, a class instance, a cycle) `toText` throws `NotPlain`.
 * Snapshots and `checkEnv` convert the states of envs with it.
 */
import { jsonValue } from "../../../base/text/text.ts"

/** `toText` throws this if a value is not plain data: `path` is e.g. `state.cars[0]`, and `kind` e.g. `a function`. */
export class NotPlain {
  readonly path: string
  readonly kind: string
  constructor(path: string, kind: string) {
    this.path = path
    this.kind = kind
  }
}

/** The key of the objects that encode values without a form in JSON: NaN is `{"$": "NaN"}`. */
const mark = "$"

type Json = null | boolean | number | string | Array<Json> | { [key: string]: Json }

export const toText = (value: unknown): string => JSON.stringify(encode(value, "state", new Set()))

/** Reads what `toText` wrote. Returns undefined for any other text: a checkpoint can come from somebody else. */
export const fromText = (text: string): unknown => {
  try {
    return decode(jsonValue(text))
  } catch {
    return undefined
  }
}

const encode = (value: unknown, path: string, ancestors: Set<object>): Json => {
  switch (typeof value) {
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0)
        ? value
        : { [mark]: Object.is(value, -0) ? "-0" : String(value) }
    case "string":
    case "boolean":
      return value
    case "undefined":
      return { [mark]: "undefined" }
    case "bigint":
      return { [mark]: "bigint", value: String(value) }
    case "object":
      return value === null ? null : encodeObject(value, path, ancestors)
    default:
      throw new NotPlain(path, `a ${typeof value}`)
  }
}

const encodeObject = (value: object, path: string, ancestors: Set<object>): Json => {
  if (ancestors.has(value)) throw new NotPlain(path, "a cycle")
  ancestors.add(value)
  const encoded = encodeInside(value, path, ancestors)
  ancestors.delete(value)
  return encoded
}

const encodeInside = (value: object, path: string, ancestors: Set<object>): Json => {
  if (Array.isArray(value)) return Array.from(value, (item, index) => encode(item, `${path}[${index}]`, ancestors))
  if (ArrayBuffer.isView(value)) {
    const kind = value.constructor.name
    const constructor = typedArrays[kind]
    if (constructor !== undefined && value instanceof constructor) {
      return { [mark]: kind, value: Array.from(value, (item) => encode(item, path, ancestors)) }
    }
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) throw new NotPlain(path, instanceName(value))
  if (Object.getOwnPropertySymbols(value).length > 0) throw new NotPlain(path, "a symbol key")
  const entries = Object.entries(value).map(([key, item]): [string, Json] => [
    key,
    encode(item, `${path}.${key}`, ancestors),
  ])
  // An object that has the key `$` itself is written as a list of entries, so that `decode` doesn't misread it.
  return Object.hasOwn(value, mark) ? { [mark]: "object", value: entries } : Object.fromEntries(entries)
}

const decode = (json: unknown): unknown => {
  if (Array.isArray(json)) return json.map(decode)
  if (typeof json !== "object" || json === null) return json
  if (!(mark in json)) return Object.fromEntries(Object.entries(json).map(([key, item]) => [key, decode(item)]))
  return decodeMarked(String(json[mark]), "value" in json ? json.value : undefined)
}

const decodeMarked = (tag: string, value: unknown): unknown => {
  if (tag === "undefined") return undefined
  if (tag === "bigint") return BigInt(String(value))
  const items: ReadonlyArray<unknown> = Array.isArray(value) ? value : []
  if (tag === "object")
    return Object.fromEntries(items.map((entry) => (Array.isArray(entry) ? [entry[0], decode(entry[1])] : [])))
  const constructor = typedArrays[tag]
  return constructor === undefined ? Number(tag) : new constructor(items.map(decode).map(Number))
}

const typedArrays: Readonly<Record<string, (new (numbers: ReadonlyArray<number>) => Iterable<number>) | undefined>> = {
  Float64Array,
  Float32Array,
  Int32Array,
  Uint32Array,
  Int16Array,
  Uint16Array,
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
}

const instanceName = (value: object): string => {
  const constructor: unknown = Reflect.get(value, "constructor")
  return typeof constructor === "function" && constructor.name !== ""
    ? `an instance of ${constructor.name}`
    : "a class instance"
}
