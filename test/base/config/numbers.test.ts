import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { decode } from "../../../src/base/config/Config.ts"
import { bounded, positive, withDefault } from "../../../src/base/config/fields.ts"
import { readYamlText } from "../../../src/base/config/yaml.ts"

const Config = Schema.Struct({
  totalSteps: withDefault(bounded("count"), 1),
  rate: withDefault(Schema.Union([positive, Schema.Literal("auto")]), 1),
  hidden: withDefault(Schema.Array(bounded("units")), []),
  limits: withDefault(Schema.Record(Schema.String, Schema.NullOr(bounded("count"))), {}),
  name: withDefault(Schema.String, "run"),
  value: withDefault(Schema.Union([Schema.Finite, Schema.String]), 1),
})

const read = (text: string) =>
  Effect.flatMap(readYamlText(text, "conf.yaml"), ({ value }) => decode(Config, value, { source: "conf.yaml" }))

describe("numbers with underscores between their digits", () => {
  it.effect("are numbers in YAML wherever a number is expected", () =>
    Effect.gen(function* () {
      const config = yield* read(
        "totalSteps: 50_000\nrate: 1_000.5\nhidden: [1_024, 64]\nlimits: { a: 2_000, b: null }\n",
      )
      const { totalSteps, rate, hidden, limits } = config
      assert.deepStrictEqual(
        { totalSteps, rate, hidden, limits },
        {
          totalSteps: 50_000,
          rate: 1000.5,
          hidden: [1024, 64],
          limits: { a: 2000, b: null },
        },
      )
    }),
  )

  it.effect("stay texts where a text is allowed", () =>
    Effect.gen(function* () {
      const { name, value } = yield* read("name: 2024_01\nvalue: 1_000\n")
      assert.deepStrictEqual([name, value], ["2024_01", "1_000"])
    }),
  )

  it.effect("are bounded like others, and the message shows them as they were written", () =>
    Effect.gen(function* () {
      for (const [text, expected] of [
        [
          "hidden: [1_000_000]",
          'hidden.0: expected a value between 1 and 65536 (the weights are a matrix), found "1_000_000"',
        ],
        ["totalSteps: 5_", 'total_steps: expected number, found "5_"'],
        ["totalSteps: _5", 'total_steps: expected number, found "_5"'],
        ["totalSteps: 1__0", 'total_steps: expected number, found "1__0"'],
      ])
        assert.include((yield* Effect.flip(read(text))).message, expected)
    }),
  )
})
