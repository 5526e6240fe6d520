import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { decode } from "../../../src/base/tokens/HuggingFaceTokenizer.ts"
import { load } from "../../../src/base/tokens/TokenizerFolder.ts"
import { misfit } from "../../../src/base/tokens/Tokenizer.ts"
import { filesOf, inMemory, json, jsonOf, text } from "./fixtures.ts"

interface Case {
  readonly text: string
  readonly ids: ReadonlyArray<number>
  readonly decoded: string
}

const llama = load(inMemory(filesOf("llama")), ".")

const names: ReadonlyArray<[string, number]> = Object.entries(jsonOf("llama/tokenizer.json").model.vocab)
const idNames = Object.fromEntries(names.map(([name, id]) => [id, name]))

/** Decodes tokenizer.json after a change, and returns the error's message. */
const messageAfter = (change: (tokenizer: ReturnType<typeof jsonOf>) => void, config: unknown = null) => {
  const tokenizer = jsonOf("llama/tokenizer.json")
  change(tokenizer)
  return Effect.flip(
    decode({
      json: json(tokenizer),
      path: "m/tokenizer.json",
      config: config === null ? null : { bytes: json(config), path: "m/tokenizer_config.json" },
    }),
  ).pipe(Effect.map(({ message }) => message))
}

