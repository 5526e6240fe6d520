/** Laws of the bounds of numbers: a number in a config is accepted and small enough, or refused before anything is made. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, type SchemaAST } from "effect"
import * as fc from "fast-check"
import { bounds, mostOfOwn, ownBound, realBounds } from "../src/base/config/bounds.ts"
import { decode } from "../src/base/config/Config.ts"
import { type ConfigNumber, configNumbers, numbersOf } from "../test/house/configNumbers.ts"
import { tries } from "../test/house/tries.ts"

const numbers = configNumbers()
const table = { ...bounds, ...realBounds }
const isRow = (name: string | undefined): name is keyof typeof table => name !== undefined && Object.hasOwn(table, name)
const nameOf = ({ path }: ConfigNumber): string => path.join(".")

/** The largest numbers that become memory, processes, threads or connections. */
const most = { memory: 1e9, processes: 1024, threads: 1024, connections: 10_000 } as const

/** Numbers as people and programs write them, with all that JSON and YAML allow. */
const written = fc.oneof(
  fc.constantFrom(-1e308, -(2 ** 53), -1, -0.5, 0, 0.5, 1, 2, 1e3, 65_537, 1e6, 1e9, 2 ** 31, 2 ** 53, 1e308),
  fc.constantFrom(NaN, Infinity, -Infinity),
  fc.integer(),
  fc.double(),
)

const accepts = ({ ast }: ConfigNumber, value: number): boolean =>
  Schema.is(Schema.make<Schema.Codec<number, number>>(ast))(value)

describe("numbers of configs", () => {
  it("there are as many as configs have", () => assert.isAbove(numbers.length, 1000))

  it("each names its row in the table of bounds", () => {
    const without = numbers.filter(({ bound }) => bound !== ownBound && !isRow(bound)).map(nameOf)
    assert.deepStrictEqual(without, [])
  })

  it("a number without a row is found", () => {
    const [size, depth] = numbersOf("new", Schema.Struct({ size: Schema.Int, depth: Schema.NullOr(Schema.Finite) }))
    assert.deepStrictEqual(
      [nameOf(size), size.bound, nameOf(depth), depth.bound],
      ["new.size", undefined, "new.depth", undefined],
    )
  })

  it("each is accepted within the bounds of its row only, whatever is written", () => {
    fc.assert(
      fc.property(fc.constantFrom(...numbers), written, (number, value) => {
        if (!accepts(number, value)) return
        const { bound } = number
        assert.isFalse(Number.isNaN(value), nameOf(number))
        if (bound === ownBound) return assert.isAtMost(Math.abs(value), mostOfOwn, nameOf(number))
        if (!isRow(bound)) return assert.fail(nameOf(number))
        const { least, most: largest, takes } = table[bound]
        if (bound === "number") return
        assert.isAtLeast(value, least, nameOf(number))
        assert.isAtMost(value, largest, nameOf(number))
        if (takes in most) assert.isAtMost(value, most[takes as keyof typeof most], nameOf(number))
      }),
      { numRuns: tries(30_000) },
    )
  })

  it("each refuses all of the numbers beyond its bounds", () => {
    for (const number of numbers) {
      const { bound } = number
      assert.isFalse(accepts(number, NaN), nameOf(number))
      if (bound === "number") continue
      const { least, most: largest } = isRow(bound) ? table[bound] : { least: -Infinity, most: mostOfOwn }
      for (const value of [largest + 1, largest * 2, least - 1, NaN, 1e308].filter(
        (one) => !(one >= least && one <= largest),
      ))
        assert.isFalse(accepts(number, value), `${nameOf(number)}: ${value}`)
    }
  })
})

describe("the table of bounds", () => {
  it("has a limit for each number that takes something but time", () => {
    for (const [name, { takes, most: largest }] of Object.entries(table))
      if (takes in most) assert.isAtMost(largest, most[takes as keyof typeof most], name)
  })

  it.effect("is named in the message, with the reason", () =>
    Effect.gen(function* () {
      const Ranks = Schema.Struct({ ranks: Schema.make<Schema.Codec<number, number>>(rankAst()) })
      const { message } = yield* Effect.flip(decode(Ranks, { ranks: 100_000 }, { source: "conf.yaml:3" }))
      assert.strictEqual(
        message,
        "conf.yaml:3: ranks: expected a value between 1 and 256 (each is a process), found 100000",
      )
    }),
  )
})

const rankAst = (): SchemaAST.AST => {
  const found = numbers.find(({ path }) => path.join(".") === "multirun.trainer.ranks")
  if (found === undefined) throw new Error("trainer.ranks is no number")
  return found.ast
}
