/** The server over a real engine: the small Llama of test/fixtures on the wasm backend, with its adapter. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Effect, Exit, Scope } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { StepAdapter } from "../../../src/decoder/inference/Engine.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as LmDirectory from "../../../src/decoder/huggingFace/LmDirectory.ts"
import { openDecoder, type OpenedDecoder } from "../../../src/decoder/engine/openDecoder.ts"
import { hermes } from "../../../src/agents/lm/toolFormats/hermes.ts"
import { EngineLm } from "../../../src/index.ts"
import { onDisk } from "../../../src/run/store/FileTree.ts"
import { request } from "../../agents/lm/support.ts"
import { disk } from "../../run/store/disk.ts"
import { servingEngine } from "./serving.ts"

const root = fileURLToPath(new URL("../../fixtures/hugging-face/llama", import.meta.url))
const { forward, greedy } = JSON.parse(readFileSync(`${root}/expected.json`, "utf8"))

/** The embeddings of token ids, or of the text with these ids, by Hugging Face transformers. */
interface Embedding {
  readonly text?: string
  readonly ids: ReadonlyArray<number>
  readonly mean: ReadonlyArray<number>
  readonly last: ReadonlyArray<number>
}

const scope = Effect.runSync(Scope.make())
let model: OpenedDecoder

let adapter: StepAdapter

beforeAll(async () => {
  model = await Effect.runPromise(
    onDisk(root).pipe(
      Effect.flatMap((files) => LmDirectory.open(files, ".")),
      Effect.flatMap((directory) =>
        openDecoder(directory, {
          name: "base",
          slots: 16,
          maxLength: 128,
          pageSize: 8,
          maxAdapters: 3,
          maxRank: 4,
          embeddings: true,
        }),
      ),
      Effect.provide(disk),
      Effect.provide(Wasm.layer),
      Scope.provide(scope),
    ),
  )
  const read = Effect.flatMap(onDisk(root), (files) => model.readAdapter(files, "adapter"))
  adapter = await Effect.runPromise(Effect.provide(read, disk))
})

afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

/** Reads the fixture's adapter from `step_N`, with a strength of N: a server that mixed two would write other text. */
const readAdapter = (path: string) =>
  Effect.succeed({ ...adapter, alpha: adapter.alpha * 4 * Number(/step_(\d+)$/.exec(path)?.[1]) })

/** A chat model whose short template leaves out the tools, so that a prompt with them fits. */
const callingChat = () => ({
  tokens: model.chat.tokens,
  toolFormat: hermes,
  template: { render: () => Effect.succeed("Hi\n") },
})

const serving = (test: Parameters<typeof servingEngine>[2]) =>
  servingEngine(model.engine, { chat: model.chat, readAdapter }, test)

