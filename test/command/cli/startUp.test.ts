import { mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs"
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

/** The paths of those modules that are not in packages, from the root of the checkout. */
const ofOurs = (loaded: ReadonlyArray<string>): ReadonlyArray<string> => {
  const checkout = `${pathToFileURL(root).href.replace(/\/$/, "")}/`
  return loaded
    .filter((url) => url.startsWith(checkout) && !url.includes("/node_modules/"))
    .map((url) => url.slice(checkout.length))
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

  it("effect --help loads the list of subcommands, and none of their modules", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const loaded = ofOurs(loadedBy(folder, "--help"))
      assert.include(loaded, "src/command/cli/command.ts")
      assert.notInclude(loaded, "src/command/cli/flags.ts")
      assert.isBelow(loaded.length, 30)
    }),
  )

  for (const args of [
    ["runs", "--results-dir", "bin"],
    ["runs", "--help"],
    ["init", "--help"],
    ["ui", "--help"],
  ]) {
    const said = `effect ${args.join(" ")}`
    it(`${said} loads neither what trains and plays nor the Layers of Node`, { tags: "slow" }, () =>
      withFolder(async (folder) => {
        const loaded = ofOurs(loadedBy(folder, ...args))
        const heavy =
          /^src\/(node\.ts|(tensor\/(?!backend\/names\.ts$)|rl\/(?!env\/internal\/stepsTaken\.ts$)|agents\/|decoder\/|trainer\/(?!Layout\.ts$)))/
        assert.deepStrictEqual(
          loaded.filter((path) => heavy.test(path)),
          [],
        )
        assert.isBelow(loaded.length, 88)
      }),
    )
  }

  it.each([
    ["run", "--help"],
    ["eval", "--help"],
  ])("effect %s … loads neither algorithms nor models, agents or episodes", { tags: "slow" }, (...args) =>
    withFolder(async (folder) => {
      const loaded = loadedBy(folder, ...args)
      assert.isTrue(loaded.some((url) => url.endsWith("/src/command/cli/main.ts")))
      // An error of a model holds its usage, whose Schema is in Chat.ts: plain data, and light.
      const heavy =
        /\/src\/(agents\/(lm(?!\/(LmError|Chat|usage)\.ts$)|agent|episode|evaluate\/Evaluate|task\/games)|rl\/(algorithms|learner))\b|effect\/(dist|src)\/(ai|rpc)\//
      assert.deepStrictEqual(
        loaded.filter((url) => heavy.test(url)),
        [],
      )
    }),
  )
})

describe("compiled JavaScript", () => {
  it("is kept in the user's own folder, and nowhere if that leads elsewhere", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const [own, planted, temporary] = ["own", "planted", "temporary"].map((name) => join(folder, name))
      for (const one of [own, planted, temporary]) mkdirSync(one)
      mkdirSync(join(folder, "elsewhere"))
      symlinkSync(join(folder, "elsewhere"), join(planted, "effect-rl"))
      const helpWith = (variables: Readonly<Record<string, string>>) => {
        const { NODE_COMPILE_CACHE: _, ...others } = process.env
        const env = { ...others, TMPDIR: temporary, ...variables }
        const { status } = spawnSync(process.execPath, [join(root, "bin/effect.js"), "--help"], { env })
        assert.strictEqual(status, 0)
      }
      const filesIn = (path: string): number => readdirSync(path, { recursive: true }).length
      helpWith({ XDG_CACHE_HOME: own })
      assert.isAbove(filesIn(join(own, "effect-rl/compiled")), 10)
      helpWith({ XDG_CACHE_HOME: planted })
      assert.strictEqual(filesIn(join(folder, "elsewhere")), 0)
      helpWith({ XDG_CACHE_HOME: planted, NODE_COMPILE_CACHE: join(folder, "named") })
      assert.isAbove(filesIn(join(folder, "named")), 10)
      assert.strictEqual(filesIn(temporary), 0)
    }),
  )
})
