import { request } from "node:http"
import type { ChatCompletion } from "openai/resources/chat/completions"
import { APIError, APIUserAbortError, AuthenticationError, NotFoundError } from "openai"
import { Effect, Latch, Redacted } from "effect"
import { assert, describe, it } from "vitest"
import { chat } from "./fakeEngine.ts"
import { serving } from "./serving.ts"

const messages = [{ role: "user" as const, content: "Hi" }]
const body = { model: "base", messages }
const path = "/v1/chat/completions"

describe("a wrong request", () => {
  it.each([
    ["text that is no JSON", "{", null, "the body is not valid JSON"],
    [
      "more lists than a body can have",
      `{"prompt": [${"[],".repeat(2 ** 20)}[]]}`,
      null,
      "the body: expected at most 1048576 lists and objects, found more",
    ],
    [
      "lists nested too deep",
      `{"tools": ${"[".repeat(100_000)}${"]".repeat(100_000)}}`,
      null,
      "the body: expected at most 256 lists",
    ],
    [
      "a tool whose parameters are nested too deep",
      `{"messages": [{"role": "user", "content": "Hi"}], "tools": [{"type": "function", "function": {"name": "a", "parameters": ${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}}}]}`,
      null,
      "the body: expected at most 256 lists and objects inside each other, found more",
    ],
    ["a list", [], null, "expected a JSON object as the body"],
    ["no messages", { model: "base" }, "messages", "messages: missing key"],
    ["an empty conversation", { ...body, messages: [] }, "messages[0]", "messages[0]: missing key"],
    [
      "an unknown role",
      { messages: [{ role: "robot", content: "Hi" }] },
      "messages[0].role",
      "messages[0].role: expected",
    ],
    ["a message without content", { messages: [{ role: "user" }] }, "messages[0].content", "expected a text"],
    [
      "an image",
      { messages: [{ role: "user", content: [{ type: "image_url" }] }] },
      "messages[0].content[0]",
      "found type image_url",
    ],
    ["a temperature below 0", { ...body, temperature: -1 }, "temperature", "greater than or equal to 0"],
    ["top_logprobs without logprobs", { ...body, top_logprobs: 2 }, "top_logprobs", "expected logprobs to be true"],
    ["a misspelt key", { ...body, temprature: 1 }, "temprature", 'did you mean "temperature"?'],
    ["a setting that would change the answer", { ...body, min_tokens: 5 }, "min_tokens", "not supported"],
    ["a bias of no token", { ...body, logit_bias: { five: 1 } }, "logit_bias.five", "a token id"],
    ["a bias beyond 100", { ...body, logit_bias: { 5: 101 } }, "logit_bias.5", "between -100 and 100"],
    [
      "a hundred thousand biases",
      { ...body, logit_bias: Object.fromEntries(Array.from({ length: 1e5 }, (_, id) => [id, 1])) },
      "logit_bias",
      "expected at most 1024 items, found 100000",
    ],
    ["no tokens without a reason", { ...body, max_tokens: 0 }, "max_tokens", "prompt_logprobs"],
    [
      "a streamed prompt",
      { ...body, stream: true, prompt_logprobs: 0 },
      "prompt_logprobs",
      "expected stream to be false",
    ],
    ["a format of the answer", { ...body, response_format: { type: "xml" } }, "response_format", "expected"],
    [
      "a format with tools",
      {
        ...body,
        response_format: { type: "json_object" },
        tools: [{ type: "function", function: { name: "a" } }],
      },
      "response_format",
      "expected no tools",
    ],
    ["a penalty beyond 2", { ...body, frequency_penalty: 2.5 }, "frequency_penalty", "between -2 and 2"],
    ["a tool to call without tools", { ...body, tool_choice: "required" }, "tool_choice", "tools is empty"],
    [
      "a tool to call that is not offered",
      {
        ...body,
        tools: [{ type: "function", function: { name: "a" } }],
        tool_choice: { type: "function", function: { name: "b" } },
      },
      "tool_choice",
      "expected one of a, found b",
    ],
    [
      "a conversation that the template refuses",
      { messages: [{ role: "user", content: "refuse" }] },
      "messages",
      "roles must alternate",
    ],
    [
      "more tokens for the answer than the prompt leaves room for",
      { ...body, max_tokens: 1_000_000 },
      "max_tokens",
      "max_tokens: expected at most 980, since base takes at most 1000 tokens of prompt and answer together",
    ],
    ["too many tokens", { messages: [{ role: "user", content: "x".repeat(2000) }] }, "messages", "at most 1000 tokens"],
  ])("is refused by its place: %s", (_, sent, param, problem) =>
    serving({}, async ({ post, engine }) => {
      const { status, body } = await post(path, sent)
      assert.strictEqual(status, 400, JSON.stringify(body))
      assert.strictEqual(body.error.type, "invalid_request_error")
      assert.strictEqual(body.error.param, param)
      assert.include(body.error.message, problem)
      assert.notInclude(body.error.message, "\n")
      assert.isEmpty(engine.requests)
    }),
  )

  it("ignores settings that change nothing, and unknown ones of other servers", () =>
    serving({}, async ({ post }) => {
      const more = { user: "a", logit_bias: {}, presence_penalty: 0, n: null, stop: null, spam_filter: true }
      assert.strictEqual((await post(path, { ...body, ...more })).status, 200)
    }))

  it("is told what this server's completions lack", () =>
    serving({}, async ({ post }) => {
      const empty = await post("/v1/completions", { prompt: [] })
      assert.strictEqual(empty.status, 400)
      const mixed = await post("/v1/completions", { prompt: ["a", [1]] })
      assert.strictEqual(mixed.status, 400)
    }))

  it("names a model or a route that does not exist", () =>
    serving({}, async ({ client, post, url }) => {
      const error = await client.chat.completions.create({ ...body, model: "gpt" }).catch((error: unknown) => error)
      assert.instanceOf(error, NotFoundError)
      assert.strictEqual(error instanceof NotFoundError ? error.code : "", "model_not_found")
      assert.strictEqual((await post("/v1/images/edits", {})).body.error.code, "unknown_url")
      // This engine was made without embeddings.
      assert.strictEqual((await post("/v1/embeddings", { input: "Hi" })).body.error.code, "unsupported")
      assert.strictEqual((await fetch(`${url}/v1/models/org/none`)).status, 404)
    }))

  it("names a wrong step or time to wait for", () =>
    serving({}, async ({ url }) => {
      for (const query of ["step=-1", "step=half", "step=1&wait=61", "step=1&wait=soon"]) {
        const answer = await fetch(`${url}/v1/models/base?${query}`)
        assert.strictEqual(answer.status, 400, query)
        const { error } = JSON.parse(await answer.text())
        assert.strictEqual(error.param, query.includes("wait") ? "wait" : "step")
      }
    }))

  it("must be JSON by its type and of a limited size", () =>
    serving({ maxBodyBytes: 100 }, async ({ post, url }) => {
      assert.strictEqual((await post(path, body, { "content-type": "text/plain" })).status, 415)
      const large = await post(path, { ...body, user: "x".repeat(200) })
      assert.strictEqual(large.status, 413)
      assert.include(large.body.error.message, "at most 100 bytes")
      // A body that is sent in chunks does not declare its length.
      const chunked = new ReadableStream({
        start: (controller) => {
          controller.enqueue(new TextEncoder().encode(JSON.stringify({ ...body, user: "x".repeat(200) })))
          controller.close()
        },
      })
      const headers = { "content-type": "application/json" }
      const answer = await fetch(`${url}${path}`, { method: "POST", body: chunked, duplex: "half", headers })
      assert.strictEqual(answer.status, 413)
    }))

  it("needs the server's key", () =>
    serving({ apiKey: Redacted.make("right-key") }, async ({ client, post, url }) => {
      const error = await client.models.list().catch((error: unknown) => error)
      assert.instanceOf(error, AuthenticationError)
      assert.strictEqual((await post(path, body, { authorization: "Bearer right-kez" })).status, 401)
      assert.strictEqual((await post(path, body, { authorization: "Bearer right-key" })).status, 200)
      assert.strictEqual((await fetch(`${url}/health`)).status, 200)
    }))
})

