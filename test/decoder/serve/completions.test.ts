import { assert, describe, it } from "vitest"
import { eos, tokens } from "./fakeEngine.ts"
import { serving } from "./serving.ts"

describe("completions", () => {
  it.each([
    ["a text", "Hi", [[eos + 1, 72, 105]]],
    [
      "several texts",
      ["Hi", "Ho"],
      [
        [eos + 1, 72, 105],
        [eos + 1, 72, 111],
      ],
    ],
    ["token ids", [72, 105], [[72, 105]]],
    ["several lists of token ids", [[72, 105], [72]], [[72, 105], [72]]],
  ])("continue %s", (_, prompt, ids) =>
    serving({ script: (prompt) => `${prompt}!` }, async ({ client, engine }) => {
      const answer = await client.completions.create({ model: "base", prompt })
      assert.deepStrictEqual(
        engine.requests.map(({ promptIds }) => Array.from(promptIds)),
        ids,
      )
      assert.deepStrictEqual(
        answer.choices.map(({ index, text }) => [index, text]),
        ids.map((ids, index) => [index, `${tokens.decode(ids)}!`]),
      )
      assert.strictEqual(answer.usage?.prompt_tokens, ids.flat().length)
      assert.strictEqual(answer.object, "text_completion")
    }),
  )

  it("generate 16 tokens by default, as OpenAI does", () =>
    serving({ script: () => "a".repeat(30) }, async ({ client }) => {
      const answer = await client.completions.create({ model: "base", prompt: "Hi" })
      assert.strictEqual(answer.choices[0].text, "a".repeat(16))
      assert.strictEqual(answer.choices[0].finish_reason, "length")
    }))

  it("list log-probabilities and the places of the tokens", () =>
    serving({ script: () => "ab" }, async ({ client }) => {
      const settings = { model: "base", prompt: "Hi", logprobs: 2 }
      const [choice] = (await client.completions.create(settings)).choices
      assert.deepStrictEqual(choice.logprobs?.tokens, ["a", "b", "<eos>"])
      assert.deepStrictEqual(choice.logprobs?.token_logprobs, [-1, -1, -1])
      assert.deepStrictEqual(choice.logprobs?.top_logprobs?.[0], { a: -1, b: -2 })
      assert.deepStrictEqual(choice.logprobs?.text_offset, [0, 1, 2])
      const tokens: Array<string> = []
      const offsets: Array<number> = []
      for await (const chunk of await client.completions.create({ ...settings, stream: true })) {
        tokens.push(...(chunk.choices[0].logprobs?.tokens ?? []))
        offsets.push(...(chunk.choices[0].logprobs?.text_offset ?? []))
      }
      assert.deepStrictEqual(
        [tokens, offsets],
        [
          ["a", "b", "<eos>"],
          [0, 1, 2],
        ],
      )
    }))

  it("repeat the prompt with echo, whole and streamed", () =>
    serving({ script: () => "lo" }, async ({ client }) => {
      const settings = { model: "base", prompt: "Hel", echo: true }
      assert.strictEqual((await client.completions.create(settings)).choices[0].text, "Hello")
      let text = ""
      for await (const chunk of await client.completions.create({ ...settings, stream: true })) {
        text += chunk.choices[0].text
      }
      assert.strictEqual(text, "Hello")
    }))

  it("number n choices of each prompt, whole and streamed", () =>
    serving({}, async ({ client, post }) => {
      const settings = { model: "base", prompt: ["Hi", "Ho"], n: 2, seed: 4 }
      const { choices } = await client.completions.create(settings)
      assert.lengthOf(choices, 4)
      assert.strictEqual(choices[0].text, choices[2].text)
      assert.notStrictEqual(choices[0].text, choices[1].text)
      const texts = ["", "", "", ""]
      for await (const chunk of await client.completions.create({ ...settings, stream: true })) {
        texts[chunk.choices[0].index] += chunk.choices[0].text
      }
      assert.deepStrictEqual(
        texts,
        choices.map(({ text }) => text),
      )
      const { body } = await post("/v1/completions", { ...settings, return_token_ids: true })
      assert.deepStrictEqual(body.choices[3].prompt_token_ids, [eos + 1, 72, 111])
      assert.deepStrictEqual(tokens.decode(body.choices[3].token_ids), texts[3])
    }))
})

