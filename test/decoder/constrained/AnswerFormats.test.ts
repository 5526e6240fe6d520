/** Texts in the format of a JSON Schema, validated by ajv. */
import { Ajv2020 } from "ajv/dist/2020.js"
import { fullFormats } from "ajv-formats/dist/formats.js"
import { assert, describe, it } from "vitest"
import { AnswerFormats } from "../../../src/decoder/constrained/AnswerFormats.ts"
import { EngineError } from "../../../src/decoder/inference/EngineError.ts"
import { vocabSize, vocabulary, written } from "./vocabulary.ts"

const ajv = new Ajv2020({ strict: false, allErrors: false, formats: fullFormats })
const formats = new AnswerFormats(vocabulary, vocabSize)

const check = (schema: object | boolean, texts = 12): void => {
  const validate = ajv.compile(schema)
  const distinct = new Set<string>()
  for (let seed = 0; seed < texts; seed++) {
    const text = written(schema, { seed, formats })
    distinct.add(text)
    const value: unknown = JSON.parse(text)
    assert.isTrue(validate(value), `${text} does not fit ${JSON.stringify(schema)}: ${ajv.errorsText(validate.errors)}`)
  }
  assert.isAbove(distinct.size, 0)
}

const tree = {
  $ref: "#/$defs/node",
  $defs: {
    node: {
      type: "object",
      properties: {
        name: { type: "string", maxLength: 3 },
        children: { type: "array", items: { $ref: "#/$defs/node" } },
      },
      required: ["name", "children"],
      additionalProperties: false,
    },
  },
}

const named = (kind: string) => ({
  type: "object",
  properties: { kind: { const: kind }, [kind]: { type: "number" } },
  required: ["kind"],
})

/** Makes the schema of objects with many properties. */
const withRequired = (count: number) => {
  const names = Array.from({ length: count }, (_, at) => `p${at}`)
  const properties = Object.fromEntries(names.map((name) => [name, { const: 1 }]))
  return { type: "object", properties, required: names }
}

