import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, FileSystem, Layer } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { SpendingCounter } from "../../../src/agents/lm/middleware/budgeted.ts"
import * as LmConfig from "../../../src/agents/lm/LmConfig.ts"
import { Lm } from "../../../src/agents/lm/Lm.ts"
import { unplacedModel, withPlaces } from "../../../src/base/config/places.ts"
import * as Lms from "../../../src/agents/lm/Lms.ts"
import { type CallRecord, CallSink } from "../../../src/agents/lm/middleware/logged.ts"
import * as Ngram from "../../../src/agents/lm/providers/ngram.ts"
import { SamplingSeed } from "../../../src/agents/lm/middleware/seeded.ts"
import { disk, temporaryDirectory } from "../../run/store/disk.ts"

/** An empty file system, and no HTTP server. */
const offline = Layer.mergeAll(
  FileSystem.layerNoop({}),
  NodePath.layer,
  Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request) => Effect.die(new Error(`asked ${request.url}`))),
  ),
)

const asking = (config: LmConfig.LmConfig, text = "Hello") =>
  LmConfig.request(config, [{ role: "user", content: text }])

describe("Lms.open", () => {
  it.effect("wraps a model as its config says, seeds its calls and reports them", () =>
    Effect.gen(function* () {
      const config = LmConfig.make({ model: "scripted:echo", budget: { calls: 2 } })
      const spent = new SpendingCounter()
      const lm = yield* Lms.open(config, { spent })
      const records: Array<CallRecord> = []
      const sink = CallSink.whole((record) => Effect.sync(() => records.push(record)))
      const around = Effect.provideService(CallSink, sink)
      const { content } = yield* lm.complete(asking(config)).pipe(around, Effect.provideService(SamplingSeed, 5))
      yield* around(lm.complete(asking(config)))
      const error = yield* Effect.flip(around(lm.complete(asking(config))))
      assert.strictEqual(content, "Hello")
      assert.deepStrictEqual(
        records.map(({ error, response }) => error?.reason ?? response?.content),
        ["Hello", "Hello", "budget"],
      )
      assert.isNumber(records[0].request.seed)
      assert.isNull(records[1].request.seed)
      assert.deepStrictEqual([error.reason, spent.calls], ["budget", 2])
    }).pipe(Effect.scoped, Effect.provide(offline)),
  )

  it.effect("opens additional scripts", () =>
    Effect.gen(function* () {
      const config = LmConfig.make({ model: "scripted:mine" })
      const lm = yield* Lms.open(config, { scripts: { mine: () => "Mine." } })
      assert.strictEqual((yield* lm.complete(asking(config))).content, "Mine.")
    }).pipe(Effect.scoped, Effect.provide(offline)),
  )

  it.effect("suggests a similar name, and requires a price for a budget of money", () =>
    Effect.gen(function* () {
      const near = yield* Effect.flip(Lms.open(LmConfig.make({ model: "scripted:raeder" }), { source: "a.yaml" }))
      assert.strictEqual(
        near.message,
        'a.yaml: model: unknown model "scripted:raeder"; did you mean "scripted:reader"?',
      )
      const priceless = LmConfig.make({ model: "scripted:echo", budget: { money: 5 } })
      assert.strictEqual(
        (yield* Effect.flip(Lms.open(priceless))).message,
        "lm_config: prices: budget.money is 5, but prices has no price for scripted:echo; add one",
      )
    }).pipe(Effect.scoped, Effect.provide(offline)),
  )
})

interface Asked {
  readonly url: string
  readonly model: unknown
  readonly key: string | undefined
}

/** Servers of both protocols that echo requests, with keys in the environment. */
const online = (asked: Array<Asked>, environment: Record<string, string>) => {
  const said = (url: string) =>
    url.endsWith("/messages")
      ? { id: "1", type: "message", role: "assistant", model: "there", content: [{ type: "text", text: "Hi" }] }
      : { id: "1", model: "there", choices: [{ index: 0, message: { role: "assistant", content: "Hi" } }] }
  return Layer.mergeAll(
    disk,
    ConfigProvider.layer(ConfigProvider.fromUnknown(environment)),
    Layer.succeed(
      HttpClient.HttpClient,
      HttpClient.make((request) =>
        Effect.sync(() => {
          const text = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : "{}"
          asked.push({
            url: request.url,
            model: JSON.parse(text).model,
            key: request.headers.authorization ?? request.headers["x-api-key"],
          })
          const answer = { ...said(request.url), stop_reason: "end_turn", usage: {} }
          return HttpClientResponse.fromWeb(request, Response.json(answer))
        }),
      ),
    ),
  )
}