describe("a small Llama behind the server", () => {
  it("generates the tokens of Hugging Face, from token ids to token ids", () =>
    serving(async ({ post }) => {
      const { body } = await post("/v1/completions", {
        prompt: greedy.prompt,
        temperature: 0,
        max_tokens: 12,
        ignore_eos: true,
        return_token_ids: true,
      })
      assert.deepStrictEqual(
        body.choices.map((choice: { readonly token_ids: ReadonlyArray<number> }) => choice.token_ids),
        greedy.generated,
      )
    }))

  it("gives a prompt the log-probabilities of Hugging Face, and the same bits among other requests", () =>
    serving(async ({ post }) => {
      const ids: ReadonlyArray<ReadonlyArray<number>> = forward.input_ids
      const scored = { prompt: ids, max_tokens: 0, prompt_logprobs: 2, echo: true, logprobs: 1 }
      const { choices } = (await post("/v1/completions", scored)).body
      for (const [row, { logprobs, prompt_logprobs: listed, text }] of choices.entries()) {
        assert.strictEqual(text.length > 0, true)
        assert.strictEqual(logprobs.token_logprobs[0], null)
        for (const [at, expected] of forward.logprobs_of_next[row].entries()) {
          const { logprob, rank } = listed[at + 1][ids[row][at + 1]]
          assert.closeTo(logprob, expected, 1e-4)
          assert.strictEqual(logprobs.token_logprobs[at + 1], logprob)
          assert.lengthOf(Object.keys(listed[at + 1]), rank <= 2 ? 2 : 3)
          assert.lengthOf(Object.keys(logprobs.top_logprobs[at + 1]), 1)
        }
      }
      const load = { prompt: ids[1], max_tokens: 12, n: 4, seed: 1, ignore_eos: true }
      const [again] = await Promise.all([post("/v1/completions", scored), post("/v1/completions", load)])
      assert.deepStrictEqual(again.body.choices, choices)
    }))

  it("gives the embeddings of Hugging Face, pooled, cut and encoded, and the same bits among other requests", () =>
    serving(async ({ client, post, engine }) => {
      const rows: ReadonlyArray<Embedding> = JSON.parse(readFileSync(`${root}/embeddings.json`, "utf8"))
      const input = rows.map(({ ids }) => ids)
      const load = post("/v1/completions", { prompt: input[1], max_tokens: 24, n: 4, seed: 1, ignore_eos: true })
      const tokens = input.reduce((sum, { length }) => sum + length, 0)
      for (const pooling of ["mean", "last"] as const) {
        const { body } = await post("/v1/embeddings", { input, pooling })
        assert.deepStrictEqual(body.usage, { prompt_tokens: tokens, total_tokens: tokens })
        assert.strictEqual(body.system_fingerprint, "base@0")
        for (const [at, { embedding }] of body.data.entries())
          for (const [index, expected] of rows[at][pooling].entries()) assert.closeTo(embedding[index], expected, 1e-5)
        const alone = await post("/v1/embeddings", { input: input[1], pooling })
        assert.deepStrictEqual(alone.body.data[0].embedding, body.data[1].embedding)
      }
      assert.strictEqual((await load).status, 200)
      // The client asks for base64 and decodes it, if the caller does not choose.
      const texts = rows.flatMap(({ text }) => text ?? [])
      const decoded = await client.embeddings.create({ model: "base", input: texts })
      const floats = await client.embeddings.create({ model: "base", input: texts, encoding_format: "float" })
      assert.deepStrictEqual(decoded.data, floats.data)
      const cut = await client.embeddings.create({ model: "base", input: texts[1], dimensions: 8 })
      const head = rows[1].mean.slice(0, 8)
      const norm = Math.hypot(...head)
      for (const [at, element] of head.entries()) assert.closeTo(cut.data[0].embedding[at], element / norm, 1e-5)
      const { running, waiting, pages } = await Effect.runPromise(engine.status)
      assert.deepStrictEqual([running, waiting, pages.used], [0, 0, 0])
    }))

  it("gives an adapter's embeddings other numbers, and refuses wrong requests by their key", () =>
    serving(async ({ post }) => {
      await post("/v1/load_lora_adapter", { lora_name: "run_e", lora_path: "/broadcast/step_3" })
      const embeddingOf = async (model: string) => (await post("/v1/embeddings", { model, input: "Hi" })).body
      const [adapted, base] = [await embeddingOf("run_e"), await embeddingOf("base")]
      assert.strictEqual(adapted.system_fingerprint, "run_e@3")
      assert.notDeepEqual(adapted.data[0].embedding, base.data[0].embedding)
      const wrong: ReadonlyArray<readonly [object, string | null]> = [
        [{ input: "Hi", dimensions: 65 }, "dimensions"],
        [{ input: ["Hi", ""] }, "input[1]"],
        [{ input: Array.from({ length: 129 }, () => 3) }, "input"],
        [{ input: [[3], Array.from({ length: 129 }, () => 3)] }, "input[1]"],
        [{ input: "a ".repeat(5000) }, "input"],
        [{ input: Array.from({ length: 1025 }, () => "a") }, "input"],
        [{ input: [9999] }, null],
        [{ input: "Hi", encoding_format: "int8" }, "encoding_format"],
        [{ input: "Hi", normalize: false }, "normalize"],
      ]
      for (const [body, param] of wrong) {
        const refused = await post("/v1/embeddings", body)
        assert.deepStrictEqual([refused.status, refused.body.error.param], [400, param], JSON.stringify(refused.body))
      }
      await post("/v1/unload_lora_adapter", { lora_name: "run_e" })
    }))

  it("answers in JSON that fits the schema, and refuses a schema by its keyword", () =>
    serving(async ({ client, post }) => {
      const schema = {
        type: "object",
        properties: {
          city: { type: "string", pattern: "^[A-Z]", maxLength: 4 },
          degrees: { type: "integer", minimum: -50, maximum: 60 },
        },
        required: ["city", "degrees"],
        additionalProperties: false,
      }
      const format = { type: "json_schema" as const, json_schema: { name: "weather", schema, strict: true } }
      const asked = { model: "base", messages: [{ role: "user" as const, content: "Hi" }], max_tokens: 77, n: 3 }
      const { choices } = await client.chat.completions.create({ ...asked, response_format: format, seed: 1 })
      for (const { message, finish_reason: reason } of choices) {
        assert.strictEqual(reason, "stop", message.content ?? "")
        const { city, degrees } = JSON.parse(message.content ?? "")
        assert.match(city, /^[A-Z][^]{0,3}$/u)
        assert.isTrue(Number.isInteger(degrees) && degrees >= -50 && degrees <= 60)
      }
      const streamed = client.chat.completions.stream({ ...asked, n: 1, response_format: format, seed: 1 })
      assert.strictEqual(await streamed.finalContent(), choices[0].message.content)
      const object = { prompt: "Hi", max_tokens: 20, response_format: { type: "json_object" } }
      const { body } = await post("/v1/completions", object)
      assert.match(body.choices[0].text, /^ ?\{/)
      const held = (structured_outputs: object) => ({ prompt: "Hi", max_tokens: 20, structured_outputs })
      for (const [outputs, expected] of [
        [{ regex: "[ab]{2}|c" }, /^([ab]{2}|c)$/],
        [{ choice: ["yes", "no"], json: null }, /^(yes|no)$/],
        [{ json: JSON.stringify({ enum: [12] }) }, /^12$/],
        [{ json_object: true }, /^\{/],
      ] as const) {
        const { body } = await post("/v1/completions", held(outputs))
        assert.match(body.choices[0].text, expected)
      }
      for (const [outputs, message] of [
        [{ regex: "(?=a)" }, "regex: lookaheads"],
        [{ regex: "a^" }, "regex: no text fits"],
        [{ grammar: "a" }, "structured_outputs: expected one of json, json_object, regex, choice; found grammar"],
        [{ regex: "a", choice: ["a"] }, "found regex, choice"],
        [{ choice: [] }, "structured_outputs.choice"],
      ] as const) {
        const { status, body } = await post("/v1/completions", held(outputs))
        assert.strictEqual(status, 400)
        assert.include(body.error.message, message)
        assert.match(body.error.param, /^structured_outputs/)
      }
      const wrong = { ...format, json_schema: { schema: { type: "object", patternProperties: {} } } }
      const refused = await post("/v1/chat/completions", { ...asked, response_format: wrong })
      assert.deepStrictEqual([refused.status, refused.body.error.param], [400, "response_format"])
      assert.include(refused.body.error.message, "schema.patternProperties: this keyword is not supported")
    }))

  it("holds a forced call to the schema of its tool, whole and streamed", () =>
    servingEngine(model.engine, { chat: callingChat() }, async ({ client, post }) => {
      const city = { type: "string", enum: ["Rome", "Oslo"] }
      const weather = {
        type: "object",
        $defs: { city },
        properties: { city: { $ref: "#/$defs/city" }, days: { type: "integer", minimum: 1, maximum: 9 } },
        required: ["city", "days"],
      }
      const toolOf = (name: string, parameters: Record<string, unknown>, strict = false) => ({
        type: "function" as const,
        function: { name, parameters, strict },
      })
      const clock = toolOf("clock", {
        type: "object",
        properties: { zone: { type: "integer", maximum: 99 } },
        required: ["zone"],
      })
      const tools = [toolOf("weather", weather), clock]
      const messages = [{ role: "user" as const, content: "Hi" }]
      const asked = { model: "base", messages, tools, max_tokens: 77 }
      const fits = (called: { readonly name: string; readonly arguments: string } | undefined) => {
        const values = JSON.parse(called?.arguments ?? "")
        if (called?.name === "clock") return assert.isTrue(Number.isInteger(values.zone) && values.zone <= 99)
        assert.strictEqual(called?.name, "weather")
        assert.include(city.enum, values.city)
        assert.isTrue(Number.isInteger(values.days) && values.days >= 1 && values.days <= 9)
      }
      const named = { ...asked, tool_choice: { type: "function" as const, function: { name: "weather" } }, seed: 1 }
      for (const settings of [named, { ...asked, tool_choice: "required" as const, n: 4, seed: 2 }]) {
        const { choices } = await client.chat.completions.create(settings)
        for (const { message, finish_reason: reason } of choices) {
          assert.deepStrictEqual([reason, message.content, message.tool_calls?.length], ["tool_calls", null, 1])
          const [call] = message.tool_calls ?? []
          fits(call.type === "function" ? call.function : undefined)
        }
      }
      const streamed = await client.chat.completions.stream(named).finalMessage()
      const [call] = streamed.tool_calls ?? []
      fits(call.type === "function" ? call.function : undefined)
      const unsupported = { type: "object", properties: {}, minProperties: 1 }
      const forced = { ...asked, tool_choice: "required", max_tokens: 4 }
      assert.strictEqual(
        (await post("/v1/chat/completions", { ...forced, tools: [toolOf("a", unsupported), clock] })).status,
        200,
      )
      for (const others of [[], [clock]]) {
        const strict = await post("/v1/chat/completions", {
          ...forced,
          tools: [toolOf("a", unsupported, true), ...others],
        })
        assert.deepStrictEqual([strict.status, strict.body.error.param], [400, "tools"])
        assert.include(strict.body.error.message, "schema.minProperties: this keyword is not supported")
      }
    }))

  it("draws the same text for a seed: whole, streamed, among 64 requests and in this process", { tags: "slow" }, () =>
    serving(async ({ client }) => {
      const asked = (index: number) => ({
        model: "base",
        messages: [{ role: "user" as const, content: `Question ${index}` }],
        seed: index,
        max_tokens: 8,
      })
      const alone: Array<string | null> = []
      for (const index of [0, 21, 42, 63]) {
        alone.push((await client.chat.completions.create(asked(index))).choices[0].message.content)
      }
      const all = await Promise.all(
        Array.from({ length: 64 }, async (_, index) =>
          index % 2 === 0
            ? (await client.chat.completions.create(asked(index))).choices[0].message.content
            : client.chat.completions.stream(asked(index)).finalContent(),
        ),
      )
      assert.deepStrictEqual(
        [0, 21, 42, 63].map((index) => all[index]),
        alone,
      )
      assert.isAbove(new Set(all).size, 60)
      const lm = EngineLm.make({ engine: model.engine, chat: model.chat, model: "base" })
      const here = await Effect.runPromise(
        lm.complete(request("Question 42", { model: "base", seed: 42, maxOutputTokens: 8 })),
      )
      assert.strictEqual(here.content, alone[2])
    }),
  )

  it("gives log-probabilities that add up, and the chosen token first at temperature 0", () =>
    serving(async ({ client }) => {
      const { choices } = await client.chat.completions.create({
        model: "base",
        messages: [{ role: "user", content: "Hi" }],
        temperature: 0,
        max_tokens: 4,
        logprobs: true,
        top_logprobs: 20,
      })
      for (const { logprob, top_logprobs: top, bytes } of choices[0].logprobs?.content ?? []) {
        assert.strictEqual(top[0].logprob, logprob)
        assert.deepStrictEqual(top[0].bytes, bytes)
        const sum = top.reduce((sum, { logprob }) => sum + Math.exp(logprob), 0)
        assert.isTrue(sum > 0.05 && sum <= 1.000_001, String(sum))
        assert.deepStrictEqual(
          top.map(({ logprob }) => logprob),
          top.map(({ logprob }) => logprob).toSorted((a, b) => b - a),
        )
      }
    }))

  it("answers each request with one set of weights while its adapter is reloaded under load", { tags: "slow" }, () =>
    serving(async ({ client, post }) => {
      const load = async (step: number) => {
        const lora_path = `/broadcast/step_${step}`
        assert.strictEqual((await post("/v1/load_lora_adapter", { lora_name: "run_a", lora_path })).status, 200)
      }
      const ask = async (index: number) => {
        const answer = await client.chat.completions.create({
          model: "run_a",
          messages: [{ role: "user", content: `Question ${index % 4}` }],
          seed: index % 4,
          max_tokens: 12,
          logprobs: true,
        })
        const [{ message, logprobs }] = answer.choices
        const numbers = logprobs?.content?.map(({ logprob, bytes }) => [logprob, ...(bytes ?? [])])
        return { step: answer.system_fingerprint, text: JSON.stringify([message.content, numbers]) }
      }
      /** The answer to each question from each step's weights, without load. */
      const right = new Map<string, string>()
      const steps = [1, 2, 3]
      for (const step of steps) {
        await load(step)
        for (let index = 0; index < 4; index++) {
          const { step: fingerprint, text } = await ask(index)
          assert.strictEqual(fingerprint, `run_a@${step}`)
          right.set(`${fingerprint} ${index}`, text)
        }
      }
      assert.strictEqual(new Set(right.values()).size, 12)
      let loads = 0
      const reloading = (async () => {
        for (; loads < 9; loads++) await load(steps[loads % 3])
      })()
      const answers = await Promise.all(
        Array.from({ length: 8 }, async (_, client) => {
          const own = []
          for (let index = client; loads < 9; index++) own.push({ index, ...(await ask(index)) })
          return own
        }),
      )
      await reloading
      for (const { index, step, text } of answers.flat()) assert.strictEqual(text, right.get(`${step} ${index % 4}`))
      assert.isAbove(new Set(answers.flat().map(({ step }) => step)).size, 1)
    }),
  )
})
