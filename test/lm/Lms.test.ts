import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { HttpClient } from "effect/http"
import { Spent } from "../../src/lm/budgeted.ts"
import * as LmConfig from "../../src/lm/LmConfig.ts"
import * as Lms from "../../src/lm/Lms.ts"
import { type CallRecord, CallSink } from "../../src/lm/logged.ts"
import { SamplingSeed } from "../../src/lm/sampling.ts"

/** Nothing is on disk, and nobody answers. */
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
  it.effect("puts around a model what its config says, and seeds and tells of its calls", () =>
    Effect.gen(function* () {
      const config = LmConfig.make({ model: "scripted:echo", budget: { calls: 2 } })
      const spent = new Spent()
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

  it.effect("asks the scripts that it is given", () =>
    Effect.gen(function* () {
      const config = LmConfig.make({ model: "scripted:mine" })
      const lm = yield* Lms.open(config, { scripts: { mine: () => "Mine." } })
      assert.strictEqual((yield* lm.complete(asking(config))).content, "Mine.")
    }).pipe(Effect.scoped, Effect.provide(offline)),
  )

  it.effect("suggests a name for one that is nearly known, and asks for a price where money is counted", () =>
    Effect.gen(function* () {
      const near = yield* Effect.flip(Lms.open(LmConfig.make({ model: "scripted:raeder" }), { source: "a.yaml" }))
      assert.strictEqual(
        near.message,
        'a.yaml: model: "scripted:raeder" is no model that is known; did you mean "scripted:reader"?',
      )
      const priceless = LmConfig.make({ model: "scripted:echo", budget: { money: 5 } })
      assert.strictEqual(
        (yield* Effect.flip(Lms.open(priceless))).message,
        "lm_config: prices: budget.money is 5, but there is no price for scripted:echo",
      )
    }).pipe(Effect.scoped, Effect.provide(offline)),
  )
})