const keys = { OPENAI_API_KEY: "open", ANTHROPIC_API_KEY: "anth", GOOGLE_API_KEY: "goog", MINE: "mine" }

describe("the provider of a model's name", () => {
  const openAi = "https://api.openai.com/v1/chat/completions"
  const anthropic = "https://api.anthropic.com/v1/messages"
  const google = "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions"
  const cases: ReadonlyArray<readonly [typeof LmConfig.LmConfig.Encoded, Asked]> = [
    [{ model: "gpt-4.1-mini" }, { url: openAi, model: "gpt-4.1-mini", key: "Bearer open" }],
    [{ model: "o1-preview" }, { url: openAi, model: "o1-preview", key: "Bearer open" }],
    [{ model: "o3" }, { url: openAi, model: "o3", key: "Bearer open" }],
    [{ model: "gemini-2.5-flash" }, { url: google, model: "gemini-2.5-flash", key: "Bearer goog" }],
    [{ model: "models/gemini-pro" }, { url: google, model: "models/gemini-pro", key: "Bearer goog" }],
    [{ model: "claude-sonnet-4-5" }, { url: anthropic, model: "claude-sonnet-4-5", key: "anth" }],
    [
      { model: "vllm:Qwen/Qwen3-8B" },
      { url: "http://127.0.0.1:8000/v1/chat/completions", model: "Qwen/Qwen3-8B", key: undefined },
    ],
    [
      { model: "vllm:gpt-oss", baseUrl: "http://gpu:9000", apiKey: "${MINE}" },
      { url: "http://gpu:9000/v1/chat/completions", model: "gpt-oss", key: "Bearer mine" },
    ],
    [{ model: "toka:llama" }, { url: "http://127.0.0.1:10210/v1/chat/completions", model: "llama", key: undefined }],
    // A key is sent only to the server that it is for.
    [
      { model: "gpt-4.1", baseUrl: "http://proxy/v1" },
      { url: "http://proxy/v1/chat/completions", model: "gpt-4.1", key: undefined },
    ],
    [
      { model: "llama3", baseUrl: "http://localhost:11434" },
      { url: "http://localhost:11434/v1/chat/completions", model: "llama3", key: undefined },
    ],
    [
      { model: "kimi", baseUrl: "http://there/v1", protocol: "anthropic" },
      { url: "http://there/v1/messages", model: "kimi", key: undefined },
    ],
    [
      { model: "claude-haiku", baseUrl: "http://router/v1", protocol: "openai", apiKey: "typed" },
      { url: "http://router/v1/chat/completions", model: "claude-haiku", key: "Bearer typed" },
    ],
  ]
  for (const [said, expected] of cases) {
    it.effect(JSON.stringify(said), () => {
      const asked: Array<Asked> = []
      return Effect.gen(function* () {
        const config = LmConfig.make(said)
        const completion = yield* Lm.complete(asking(config)).pipe(Effect.provide(Lms.layer(config)))
        assert.deepStrictEqual(asked, [expected])
        assert.strictEqual(completion.content, "Hi")
      }).pipe(Effect.provide(online(asked, keys)))
    })
  }

  it.effect("is one line if no provider matches", () =>
    Effect.gen(function* () {
      for (const [model, message] of [
        ["vlm:qwen", 'lm_config: model: unknown model "vlm:qwen"; did you mean "vllm:qwen"?'],
        ["cluade-3", 'lm_config: model: unknown model "cluade-3"; did you mean "claude-3"?'],
        ["builtin:ngrm", 'lm_config: model: unknown model "builtin:ngrm"; did you mean "builtin:ngram"?'],
        [
          "llama3",
          'lm_config: model: unknown model "llama3"; expected gpt-…, o1 …, gemini-…, claude-…, vllm:NAME, ' +
            "toka:NAME, scripted:NAME, builtin:NAME, decoder:FOLDER, or any name with base_url",
        ],
        ["builtin:choice:", 'lm_config: model: "builtin:choice:": answers: expected texts to choose from'],
      ] as const) {
        const error = yield* Effect.flip(Lms.open(LmConfig.make({ model })))
        assert.deepStrictEqual([error._tag, error.message], ["ConfigError", message])
      }
    }).pipe(Effect.provide(offline)),
  )

  it.effect("requires a missing key before the first call", () => {
    const asked: Array<Asked> = []
    return Effect.gen(function* () {
      const error = yield* Effect.flip(Lms.open(LmConfig.make({ model: "claude-sonnet-4-5" })))
      assert(error._tag === "LmError")
      assert.strictEqual(error.reason, "unauthorised")
      assert.include(error.message, "ANTHROPIC_API_KEY")
      assert.notInclude(error.message, "\n")
      assert.deepStrictEqual(asked, [])
    }).pipe(Effect.provide(online(asked, {})))
  })

  it.effect("does not matter in a replay, which needs neither key nor network", () => {
    const asked: Array<Asked> = []
    return Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const record = LmConfig.make({ model: "gpt-4.1", cache: "record", cacheDir: directory })
      const lm = yield* Lms.open(record)
      const first = yield* lm.complete(asking(record))
      assert.strictEqual(asked.length, 1)
      const replay = LmConfig.make({ model: "gpt-4.1", cache: "replay", cacheDir: directory })
      const spent = new SpendingCounter()
      const without = Effect.provide(
        Effect.flatMap(Lms.open(replay, { spent }), (lm) =>
          Effect.all([lm.complete(asking(replay)), Effect.flip(lm.complete(asking(replay, "New")))]),
        ),
        ConfigProvider.layer(ConfigProvider.fromUnknown({})),
      )
      const [again, missing] = yield* without
      assert.deepStrictEqual(again, first)
      assert.deepStrictEqual([missing.reason, spent.calls, asked.length], ["cache", 0, 1])
    }).pipe(Effect.scoped, Effect.provide(online(asked, keys)))
  })
})

