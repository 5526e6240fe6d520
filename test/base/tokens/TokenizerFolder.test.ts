import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { load } from "../../../src/base/tokens/TokenizerFolder.ts"
import { filesOf, inMemory, json, jsonOf, text } from "./fixtures.ts"

const files = filesOf("llama")
const config = jsonOf("llama/tokenizer_config.json")
const messages = [{ role: "user", content: "x" }]

/** Loads a folder with other files, and renders one message by its template. */
const rendered = (others: Readonly<Record<string, Uint8Array>>) =>
  Effect.flatMap(load(inMemory({ ...files, ...others }), "."), ({ template }) => template.render({ messages }))

describe("a folder with a tokenizer", () => {
  it.effect("has its template in a file, in its config as one or as several, or none", () =>
    Effect.gen(function* () {
      const inConfig = { "tokenizer_config.json": json({ ...config, chat_template: "{{ bos_token }}one" }) }
      const named = [
        { name: "default", template: "{{ eos_token }}named" },
        { name: "tool_use", template: "tools" },
      ]
      const several = { "tokenizer_config.json": json({ ...config, chat_template: named }) }
      assert.strictEqual(yield* rendered(inConfig), "<|bos|>one")
      assert.strictEqual(yield* rendered(several), "<|eos|>named")
      assert.strictEqual(
        yield* rendered({ ...inConfig, "chat_template.jinja": text("{{ pad_token }}file") }),
        "<|pad|>file",
      )
      assert.strictEqual(yield* rendered({}), "<|im_start|>user\nx<|im_end|>\n")
    }),
  )

  it.effect("may lack a config, and keeps its files", () =>
    Effect.gen(function* () {
      const only = { "a/b/tokenizer.json": files["tokenizer.json"] }
      const loaded = yield* load(inMemory(only), "a/b")
      assert.deepEqual(Object.keys(loaded.files), ["tokenizer.json"])
      assert.isNull(loaded.tokenizer.special.eos)
      assert.strictEqual(loaded.tokenizer.special.ids.size, 3)
    }),
  )

  it.effect("that is damaged fails with the file and the key", () =>
    Effect.gen(function* () {
      const failure = (others: Readonly<Record<string, Uint8Array>>) =>
        Effect.map(Effect.flip(load(inMemory(others), "m")), ({ message }) => message)
      assert.strictEqual(yield* failure({ "m/config.json": json({}) }), "m/tokenizer.json: there is no such file")
      const tokenizer = { "m/tokenizer.json": files["tokenizer.json"] }
      assert.match(
        yield* failure({ ...tokenizer, "m/tokenizer_config.json": json({ chat_template: 7 }) }),
        /^m\/tokenizer_config\.json: chat_template: /,
      )
      assert.match(
        yield* failure({ ...tokenizer, "m/chat_template.jinja": text("{% for %}") }),
        /^m\/chat_template\.jinja: the template is not valid: /,
      )
      assert.match(
        yield* failure({ ...tokenizer, "m/chat_template.jinja": Uint8Array.of(0xff) }),
        /^m\/chat_template\.jinja: expected text in UTF-8/,
      )
    }),
  )
})
