/** A config's model over a real connection, with all that is around it. */
import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Cause, ConfigProvider, Effect, Fiber, FileSystem, Layer, Logger, Schema } from "effect"
import { TestClock } from "effect/testing"
import * as LmConfig from "../../../src/agents/lm/LmConfig.ts"
import * as Lms from "../../../src/agents/lm/Lms.ts"
import { type CallRecord, CallSink } from "../../../src/agents/lm/middleware/logged.ts"
import * as Node from "../../../src/node.ts"
import { disk, temporaryDirectory } from "../../run/store/disk.ts"
import { busy, serve } from "./server.ts"

const asking = (config: LmConfig.LmConfig) => LmConfig.request(config, [{ role: "user", content: "Hello?" }])

/** Lets the clock go on, slowly enough for what comes over the connection to arrive in between. */
const passing = (until: () => boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    while (!until()) {
      yield* TestClock.adjust("1 second")
      yield* TestClock.withLive(Effect.sleep(5))
    }
  })

const machine = Layer.merge(disk, Node.httpClient)

describe("a model opened from a config, over a connection", () => {
  it.effect("gives up on a server that hangs after all retries", () =>
    Effect.gen(function* () {
      const server = yield* serve({ fault: () => ({ kind: "hung" }) })
      const config = LmConfig.make({ model: "vllm:m", baseUrl: server.url, timeoutS: 900, maxRetries: 2 })
      const lm = yield* Lms.open(config)
      const asked = yield* Effect.forkChild(Effect.flip(lm.complete(asking(config))))
      for (const tries of [1, 2, 3]) {
        yield* passing(() => server.asked.length === tries)
        yield* TestClock.adjust("900 seconds")
        yield* server.until(() => server.left() === tries)
      }
      const error = yield* Fiber.join(asked)
      assert.deepStrictEqual([error.reason, error.attempts, server.asked.length], ["exhausted", 3, 3])
      assert.match(error.message, /did not finish its answer within 900 s \(timeout_s\)/)
    }).pipe(Effect.provide(machine)),
  )

  it.effect("retries when the server asks for it", () =>
    Effect.gen(function* () {
      const server = yield* serve({ fault: (_, before) => (before === 0 ? busy : { kind: "none" }) })
      const config = LmConfig.make({ model: "vllm:m", baseUrl: server.url, startingDelay: 0.01, jitter: 0 })
      const lm = yield* Lms.open(config)
      const asked = yield* Effect.forkChild(lm.complete(asking(config)))
      yield* passing(() => server.asked.length === 2)
      assert.strictEqual((yield* Fiber.join(asked)).attempts, 2)
      assert.strictEqual(server.asked[1].body.model, "m")
    }).pipe(Effect.provide(machine)),
  )

  it.effect(
    "is asked once with a wrong key; no key is in a log, a file or a record, whether it's right or wrong",
    () => {
      const lines: Array<string> = []
      const logger = Logger.make(
        (options) => void lines.push(inspect(options.message, { depth: 9 }), Cause.pretty(options.cause)),
      )
      return Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const cacheDir = yield* temporaryDirectory
        const server = yield* serve({ key: "hunter2-right" })
        const records: Array<CallRecord> = []
        const sink = CallSink.whole((record) => Effect.sync(() => records.push(record)))
        for (const key of ["hunter2-right", "hunter2-wrong"]) {
          const config = LmConfig.make({
            model: "gpt-m",
            baseUrl: server.url,
            apiKey: "${KEY}",
            cache: "record",
            cacheDir,
          })
          const exit = yield* Lms.open(config).pipe(
            Effect.flatMap((lm) =>
              lm.complete({ ...asking(config), seed: key.length + (key.endsWith("right") ? 0 : 1) }),
            ),
            Effect.tapCause((cause) => Effect.logError("failed", cause)),
            Effect.provideService(CallSink, sink),
            Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({ KEY: key })),
            Effect.exit,
          )
          lines.push(inspect(exit, { depth: 9 }), JSON.stringify(exit))
          const plain = LmConfig.make({ model: "gpt-m", apiKey: key })
          lines.push(
            JSON.stringify(plain),
            inspect(plain),
            JSON.stringify(yield* Schema.encodeEffect(LmConfig.LmConfig)(plain)),
          )
        }
        assert.strictEqual(server.asked.length, 2)
        assert.deepStrictEqual(
          records.map(({ response, error }) => [response?.content, error?.reason, error?.attempts]),
          [
            ["Hello", undefined, undefined],
            [undefined, "unauthorised", 1],
          ],
        )
        const names = (yield* fs.readDirectory(cacheDir, { recursive: true })).filter((name) => name.endsWith(".json"))
        assert.strictEqual(names.length, 1)
        for (const name of names) lines.push(yield* fs.readFileString(`${cacheDir}/${name}`))
        lines.push(JSON.stringify(records))
        assert.include(lines.join("\n"), "answered 401")
        assert.notInclude(lines.join("\n"), "hunter2")
      }).pipe(Effect.scoped, Effect.provide(Layer.merge(machine, Logger.layer([logger]))))
    },
  )
})
