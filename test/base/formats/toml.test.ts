import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { readTomlText } from "../../../src/base/formats/toml.ts"

const text = `name = "a" # a comment
[lora]
rank = 8
"alpha beta" = 2

[model.small]
layers = 2
optimiser.lr = 0.1
[[tasks]]
type = "qa"
`

describe("TOML", () => {
  it("is plain data with the line of each key", () => {
    const { value, keyLineOf } = Effect.runSync(readTomlText(text, "orch.toml"))
    assert.deepStrictEqual(JSON.parse(JSON.stringify(value)), {
      name: "a",
      lora: { rank: 8, "alpha beta": 2 },
      model: { small: { layers: 2, optimiser: { lr: 0.1 } } },
      tasks: [{ type: "qa" }],
    })
    const lines: ReadonlyArray<readonly [ReadonlyArray<string>, number | undefined]> = [
      [["name"], 1],
      [["lora"], 2],
      [["lora", "rank"], 3],
      [["lora", "alpha beta"], 4],
      [["model"], 6],
      [["model", "small", "layers"], 7],
      [["model", "small", "optimiser", "lr"], 8],
      [["tasks"], 9],
      [["rank"], undefined],
    ]
    for (const [path, line] of lines) assert.strictEqual(keyLineOf(path), line, path.join("."))
  })

  it("finds the lines of keys in one pass, whatever the text has", () => {
    const spaces = " ".repeat(200_000)
    const table = `[${"a".repeat(200_000)}]\n${Array.from({ length: 20_000 }, (_, index) => `k${index} = 1`).join("\n")}`
    const text = `a = 1\n${spaces}\n${spaces}b = 1\nc = '''\n${`[a${".a".repeat(2000)}]\n`.repeat(1000)}'''\n${table}`
    assert.strictEqual(Effect.runSync(readTomlText(text, "orch.toml")).keyLineOf(["b"]), 3)
  })

  it.for([
    [`${"a.".repeat(20_000)}b = 1`, "orch.toml: expected at most 100 arrays and tables inside each other, found more"],
    ["a = ", "orch.toml:1: expected TOML: invalid value"],
    ["a = 1\n\na = 2", "orch.toml:3: expected TOML: trying to redefine an already defined table or value"],
    ["a = 9007199254740993", "orch.toml:1: expected TOML: integer value cannot be represented losslessly"],
  ] as const)("that is wrong is an error with its line: %j", ([wrong, message]) =>
    assert.strictEqual(Effect.runSync(Effect.flip(readTomlText(wrong, "orch.toml"))).message, message),
  )
})
