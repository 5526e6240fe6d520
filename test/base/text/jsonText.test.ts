import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { jsonText } from "../../../src/base/text/jsonText.ts"

const schema = jsonText(Schema.Struct({ list: Schema.Unknown }))
const nested = (levels: number): string => `{ "list": ${"[".repeat(levels)}${"]".repeat(levels)} }`

describe("JSON as a text", () => {
  it.effect("is decoded and encoded by the Schema of its value", () =>
    Effect.gen(function* () {
      const decoded = yield* Schema.decodeUnknownEffect(schema)('{ "list": [1, null] }')
      assert.deepStrictEqual(decoded, { list: [1, null] })
      assert.strictEqual(yield* Schema.encodeEffect(schema)(decoded), '{"list":[1,null]}')
    }),
  )

  it.effect("may be nested, but not so deep that a walk over it would overflow the stack", () =>
    Effect.gen(function* () {
      yield* Schema.decodeUnknownEffect(schema)(nested(200))
      for (const levels of [300, 1_000_000]) {
        const error = yield* Effect.flip(Schema.decodeUnknownEffect(schema)(nested(levels)))
        assert.include(error.message, "not nested too deep")
      }
    }),
  )

  it.effect("says that it expected JSON if it isn't", () =>
    Effect.map(Effect.flip(Schema.decodeUnknownEffect(schema)('{ "list": ')), (error) =>
      assert.include(error.message, "a valid JSON string"),
    ),
  )

  it("is parsed by Effect's own Schema, which has no such limit, nowhere", () => {
    const src = fileURLToPath(new URL("../../../src", import.meta.url))
    const unlimited = readdirSync(src, { recursive: true, encoding: "utf8" }).filter(
      (file) => file.endsWith(".ts") && /Schema\.fromJsonString\(/.test(readFileSync(`${src}/${file}`, "utf8")),
    )
    assert.deepStrictEqual(unlimited, [])
  })
})
