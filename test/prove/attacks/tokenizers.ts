/** Attacks by the tokenizer and the chat template of a model from somebody else: both compute, with each prompt of a server. */
import { Effect } from "effect"
import { utf8 } from "../../../src/base/text/utf8.ts"
import { make } from "../../../src/base/tokens/ChatTemplate.ts"
import { decode } from "../../../src/base/tokens/HuggingFaceTokenizer.ts"
import { must } from "../Proof.ts"
import type { Attack } from "./Attack.ts"

const door = "tokenizers and templates"

/** Returns the message with which an effect fails, if it fails in time. */
const refusal = async (attempt: Effect.Effect<unknown, { readonly message: string }>): Promise<string> => {
  const start = performance.now()
  const before = process.memoryUsage().rss
  const { message } = await Effect.runPromise(Effect.flip(attempt))
  must(performance.now() - start < 10_000, "it took more than 10 s")
  must(process.memoryUsage().rss - before < 2 ** 30, "it took 1 GiB of memory")
  return message
}

const encoded = (settings: object, text: string) => {
  const none = { added_tokens: [], normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null }
  const model = { type: "BPE", vocab: { a: 0 }, merges: [] }
  const json = utf8.encode(JSON.stringify({ ...none, model, ...settings }))
  return Effect.map(decode({ json, path: "tokenizer.json", config: null }), ({ tokenizer }) => tokenizer.encode(text))
}

const rendered = (source: string, content: string) =>
  Effect.flatMap(make({ default: source }, { path: "chat_template.jinja" }), (template) =>
    template.render({ messages: [{ role: "user", content }] }),
  )

const patterns = ["(a+)+b", "a?".repeat(40) + "a".repeat(40), `${"a*".repeat(12)}b`, `${"(?:a|a)".repeat(40)}b`]
const doubling = { type: "Replace", pattern: { String: "a" }, content: "aa" }

export const tokenizerAttacks: ReadonlyArray<Attack> = [
  {
    door,
    name: "a tokenizer whose regular expression takes minutes for 40 characters",
    attempt: async () => {
      const messages: Array<string> = []
      for (const Regex of patterns) {
        const pre_tokenizer = { type: "Split", pattern: { Regex }, behavior: "Isolated", invert: false }
        messages.push(await refusal(encoded({ pre_tokenizer }, "a".repeat(40))))
      }
      return messages[0]
    },
  },
  {
    door,
    name: "a tokenizer that doubles a text 30 times",
    attempt: () => {
      const normalizers = Array.from({ length: 30 }, () => doubling)
      return refusal(encoded({ normalizer: { type: "Sequence", normalizers } }, "a"))
    },
  },
  {
    door,
    name: "a chat template that loops, or makes a text, without end",
    attempt: async () => {
      const loops = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"
      const doubled = `{% set ns = namespace(t=messages[0].content) %}{% for a in range(60) %}{% set ns.t = ns.t + ns.t %}{% endfor %}{{ ns.t }}`
      await refusal(rendered(doubled, "a"))
      return refusal(rendered(loops, "a"))
    },
  },
]
