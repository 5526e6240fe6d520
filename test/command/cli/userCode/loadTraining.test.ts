import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { loadTraining } from "../../../../src/command/cli/userCode/loadTraining.ts"

describe("a program that throws when it is imported", () => {
  it.effect("fails with one line of limited length, however long the message is", () =>
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
    ).pipe(Effect.provide(NodeServices.layer)),
  )
})
