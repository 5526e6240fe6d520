import type { AgentStep } from "../../episode/Rollout.ts"
import type { Sample } from "../../episode/samples/Sample.ts"
import { asMessage, type Completion } from "../../lm/Chat.ts"
import { bytes, completionIds } from "../../lm/ChatTokens.ts"
import type { TokenRun } from "./Transcript.ts"

interface Texts {
  readonly of: ReadonlyArray<string>
  /** Where the words end: behind them there are calls, which are shown as such, and the end. */
  readonly words: number
}

/** What each of these tokens stands for: the server said so, or every byte is a token; of others nobody knows. */
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
  // A letter of several bytes stands with its last one.
  const of = ids.map((id, at) => (at < words ? decoder.decode(Uint8Array.of(id - 5), { stream: true }) : ""))
  return { of, words }
}

/**
 * What the model said in each of a sample's calls, by the steps' ids. Of a sample that was cut the last calls have fewer
 * tokens, or none.
 */
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
    // Two completions may follow each other without anything between them.
    const most = completion.tokens?.completionIds.length ?? Infinity
    while (at < inputIds.length && actionMask[at] === 1 && at - from < most) at++
    const texts = textsOf(completion, inputIds.slice(from, at))
    if (at === from) continue
    const worth = (place: number): number => advantages?.[place] ?? credit * weight
    const all = inputIds.slice(from, at)
    const isOne = all.every((_, index) => worth(from + index) === worth(from))
    // Where one is worth as much as another, nobody has to know which of the words it stands for.
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
