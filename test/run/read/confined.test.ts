import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, it } from "vitest"
import { confinedTo } from "../../../src/run/read/confined-node.ts"

it("reads files of its folder, and none that a link or a path outside of it names", async () => {
  const folder = mkdtempSync(join(tmpdir(), "confined-"))
  try {
    const root = join(folder, "root")
    mkdirSync(join(root, "runs/a"), { recursive: true })
    writeFileSync(join(root, "runs/a/log"), "0123456789")
    writeFileSync(join(folder, "secret"), "secret")
    symlinkSync(join(folder, "secret"), join(root, "link"))
    symlinkSync(folder, join(root, "up"))
    const files = await Effect.runPromise(confinedTo(root))
    const text = (path: string) => Effect.runSync(files.text(path))
    assert.strictEqual(text("runs/a/log"), "0123456789")
    assert.strictEqual(text("/runs/a/log"), "0123456789")
    for (const path of [
      "link",
      "up/secret",
      "../secret",
      "runs/../../secret",
      join(folder, "secret"),
      "runs",
      "gone",
    ]) {
      assert.isUndefined(text(path), path)
      assert.isUndefined(Effect.runSync(files.size(path)), path)
    }
    assert.deepStrictEqual(Effect.runSync(files.entries("")), { files: [], folders: ["runs"] })
    const end = Effect.runSync(files.part("runs/a/log", -3))
    assert.strictEqual(new TextDecoder().decode(end), "789")
    assert.deepStrictEqual(Effect.runSync(files.tree("runs")), [{ path: "a/log", bytes: 10 }])
    const one = await Effect.runPromise(confinedTo(root, "runs/a"))
    assert.isUndefined(Effect.runSync(one.text("link")))
    assert.strictEqual(Effect.runSync(one.text("runs/a/log")), "0123456789")
  } finally {
    rmSync(folder, { recursive: true })
  }
})
