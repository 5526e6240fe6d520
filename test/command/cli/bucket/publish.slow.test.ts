import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { connect } from "../../../../src/command/cli/bucket/connect.ts"
import { openPublished } from "../../../../src/command/cli/bucket/publish.ts"
import { utf8 } from "../../../../src/base/text/utf8.ts"
import { bucketServer } from "./inBucket.ts"

const place = "s3://runs/team"

describe("a run that is published in a bucket", () => {
  it.live("has its files and its link to the newest checkpoint, and nothing that an earlier attempt left", () =>
    Effect.gen(function* () {
      yield* bucketServer()
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "publish-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true })),
      )
      mkdirSync(join(folder, "checkpoints/step_000000000000064"), { recursive: true })
      for (const file of ["return.json", "metrics.json", "run.lock", "checkpoints/step_000000000000064/manifest.json"])
        writeFileSync(join(folder, file), "{}")
      symlinkSync("step_000000000000064", join(folder, "checkpoints/latest"))
      const { store } = yield* connect(place)
      yield* store.put("walk/0001/run.log", utf8.encode("an earlier attempt"))
      yield* (yield* openPublished(place, "walk/0001")).publish(folder)
      const keys = yield* store.list("walk/0001/")
      assert.deepStrictEqual(keys.toSorted(), [
        "walk/0001/checkpoints/latest",
        "walk/0001/checkpoints/step_000000000000064/manifest.json",
        "walk/0001/metrics.json",
        "walk/0001/return.json",
      ])
      const latest = (yield* store.get("walk/0001/checkpoints/latest")) ?? new Uint8Array()
      assert.strictEqual(utf8.decode(latest), "step_000000000000064")
    }).pipe(Effect.provide(NodeServices.layer)),
  )
})
