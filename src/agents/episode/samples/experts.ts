/** Joins the experts that a model chose in its calls to those of a sample. */
import {
  decodeExperts,
  type EncodedExperts,
  encodeExperts,
  expertsBetween,
  joinedExperts,
  recordedTokens,
  type RoutedExperts,
} from "../../../base/formats/routedExperts.ts"
import type { TokenTrace } from "../../lm/Chat.ts"
import type { AgentStep } from "../Rollout.ts"

/** Returns the experts of a call, or a description of what is wrong with them; null if its trace has none. */
export const callExperts = ({ promptIds, completionIds, routedExperts }: TokenTrace): RoutedExperts | string | null => {
  if (routedExperts === undefined) return null
  const experts = decodeExperts(routedExperts)
  if (typeof experts === "string") return experts
  const [found, expected] = [recordedTokens(experts), promptIds.length + completionIds.length - 1]
  return found === expected
    ? experts
    : `expected the experts of ${expected} tokens, all of prompt and completion except the last one, found those of ${found}`
}

interface Call {
  readonly step: AgentStep
  readonly experts: RoutedExperts | null
}

/** Returns the first call of a turn without experts, or of another model, if other calls have some; undefined if there is none. */
export const lacksExperts = (
  calls: ReadonlyArray<Call>,
): { readonly step: AgentStep; readonly problem: string } | undefined => {
  const first = calls.find(({ experts }) => experts !== null)?.experts ?? null
  if (first === null) return undefined
  const isSame = ({ experts }: Call) => experts?.layers === first.layers && experts.perToken === first.perToken
  const other = calls.find((call) => !isSame(call))
  if (other === undefined) return undefined
  const found = other.experts === null ? "none" : `${other.experts.perToken} in each of ${other.experts.layers} layers`
  const problem = `expected ${first.perToken} experts in each of ${first.layers} layers, as other calls of the turn have them; found ${found}`
  return { step: other.step, problem }
}

const recordedIn = (parts: ReadonlyArray<RoutedExperts>): number =>
  parts.reduce((sum, part) => sum + recordedTokens(part), 0)

/**
 * Adds the experts of a call. Tokens of earlier calls keep those with which their log-probabilities were computed, because a
 * later call may have read them with other weights.
 */
export const addExperts = (parts: Array<RoutedExperts>, experts: RoutedExperts | null): void => {
  if (experts !== null) parts.push(expertsBetween(experts, recordedIn(parts), recordedTokens(experts)))
}

/** Returns the experts of a sample of `tokens` tokens; undefined if its calls have none. */
export const sampleExperts = (parts: ReadonlyArray<RoutedExperts>, tokens: number): EncodedExperts | undefined =>
  parts.length === 0 ? undefined : encodeExperts(expertsBetween(joinedExperts(parts), 0, tokens))