describe("builtin", () => {
  const ask = (model: string, how: Lms.LmOpenOptions = {}) => {
    const config = LmConfig.make({ model, temperature: 1, maxOutputTokens: 5 })
    return Effect.flatMap(Lms.open(config, how), (lm) => lm.complete(asking(config)))
  }

  it.effect("answers by a choice of answers, by words, or by any text", () =>
    Effect.gen(function* () {
      assert.include(["left", "go right"], (yield* ask("builtin:choice:left, go right")).content)
      assert.match((yield* ask("builtin:words:ah,oh")).content, /^(ah|oh)( (ah|oh))*$/)
      assert.match((yield* ask("builtin:ngram")).content, /^[\n -~]{0,5}$/)
    }).pipe(Effect.provide(offline)),
  )

  it.effect("can be a model that is learning, or a saved one", () =>
    Effect.gen(function* () {
      const policy = Ngram.make({ answers: ["left", "right"] })
      const config = LmConfig.make({ model: "builtin:policy", temperature: 0 })
      const lm = yield* Lms.open(config, { models: { policy: policy.lm } })
      const said = Effect.map(lm.complete({ ...asking(config), traceTokens: true }), (completion) => completion)
      const { content, tokens } = yield* said
      assert(tokens !== null)
      policy.learn([Ngram.sample(tokens, -1)])
      const learnt = (yield* said).content
      assert.notStrictEqual(learnt, content)

      const directory = yield* temporaryDirectory
      const fs = yield* FileSystem.FileSystem
      yield* fs.writeFileString(`${directory}/policy.json`, JSON.stringify(policy.snapshot()))
      const kept = LmConfig.make({ model: `builtin:${directory}/policy.json`, temperature: 0 })
      assert.strictEqual((yield* (yield* Lms.open(kept)).complete(asking(kept))).content, learnt)
      // Named from the config's folder, and in a saved config from the root.
      const named = LmConfig.make({ model: "builtin:policy.json", temperature: 0 })
      const besideConfig = yield* Lms.open(named, { baseDir: directory })
      assert.strictEqual((yield* besideConfig.complete(asking(named))).content, learnt)
      const saved = yield* withPlaces({ lmConfig: { model: "builtin:policy.json" } }, directory)
      assert.deepStrictEqual(saved, { lmConfig: { model: `builtin:${directory}/policy.json` } })
      assert.strictEqual(unplacedModel(`builtin:${directory}/policy.json`), "builtin:policy.json")
      const none = yield* Effect.flip(ask(`builtin:${directory}/none.json`))
      assert.include(none.message, `cannot read ${directory}/none.json`)
    }).pipe(Effect.scoped, Effect.provide(online([], {}))),
  )
})
