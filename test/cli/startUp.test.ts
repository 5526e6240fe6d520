import { readFileSync } from "node:fs"
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { assert, describe, it } from "vitest"
import { root, withFolder, write } from "./effect.ts"

/** Every module of ours that a command loads, by its path in `src`, and the parts of Effect. */
const loadedBy = (folder: string, ...args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const list = join(folder, "loaded.txt")
  const hook = write(
    folder,
    "hook.mjs",
    `import { appendFileSync } from "node:fs"
     import { registerHooks } from "node:module"
     registerHooks({ load: (url, context, next) => { appendFileSync(${JSON.stringify(list)}, url + "\\n"); return next(url, context) } })`,
  )
  const { status, stderr } = spawnSync(process.execPath, ["--import", hook, join(root, "bin/effect.js"), ...args], {
    encoding: "utf8",
  })
  assert.strictEqual(status, 0, stderr)
  return readFileSync(list, "utf8").split("\n")
}

describe("what only says something about itself", () => {
  it("effect --version loads nothing but package.json", () =>
    withFolder(async (folder) => {
      const loaded = loadedBy(folder, "--version").filter((url) => url.startsWith("file:"))
      assert.deepStrictEqual(loaded.map((url) => url.slice(pathToFileURL(root).href.length)).sort(), [
        "bin/effect.js",
        "package.json",
      ])
    }))

  it.each([
    ["run", "--help"],
    ["eval", "--help"],
  ])("effect %s … loads neither algorithms nor models, agents or episodes", (...args) =>
    withFolder(async (folder) => {
      const loaded = loadedBy(folder, ...args)
      assert.isTrue(loaded.some((url) => url.endsWith("/src/cli/main.ts")))
      // An error of a model holds its usage, whose Schema is in Chat.ts: plain data, and light.
      const heavy =
        /\/src\/(lm(?!\/(LmError|Chat|usage)\.ts$)|agent|episode|algorithms|learner|evaluate\/Evaluate|task\/games)\b|effect\/(dist|src)\/(ai|rpc)\//
      assert.deepStrictEqual(
        loaded.filter((url) => heavy.test(url)),
        [],
      )
    }),
  )
})
