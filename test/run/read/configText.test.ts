import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { parse, stringify } from "yaml"
import { configReader } from "../../../src/run/read/configText.ts"

const scalar = fc.oneof(
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
  fc.string(),
  fc.constantFrom("a\n\nb\n", "- x", "key: value", "# no", "&a", "*a", "line\nkey: value", "1e3"),
)
const key = fc.constantFrom("env", "seed", "algorithm", "name", "a_b", "key", "x y", "7")
const config = fc.dictionary(
  key,
  fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }), fc.dictionary(key, scalar, { noNullPrototype: true })),
  { noNullPrototype: true },
)

describe("a key of a config's text", () => {
  it("is what a parser of the whole text finds, for whatever is written as YAML", () => {
    const reader = configReader()
    fc.assert(
      fc.property(config, key, (given, path) => {
        const text = stringify(given)
        assert.deepEqual(reader.at(text, [path]), parse(text)[path])
      }),
      { numRuns: 500 },
    )
  })

  it("goes down with dots, through what is there", () => {
    const text = "# by hand\nalgorithm:\n  name: ppo\n\n  learning_rate: 1e-3\nseed: 1\n"
    const { at } = configReader()
    assert.strictEqual(at(text, ["algorithm", "learning_rate"]), 0.001)
    assert.strictEqual(at(text, ["seed"]), 1)
    assert.isUndefined(at(text, ["seed", "deeper"]))
    assert.isUndefined(at(text, ["algorithm", "toString"]))
    assert.isUndefined(at(text, ["nothing"]))
  })

  it("is found in YAML that somebody else writes", () => {
    const { at } = configReader()
    assert.strictEqual(at("--- # one\na: 1\n", ["a"]), 1)
    assert.strictEqual(at("{a: {b: 2}}\n", ["a", "b"]), 2)
    assert.strictEqual(at("base: &base\n  a: 1\nmine: *base\n", ["mine", "a"]), 1)
  })

  it("is an error where the text is none", () => {
    const { at } = configReader()
    assert.throws(() => at("env: [1, 2\n", ["env"]))
    assert.throws(() => at("just words", ["env"]), "expected keys and values")
  })
})