describe("a fault of the server", () => {
  it("has status 500 and tells nothing of the inside", () =>
    serving({}, async ({ post }) => {
      for (const stream of [false, true]) {
        const sent = { messages: [{ role: "user", content: "backend fails" }], stream }
        const { status, body } = await post(path, sent)
        assert.strictEqual(status, 500)
        assert.strictEqual(body.error.type, "server_error")
        assert.notInclude(JSON.stringify(body), "secret")
      }
    }))

  it("in the middle of a stream is an event, which clients throw", () =>
    serving({ script: () => "abcdef" }, async ({ client, logged }) => {
      const content = "fails in the middle"
      let text = ""
      const reading = async () => {
        const messages = [{ role: "user" as const, content }]
        for await (const chunk of await client.chat.completions.create({ model: "base", messages, stream: true })) {
          text += chunk.choices[0].delta.content ?? ""
        }
      }
      const error = await reading().then(undefined, (error: unknown) => error)
      assert.instanceOf(error, APIError)
      assert.notInclude(JSON.stringify(error), "secret")
      assert.strictEqual(text, "abc")
      assert.deepStrictEqual(logged, ["secret"])
    }))
})

describe("a busy server", () => {
  it("refuses more answers than it takes, and says when to come again", () => {
    const latch = Latch.makeUnsafe(false)
    return serving({ pause: latch.await, maxRequests: 2 }, async ({ post, client, engine }) => {
      const first = client.chat.completions.create({ ...body, n: 2 })
      while (engine.active() < 2) await new Promise((resolve) => setImmediate(resolve))
      const refused = await post(path, body)
      assert.strictEqual(refused.status, 429)
      assert.strictEqual(refused.headers.get("retry-after"), "1")
      assert.strictEqual(refused.body.error.code, "rate_limit_exceeded")
      latch.openUnsafe()
      assert.lengthOf((await first).choices, 2)
      assert.strictEqual((await post(path, body)).status, 200)
    })
  })

  it("refuses a request for more answers than it ever takes, instead of asking to come again", () =>
    serving({ maxRequests: 4 }, async ({ post }) => {
      for (const [where, param, sent] of [
        ["/v1/completions", "prompt", { prompt: ["a", "b", "c"], n: 2 }],
        ["/v1/completions", "prompt", { prompt: Array.from({ length: 5 }, () => [1]) }],
        ["/v1/completions", "n", { prompt: "a", n: 5 }],
        [path, "n", { ...body, n: 5 }],
      ] as const) {
        const refused = await post(where, sent)
        assert.strictEqual(refused.status, 400)
        assert.strictEqual(refused.body.error.param, param)
        assert.match(refused.body.error.message, /at most 4 answers in one request \(--max-requests/)
      }
      assert.strictEqual((await post("/v1/completions", { prompt: ["a", "b"], n: 2 })).status, 200)
    }))

  it("ends the requests of clients that disconnect, whole and streamed", () => {
    const latch = Latch.makeUnsafe(false)
    return serving({ pause: latch.await }, async ({ client, engine }) => {
      const turn = () => new Promise((resolve) => setImmediate(resolve))
      for (const stream of [false, true]) {
        const before = engine.interrupted()
        const stopping = new AbortController()
        const asked = client.chat.completions
          .create({ ...body, n: 3, stream }, { signal: stopping.signal })
          .then(undefined, (error: unknown) => error)
        while (engine.active() < 3) await turn()
        stopping.abort()
        assert.instanceOf(await asked, APIUserAbortError)
        while (engine.active() > 0) await turn()
        assert.strictEqual(engine.interrupted(), before + 3)
      }
      // The stream has begun when its client disconnects.
      latch.openUnsafe()
      const begun = await client.chat.completions.create({ ...body, stream: true })
      for await (const _ of begun) break
      while (engine.active() > 0) await turn()
    })
  })

  it("finishes its answers when it stops, and refuses new ones", () => {
    const latch = Latch.makeUnsafe(false)
    return serving({ pause: latch.await, script: () => "all of it" }, async ({ post, client, engine, stop, url }) => {
      const whole = client.chat.completions.create(body)
      const streamed = client.chat.completions.stream(body).finalContent()
      while (engine.active() < 2) await new Promise((resolve) => setImmediate(resolve))
      const stopped = stop()
      const refused = await post(path, body)
      assert.strictEqual(refused.status, 503)
      assert.deepInclude(await (await fetch(`${url}/health`)).json(), { status: "stopping", running: 2 })
      latch.openUnsafe()
      assert.strictEqual((await whole).choices[0].message.content, "all of it")
      assert.strictEqual(await streamed, "all of it")
      await stopped
      assert.strictEqual(engine.interrupted(), 0)
    })
  })
})

describe("many requests", () => {
  it("at once are all answered, each with its own text", { tags: "slow" }, () =>
    serving({ script: (prompt) => `<${prompt}>` }, async ({ client, engine }) => {
      const contents = Array.from({ length: 64 }, (_, index) => `question ${index}`)
      const answers = await Promise.all(
        contents.map(async (content, index) => {
          const asked = { model: "base", messages: [{ role: "user" as const, content }] }
          if (index % 2 === 0) return (await client.chat.completions.create(asked)).choices[0].message.content
          return client.chat.completions.stream(asked).finalContent()
        }),
      )
      assert.deepStrictEqual(
        answers,
        contents.map((content) => `<user: ${content}\nassistant: >`),
      )
      assert.isAbove(engine.mostActive(), 8)
    }),
  )

  it("see each one set of weights while an adapter is loaded again and again", () =>
    serving(
      { readAdapter: (path) => Effect.succeed({ rank: 1, alpha: path.length, tensors: {} }) },
      async ({ client, post }) => {
        const loaded = await post("/v1/load_lora_adapter", { lora_name: "run_a", lora_path: "/x/broadcast/step_1" })
        assert.deepStrictEqual(loaded.body, { object: "adapter", id: "run_a", step: 1 })
        let step = 1
        const reloading = (async () => {
          while (step < 20) {
            const lora_path = `/x/broadcast/step_${step + 1}`
            assert.strictEqual((await post("/v1/load_lora_adapter", { lora_name: "run_a", lora_path })).status, 200)
            step++
          }
        })()
        const asked = { model: "run_a", messages, logprobs: true }
        const answers: Array<ChatCompletion> = []
        await Promise.all(
          Array.from({ length: 16 }, async () => {
            while (step < 20) answers.push(await client.chat.completions.create(asked))
          }),
        )
        await reloading
        const steps = answers.map(({ system_fingerprint, choices }) => {
          const logprobs = new Set(choices[0].logprobs?.content?.map(({ logprob }) => logprob))
          assert.strictEqual(logprobs.size, 1)
          const [logprob] = logprobs
          assert.strictEqual(system_fingerprint, `run_a@${-1 - logprob}`)
          return -1 - logprob
        })
        assert.isAbove(new Set(steps).size, 1)
      },
    ))
})

describe("models and adapters", () => {
  it("are listed, loaded and unloaded", () =>
    serving(
      {
        readAdapter: (path) =>
          path === "/bad"
            ? Effect.fail({ message: "/bad/adapter_config.json: there is no such file" })
            : Effect.succeed({ rank: 1, alpha: 1, tensors: {} }),
      },
      async ({ client, post }) => {
        const load = (lora_name: string, lora_path: string, more = {}) =>
          post("/v1/load_lora_adapter", { lora_name, lora_path, ...more })
        assert.strictEqual((await load("org/a", "/a", { step: 7 })).status, 200)
        const bad = await load("b", "/bad")
        assert.strictEqual(bad.status, 400)
        assert.deepInclude(bad.body.error, {
          param: "lora_path",
          message: "/bad/adapter_config.json: there is no such file",
        })
        assert.strictEqual((await load("base", "/a")).body.error.param, "lora_name")
        const { data } = await client.models.list()
        assert.deepStrictEqual(
          data.map(({ id }) => id),
          ["base", "org/a"],
        )
        assert.include(
          JSON.stringify(await client.models.retrieve("org/a")),
          '"parent":"base","max_model_len":1000,"step":7',
        )
        assert.strictEqual((await post("/v1/unload_lora_adapter", { lora_name: "org/a" })).status, 200)
        assert.strictEqual((await post("/v1/unload_lora_adapter", { lora_name: "org/a" })).status, 404)
        assert.lengthOf((await client.models.list()).data, 1)
      },
    ))

  it("that the server loaded itself are neither replaced nor unloaded, unless it allows that", async () => {
    const readAdapter = () => Effect.succeed({ rank: 1, alpha: 1, tensors: {} })
    for (const replaceAdapters of [false, true]) {
      await serving({ readAdapter, replaceAdapters }, async ({ engine, post }) => {
        await Effect.runPromise(
          engine.loadAdapter({ name: "poet", step: 3, adapter: await Effect.runPromise(readAdapter()) }),
        )
        const load = (lora_name: string) => post("/v1/load_lora_adapter", { lora_name, lora_path: "/a" })
        const statuses = [await load("poet"), await post("/v1/unload_lora_adapter", { lora_name: "poet" })]
        assert.deepStrictEqual(
          statuses.map(({ status }) => status),
          replaceAdapters ? [200, 200] : [403, 403],
        )
        if (!replaceAdapters) assert.match(statuses[0].body.error.message, /^lora_name: "poet" belongs to the server/)
        for (const _ of [1, 2]) assert.strictEqual((await load("own")).status, 200)
        assert.strictEqual((await post("/v1/unload_lora_adapter", { lora_name: "own" })).status, 200)
      })
    }
  })

  it("are not loaded for clients unless the server allows it", () =>
    serving({}, async ({ post }) => {
      assert.strictEqual((await post("/v1/load_lora_adapter", { lora_name: "a", lora_path: "/a" })).status, 403)
      assert.strictEqual((await post("/v1/unload_lora_adapter", { lora_name: "a" })).status, 403)
    }))
})

describe("requests from elsewhere", () => {
  const send = (url: string, headers: Record<string, string>) =>
    new Promise<{ readonly status: number; readonly text: string }>((resolve, reject) => {
      const asked = request(`${url}/v1/models`, { headers, agent: false }, (response) => {
        let text = ""
        response.on("data", (chunk) => (text += String(chunk)))
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }))
      })
      asked.on("error", reject)
      asked.end()
    })

  it("by another name or from another site's page are refused, with or without a key", async () => {
    for (const apiKey of [undefined, Redacted.make("secret")]) {
      await serving({ apiKey }, async ({ url }) => {
        const authorization = "Bearer secret"
        assert.strictEqual((await send(url, { authorization })).status, 200)
        const other = await send(url, { authorization, host: "evil.example" })
        assert.strictEqual(other.status, 421)
        assert.match(JSON.parse(other.text).error.message, /--allow-host NAME/)
        assert.strictEqual((await send(url, { authorization, origin: "http://evil.example" })).status, 403)
      })
    }
    await serving({ allowedHosts: ["model.example.org"] }, async ({ url }) => {
      assert.strictEqual((await send(url, { host: "model.example.org" })).status, 200)
    })
  })
})