describe("a text in the format of a schema", () => {
  it.each<[string, object | boolean]>([
    ["any value", {}],
    ["an object", { type: "object" }],
    ["lengths of strings in characters", { type: "string", minLength: 2, maxLength: 4 }],
    ["integers", { type: "integer" }],
    ["integers within limits", { type: "integer", minimum: -12, exclusiveMaximum: 105 }],
    ["negative integers", { type: "integer", maximum: -7 }],
    ["numbers within limits", { type: "number", minimum: 0.25, maximum: 0.5 }],
    ["numbers above a limit", { type: "number", exclusiveMinimum: -1.5 }],
    ["several types", { type: ["integer", "null", "boolean"] }],
    ["values", { enum: ["red", "réd", 12, null, { a: [1] }] }],
    ["values of a type", { type: "string", enum: ["a", 1, 'b"c'] }],
    ["items", { type: "array", items: { type: "boolean" }, minItems: 2, maxItems: 3 }],
    ["leading items", { prefixItems: [{ type: "null" }, { type: "integer" }], items: false, minItems: 1 }],
    ["leading items and others", { type: "array", prefixItems: [{ const: 1 }], items: { const: 2 } }],
    [
      "optional properties",
      { type: "object", properties: { a: { const: 1 }, b: { const: 2 }, c: { const: 3 } }, required: ["b"] },
    ],
    [
      "further properties",
      { type: "object", properties: { a: { const: 1 }, ab: {} }, additionalProperties: { const: 2 } },
    ],
    ["a map", { type: "object", additionalProperties: { type: "integer" } }],
    [
      "further properties beside a name with a quote",
      { type: "object", properties: { 'a"': { const: 1 }, "a~": { const: 1 } }, additionalProperties: { const: 2 } },
    ],
    [
      "required properties that are not declared",
      { properties: { a: true }, required: ["z"], additionalProperties: { const: 0 } },
    ],
    ["a name with a quote", { type: "object", properties: { 'a"\\é': { const: 1 } }, required: ['a"\\é'] }],
    [
      "alternatives",
      {
        anyOf: [
          { type: "string", maxLength: 1 },
          { type: "array", maxItems: 1 },
        ],
      },
    ],
    ["alternatives that exclude each other", { oneOf: [named("cat"), named("dog")] }],
    ["references", tree],
    ["a list that refers to itself", { type: "array", items: { $ref: "#" }, maxItems: 2 }],
    ["several schemas", { type: "integer", allOf: [{ minimum: 3 }, { maximum: 5, description: "a" }] }],
    [
      "a pattern with all parts",
      { type: "string", pattern: String.raw`^(?:a|[^\d\sa-f\]]{2,3}?|\x41\u{1F600}.)+(?<n>-\w*)?$` },
    ],
    ["a pattern inside of a text", { type: "string", pattern: "ab|^c|d$", maxLength: 5 }],
    ["a pattern with limits of the length", { pattern: "^(é|b*)+$", minLength: 3, maxLength: 4 }],
    ["characters that JSON escapes", { type: "string", pattern: String.raw`^["\\\n\x00-\x1f😀]{3}$` }],
    ...["date", "time", "date-time", "uuid", "email", "hostname", "ipv4", "ipv6", "uri"].map(
      (format): [string, object] => [`the format ${format}`, { type: "string", format }],
    ),
    ["a format with a length", { type: "string", format: "hostname", maxLength: 4 }],
    ["multiples", { type: "integer", multipleOf: 7 }],
    ["multiples within limits", { type: "number", multipleOf: 12, minimum: -1300, exclusiveMaximum: 13 }],
    [
      "unique items",
      {
        type: "array",
        items: { $ref: "#/$defs/colour" },
        uniqueItems: true,
        minItems: 2,
        maxItems: 3,
        $defs: { colour: { type: "string", enum: ["red", "green", "blue", "red", 1] } },
      },
    ],
    ["one item", { type: "array", items: { type: "integer" }, uniqueItems: true, maxItems: 1 }],
    ["a property that no value fits", { type: "object", properties: { a: false, b: { const: 1 } } }],
  ])("fits: %s", (_, schema) => check(schema))

  it("can be any value between limits, and no other", () => {
    const schema = { type: "integer", minimum: 7, maximum: 12 }
    const texts = new Set(Array.from({ length: 200 }, (_, seed) => written(schema, { seed, formats })))
    assert.deepStrictEqual([...texts].sort(), ["10", "11", "12", "7", "8", "9"])
  })

  it.each<[string, unknown, string]>([
    ["an unknown keyword", { type: "string", patern: "a" }, "schema.patern: this keyword is not supported"],
    [
      "a keyword inside",
      { properties: { a: { items: { patternProperties: {} } } } },
      "schema.properties.a.items.patternProperties",
    ],
    ["unique items", { type: "array", uniqueItems: true }, "schema.uniqueItems: only supported for items with an enum"],
    [
      "unique items with a keyword beside",
      { type: "array", uniqueItems: true, items: { enum: ["a"], minLength: 2 } },
      "schema.items.minLength: not supported beside enum",
    ],
    [
      "more unique items than there are",
      { type: "array", uniqueItems: true, items: { enum: [1] }, minItems: 2 },
      "no value fits",
    ],
    [
      "multiples of a fraction",
      { type: "number", multipleOf: 0.1 },
      "schema.multipleOf: expected a whole number from 1 to 1000",
    ],
    ["multiples that limits exclude", { multipleOf: 100, minimum: 1, maximum: 99 }, "no value fits"],
    [
      "multiples of many numbers",
      { anyOf: Array.from({ length: 4 }, (_, at) => ({ type: "integer", multipleOf: 990 + at })) },
      "schema: expected a schema for at most 200000 transitions",
    ],
    [
      "a wrong pattern",
      { pattern: "(a" },
      "schema.pattern: expected a regular expression of ECMAScript with the flag u: Unterminated group",
    ],
    ["no pattern", { pattern: 3 }, "schema.pattern: expected a regular expression as a text"],
    ["a lookahead", { pattern: "^(?!a)" }, "schema.pattern: lookaheads and lookbehinds"],
    ["a back reference", { pattern: String.raw`(a)\1` }, "schema.pattern: back references"],
    ["a word boundary", { pattern: String.raw`\b` }, "schema.pattern: word boundaries"],
    ["properties of characters", { pattern: String.raw`\p{L}` }, "schema.pattern: properties of characters"],
    ["flags of a group", { pattern: "(?i:a)" }, "schema.pattern: flags of groups"],
    ["a pattern that nothing matches", { type: "string", pattern: "a^b|[]" }, "no value fits"],
    [
      "a pattern that lengths exclude",
      { type: "string", pattern: "^(ab)*$", minLength: 3, maxLength: 3 },
      "no value fits",
    ],
    ["a pattern beside a format", { pattern: "a", format: "date" }, "schema.format: not supported beside pattern"],
    ["an unknown format", { type: "string", format: "phone" }, "schema.format: expected one of date, time"],
    ["many repetitions", { pattern: "a{5000}" }, "schema.pattern: expected at most 4096 repetitions"],
    [
      "repetitions of repetitions",
      { pattern: "((((){4000}){4000}){4000}){4000}" },
      "schema.pattern: the regular expressions",
    ],
    [
      "repetitions of empty alternatives",
      { pattern: `(?:(?:${"|".repeat(1000)}){3000}){8}` },
      "schema.pattern: the regular expressions",
    ],
    [
      "repetitions of empty groups",
      { pattern: `(?:(?:${"()".repeat(500)}){1000}){50}` },
      "schema.pattern: the regular expressions",
    ],
    [
      "alternatives with the same long list of names",
      { oneOf: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/a" }], $defs: { a: withRequired(8000) } },
      "a value may fit schemas 0 and 1",
    ],
    [
      "nested groups",
      { pattern: `${"(".repeat(60)}${")".repeat(60)}` },
      "expected at most 50 groups inside each other",
    ],
    ["a long pattern", { pattern: "a".repeat(5000) }, "schema.pattern: expected at most 4096 characters"],
    [
      "large patterns together",
      { anyOf: Array.from({ length: 300 }, (_, at) => ({ type: "string", pattern: `^(a{40}){40}[]${at}$` })) },
      ".pattern: the regular expressions of this format are too large together",
    ],
    ["no schema", { properties: { a: 3 } }, "schema.properties.a: expected a JSON Schema"],
    ["an unknown type", { type: "strng" }, "schema.type: expected one or more of null, boolean"],
    [
      "alternatives that overlap",
      { oneOf: [{ type: "number" }, { type: "integer" }] },
      "schema.oneOf: a value may fit schemas 0 and 1",
    ],
    ["a keyword beside alternatives", { anyOf: [{}], minLength: 1 }, "schema.minLength: not supported beside anyOf"],
    [
      "a keyword twice",
      { allOf: [{ minLength: 1 }, { minLength: 2 }] },
      "schema.allOf[1].minLength: this keyword is in several",
    ],
    ["a missing reference", { $ref: "#/$defs/a" }, "schema.$ref: the schema has no #/$defs/a"],
    ["a foreign reference", { $ref: "https://example.org/a" }, "expected a reference into the same schema"],
    [
      "a circle",
      { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/a" } } },
      "refers to itself without reading anything",
    ],
    ["no value", { type: "integer", minimum: 3, maximum: 2 }, "schema: no value fits"],
    [
      "values without an end",
      { type: "object", properties: { a: { $ref: "#" } }, required: ["a"] },
      "schema: no value fits",
    ],
    ["a negative length", { type: "string", minLength: -1 }, "schema.minLength: expected a whole number"],
    ["a huge length", { type: "string", minLength: 1e9 }, "schema.minLength: expected at most 4096"],
    [
      "nested too deep",
      JSON.parse(`${'{"items":'.repeat(200)}{}${"}".repeat(200)}`),
      "expected at most 100 schemas inside each other",
    ],
    [
      "a bomb",
      {
        properties: Object.fromEntries(
          Array.from({ length: 100 }, (_, at) => [`p${at}`, { type: "string", maxLength: 4000 }]),
        ),
      },
      "expected a schema for at most 50000 states",
    ],
    [
      "many alternatives",
      { oneOf: Array.from({ length: 65 }, (_, at) => ({ const: at })) },
      "schema.oneOf: expected at most 64 schemas, found 65",
    ],
    ["a string that is longer than it may be", { type: "string", minLength: 1, maxLength: 0 }, "no value fits"],
    ["a deep value", { const: JSON.parse(`${"[".repeat(50_000)}${"]".repeat(50_000)}`) }, "values inside each other"],
    ["a long schema", { description: "a".repeat(300_000) }, "expected at most 262144 characters"],
  ])("is refused: %s", (_, schema, message) => {
    try {
      formats.cursor(schema)
      assert.fail("expected a refusal")
    } catch (error) {
      assert.instanceOf(error, EngineError)
      assert.include(error instanceof EngineError ? error.message : "", message)
    }
  })

  it("can have thousands of properties, and references of which only the ends differ", () => {
    assert.isFalse(formats.cursor(withRequired(3000)).canEnd)
    const name = "a".repeat(300)
    const reference = (end: number) => ({ $ref: `#/$defs/${name}${end}` })
    const $defs = { [`${name}1`]: { const: 1 }, [`${name}2`]: { const: 2 } }
    check({ $defs, type: "array", prefixItems: [reference(1), reference(2)], items: false, minItems: 2 })
  })

  it("is refused if a token would take too long: many alternatives, and a large vocabulary", { tags: "slow" }, () => {
    const encoder = new TextEncoder()
    const text = (id: number): string => ((id * 2_654_435_761) % 2 ** 32).toString(36).slice(0, 2 + (id % 6))
    const large = Array.from({ length: 50_000 }, (_, id) => (id < 256 ? Uint8Array.of(id) : encoder.encode(text(id))))
    const many = new AnswerFormats({ bytesOf: (id) => large[id], special: { ids: new Map() } }, large.length)
    const lengths = Array.from({ length: 250 }, (_, at) => ({ type: "string", maxLength: 10 + (at % 50) }))
    const values = Array.from({ length: 3000 }, (_, at) => text(at + 256))
    const cursor = many.cursor({ anyOf: [...lengths, { enum: values }] })
    cursor.accept('"'.charCodeAt(0))
    assert.throws(() => cursor.exclude(new Float32Array(large.length), []), EngineError, "in too many ways")
  })
})
