/** Converts the experts of samples to the tensors `routed_experts` and `routed_tokens` of `samples.safetensors`, and back. */
import { expertsBetween, joinedExperts, recordedTokens, type RoutedExperts } from "../../base/formats/routedExperts.ts"
import type * as Safetensors from "../../base/formats/safetensors.ts"
import type { TrainingSample } from "./TrainingSample.ts"

type Sample = Pick<TrainingSample, "id" | "routedExperts">

const recordsOf = (samples: ReadonlyArray<Sample>): ReadonlyArray<RoutedExperts> =>
  samples.flatMap(({ routedExperts }) => routedExperts ?? [])

/** Returns a message if the samples have experts of different models, which one tensor cannot hold. */
export const unequalExperts = (samples: ReadonlyArray<Sample>): string | undefined => {
  const [first] = recordsOf(samples)
  const sizes = ({ perToken, layers }: RoutedExperts): string => `${perToken} experts in each of ${layers} layers`
  for (const { id, routedExperts } of samples)
    if (routedExperts !== undefined && sizes(routedExperts) !== sizes(first))
      return `sample ${id}: routed_experts: expected ${sizes(first)} as in other samples, found ${sizes(routedExperts)}`
  return undefined
}

/** Returns the tensors of the experts; none if no sample has experts. */
export const expertTensors = (samples: ReadonlyArray<Sample>): Safetensors.TensorEntries => {
  const records = recordsOf(samples)
  if (records.length === 0) return {}
  const { layers, perToken, ids } = joinedExperts(records)
  const counts = Int32Array.from(samples, ({ routedExperts }) =>
    routedExperts === undefined ? 0 : recordedTokens(routedExperts),
  )
  const shape = [ids.length / (layers * perToken), layers, perToken]
  return {
    routed_experts:
      ids instanceof Uint8Array ? { shape, data: ids } : { shape, data: Int32Array.from(ids), dtype: "U16" },
    routed_tokens: { shape: [counts.length], data: counts },
  }
}

/** Returns the experts of each of `count` samples, undefined for those without; or what is wrong with the tensors. */
export const expertsOf = (
  tensors: Safetensors.TensorEntries,
  count: number,
): ReadonlyArray<RoutedExperts | undefined> | string => {
  const none = new Array<undefined>(count).fill(undefined)
  if (!Object.hasOwn(tensors, "routed_experts")) return none
  const { shape, data, dtype } = tensors["routed_experts"]
  const isWide = data instanceof Int32Array && dtype === "U16"
  if (!isWide && !(data instanceof Uint8Array)) return "routed_experts: expected U8 or U16"
  const [tokens, layers = 0, perToken = 0] = shape
  if (shape.length !== 3 || layers * perToken === 0)
    return `routed_experts: expected a shape [tokens, layers, experts of a token], found [${shape.join(", ")}]`
  const counts = Object.hasOwn(tensors, "routed_tokens") ? tensors["routed_tokens"].data : undefined
  if (!(counts instanceof Int32Array) || counts.length !== count || counts.some((one) => one < 0))
    return `routed_tokens: expected ${count} numbers of I32 from 0, one for each sample`
  const total = counts.reduce((sum, one) => sum + one, 0)
  if (total !== tokens)
    return `routed_tokens: expected a sum of ${tokens}, the tokens of routed_experts, found ${total}`
  const all: RoutedExperts = { layers, perToken, ids: isWide ? Uint16Array.from(data) : Uint8Array.from(data) }
  let from = 0
  return Array.from(counts, (one) => {
    from += one
    return one === 0 ? undefined : expertsBetween(all, from - one, from)
  })
}
