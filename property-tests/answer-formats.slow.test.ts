/** Texts that are held to generated JSON Schemas fit them by ajv's reading, however the tokens are drawn. */
import { Ajv2020 } from "ajv/dist/2020.js"
import { fullFormats } from "ajv-formats/dist/formats.js"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { AnswerFormats } from "../src/decoder/constrained/AnswerFormats.ts"
import { EngineError } from "../src/decoder/inference/EngineError.ts"
import { EndlessText, vocabSize, vocabulary, written } from "../test/decoder/constrained/vocabulary.ts"
import { tries } from "../test/house/tries.ts"

const names = fc.constantFrom("a", "ab", "b", 'q"\\', "é", "")
const limits = (least: string, most: string) =>
  fc.record({ [least]: fc.integer({ min: 0, max: 3 }), [most]: fc.integer({ min: 0, max: 5 }) }, { requiredKeys: [] })
const bound = fc.oneof(
  fc.integer({ min: -1200, max: 1200 }),
  fc.integer({ min: -1_000_000, max: 1_000_000 }).map((number) => number / 1000),
  fc.constantFrom(0, -0.5, 1e-3, 1e16, -1e16, 999_999_999_999_999),
)
const multipleOf = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constantFrom(64, 100, 999))
const numeric = fc
  .record(
    { minimum: bound, maximum: bound, exclusiveMinimum: bound, exclusiveMaximum: bound, multipleOf },
    { requiredKeys: [] },
  )
  .chain((keys) => fc.constantFrom({ type: "integer", ...keys }, { type: "number", ...keys }))
const value = fc.oneof(fc.string({ maxLength: 4 }), fc.integer(), fc.constantFrom(null, true, 0.5, [1], { a: "ü" }))

const { regex } = fc.letrec<{ regex: string }>((tie) => ({
  regex: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    fc.constantFrom(
      ..."abé😀.^$",
      "[^a]",
      "[b-é\\n]",
      ...["d", "D", "w", "W", "s", "S", "n", "x41", "\\", "."].map((one) => `\\${one}`),
    ),
    fc.array(tie("regex"), { maxLength: 4 }).map((parts) => parts.join("")),
    fc.tuple(tie("regex"), tie("regex")).map((parts) => `(?:${parts.join("|")})`),
    fc
      .tuple(tie("regex"), fc.constantFrom("*", "+", "?", "{2}", "{0,2}?", "{1,}"))
      .map(([part, quantifier]) => `(${part})${quantifier}`),
  ),
}))
const text = fc.oneof(
  limits("minLength", "maxLength"),
  fc
    .tuple(regex, fc.boolean(), limits("minLength", "maxLength"))
    .map(([part, isWhole, keys]) => ({ pattern: isWhole ? `^(?:${part})$` : part, ...keys })),
  fc
    .constantFrom("date", "time", "date-time", "uuid", "email", "hostname", "ipv4", "ipv6", "uri")
    .map((format) => ({ format })),
)

const { schema } = fc.letrec<{ schema: unknown }>((tie) => {
  const nested = tie("schema")
  return {
    schema: fc.oneof(
      { maxDepth: 3, depthSize: "small" },
      fc.oneof(
        fc.constantFrom(
          true,
          {},
          { type: "null" },
          { type: "boolean" },
          { type: "object" },
          { type: ["string", "null"] },
        ),
        text.map((keys) => ({ type: "string", ...keys })),
        numeric,
        fc.array(value, { minLength: 1, maxLength: 4 }).map((values) => ({ enum: values })),
        value.map((one) => ({ const: one })),
      ),
      fc.array(nested, { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
      fc
        .tuple(fc.array(fc.constantFrom("a", 1, null, true), { minLength: 1 }), limits("minItems", "maxItems"))
        .map(([values, counts]) => ({ type: "array", items: { enum: values }, uniqueItems: true, ...counts })),
      fc
        .record({ items: nested, prefixItems: fc.array(nested, { minLength: 1, maxLength: 2 }) }, { requiredKeys: [] })
        .chain((keys) => limits("minItems", "maxItems").map((counts) => ({ type: "array", ...keys, ...counts }))),
      fc
        .record(
          {
            properties: fc.dictionary(names, nested, { maxKeys: 4 }),
            required: fc.uniqueArray(names, { maxLength: 3 }),
            additionalProperties: fc.oneof(fc.boolean(), nested),
          },
          { requiredKeys: ["properties"] },
        )
        .map((keys) => ({ type: "object", ...keys })),
      fc.constant({ $ref: "#/$defs/node" }),
    ),
  }
})

/** A definition that refers to itself, but need not. */
const $defs = {
  node: {
    type: "object",
    properties: { value: { type: "integer" }, next: { anyOf: [{ type: "null" }, { $ref: "#/$defs/node" }] } },
    required: ["next"],
    additionalProperties: false,
  },
}

/** Writes a text, which must end unless its tokens have to find a pattern by chance. */
const writtenIfItEnds = (
  whole: unknown,
  { seed, formats }: { readonly seed: number; readonly formats: AnswerFormats },
): string | undefined => {
  try {
    return written(whole, { seed, most: 25, formats })
  } catch (error) {
    if (error instanceof EndlessText && JSON.stringify(whole).includes('"pattern":')) return undefined
    throw error
  }
}

describe("texts in the format of a schema", () => {
  it("fit it, whatever is drawn", () => {
    let fitting = 0
    fc.assert(
      fc.property(schema, fc.nat(), (inner, seed) => {
        const whole = { $defs, anyOf: [inner] }
        const formats = new AnswerFormats(vocabulary, vocabSize)
        try {
          formats.cursor(whole)
        } catch (error) {
          // A generated schema may have no values, or too many remainders of divisions, each of which is a state.
          assert.instanceOf(error, EngineError)
          const expected = JSON.stringify(inner).includes('"multipleOf":')
            ? /no value fits|for at most [\d_,]+ (states|transitions)/
            : /no value fits/
          assert.match(error instanceof EngineError ? error.message : "", expected)
          return
        }
        const validate = new Ajv2020({ strict: false, formats: fullFormats }).compile(whole)
        for (const offset of [0, 1]) {
          const text = writtenIfItEnds(whole, { seed: seed + offset, formats })
          if (text === undefined) continue
          const parsed: unknown = JSON.parse(text)
          assert.isTrue(validate(parsed), `${text} does not fit ${JSON.stringify(inner)}`)
          fitting++
        }
      }),
      { numRuns: tries(100) },
    )
    assert.isAbove(fitting, tries(100))
  })
})