describe("token ids", () => {
  const path = "/inference/v1/generate"
  const settings = { max_tokens: 2, logprobs: 1, seed: 5, stop_token_ids: [7], logit_bias: { 9: -1 } }

  it("are continued with token ids, whole and streamed", () =>
    serving({ script: () => "abc" }, async ({ post, url, engine }) => {
      const request = { model: "base", request_id: "mine", token_ids: [72, 105], sampling_params: settings }
      const { body } = await post(path, request)
      assert.strictEqual(body.request_id, "mine")
      const [choice] = body.choices
      assert.deepStrictEqual([choice.token_ids, choice.finish_reason, choice.weights.step], [[97, 98], "length", 0])
      assert.deepStrictEqual(choice.logprobs.content[0], {
        token: "token_id:97",
        logprob: -1,
        bytes: null,
        top_logprobs: [{ token: "token_id:97", logprob: -1 }],
      })
      assert.deepStrictEqual(body.usage, { prompt_tokens: 2, completion_tokens: 2, total_tokens: 4 })
      assert.deepStrictEqual(engine.requests[0].sampling?.logitBias, [[9, -1]])
      const streamed = await fetch(`${url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...request, stream: true, stream_options: { include_usage: true } }),
      })
      const chunks = (await streamed.text()).split("\n\n").filter((line) => line.startsWith("data: {"))
      const parsed = chunks.map((line) => JSON.parse(line.slice(6)))
      assert.deepStrictEqual(
        parsed.flatMap(({ choices }) => choices).flatMap(({ token_ids }) => token_ids),
        [97, 98],
      )
      assert.deepStrictEqual(parsed.at(-1).usage, body.usage)
    }))

  it.each([
    ["token_ids[0]", { token_ids: [], sampling_params: {} }],
    ["token_ids", { token_ids: Array.from({ length: 1001 }, () => 1) }],
    ["sampling_params", { token_ids: [1] }],
    ["sampling_params.temperature", { token_ids: [1], sampling_params: { temperature: "hot" } }],
    ["sampling_params.temprature", { token_ids: [1], sampling_params: { temprature: 1 } }],
    ["sampling_params.min_tokens", { token_ids: [1], sampling_params: { min_tokens: 3 } }],
    ["sampling_params.structured_outputs", { token_ids: [1], sampling_params: { structured_outputs: { regex: "a" } } }],
    ["sampling_params.max_tokens", { token_ids: [1], sampling_params: { max_tokens: 1000 } }],
    ["sampling_params.stop", { token_ids: [1], sampling_params: { stop: Array.from({ length: 65 }, () => "a") } }],
    ["sampling_params.logit_bias.a", { token_ids: [1], sampling_params: { logit_bias: { a: 1 } } }],
    [
      "sampling_params",
      { token_ids: [1], sampling_params: Object.fromEntries(Array.from({ length: 257 }, (_, at) => [`k${at}`, 1])) },
    ],
    ["sampling_params.prompt_logprobs", { token_ids: [1], stream: true, sampling_params: { prompt_logprobs: 0 } }],
    ["kv_transfer_params", { token_ids: [1], sampling_params: {}, kv_transfer_params: { remote: 1 } }],
  ])("are refused with the key %s", (param, body) =>
    serving({}, async ({ post, engine }) => {
      const answer = await post(path, body)
      assert.deepStrictEqual([answer.status, answer.body.error.param], [400, param])
      assert.include(answer.body.error.message, param)
      assert.isEmpty(engine.requests)
    }),
  )
})

describe("tokens", () => {
  it("of a text and of a conversation are counted, and become text again", () =>
    serving({}, async ({ post }) => {
      const text = await post("/tokenize", { prompt: "Hi" })
      assert.deepStrictEqual(text.body, { count: 3, max_model_len: 1000, tokens: [eos + 1, 72, 105] })
      const plain = await post("/tokenize", { prompt: "Hi", add_special_tokens: false })
      assert.deepStrictEqual(plain.body.tokens, [72, 105])
      const messages = [{ role: "user", content: "Hi" }]
      const chat = await post("/tokenize", { messages, add_generation_prompt: false })
      assert.strictEqual(tokens.decode(chat.body.tokens), "user: Hi\n")
      assert.deepStrictEqual((await post("/detokenize", { tokens: [72, 105] })).body, { prompt: "Hi" })
    }))
})
