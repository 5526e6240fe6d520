import { assert, describe, it } from "vitest"
import { eos } from "./fakeEngine.ts"
import { serving } from "./serving.ts"

const ask = (content: string) => ({ model: "base", messages: [{ role: "user" as const, content }] })
const weather = {
  type: "function" as const,
  function: { name: "weather", description: "The weather", parameters: { type: "object", properties: {} } },
}
const clock = { type: "function" as const, function: { name: "clock" } }

describe("chat completions", () => {
  it("answer a conversation, and count its tokens", () =>
    serving({ script: () => "Hello" }, async ({ client, engine }) => {
      const answer = await client.chat.completions.create({
        ...ask("Hi"),
        messages: [
          { role: "developer", content: "Be brief." },
          { role: "user", content: [{ type: "text", text: "Hi" }] },
        ],
      })
      assert.strictEqual(answer.object, "chat.completion")
      assert.strictEqual(answer.model, "base")
      assert.strictEqual(answer.system_fingerprint, "base@0")
      assert.deepStrictEqual(answer.choices[0].message, { role: "assistant", content: "Hello", refusal: null })
      assert.strictEqual(answer.choices[0].finish_reason, "stop")
      const prompt = "system: Be brief.\nuser: Hi\nassistant: "
      assert.deepStrictEqual(answer.usage, {
        prompt_tokens: prompt.length,
        completion_tokens: 6,
        total_tokens: prompt.length + 6,
      })
      assert.deepStrictEqual(Array.from(engine.requests[0].promptIds), [...Buffer.from(prompt)])
    }))

  it("pass the settings of the sampling on", () =>
    serving({}, async ({ client, engine }) => {
      const more = { top_k: 5, min_p: 0.1, stop_token_ids: [7], ignore_eos: true }
      await client.chat.completions.create({
        ...ask("Hi"),
        temperature: 0.5,
        top_p: 0.9,
        seed: 3,
        stop: ["a", "b"],
        max_completion_tokens: 4,
        user: "ada",
        frequency_penalty: 0.5,
        logit_bias: { 9: -100 },
        response_format: { type: "text" },
        ...more,
      })
      assert.deepStrictEqual(engine.requests[0].sampling, {
        temperature: 0.5,
        topP: 0.9,
        topK: 5,
        minP: 0.1,
        logitBias: [[9, -100]],
        frequencyPenalty: 0.5,
        maxTokens: 4,
        stop: ["a", "b"],
        stopTokenIds: [7],
        ignoreEos: true,
        topLogprobs: 0,
        seed: 3,
      })
      await client.chat.completions.create(ask("Hi"))
      assert.strictEqual(engine.requests[1].sampling?.maxTokens, 1000 - "user: Hi\nassistant: ".length)
      assert.isNull(engine.requests[1].sampling?.seed)
    }))

  it("stream the same text, then the reason of its end and the usage", () =>
    serving({ script: () => "ünï 𝄞" }, async ({ client }) => {
      const stream = await client.chat.completions.create({
        ...ask("Hi"),
        stream: true,
        stream_options: { include_usage: true },
      })
      const chunks = []
      for await (const chunk of stream) chunks.push(chunk)
      assert.strictEqual(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join(""), "ünï 𝄞")
      assert.strictEqual(chunks[0].choices[0].delta.role, "assistant")
      assert.strictEqual(chunks.at(-2)?.choices[0].finish_reason, "stop")
      assert.deepStrictEqual(chunks.at(-1)?.choices, [])
      assert.strictEqual(chunks.at(-1)?.usage?.completion_tokens, new TextEncoder().encode("ünï 𝄞").length + 1)
      assert.isTrue(
        chunks.every(
          ({ object, system_fingerprint }) => object === "chat.completion.chunk" && system_fingerprint === "base@0",
        ),
      )
    }))

  it("end a stream with [DONE]", () =>
    serving({ script: () => "a" }, async ({ url }) => {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...ask("Hi"), stream: true }),
      })
      assert.strictEqual(response.headers.get("content-type"), "text/event-stream")
      const events = (await response.text()).split("\n\n")
      assert.deepStrictEqual(events.slice(-2), ["data: [DONE]", ""])
      assert.isTrue(events.slice(0, -1).every((event) => event.startsWith("data: ")))
    }))

  it("stop at a stop string, of which the text has nothing, and at the length", () =>
    serving({ script: () => "one STOP two" }, async ({ client }) => {
      const whole = await client.chat.completions.create({ ...ask("Hi"), stop: "STOP" })
      assert.strictEqual(whole.choices[0].message.content, "one ")
      assert.strictEqual(whole.choices[0].finish_reason, "stop")
      let text = ""
      for await (const chunk of await client.chat.completions.create({ ...ask("Hi"), stop: "STOP", stream: true })) {
        text += chunk.choices[0].delta.content ?? ""
      }
      assert.strictEqual(text, "one ")
      const short = await client.chat.completions.create({ ...ask("Hi"), max_tokens: 2 })
      assert.strictEqual(short.choices[0].message.content, "on")
      assert.strictEqual(short.choices[0].finish_reason, "length")
    }))

  it("list the log-probabilities of all tokens, with the likeliest others", () =>
    serving({ script: () => "é" }, async ({ client }) => {
      const settings = { ...ask("Hi"), logprobs: true, top_logprobs: 2 }
      const whole = await client.chat.completions.create(settings)
      const [first, second, last] = whole.choices[0].logprobs?.content ?? []
      assert.deepStrictEqual(first.bytes, [0xc3])
      assert.deepStrictEqual(second.bytes, [0xa9])
      assert.strictEqual(first.logprob, -1)
      assert.deepStrictEqual(
        first.top_logprobs.map(({ logprob }) => logprob),
        [-1, -2],
      )
      assert.strictEqual(last.token, "<eos>")
      const streamed = []
      for await (const chunk of await client.chat.completions.create({ ...settings, stream: true })) {
        streamed.push(...(chunk.choices[0].logprobs?.content ?? []))
      }
      assert.deepStrictEqual(streamed, [first, second, last])
    }))

  it("give n choices, each with a seed of its own", () =>
    serving({}, async ({ client }) => {
      const texts = async (n: number, seed: number) => {
        const { choices } = await client.chat.completions.create({ ...ask("Hi"), n, seed })
        assert.deepStrictEqual(
          choices.map(({ index }) => index),
          choices.map((_, index) => index),
        )
        return choices.map(({ message }) => message.content)
      }
      const three = await texts(3, 5)
      assert.strictEqual(new Set(three).size, 3)
      assert.deepStrictEqual(await texts(3, 5), three)
      assert.deepStrictEqual(await texts(1, 5), three.slice(0, 1))
      assert.notDeepEqual(await texts(3, 6), three)
      const streamed = ["", "", ""]
      for await (const { choices } of await client.chat.completions.create({
        ...ask("Hi"),
        n: 3,
        seed: 5,
        stream: true,
      })) {
        streamed[choices[0].index] += choices[0].delta.content ?? ""
      }
      assert.deepStrictEqual(streamed, three)
    }))

  it("give token ids and the weights on request", () =>
    serving({ script: () => "ab" }, async ({ post, engine }) => {
      const body = { ...ask("Hi"), return_token_ids: true }
      const { body: whole } = await post("/v1/chat/completions", body)
      assert.deepStrictEqual(whole.choices[0].token_ids, [97, 98, eos])
      assert.deepStrictEqual(whole.prompt_token_ids, engine.requests[0].promptIds)
      assert.deepStrictEqual(whole.choices[0].weights, { model: "base", step: 0, base_step: 0 })
      const { body: plain } = await post("/v1/chat/completions", ask("Hi"))
      assert.notProperty(plain, "prompt_token_ids")
      assert.notProperty(plain.choices[0], "token_ids")
    }))
})

