import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { gitCommit, gitProvenance } from "../../../src/run/store/git-node.ts"

/** Makes a folder outside of any repository, which is gone after the test. */
const inFolder = async (body: (folder: string) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "effect-rl-git-"))
  try {
    await body(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Runs an effect in a working directory. */
const within = async <A>(folder: string, effect: Effect.Effect<A>): Promise<A> => {
  const before = process.cwd()
  process.chdir(folder)
  try {
    return await Effect.runPromise(effect)
  } finally {
    process.chdir(before)
  }
}

const git = (folder: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: folder, encoding: "utf8" }).trim()

/** Makes a repository with one commit, and returns the commit. */
const repository = (folder: string): string => {
  mkdirSync(join(folder, "below"), { recursive: true })
  git(folder, "init", "--quiet")
  writeFileSync(join(folder, "file.txt"), folder)
  git(folder, "add", ".")
  git(folder, "commit", "--quiet", "-m", "first")
  return git(folder, "rev-parse", "HEAD")
}

describe("the code of a run", () => {
  it("is the commit of the repository around the working directory, which is asked for once", { tags: "slow" }, () =>
    inFolder(async (folder) => {
      const [one, other] = [join(folder, "one"), join(folder, "other")]
      const [commit, otherCommit] = [repository(one), repository(other)]
      const clean = { commit, dirty: false, diff_sha256: null, diff: undefined }
      assert.deepStrictEqual(await within(join(one, "below"), gitProvenance), clean)
      // Another change is not that of the modules which this process has loaded.
      writeFileSync(join(one, "file.txt"), "changed")
      assert.deepStrictEqual(await within(one, gitProvenance), clean)
      writeFileSync(join(other, "file.txt"), "changed")
      const { diff, ...said } = (await within(other, gitProvenance)) ?? {}
      assert.deepInclude(said, { commit: otherCommit, dirty: true })
      assert.include(diff, "+changed")
      const tree = join(folder, "tree")
      git(one, "worktree", "add", "--quiet", tree)
      assert.strictEqual(await within(tree, gitCommit), commit.slice(0, 7))
    }),
  )

  it("is not known outside of a repository, nor before the first commit, and is known after it", { tags: "slow" }, () =>
    inFolder(async (folder) => {
      assert.isUndefined(await within(folder, gitProvenance))
      assert.strictEqual(await within(folder, gitCommit), "no-hash")
      git(folder, "init", "--quiet")
      assert.isUndefined(await within(folder, gitProvenance))
      const commit = repository(folder)
      assert.strictEqual(await within(folder, gitCommit), commit.slice(0, 7))
    }),
  )
})
