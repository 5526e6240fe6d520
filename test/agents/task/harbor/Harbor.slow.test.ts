import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Node from "../../../../src/node.ts"
import { begun, copying, folderOf, openTasks } from "./folders.ts"

describe("the verifier of a Harbor task", () => {
  it.live("runs in a scratch folder, and its reward is the score", () =>
    Effect.gen(function* () {
      const folder = yield* folderOf({ copying })
      const env = yield* (yield* openTasks(folder, { answer_file: "answer.txt" })).tasks.at(0)
      const scoreOf = (answer: string) =>
        Effect.scoped(
          Effect.gen(function* () {
            const { step } = yield* begun(env)
            return (yield* step(answer)).feedback.score
          }),
        )
      assert.deepStrictEqual([yield* scoreOf("heron\n"), yield* scoreOf("swan\n")], [1, 0])
    }).pipe(Effect.provide(Node.platform)),
  )

  it.live("is stopped at its limit, with all that it has started", () =>
    Effect.gen(function* () {
      const endless = { ...copying, "tests/test.sh": "sleep 1000 & wait\n" }
      const folder = yield* folderOf({ endless })
      const env = yield* (yield* openTasks(join(folder, "endless"), { timeout_seconds: 0.2 })).tasks.at(0)
      const { step } = yield* begun(env)
      assert.include((yield* Effect.flip(step("Done."))).message, "tests/test.sh did not end within 0.2 s")
    }).pipe(Effect.provide(Node.platform)),
  )
})
