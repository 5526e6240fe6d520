import { assert, describe, it } from "vitest"
import { schemaProblem } from "../../../src/spread/openenv/jsonSchemas.ts"

describe("the Schema of a hostile server", () => {
  it("is read for a limited time if its alternatives refer to each other", () => {
    let reads = 0
    const again = {
      get anyOf() {
        reads++
        return [{ $ref: "#/$defs/again" }, { $ref: "#/$defs/again" }, { type: "string" }]
      },
    }
    const levels = Object.fromEntries(
      Array.from({ length: 18 }, (_, level) => {
        const next = { $ref: `#/$defs/${level + 1}` }
        return [
          level,
          {
            get anyOf() {
              reads++
              return [next, next]
            },
          },
        ]
      }),
    )
    const schema = { properties: { a: { $ref: "#/$defs/0" } }, $defs: { ...levels, 18: { type: "string" }, again } }
    assert.strictEqual(schemaProblem(schema, { a: 1 }), undefined)
    assert.isBelow(reads, 100_001)
    assert.strictEqual(schemaProblem({ $ref: "#/$defs/again", $defs: { again } }, 1), undefined)
    assert.isBelow(reads, 200_002)
  })

  it("may have many keys, which a message does not show", () => {
    const properties = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`key ${at}`, {}]))
    const problem = schemaProblem({ properties, additionalProperties: false }, { other: 1 }) ?? ""
    assert.match(problem, /^expected only the keys key 0, key 1, .*…, found "other"$/)
    assert.isBelow(problem.length, 350)
  })

  it("may name types that there are not", () => {
    for (const type of ["__proto__", "constructor", "toString"])
      assert.strictEqual(schemaProblem({ type }, 1), undefined)
  })
})
