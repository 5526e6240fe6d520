/** Finds the tokens of a model's answers, with their advantages, in the samples of a run. These are pure functions. */
import type { AgentStep } from "../../../agents/episode/Rollout.ts"
import type { Sample } from "../../../agents/episode/samples/Sample.ts"
import { asMessage, type Completion } from "../../../agents/lm/Chat.ts"
import { completionIds } from "../../../agents/lm/ChatTokens.ts"
import { bytes } from "../../../base/tokens/words.ts"
import type { TokenSpan } from "./Transcript.ts"

/** The texts of all tokens of an answer (`of`). */
interface Texts {
  readonly of: ReadonlyArray<string>
  /**
   * The number of tokens of the answer's text. After them come the tokens of tool calls, and the token that ends the answer.
   */
  readonly words: number
}

/**
 * Returns the texts of tokens: those that the server sent, or decoded texts if each token is one byte; undefined otherwise.
 */
const textsOf = (completion: Completion, ids: ReadonlyArray<number>): Texts | undefined => {
  const { texts, completionIds: traced = [] } = completion.tokens ?? {}
  if (texts !== undefined && ids.every((id, at) => id === traced[at])) {
    let length = 0
    // The tool calls begin with the first token that ends beyond the answer's text.
    const calls = texts.findIndex((text) => (length += text.length) > completion.content.length)
    return { of: texts, words: calls < 0 ? texts.length : calls }
  }
  const byteIds = completionIds(bytes, asMessage(completion), completion.finishReason !== "length")
  if (ids.length > byteIds.length || ids.some((id, at) => id !== byteIds[at])) return undefined
  const decoder = new TextDecoder()
  const words = bytes.encode(completion.content).length
  // Ids below 5 are markers, so a byte has the id byte + 5. If a character consists of several bytes, its text is at the last
  // one.
  const of = ids.map((id, at) => (at < words ? decoder.decode(Uint8Array.of(id - 5), { stream: true }) : ""))
  return { of, words }
}

/**
 * Returns the tokens of each answer in a sample, by the id of its step. If the sample was cut off, its last tokens are
 * missing.
 */
export const tokensOf = (
  sample: Sample,
  steps: ReadonlyMap<string, AgentStep>,
): ReadonlyMap<string, ReadonlyArray<TokenSpan>> => {
  const { inputIds, actionMask, logprobs, credit, weight, advantages } = sample
  const tokensByStep = new Map<string, ReadonlyArray<TokenSpan>>()
  let at = 0
  for (const id of sample.stepIds) {
    const step = steps.get(id)
    if (step === undefined) continue
    const { completion } = step.call
    while (at < inputIds.length && actionMask[at] !== 1) at++
    const from = at
    // Two answers can follow each other without a prompt between them, so stop after this answer's number of tokens.
    const most = completion.tokens?.completionIds.length ?? Infinity
    while (at < inputIds.length && actionMask[at] === 1 && at - from < most) at++
    const texts = textsOf(completion, inputIds.slice(from, at))
    if (at === from) continue
    const advantageAt = (place: number): number => advantages?.[place] ?? credit * weight
    const all = inputIds.slice(from, at)
    const areEqual = all.every((_, index) => advantageAt(from + index) === advantageAt(from))
    // If the tokens' texts are unknown, but all advantages are equal, the whole answer is one span with its text.
    if (texts === undefined && areEqual) {
      tokensByStep.set(id, [{ text: completion.content, ids: all, advantage: advantageAt(from), logprob: null }])
      continue
    }
    const spans: Array<{ text: string | null; ids: Array<number>; advantage: number; logprob: number | null }> = []
    for (let place = from; place < at; place++) {
      const advantage = advantageAt(place)
      const logprob = logprobs?.[place] ?? null
      const text = texts?.of[place - from] ?? null
      // A new span begins after the answer's text, so that tool calls and the answer's end are shown separately.
      const before = place - from === texts?.words ? undefined : spans.at(-1)
      if (before !== undefined && before.advantage === advantage && before.logprob === logprob) {
        before.ids.push(inputIds[place])
        if (text !== null) before.text = (before.text ?? "") + text
      } else spans.push({ text, ids: [inputIds[place]], advantage, logprob })
    }
    tokensByStep.set(id, spans)
  }
  return tokensByStep
}
