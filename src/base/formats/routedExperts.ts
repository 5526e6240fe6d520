/**
 * Defines the record of the experts that the routers of a model chose for the tokens of a text (mixture of experts), and its
 * form in JSON, in which the numbers are base64.
 *
 * @example
 * ```ts
 * const encoded = encodeExperts({ layers: 2, perToken: 1, ids: Uint8Array.of(3, 0, 5, 1) })
 * // { data: "AwAFAQ==", shape: [2, 2, 1], dtype: "uint8" }
 * ```
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { naturalInt, positiveInt } from "../config/fields.ts"

/** The experts of the first tokens of a text. */
export interface RoutedExperts {
  /** The number of layers with experts. */
  readonly layers: number
  /** The number of experts that compute a token in a layer. */
  readonly perToken: number
  /** The numbers of the experts, from 0: [tokens, layers, perToken]. */
  readonly ids: Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer>
}

/** The form of the record in JSON: the bytes of `ids`, little endian, as base64. */
export const EncodedExperts = Schema.Struct({
  data: Schema.String,
  /** The numbers of tokens, of layers and of experts of a token in a layer. */
  shape: Schema.Tuple([naturalInt, positiveInt, positiveInt]),
  dtype: Schema.Literals(["uint8", "uint16"]),
})
export type EncodedExperts = typeof EncodedExperts.Type

const toBase64 = Schema.encodeSync(Schema.Uint8ArrayFromBase64)
const fromBase64 = Schema.decodeUnknownOption(Schema.Uint8ArrayFromBase64)

/** Returns the number of tokens whose experts are recorded. */
export const recordedTokens = ({ layers, perToken, ids }: RoutedExperts): number => ids.length / (layers * perToken)

/** Makes an array for the numbers of `count` experts: of 8 bits if they are enough, otherwise of 16. */
export const expertIds = (count: number, length: number): RoutedExperts["ids"] =>
  count <= 256 ? new Uint8Array(length) : new Uint16Array(length)

export const encodeExperts = ({ layers, perToken, ids }: RoutedExperts): EncodedExperts => ({
  data: toBase64(new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength)),
  shape: [ids.length / (layers * perToken), layers, perToken],
  dtype: ids instanceof Uint8Array ? "uint8" : "uint16",
})

/** Decodes the record. Returns what is wrong with it instead if its data is no base64, or does not have its shape. */
export const decodeExperts = ({ data, shape, dtype }: EncodedExperts): RoutedExperts | string => {
  const [tokens, layers, perToken] = shape
  const bytes = Option.getOrUndefined(fromBase64(data))
  if (bytes === undefined) return "expected base64"
  const width = dtype === "uint8" ? 1 : 2
  const expected = tokens * layers * perToken * width
  if (bytes.length !== expected)
    return `expected ${expected} bytes for ${dtype} of shape [${shape.join(", ")}], found ${bytes.length}`
  // A copy begins at the beginning of its buffer, so that its 16-bit numbers are aligned.
  const own = Uint8Array.from(bytes)
  return { layers, perToken, ids: width === 1 ? own : new Uint16Array(own.buffer) }
}

/** Returns the records of the tokens from `from` up to `to`. */
export const expertsBetween = ({ layers, perToken, ids }: RoutedExperts, from: number, to: number): RoutedExperts => ({
  layers,
  perToken,
  ids: ids.slice(from * layers * perToken, to * layers * perToken),
})

/** Joins the records of several texts, one after another, of which there is at least one. All must be of the same model. */
export const joinedExperts = (parts: ReadonlyArray<RoutedExperts>): RoutedExperts => {
  const [{ layers, perToken }] = parts
  const length = parts.reduce((sum, { ids }) => sum + ids.length, 0)
  const isWide = parts.some(({ ids }) => ids instanceof Uint16Array)
  const all = isWide ? new Uint16Array(length) : new Uint8Array(length)
  let at = 0
  for (const { ids } of parts) {
    all.set(ids, at)
    at += ids.length
  }
  return { layers, perToken, ids: all }
}
