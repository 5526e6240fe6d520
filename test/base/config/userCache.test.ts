import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { cacheIn, isOwnFile, privateFolder, userCache, userCaches } from "../../../bin/userCache.js"
import { withFolder } from "../../command/cli/effect.ts"

const isRoot = process.getuid?.() === 0
const another = 65_534
/** Tells whether a folder, or one that it is in, can be entered by its owner alone. */
const isClosed = (path: string): boolean =>
  (statSync(path).mode & 0o077) === 0 || (path !== dirname(path) && isClosed(dirname(path)))

const modeOf = (path: string): number => statSync(path).mode & 0o7777

describe.skipIf(process.platform === "win32")("folders for caches", () => {
  it("are made for the user alone, also where they had been open to be read", () =>
    withFolder(async (folder) => {
      const cache = cacheIn(join(folder, "a/b"), "compiled")
      assert.strictEqual(cache, join(realpathSync(folder), "a/b/effect-rl/compiled"))
      for (const one of ["a", "a/b", "a/b/effect-rl", "a/b/effect-rl/compiled"]) {
        assert.strictEqual(modeOf(join(folder, one)), 0o700)
      }
      chmodSync(join(folder, "a/b/effect-rl"), 0o755)
      cacheIn(join(folder, "a/b"), "compiled")
      assert.strictEqual(modeOf(join(folder, "a/b/effect-rl")), 0o700)
    }))

  it("are refused if others can write to them, or to a folder that they are in", (test) => {
    // The checkout may lie in a folder that nobody else can enter, where nothing would be refused.
    test.skip(isClosed(tmpdir()), "the folder for temporary files is closed to others")
    const folder = mkdtempSync(join(tmpdir(), "effect-caches-"))
    try {
      mkdirSync(join(folder, "open/cache"), { recursive: true })
      chmodSync(folder, 0o755)
      chmodSync(join(folder, "open"), 0o777)
      assert.throws(() => cacheIn(join(folder, "open/cache"), "compiled"), /open$/)
      // A sticky folder such as /tmp lets nobody replace what belongs to another user.
      chmodSync(join(folder, "open"), 0o1777)
      cacheIn(join(folder, "open/cache"), "compiled")
      chmodSync(join(folder, "open/cache/effect-rl"), 0o770)
      assert.throws(() => cacheIn(join(folder, "open/cache"), "compiled"), /others can write to .*effect-rl$/)
      // Nobody else can enter this folder, so what is in it cannot be written to.
      chmodSync(folder, 0o700)
      cacheIn(join(folder, "open/cache"), "compiled")
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it("are not looked for in the working directory, which an empty or relative HOME would mean", () => {
    const { HOME: home, XDG_CACHE_HOME: xdg } = process.env
    try {
      delete process.env.XDG_CACHE_HOME
      for (const wrong of ["", ".", "unpacked/home"]) {
        process.env.HOME = wrong
        assert.throws(() => userCaches(), /^HOME is ".*"; expected an absolute path$/)
        assert.isUndefined(userCache("compiled"))
      }
    } finally {
      for (const [name, value] of Object.entries({ HOME: home, XDG_CACHE_HOME: xdg })) {
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
      }
    }
  })

  it("are refused if they are symbolic links; links on the way are followed and checked", () =>
    withFolder(async (folder) => {
      mkdirSync(join(folder, "real"))
      symlinkSync(join(folder, "real"), join(folder, "effect-rl"))
      assert.throws(() => cacheIn(folder, "compiled"), /effect-rl is a symbolic link/)
      assert.deepStrictEqual(readdirSync(join(folder, "real")), [])
      symlinkSync(join(folder, "real"), join(folder, "way"))
      assert.strictEqual(cacheIn(join(folder, "way"), "kept"), join(realpathSync(folder), "real/effect-rl/kept"))
    }))

  it.skipIf(!isRoot)("are refused if they, or a folder on the way, belong to another user", () =>
    withFolder(async (folder) => {
      mkdirSync(join(folder, "home/effect-rl"), { recursive: true })
      chownSync(join(folder, "home/effect-rl"), another, another)
      assert.throws(() => cacheIn(join(folder, "home"), "compiled"), `effect-rl belongs to the user ${another}`)
      chownSync(join(folder, "home/effect-rl"), 0, 0)
      chownSync(join(folder, "home"), another, another)
      assert.throws(() => privateFolder(join(folder, "home/effect-rl")), `home belongs to the user ${another}`)
    }),
  )

  it("have only files of the user", () =>
    withFolder(async (folder) => {
      writeFileSync(join(folder, "own"), "")
      symlinkSync(join(folder, "own"), join(folder, "link"))
      assert.isTrue(isOwnFile(join(folder, "own")))
      assert.isFalse(isOwnFile(join(folder, "link")))
      assert.isFalse(isOwnFile(join(folder, "missing")))
      assert.isFalse(isOwnFile(folder))
      if (!isRoot) return
      chownSync(join(folder, "own"), another, another)
      assert.isFalse(isOwnFile(join(folder, "own")))
    }))

  it("are below XDG_CACHE_HOME, if that is an absolute path, and there are none where they cannot be", () =>
    withFolder(async (folder) => {
      const before = process.env.XDG_CACHE_HOME
      try {
        process.env.XDG_CACHE_HOME = folder
        assert.strictEqual(userCache("buckets"), join(realpathSync(folder), "effect-rl/buckets"))
        writeFileSync(join(folder, "file"), "")
        process.env.XDG_CACHE_HOME = join(folder, "file")
        assert.isUndefined(userCache("buckets"))
        process.env.XDG_CACHE_HOME = "/proc/effect-rl/cache"
        assert.isUndefined(userCache("buckets"))
        process.env.XDG_CACHE_HOME = "relative"
        assert.notInclude(userCaches(), "relative")
      } finally {
        if (before === undefined) delete process.env.XDG_CACHE_HOME
        else process.env.XDG_CACHE_HOME = before
      }
    }))
})