describe("calls of tools", () => {
  const calling = 'Let me see.\n<tool_call>{"name": "weather", "arguments": {"city": "Rom"}}</tool_call>'

  it("are read from the model's text", () =>
    serving({ script: () => calling }, async ({ client, engine }) => {
      const { choices } = await client.chat.completions.create({ ...ask("Rome?"), tools: [weather] })
      assert.strictEqual(choices[0].finish_reason, "tool_calls")
      assert.strictEqual(choices[0].message.content, "Let me see.")
      assert.deepStrictEqual(choices[0].message.tool_calls, [
        { id: "call_1_0", type: "function", function: { name: "weather", arguments: '{"city": "Rom"}' } },
      ])
      assert.include(Buffer.from(Array.from(engine.requests[0].promptIds)).toString(), "tools: [{")
    }))

  it("are streamed piece by piece", () =>
    serving({ script: () => calling }, async ({ client }) => {
      const runner = client.chat.completions.stream({ ...ask("Rome?"), tools: [weather] })
      const pieces: Array<string> = []
      runner.on("tool_calls.function.arguments.delta", ({ arguments_delta }) => pieces.push(arguments_delta))
      const { choices } = await runner.finalChatCompletion()
      assert.strictEqual(choices[0].finish_reason, "tool_calls")
      assert.strictEqual(choices[0].message.content, "Let me see.")
      const [call] = choices[0].message.tool_calls ?? []
      assert.strictEqual(call.id, "call_1_0")
      assert.deepInclude("function" in call ? call.function : {}, { name: "weather", arguments: '{"city": "Rom"}' })
      assert.isAbove(pieces.filter((piece) => piece !== "").length, 5)
    }))

  it("come back in the conversation with their results", () =>
    serving({ script: () => "18 degrees" }, async ({ client, engine }) => {
      await client.chat.completions.create({
        model: "base",
        tools: [weather],
        messages: [
          { role: "user", content: "Rome?" },
          {
            role: "assistant",
            content: null,
            tool_calls: [{ id: "1", type: "function", function: { name: "weather", arguments: '{"city":"Rom"}' } }],
          },
          { role: "tool", tool_call_id: "1", content: "18" },
        ],
      })
      const prompt = Buffer.from(Array.from(engine.requests[0].promptIds)).toString()
      assert.include(prompt, JSON.stringify('{"city":"Rom"}'))
      assert.include(prompt, "tool (weather): 18\n")
    }))

  it("are left out for none, and forced for required and for a tool's name", () =>
    serving(
      {
        script: (prompt) =>
          prompt.endsWith('"arguments": ')
            ? "{}}</tool_call>"
            : prompt.endsWith("<tool_call>\n")
              ? '{"name": "clock", "arguments": {}}'
              : calling,
      },
      async ({ client, engine }) => {
        const tools = [weather, clock]
        const none = await client.chat.completions.create({ ...ask("Rome?"), tools, tool_choice: "none" })
        assert.strictEqual(none.choices[0].message.content, calling)
        assert.notProperty(none.choices[0].message, "tool_calls")
        assert.notInclude(Buffer.from(Array.from(engine.requests[0].promptIds)).toString(), "tools:")
        const called = async (tool_choice: "required" | { type: "function"; function: { name: string } }) => {
          const { choices } = await client.chat.completions.create({ ...ask("Rome?"), tools, tool_choice })
          return (choices[0].message.tool_calls ?? []).map((call) => ("function" in call ? call.function : call))
        }
        assert.deepStrictEqual(await called({ type: "function", function: { name: "weather" } }), [
          { name: "weather", arguments: "{}" },
        ])
        assert.deepStrictEqual(await called("required"), [{ name: "clock", arguments: "{}" }])
      },
    ))

  it("are at most one without parallel calls", () =>
    serving({ script: () => `${calling}${calling}` }, async ({ client }) => {
      const settings = { ...ask("Rome?"), tools: [weather], parallel_tool_calls: false }
      const { choices } = await client.chat.completions.create(settings)
      assert.lengthOf(choices[0].message.tool_calls ?? [], 1)
      const streamed = await client.chat.completions.stream(settings).finalChatCompletion()
      assert.lengthOf(streamed.choices[0].message.tool_calls ?? [], 1)
    }))
})