describe("requests that would take long", () => {
  const long = "word ".repeat(200_000)
  const veryLong = long.repeat(8)
  const many = (count: number) => Array.from({ length: count }, () => 1)

  it("are refused before they are encoded, rendered or decoded", async () => {
    let encoded = 0
    const counting = {
      ...chat,
      tokens: {
        ...chat.tokens,
        longestToken: 8,
        encode: (text: string) => ((encoded += text.length), chat.tokens.encode(text)),
      },
    }
    await serving({ chat: counting, maxLength: 100 }, async ({ post }) => {
      for (const [where, param, code, sent] of [
        ["/v1/completions", "prompt", "context_length_exceeded", { prompt: long }],
        ["/v1/completions", "prompt", "context_length_exceeded", { prompt: ["a", long] }],
        ["/v1/completions", "prompt", "context_length_exceeded", { prompt: many(1_000_000) }],
        ["/v1/completions", "prompt[1]", "context_length_exceeded", { prompt: [[1], many(1_000_000)] }],
        [path, "messages", "context_length_exceeded", { messages: [{ role: "user", content: long }] }],
        [path, "messages", null, { messages: Array.from({ length: 100_000 }, () => messages[0]) }],
        [path, "tools", null, { ...body, tools: many(100_000) }],
        [path, "stop", null, { ...body, stop: many(100_000) }],
        [path, "stop", null, { ...body, stop: [long] }],
        ["/tokenize", "prompt", "context_length_exceeded", { prompt: long }],
        ["/tokenize", "messages", "context_length_exceeded", { messages: [{ role: "user", content: long }] }],
        ["/detokenize", "tokens", "context_length_exceeded", { tokens: many(1_000_000) }],
        [path, null, null, { ...body, ...Object.fromEntries(many(300).map((_, at) => [`key${at}`, 1])) }],
      ] as const) {
        const refused = await post(where, sent)
        assert.strictEqual(refused.status, 400, where)
        assert.deepInclude(refused.body.error, { param, code })
        assert.isBelow(refused.body.error.message.length, 300)
      }
      assert.isBelow(encoded, 100)
    })
  })

  it("are encoded in parts, between which others are answered", async () => {
    let asked = false
    const parts: Array<number> = []
    const counting = {
      ...chat,
      tokens: {
        ...chat.tokens,
        longestToken: 1_000_000,
        encode: (text: string) => {
          parts.push(text.length)
          return chat.tokens.encode(text)
        },
      },
    }
    await serving({ chat: counting, maxLength: 200_000 }, async ({ post, url }) => {
      const refused = post("/tokenize", { prompt: veryLong })
      while (parts.length < 2) await new Promise((resolve) => setImmediate(resolve))
      const before = parts.length
      asked = (await fetch(`${url}/health`)).ok && parts.length < 14 && before < 14
      assert.match(
        (await refused).body.error.message,
        /^prompt: the prompt is too long; expected at most 200000 tokens$/,
      )
      assert.isTrue(asked)
      assert.isBelow(Math.max(...parts), 20_000)
    })
  })
})
