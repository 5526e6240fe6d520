import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { make, type TemplateMessage } from "../../../src/base/tokens/ChatTemplate.ts"
import { encodeChat, type EncodedChat } from "../../../src/base/tokens/encodeChat.ts"
import { byteLevel } from "../../../src/base/tokens/scratch.ts"
import type { Tokenizer } from "../../../src/base/tokens/Tokenizer.ts"

const question: TemplateMessage = { role: "user", content: "2 + 2?" }
const answer: TemplateMessage = { role: "assistant", content: "\n4" }
const thanks: TemplateMessage = { role: "user", content: "Thanks." }
const welcome: TemplateMessage = { role: "assistant", content: "Welcome!" }

const written = (tokenizer: Tokenizer, { ids, mask }: EncodedChat): string =>
  tokenizer.decode(
    ids.filter((_, at) => mask[at] === 1),
    { keepSpecial: true },
  )

describe("an encoded conversation", () => {
  it.effect("marks what the assistant writes, with the end of each message", () =>
    Effect.gen(function* () {
      const { tokenizer, template } = yield* byteLevel()
      const messages = [question, answer, thanks, welcome]
      const chat = yield* encodeChat(tokenizer, template, { messages })
      assert.strictEqual(written(tokenizer, chat), "\n4<|im_end|>Welcome!<|im_end|>")
      assert.strictEqual(tokenizer.decode(chat.ids, { keepSpecial: true }), yield* template.render({ messages }))
    }),
  )

  it.effect("begins with the tokens of each shorter one", () =>
    Effect.gen(function* () {
      const { tokenizer, template } = yield* byteLevel()
      const messages = [question, answer, thanks, welcome, question]
      const whole = yield* encodeChat(tokenizer, template, { messages, addGenerationPrompt: true })
      for (let count = 1; count < messages.length; count++) {
        const shorter = messages.slice(0, count)
        const asked = messages[count].role === "assistant"
        const part = yield* encodeChat(tokenizer, template, { messages: shorter, addGenerationPrompt: asked })
        assert.deepEqual(part.ids, whole.ids.slice(0, part.ids.length), `${count} messages`)
        assert.deepEqual(part.mask, whole.mask.slice(0, part.mask.length))
      }
    }),
  )

  it.effect("keeps the tokens that a model sampled, and ends an answer that was cut off", () =>
    Effect.gen(function* () {
      const { tokenizer, template } = yield* byteLevel()
      const end = tokenizer.special.eos ?? -1
      const messages = [question, answer, thanks]
      const texts = tokenizer.encode("other")
      const finished = yield* encodeChat(tokenizer, template, { messages, sampled: new Map([[1, [...texts, end]]]) })
      assert.strictEqual(written(tokenizer, finished), "other<|im_end|>")
      const cut = yield* encodeChat(tokenizer, template, { messages, sampled: new Map([[1, texts]]) })
      assert.strictEqual(written(tokenizer, cut), "other")
      assert.deepEqual(cut.ids, finished.ids)
    }),
  )

  it.effect("is refused if the template changes earlier messages", () =>
    Effect.gen(function* () {
      const { tokenizer } = yield* byteLevel()
      const template = yield* make({ default: "{{ messages | length }}" }, { path: "m/chat_template.jinja" })
      const failed = yield* Effect.flip(encodeChat(tokenizer, template, { messages: [question, answer] }))
      assert.include(
        failed.message,
        "m/chat_template.jinja: expected a template that keeps the text of earlier messages",
      )
    }),
  )
})
