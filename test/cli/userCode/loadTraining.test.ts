import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { loadTraining, yamlLines, yamlOverrides } from "../../../src/cli/userCode/loadTraining.ts"

const withFile = <A, E, R>(text: string, use: (file: string) => Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-rl-"))),
    (folder) => {
      const file = join(folder, "conf.yaml")
      writeFileSync(file, text)
      return use(file)
    },
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
  )

const overridesOf = (text: string) =>
  withFile(text, (file) =>
    Effect.map(yamlOverrides(file), (overrides) =>
      overrides.map(({ path, value, source }) => ({ path, value, line: Number(source.split(":").at(-1)) })),
    ),
  )

describe("a program that throws when it is imported", () => {
  it.effect("gives one bounded line, however long its message is", () =>
    Effect.acquireUseRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-rl-"))),
      (folder) =>
        Effect.gen(function* () {
          for (const [name, thrown] of [
            ["error.mjs", 'new Error("x".repeat(5000))'],
            ["text.mjs", '"x".repeat(5000)'],
          ]) {
            const file = join(folder, name)
            writeFileSync(file, `throw ${thrown}\n`)
            const { message } = yield* Effect.flip(loadTraining(file))
            assert.include(message, "xxx…")
            assert.isBelow(message.length, 1500)
          }
        }),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
    ),
  )
})

describe("settings from a file", () => {
  it.effect("are its leaves with their lines; an empty map is one, and names come first", () =>
    Effect.gen(function* () {
      const text = "seed: 3\nalgorithm:\n  learning_rate: 0.5\n  prioritised: {}\n  name: dqn\n"
      assert.deepEqual(yield* overridesOf(text), [
        { path: "seed", value: 3, line: 1 },
        { path: "algorithm.name", value: "dqn", line: 5 },
        { path: "algorithm.learning_rate", value: 0.5, line: 3 },
        { path: "algorithm.prioritised", value: {}, line: 4 },
      ])
    }),
  )
})

describe("the keys of a file", () => {
  it.effect("have lines, sections and what is in lists too, but for data", () =>
    withFile("a:\n  # a note\n  some_key:\n    deep: 1\nagents:\n  - type: x\nd:\n  items: [{ q: 1 }]\n", (file) =>
      Effect.map(yamlLines(file), ({ lines }) =>
        assert.deepEqual(
          [...lines].map(([key, source]) => [key, source.slice(file.length)]),
          [
            ["a", ":1"],
            ["a.someKey", ":3"],
            ["a.someKey.deep", ":4"],
            ["agents", ":5"],
            ["agents.0.type", ":6"],
            ["d", ":7"],
            ["d.items", ":8"],
          ],
        ),
      ),
    ),
  )
})
