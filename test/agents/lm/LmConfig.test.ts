import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { decode, toCamelCase } from "../../../src/base/config/Config.ts"
import { shownKey } from "../../../src/base/config/secretFields.ts"
import * as LmConfig from "../../../src/agents/lm/LmConfig.ts"

const decoded = (said: unknown) =>
  decode(LmConfig.LmConfig, toCamelCase(said), { source: "a.yaml", prefix: ["lmConfig"] })

describe("LmConfig", () => {
  it.effect("reads the configs of other programs, with their defaults", () =>
    Effect.gen(function* () {
      const { apiKey: _, ...config } = yield* decoded({
        model: "vllm:qwen",
        max_output_tokens: 64,
        log_calls: true,
        starting_delay: 0.5,
        base_url: "http://127.0.0.1:8000/v1",
        stop_sequences: ["OBSERVATION"],
        use_server: true,
      })
      assert.deepStrictEqual(config, {
        model: "vllm:qwen",
        temperature: 0.2,
        maxOutputTokens: 64,
        logCalls: true,
        maxRetries: 5,
        startingDelay: 0.5,
        backoffFactor: 2,
        maxDelay: 10,
        baseUrl: "http://127.0.0.1:8000/v1",
        protocol: null,
        timeoutS: 900,
        maxAnswerMb: 64,
        stopSequences: ["OBSERVATION"],
        thinkingBudget: null,
        useServer: true,
        cache: "off",
        cacheDir: "lm_cache",
        limits: { concurrency: null, requestsPerMinute: null, tokensPerMinute: null },
        budget: { tokens: null, calls: null, money: null },
        prices: [],
        jitter: 0.25,
      })
      const request = LmConfig.request(yield* decoded({ model: "m", stop_sequences: ["X"] }), [])
      assert.deepStrictEqual(
        [request.model, request.temperature, request.maxOutputTokens, request.stop, request.seed],
        ["m", 0.2, 2048, ["X"], null],
      )
    }),
  )

  it.effect("keeps a key out of files, logs and messages", () =>
    Effect.gen(function* () {
      const config = yield* decoded({ model: "m", api_key: "sk-mine" })
      assert.strictEqual(config.apiKey === null ? null : Redacted.value(config.apiKey), "sk-mine")
      const written = Schema.encodeSync(LmConfig.LmConfig)(config)
      assert.strictEqual(written.apiKey, shownKey)
      for (const text of [JSON.stringify(config), JSON.stringify(written), inspect(config), `${config.apiKey}`]) {
        assert.notInclude(text, "sk-mine")
      }
      // The error of a wrong config does not show the key, either.
      const error = yield* Effect.flip(decoded({ model: "m", api_key: "sk-mine", max_retries: -1 }))
      assert.notInclude(error.message, "sk-mine")
      for (const [said, message] of [
        [{ model: "m", api_key: 4711 }, "a.yaml: lm_config.api_key: expected string | null, found <redacted>"],
        [{ model: "m", api_key: ["4711"] }, "a.yaml: lm_config.api_key: expected string | null, found <redacted>"],
        [[{ api_key: "4711" }], 'a.yaml: lm_config: expected object, found [{"apiKey":"<redacted>"}]'],
      ] as const) {
        assert.strictEqual((yield* Effect.flip(decoded(said))).message, message)
      }
    }),
  )

  it.effect("saves the variable of its key, so that a saved config can be used again", () =>
    Effect.gen(function* () {
      const written = Schema.encodeSync(LmConfig.LmConfig)(yield* decoded({ model: "m", api_key: "${MINE}" }))
      assert.strictEqual(written.apiKey, "${MINE}")
    }),
  )

  it.effect("saves its address without secrets", () =>
    Effect.gen(function* () {
      for (const [said, shown] of [
        ["http://127.0.0.1:8000", "http://127.0.0.1:8000"],
        ["https://a.b/@me/v1?api-version=2&api_key=hunter2#x", "https://a.b/@me/v1?api-version=2&api_key=<redacted>#x"],
        ["https://me:hunter2@a.b/v1?sig=hunter2&x=1", "https://a.b/v1?sig=<redacted>&x=1"],
        ["me:hunter2@a.b", "a.b"],
        ["https://a.b/?x?my_Token=hunter2&y", "https://a.b/?x?my_Token=<redacted>&y"],
        [`https://a.b/${"?key".repeat(20_000)}`, `https://a.b/${"?key".repeat(20_000)}`],
      ]) {
        const config = yield* decoded({ model: "m", base_url: said })
        assert.strictEqual(config.baseUrl, said)
        assert.strictEqual(Schema.encodeSync(LmConfig.LmConfig)(config).baseUrl, shown)
      }
    }),
  )

  it.effect("names unknown and invalid keys", () =>
    Effect.gen(function* () {
      for (const [said, message] of [
        [
          { model: "m", temprature: 1 },
          'a.yaml: unknown key "lm_config.temprature"; did you mean "lm_config.temperature"?',
        ],
        [{ model: "" }, "a.yaml: lm_config.model: "],
        [{ model: "m", cache: "recrd" }, "a.yaml: lm_config.cache: "],
        [{ model: "m", limits: { concurrency: 0 } }, "a.yaml: lm_config.limits.concurrency: "],
        [{ model: "m", jitter: 2 }, "a.yaml: lm_config.jitter: "],
      ] as const) {
        assert.include((yield* Effect.flip(decoded(said))).message, message)
      }
    }),
  )
})
