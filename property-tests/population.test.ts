import { Effect } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { choicesOf, parsePopulation, populationOf, splitValues } from "../src/command/sweep/population.ts"
import { settingValue } from "../src/command/cli/run/overrides.ts"
import { fromPath, toPath } from "../src/run/identifier.ts"

const parse = (specs: ReadonlyArray<string>) => Effect.runSync(parsePopulation(specs))

const name = fc.stringMatching(/^[a-z][a-z0-9]{0,5}(_[a-z]{1,4})?$/).filter((text) => text !== "seed")
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("."))

/** Text that is full of what separates and encloses. */
const text = fc.string({ unit: fc.constantFrom("a", "1", ",", "'", '"', "[", "]", "{", "}", ":", " ", "\\", "_", "/") })
const scalar = fc.oneof(
  text,
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
  fc.double({ noNaN: true, noDefaultInfinity: true, min: 1e-3 }),
)
const value = fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }), fc.dictionary(fc.constantFrom("x", "y"), scalar))

/** A value as people may write it in YAML: JSON, quotes of the other kind, or as it is where it means itself. */
const written = value.chain((one) => {
  const forms = [JSON.stringify(one)]
  if (typeof one === "string") forms.push(`'${one.replaceAll("'", "''")}'`)
  if (typeof one === "string" && /^a[a1_/]*$/.test(one)) forms.push(one)
  return fc.constantFrom(...forms).map((form) => ({ form, value: one }))
})
const distinct = fc.uniqueArray(written, {
  minLength: 1,
  maxLength: 4,
  selector: ({ value: one }) => (typeof one === "string" ? one : JSON.stringify(one)),
})
const space = fc.constantFrom("", " ")

describe("the values of a swept setting", () => {
  it("are those between the commas, whatever is in quotes and brackets", () => {
    fc.assert(
      fc.property(path, distinct, space, (key, values, pad) => {
        const [variable] = parse([`${key}=${values.map(({ form }) => `${pad}${form}${pad}`).join(",")}`])
        assert.strictEqual(variable.path, key)
        assert.deepEqual(
          variable.values.map((one) => one.value),
          values.map((one) => one.value),
        )
      }),
    )
  })

  it("mean to the process of a run what they mean to the sweep", () => {
    fc.assert(
      fc.property(distinct, (values) => {
        for (const one of parse([`key=${values.map(({ form }) => form).join(",")}`])[0].values) {
          assert.deepEqual(settingValue(one.text), one.value)
        }
      }),
    )
  })

  it("are whole: together they are what was written", () => {
    fc.assert(
      fc.property(text, (list) => {
        const texts = splitValues(list)
        if (texts !== undefined) assert.strictEqual(texts.join(",").replaceAll(" ", ""), list.replaceAll(" ", ""))
      }),
    )
  })

  it("are a value or one line that says why not, whatever is written", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          text,
          text.map((list) => `key=${list}`),
        ),
        (spec) => {
          const exit = Effect.runSync(Effect.result(parsePopulation([spec])))
          if (exit._tag === "Failure") assert.match(exit.failure.message, /^--population [^\n]+$/)
        },
      ),
    )
  })
})

describe("the runs of a sweep", () => {
  const variables = fc
    .uniqueArray(fc.tuple(path, distinct), { maxLength: 3, selector: ([key]) => key })
    .map((specs) => parse(specs.map(([key, values]) => `${key}=${values.map(({ form }) => form).join(",")}`)))

  it("are as many as there are choices, each with a path of its own that gives its values back", () => {
    fc.assert(
      fc.property(variables, fc.nat(20_000), (swept, seed) => {
        const all = choicesOf(swept)
        assert.strictEqual(
          all.length,
          swept.reduce((count, { values }) => count * values.length, 1),
        )
        const paths = all.map((choices) => {
          const population = { environment: "CartPole-v1", algorithm: "ppo", ...populationOf(swept, choices) }
          const identifier = { time: "2026-01-31_12-00-00", commit: "0123abc", name: "tune", population, seed }
          assert.deepEqual(fromPath(toPath(identifier)), identifier)
          const shown = Object.values(population).slice(2)
          assert.deepEqual(
            shown,
            choices.map((choice) => choice.shown),
          )
          return toPath(identifier)
        })
        assert.strictEqual(new Set(paths).size, paths.length)
      }),
    )
  })

  it("tell variables apart whose paths end alike", () => {
    const swept = parse(["validation.episodes=1", "limits.episodes=2", "algorithm.learning_rate=3", "a.algorithm=4"])
    assert.deepEqual(populationOf(swept, choicesOf(swept)[0]), {
      "validation.episodes": "1",
      "limits.episodes": "2",
      learning_rate: "3",
      "a.algorithm": "4",
    })
  })

  it("have env and algorithm by their names, and with more than a name by all of it", () => {
    const named = parse(["algorithm=ppo,a2c", "env=CartPole-v1"])
    assert.deepEqual(populationOf(named, choicesOf(named)[0]), {})
    const made = parse(["env={name: KeyDoor, size: 8},CartPole-v1"])
    assert.deepEqual(populationOf(made, choicesOf(made)[0]), { env: '{"name":"KeyDoor","size":8}' })
  })
})
