/** The files of a gateway that ends with large sessions, or whose files cannot be written. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Layer } from "effect"
import * as Node from "../../../../src/node.ts"
import { disk } from "../../../run/store/disk.ts"
import { send } from "../opened.ts"
import { ask, fileIn, rolloutsIn, running } from "./running.ts"

const machine = Layer.mergeAll(disk, Node.httpClient)

/** Files in memory. `check` is called before a file is changed. */
class CheckedFiles extends Map<string, Uint8Array> {
  check: (path: string, content: Uint8Array) => void = () => {}

  override set(path: string, content: Uint8Array): this {
    this.check(path, content)
    return super.set(path, content)
  }
}

describe("a gateway that is interrupted", () => {
  it.live(
    "writes the rollouts of open sessions in pieces, since all together may be longer than a string",
    () =>
      Effect.gen(function* () {
        const files = new CheckedFiles()
        const sizes: Array<number> = []
        files.check = (path, { length }) => void (path.endsWith("rollouts.jsonl") && sizes.push(length))
        const ids = ["a", "b", "c"]
        const content = "x".repeat(2.2e6)
        const messages = [
          { role: "system", content },
          { role: "user", content: "Hi" },
        ]
        yield* running({ files }, (url) =>
          Effect.forEach(ids, (id) =>
            send(`${url}/sessions/${id}/v1/chat/completions`, { body: JSON.stringify({ model: "m", messages }) }),
          ),
        )
        assert.sameMembers(
          rolloutsIn(files).map(({ id }) => id),
          ids,
        )
        const appended = sizes.map((size, at) => size - (sizes[at - 1] ?? 0))
        assert.lengthOf(
          appended.filter((size) => size > 2.2e6),
          3,
        )
      }).pipe(Effect.provide(machine)),
    { tags: "slow" },
  )

  it.live("fails if the last rollouts cannot be written, instead of waiting or ending without them", () =>
    Effect.gen(function* () {
      const files = new CheckedFiles()
      const { exit } = yield* running({ files }, (url) =>
        Effect.map(ask(url, "a"), () => {
          files.check = (path) => {
            if (path.endsWith("rollouts.jsonl")) throw new Error("the disk is full")
          }
        }),
      )
      assert.match(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "", /the disk is full/)
      assert.strictEqual(fileIn(files, "metrics.json"), undefined)
      assert.match(fileIn(files, "sessions.jsonl") ?? "", /"Ended"/)
    }).pipe(Effect.provide(machine)),
  )
})
