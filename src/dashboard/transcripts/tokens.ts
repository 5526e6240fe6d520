/** Reads the tokens of a model's answers, with their advantages, from the samples of a run. */
import type { AgentStep } from "../../episode/Rollout.ts"
import type { Sample } from "../../episode/samples/Sample.ts"
import { asMessage, type Completion } from "../../lm/Chat.ts"
import { bytes, completionIds } from "../../lm/ChatTokens.ts"
import type { TokenRun } from "./Transcript.ts"

interface Texts {
  readonly of: ReadonlyArray<string>
  /** The number of tokens before the tool calls, which are shown separately, and before the end of the answer. */
  readonly words: number
}

/** Returns the tokens' texts: as the server sent them, or decoded if every token is a byte; undefined otherwise. */
const textsOf = (completion: Completion, ids: ReadonlyArray<number>): Texts | undefined => {
  const { texts, completionIds: traced = [] } = completion.tokens ?? {}
  if (texts !== undefined && ids.every((id, at) => id === traced[at])) {
    let length = 0
    const calls = texts.findIndex((text) => (length += text.length) > completion.content.length)
    return { of: texts, words: calls < 0 ? texts.length : calls }
  }
  const said = completionIds(bytes, asMessage(completion), completion.finishReason !== "length")
  if (ids.length > said.length || ids.some((id, at) => id !== said[at])) return undefined
  const decoder = new TextDecoder()
  const words = bytes.encode(completion.content).length
  // If a character has several bytes, its text belongs to the last of them.
  const of = ids.map((id, at) => (at < words ? decoder.decode(Uint8Array.of(id - 5), { stream: true }) : ""))
  return { of, words }
}

/** Returns the tokens of each call by the ids of steps. The last calls of a sample that was cut off have fewer or none. */
export const tokensOf = (
  sample: Sample,
  steps: ReadonlyMap<string, AgentStep>,
): ReadonlyMap<string, ReadonlyArray<TokenRun>> => {
  const { inputIds, actionMask, logprobs, credit, weight, advantages } = sample
  const found = new Map<string, ReadonlyArray<TokenRun>>()
  let at = 0
  for (const id of sample.stepIds) {
    const step = steps.get(id)
    if (step === undefined) continue
    const { completion } = step.call
    while (at < inputIds.length && actionMask[at] !== 1) at++
    const from = at
    // Two completions can follow each other without a separator.
    const most = completion.tokens?.completionIds.length ?? Infinity
    while (at < inputIds.length && actionMask[at] === 1 && at - from < most) at++
    const texts = textsOf(completion, inputIds.slice(from, at))
    if (at === from) continue
    const worth = (place: number): number => advantages?.[place] ?? credit * weight
    const all = inputIds.slice(from, at)
    const isOne = all.every((_, index) => worth(from + index) === worth(from))
    // If all tokens have the same advantage, their texts aren't needed.
    if (texts === undefined && isOne) {
      found.set(id, [{ text: completion.content, ids: all, advantage: worth(from), logprob: null }])
      continue
    }
    const runs: Array<{ text: string | null; ids: Array<number>; advantage: number; logprob: number | null }> = []
    for (let place = from; place < at; place++) {
      const advantage = worth(place)
      const logprob = logprobs?.[place] ?? null
      const text = texts?.of[place - from] ?? null
      const before = place - from === texts?.words ? undefined : runs.at(-1)
      if (before !== undefined && before.advantage === advantage && before.logprob === logprob) {
        before.ids.push(inputIds[place])
        if (text !== null) before.text = (before.text ?? "") + text
      } else runs.push({ text, ids: [inputIds[place]], advantage, logprob })
    }
    found.set(id, runs)
  }
  return found
}
