import { Schema } from "effect"
import { assert, it } from "vitest"
import { LmRequest } from "../../../src/agents/lm/Chat.ts"
import { AnswerPiece, completionOf, gather, OpenAiAnswer, Whole } from "../../../src/agents/lm/providers/openAiWire.ts"
import { encodeExperts } from "../../../src/base/formats/routedExperts.ts"
import type { Generated } from "../../../src/decoder/inference/Engine.ts"
import { ChatChunks, type ChatQuestion, chatAnswer } from "../../../src/decoder/serve/answers/chatAnswer.ts"
import { TokenTexts } from "../../../src/decoder/serve/answers/tokenTexts.ts"

const routedExperts = { layers: 2, perToken: 1, ids: Uint16Array.of(1, 300, 2, 0) }
const [token, weights] = [
  { id: 5, logprob: -1, top: [] },
  { model: "base", step: 0, baseStep: 0 },
]
const generated: Generated = {
  tokens: [token],
  text: "",
  finishReason: "length",
  stopReason: null,
  weights,
  routedExperts,
}

const question: ChatQuestion = {
  id: "a",
  created: 0,
  model: "base",
  promptIds: [1, 2],
  turns: 1,
  reader: () => ({ push: () => [], end: () => [] }),
  onlyOneCall: false,
  logprobs: false,
  promptLogprobs: null,
  tokenIds: true,
  usage: false,
  texts: new TokenTexts({ encode: () => [], decode: () => "", bytesOf: () => new Uint8Array(), longestToken: 1 }),
}

const throughJson = <A>(schema: Schema.Decoder<A>, value: unknown): A =>
  Schema.decodeUnknownSync(schema)(JSON.parse(JSON.stringify(value)))

const tokensIn = (answer: OpenAiAnswer) =>
  completionOf({ ...LmRequest.defaults, model: "base", messages: [], traceTokens: true }, answer).tokens

it("the experts of an answer reach the client, whole and streamed, if it asks for tokens", () => {
  const whole = new OpenAiAnswer()
  gather(whole, throughJson(Whole, chatAnswer(question, [generated])))
  const streamed = new OpenAiAnswer()
  const chunks = new ChatChunks(question, 1)
  for (const event of [
    { _tag: "Token", token, text: "", weights },
    { _tag: "Finished", text: "", generated },
  ] as const)
    for (const piece of chunks.push({ index: 0, event })) gather(streamed, throughJson(AnswerPiece, piece))
  for (const answer of [whole, streamed])
    assert.deepStrictEqual(tokensIn(answer)?.routedExperts, encodeExperts(routedExperts))

  assert.notInclude(JSON.stringify(chatAnswer({ ...question, tokenIds: false }, [generated])), "routed_experts")
  // A record of another server that begins at a later token has not the experts of all tokens.
  const later = new OpenAiAnswer()
  const { choices, ...rest } = chatAnswer(question, [generated])
  const experts = { ...encodeExperts(routedExperts), start: 1 }
  gather(later, throughJson(Whole, { ...rest, choices: choices.map((one) => ({ ...one, routed_experts: experts })) }))
  assert.notProperty(tokensIn(later), "routedExperts")
})
