import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { parseYaml, readYamlText } from "../../../src/base/config/yaml.ts"

const problemOf = (text: string): string => {
  const found = parseYaml(text)
  return "problem" in found ? found.problem : "none"
}

/** Sections that each merge the one before ten times, which a library that merges would do 10^15 times. */
const mergeBomb = (key: string): string =>
  Array.from({ length: 16 }, (_, level) => {
    const before = Array.from({ length: 10 }, () => `*a${level - 1}`).join(", ")
    return `a${level}: &a${level} {${level === 0 ? "x: 1" : `${key}: [${before}]`}}`
  }).join("\n")

describe("a YAML text", () => {
  it("is plain data, with the lines of its keys and values", () => {
    const found = parseYaml("a: 1\nb:\n  - x\n  - key:\n      2\nc: &c { d: 3 }\ne: *c\n")
    assert.isTrue("value" in found)
    if (!("value" in found)) return
    assert.deepEqual(found.value, { a: 1, b: ["x", { key: 2 }], c: { d: 3 }, e: { d: 3 } })
    assert.deepEqual([found.lineOf(["a"]), found.lineOf(["b", "1", "key"]), found.lineOf(["c", "d"])], [1, 5, 6])
    assert.deepEqual(
      [found.keyLineOf(["b"]), found.keyLineOf(["b", "1", "key"]), found.keyLineOf(["none"])],
      [2, 4, undefined],
    )
    assert.strictEqual(found.lineOf(["e", "d"]), 7, "what an alias stands for has the alias's line")
  })

  it("may have many keys, whose number takes no time by itself", { tags: "slow" }, () => {
    const many = Array.from({ length: 30_000 }, (_, index) => `k${index}: 1`).join("\n")
    assert.deepStrictEqual(parseYaml(`${many}\nk7: 2`), { line: 30_001, problem: "Map keys must be unique" })
    assert.deepStrictEqual(parseYaml("a:\n  - {b: 1}\n  - {b: 1, b: 2}"), {
      line: 3,
      problem: "Map keys must be unique",
    })
  })

  it("may use an alias, and many of them", () => {
    const found = parseYaml(`a: &a [1, 2]\nb: [${"*a, ".repeat(300)}]`)
    assert.isTrue("value" in found)
  })

  it.for(["<<", "!!merge <<"])("has no merge keys: %s is a key like any other", (key) => {
    const found = parseYaml(`a: &a {x: 1}\nb: {${key}: *a}`)
    assert.deepStrictEqual("value" in found && found.value, { a: { x: 1 }, b: { "<<": { x: 1 } } })
    assert.include(problemOf(mergeBomb(key)), "(an alias counts as all that it stands for)")
  })

  it("may have a directive, comments, tags of the core schema, and words of YAML 1.1", () => {
    const found = parseYaml("%YAML 1.2\n---\n# why\non: !!str 1\nyes: no # as text\nwhen: 2026-01-01\ny: ~\n")
    assert.deepStrictEqual("value" in found && found.value, { on: "1", yes: "no", when: "2026-01-01", y: null })
  })

  const refused: ReadonlyArray<readonly [title: string, text: string, expected: string]> = [
    [
      "an alias of what it is a part of",
      "env: &a {b: *a}",
      "env.b: expected a value, found an alias of what it is a part of",
    ],
    [
      "an alias of the whole",
      "&a\nlist:\n  - *a\n",
      "list.0: expected a value, found an alias of what it is a part of",
    ],
    [
      "aliases of aliases that make a tree without end",
      Array.from(
        { length: 40 },
        (_, level) => `k${level}: &k${level} [${level === 0 ? "1, 1" : `*k${level - 1}, *k${level - 1}`}]`,
      ).join("\n"),
      "expected at most 100000 keys and values, found more; a data set belongs into a .jsonl or .csv file (an alias counts as all that it stands for)",
    ],
    [
      "more items than a config can have",
      `a: [${",".repeat(100_001)}]`,
      "expected at most 100000 keys and values, found more; a data set belongs into a .jsonl or .csv file",
    ],
    [
      "brackets in brackets",
      `a: ${"[".repeat(300)}${"]".repeat(300)}`,
      "expected at most 100 sections inside each other, found more",
    ],
    [
      "brackets that use up the stack",
      "[".repeat(100_000),
      "expected at most 100 sections inside each other, found more",
    ],
    [
      "merge keys that copy each other",
      `%YAML 1.1\n---\n${mergeBomb("<<")}`,
      "expected YAML 1.2, found the directive %YAML 1.1; remove it, and write merge keys (<<) out",
    ],
    [
      "more aliases than a config can have",
      `a: &a 1\nb: [${"*a, ".repeat(10_001)}]`,
      "expected at most 10000 anchors and aliases, found more; write the values out",
    ],
    [
      "keys whose paths have very many characters",
      `${Array.from({ length: 90 }, (_, level) => `${" ".repeat(level)}${"k".repeat(900)}:`).join("\n")} [${"1, ".repeat(1000)}]`,
      "expected shorter keys: the paths of all values together are too long",
    ],
    ["a list as a key", "a:\n  ? [1, 2]\n  : 3\n", "expected a text as a key, found a list or section"],
    ["an alias of nothing", "a: *b", "Unresolved alias (the anchor must be set before the alias): b"],
    [
      "several documents",
      "a: 1\n---\na: 2\n",
      "expected one YAML document, found a second one; put it into a file of its own",
    ],
    ["the same key twice", "a: 1\na: 2\n", "Map keys must be unique"],
  ]
  for (const [title, text, expected] of refused) {
    it(`is refused with one line: ${title}`, () => assert.strictEqual(problemOf(text), expected))
  }

  it.effect("that is refused names its source and the line", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(readYamlText("a: 1\n---\na: 2\n", "conf.yaml"))
      assert.strictEqual(error._tag, "ConfigError")
      assert.match(error.message, /^conf\.yaml:2: expected one YAML document/)
    }),
  )
})
