import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { yamlOverrides } from "../../src/cli/loadTraining.ts"

const overridesOf = (text: string) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-rl-"))),
    (folder) => {
      const file = join(folder, "conf.yaml")
      writeFileSync(file, text)
      return Effect.map(yamlOverrides(file), (overrides) =>
        overrides.map(({ path, value, source }) => ({ path, value, line: Number(source.split(":").at(-1)) })),
      )
    },
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
  )

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