/** A tokenizer as Llama 2 has it: spaces are U+2581, unknown characters are written byte by byte. */
const sentencePiece = () => {
  const pieces = ["\u2581", "a", "b", "\u2581a", "\u2581ab", "ab"]
  const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`)
  const vocab = Object.fromEntries(["<unk>", "<s>", "</s>", ...bytes, ...pieces].map((name, id) => [name, id]))
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true }
  return {
    version: "1.0",
    added_tokens: ["<unk>", "<s>", "</s>"].map((content, id) => ({ id, content, ...flags })),
    normalizer: {
      type: "Sequence",
      normalizers: [
        { type: "Prepend", prepend: "\u2581" },
        { type: "Replace", pattern: { String: " " }, content: "\u2581" },
      ],
    },
    pre_tokenizer: null,
    post_processor: {
      type: "TemplateProcessing",
      single: [{ SpecialToken: { id: "<s>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
      pair: [{ Sequence: { id: "A", type_id: 0 } }, { Sequence: { id: "B", type_id: 1 } }],
      special_tokens: { "<s>": { id: "<s>", ids: [1], tokens: ["<s>"] } },
    },
    decoder: {
      type: "Sequence",
      decoders: [
        { type: "Replace", pattern: { String: "\u2581" }, content: " " },
        { type: "ByteFallback" },
        { type: "Fuse" },
        { type: "Strip", content: " ", start: 1, stop: 0 },
      ],
    },
    model: {
      type: "BPE",
      unk_token: "<unk>",
      fuse_unk: true,
      byte_fallback: true,
      vocab,
      merges: [
        ["\u2581", "a"],
        ["a", "b"],
        ["\u2581a", "b"],
      ],
    },
  }
}

const decodedSentencePiece = decode({
  json: json(sentencePiece()),
  path: "tokenizer.json",
  config: { bytes: json({ bos_token: "<s>", eos_token: { content: "</s>" } }), path: "tokenizer_config.json" },
})

describe("a tokenizer of Hugging Face", () => {
  it.effect("gives the ids and texts of the Python library", () =>
    Effect.gen(function* () {
      const { tokenizer } = yield* llama
      const cases: ReadonlyArray<Case> = jsonOf("llama/expected.json").tokenizer
      assert.isAbove(cases.length, 3)
      for (const { text, ids, decoded } of cases) {
        assert.deepEqual(tokenizer.encode(text), ids)
        assert.strictEqual(tokenizer.decode(ids), decoded)
      }
    }),
  )

  it.effect("has the vocabulary's size and special tokens", () =>
    Effect.gen(function* () {
      const { tokenizer } = yield* llama
      assert.strictEqual(tokenizer.vocabSize, 384)
      const { bos, eos, pad, ids } = tokenizer.special
      assert.deepEqual([bos, eos, pad], [0, 1, 2])
      assert.deepEqual(
        [...ids],
        [
          ["<|bos|>", 0],
          ["<|eos|>", 1],
          ["<|pad|>", 2],
        ],
      )
      assert.strictEqual(tokenizer.idOf("<|eos|>"), 1)
      assert.isUndefined(tokenizer.idOf("<|none|>"))
    }),
  )

  it.effect("reads special tokens in a text, and shows them only if asked", () =>
    Effect.gen(function* () {
      const { tokenizer } = yield* llama
      const ids = tokenizer.encode("<|bos|>hello<|eos|>")
      assert.deepEqual([ids[0], ids.at(-1)], [0, 1])
      assert.strictEqual(tokenizer.decode(ids), "hello")
      assert.strictEqual(tokenizer.decode(ids, { keepSpecial: true }), "<|bos|>hello<|eos|>")
      assert.strictEqual(tokenizer.decode([0, 99_999, ...tokenizer.encode("x")]), "x")
      assert.strictEqual(tokenizer.decode([]), "")
    }),
  )

  it.effect("decodes a stream without a part of a character", () =>
    Effect.gen(function* () {
      const { tokenizer } = yield* llama
      const stream = tokenizer.decoder()
      const ids = tokenizer.encode("é漢🙂")
      const parts = ids.map((id) => stream.push(id))
      assert.deepEqual(
        parts.filter((part) => part !== ""),
        ["é", "漢", "🙂"],
      )
      assert.strictEqual(stream.end(), "")
      const cut = tokenizer.decoder()
      for (const id of ids.slice(0, -1)) cut.push(id)
      assert.strictEqual(cut.end(), "\ufffd")
      assert.deepEqual([...tokenizer.bytesOf(ids[0])], [0xc3])
    }),
  )

  it.effect("decodes an added token by its name, and counts one that the config names as special", () =>
    Effect.gen(function* () {
      const tokenizer = jsonOf("llama/tokenizer.json")
      const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: false }
      tokenizer.added_tokens.push({ id: 384, content: "é!", ...flags }, { id: 385, content: "<end>", ...flags })
      const config = { bytes: json({ eos_token: "<end>" }), path: "tokenizer_config.json" }
      const decoded = yield* decode({ json: json(tokenizer), path: "tokenizer.json", config })
      assert.deepEqual(decoded.tokenizer.encode("é!<end>"), [384, 385])
      assert.strictEqual(decoded.tokenizer.decode([384, 385]), "é!")
      assert.strictEqual(decoded.tokenizer.decode([384, 385], { keepSpecial: true }), "é!<end>")
    }),
  )

  it.effect("of SentencePiece's kind decodes spaces and bytes, at once and as a stream", () =>
    Effect.gen(function* () {
      const { tokenizer } = yield* decodedSentencePiece
      for (const text of ["ab ab", "a  b", "é漢🙂 ab", " ab", "ab . n't ,", ""]) {
        const ids = tokenizer.encode(text)
        assert.strictEqual(tokenizer.decode(ids), text)
        const stream = tokenizer.decoder()
        const parts = ids.map((id) => stream.push(id))
        assert.strictEqual(parts.join("") + stream.end(), text)
        assert.isFalse(
          parts.some((part) => part.includes("\ufffd")),
          parts.join("|"),
        )
      }
      assert.deepEqual(tokenizer.encode("ab", { addSpecial: true }).slice(0, 1), [1])
      const [space] = tokenizer.encode(" ab")
      assert.deepEqual([...tokenizer.bytesOf(space)], [0x20])
      assert.deepEqual([...tokenizer.bytesOf(3 + 0xc3)], [0xc3])
      assert.strictEqual(tokenizer.special.eos, 2)
    }),
  )

  it.effect("that is damaged fails with the file and the key", () =>
    Effect.gen(function* () {
      const missing = yield* messageAfter((tokenizer) => delete tokenizer.model)
      assert.strictEqual(missing, "m/tokenizer.json: model: missing key")
      assert.include(
        yield* messageAfter((tokenizer) => (tokenizer.model.vocab.hello = -1)),
        "m/tokenizer.json: model.vocab.hello: ",
      )
      assert.strictEqual(
        yield* messageAfter((tokenizer) => (tokenizer.model.vocab.hello = 300)),
        `m/tokenizer.json: model.vocab: expected one token with the id 300, found "${idNames[300]}" and "hello"`,
      )
      assert.strictEqual(
        yield* messageAfter((tokenizer) => (tokenizer.added_tokens[0].id = 5)),
        `m/tokenizer.json: added_tokens: expected "#", the token of model.vocab with the id 5, found "<|bos|>"`,
      )
      assert.strictEqual(
        yield* messageAfter((tokenizer) => (tokenizer.decoder.type = "Unheard")),
        "m/tokenizer.json: Unknown Decoder type: Unheard",
      )
      assert.strictEqual(
        yield* messageAfter(() => {}, { eos_token: "</s>" }),
        `m/tokenizer_config.json: eos_token: expected a token of m/tokenizer.json, found "</s>"`,
      )
      const wrong = decode({ json: text("{"), path: "m/tokenizer.json", config: null })
      assert.match((yield* Effect.flip(wrong)).message, /^m\/tokenizer\.json: expected JSON: /)
    }),
  )

  it.effect("fits a model that has a row for each id, and in which a generation can end", () =>
    Effect.gen(function* () {
      const { tokenizer } = yield* llama
      const paths = { path: "m/tokenizer.json", configPath: "m/config.json" }
      assert.isUndefined(misfit(tokenizer, { vocabSize: 384, eosIds: [1], ...paths }))
      assert.strictEqual(
        misfit(tokenizer, { vocabSize: 383, ...paths })?.message,
        "m/tokenizer.json: expected token ids below 383, the vocab_size of m/config.json, found the id 383",
      )
      assert.strictEqual(
        misfit(tokenizer, { vocabSize: 384, eosIds: [1, 384], ...paths })?.message,
        "m/config.json: eos_token_id: expected an id below 384, found 384",
      )
    }),
  )
})
