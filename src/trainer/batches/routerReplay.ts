/**
 * Replays the routers of a model with experts (router replay): samples have the experts that the model chose while it sampled,
 * and the programs of the trainer use these experts in the place of their own choice. So a token's log-probability differs
 * from the sampled one only because the weights have changed, not because a router chose otherwise.
 */
import { recordedTokens, type RoutedExperts } from "../../base/formats/routedExperts.ts"
import type { DecoderConfig } from "../../decoder/networks/Decoder.ts"

/** The sizes of a model whose routers are replayed. */
export interface ReplayedExperts {
  readonly layers: number
  /** The number of experts in each layer. */
  readonly count: number
  /** The number of experts that compute a token in a layer. */
  readonly perToken: number
}

/** Returns the sizes of the experts of a model, if its trainer replays its routers. */
export const replayedExperts = (
  { enableRouterReplay }: { readonly enableRouterReplay: boolean },
  { layers, experts }: Pick<DecoderConfig, "layers" | "experts">,
): ReplayedExperts | undefined =>
  enableRouterReplay && experts !== undefined ? { layers, count: experts.count, perToken: experts.perToken } : undefined

/** Returns how many experts a token has in all layers together; 0 if none are replayed. */
export const expertsOfToken = (replayed: ReplayedExperts | undefined): number =>
  replayed === undefined ? 0 : replayed.layers * replayed.perToken

interface Problem {
  readonly key: string
  readonly expected: string
  readonly found: string
}

const key = "routed_experts"

/** Returns why the experts of a sample of `tokens` tokens cannot be replayed; undefined if they can. */
export const expertsProblem = (
  experts: RoutedExperts,
  tokens: number,
  { layers, count, perToken }: ReplayedExperts,
): Problem | undefined => {
  if (experts.layers !== layers || experts.perToken !== perToken)
    return {
      key,
      expected: `${perToken} experts of a token in each of ${layers} layers`,
      found: `${experts.perToken} in each of ${experts.layers}`,
    }
  const recorded = recordedTokens(experts)
  // The model has not read the last token, so it may have no experts.
  if (recorded !== tokens - 1 && recorded !== tokens)
    return {
      key,
      expected: `those of all ${tokens} tokens, or of all except the last one`,
      found: `those of ${recorded}`,
    }
  const { ids } = experts
  for (let at = 0; at < ids.length; at++) {
    const place = { key: `${key}[${Math.floor(at / (layers * perToken))}]` }
    if (ids[at] >= count) return { ...place, expected: `an expert from 0 to ${count - 1}`, found: `${ids[at]}` }
    const first = at - (at % perToken)
    if (ids.subarray(first, at).includes(ids[at]))
      return { ...place, expected: `${perToken} different experts in each layer`, found: `${ids[at]} twice` }
  }
  return undefined
}

/**
 * Compares the experts of a token in two samples, so that the result is 0 if they are the same. A token without a record comes
 * before others.
 */
export const compareExperts = (a: RoutedExperts | undefined, b: RoutedExperts | undefined, token: number): number => {
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined)
  const size = a.layers * a.perToken
  for (let at = token * size; at < (token + 1) * size; at++) {
    const difference = (a.ids[at] ?? -1) - (b.ids[at] ?? -1)
    if (difference !== 0) return difference
  }
  return 0
}
