import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Code, RunStore } from "../../../src/run/store/RunStore.ts"
import { runStore } from "../../../src/node.ts"
import { runsIn } from "../../command/cli/crash.ts"
import { program, start, withFolder } from "../../command/cli/effect.ts"
import { found } from "./found.ts"

const withResults = <A, E>(body: (resultsDir: string) => Effect.Effect<A, E>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-rl-"))),
    body,
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
  )

const identity = { name: "tune", population: { algorithm: "ppo" }, seed: 3 }
const provenance = { commit: "0123456789abcdef", dirty: true, diff_sha256: "ab" }
const time = new Date("2026-01-31T12:00:00Z")

const open = (resultsDir: string, body: (directory: string) => void, code: Code = provenance) =>
  Effect.gen(function* () {
    const { directory } = yield* (yield* RunStore).open(identity)
    body(directory)
    return directory
  }).pipe(Effect.scoped, Effect.provide(runStore({ resultsDir, time, commit: "0123456", provenance: code })))

const write = (folder: string, ...names: ReadonlyArray<string>): void => {
  for (const name of names) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), "1")
  }
}

const index = (resultsDir: string): string => readFileSync(join(resultsDir, "index.txt"), "utf8")

describe("index.txt", () => {
  it.effect("lists every file when a run has ended, sorted", () =>
    withResults((resultsDir) =>
      Effect.gen(function* () {
        write(resultsDir, ".git/HEAD", ".gitignore", ".DS_Store")
        for (let run = 0; run < 2; run++) yield* open(resultsDir, (to) => write(to, "steps/b.json", "a.txt"))
        const folders = ["00", "01"].map((second) => `./2026-01-31_12-00-${second}/0123456_tune_algorithm/ppo/0003`)
        const files = folders.flatMap((folder) => [`${folder}/a.txt`, `${folder}/git.json`, `${folder}/steps/b.json`])
        assert.strictEqual(index(resultsDir), [...files, ""].join("\n"))
        assert.strictEqual(index(resultsDir), found(resultsDir))
      }),
    ),
  )

  it.effect("is written through no link that somebody left in the folder", () =>
    withResults((resultsDir) =>
      Effect.gen(function* () {
        const outside = mkdtempSync(join(tmpdir(), "effect-rl-"))
        yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(outside, { recursive: true })))
        write(outside, "own.txt")
        for (const name of ["index.txt", "index.txt.tmp"]) symlinkSync(join(outside, "own.txt"), join(resultsDir, name))
        yield* open(resultsDir, (to) => write(to, "a.txt"))
        assert.strictEqual(readFileSync(join(outside, "own.txt"), "utf8"), "1")
        assert.strictEqual(index(resultsDir), found(resultsDir))
      }).pipe(Effect.scoped),
    ),
  )

  it.effect("is what find says, whatever comes and goes beside runs", () =>
    withResults((resultsDir) =>
      Effect.gen(function* () {
        const first = yield* open(resultsDir, (to) => write(to, "a.txt", "return.json", ".hidden", "with space"))
        const [second, third] = [
          yield* open(resultsDir, (to) => write(to, "a.txt", "return.json")),
          yield* open(resultsDir, (to) => write(to, "a.txt", ".b.tmp")),
        ]
        rmSync(join(third, ".b.tmp"))
        // Never ended, so nobody said what it has.
        write(dirname(first), "0009/a.txt", "0009/b.txt")
        write(resultsDir, "notes.md", "2020/notes.md", "a/b/c/d/e/f.txt", ".a/b")
        symlinkSync("0003/a.txt", join(dirname(first), "metrics.json"))
        symlinkSync("0003", join(dirname(first), "latest"))
        rmSync(second, { recursive: true })
        yield* open(resultsDir, (to) => write(to, "steps/1/a.txt", "Z", "é"))
        assert.strictEqual(index(resultsDir), found(resultsDir))
        for (const name of ["notes.md", "0009/b.txt", ".hidden", ".a/b"]) assert.include(index(resultsDir), name)
        assert.notInclude(index(resultsDir), "metrics.json")
        // One that is not finished is looked at again.
        rmSync(join(dirname(first), "0009/a.txt"))
        rmSync(join(third, "a.txt"))
        yield* open(resultsDir, () => {})
        assert.strictEqual(index(resultsDir), found(resultsDir))
      }),
    ),
  )

  it.effect("takes the files of finished runs from the last index, without listing their folders again", () =>
    withResults((resultsDir) =>
      Effect.gen(function* () {
        const finished = yield* open(resultsDir, (to) => write(to, "return.json"))
        const unfinished = yield* open(resultsDir, () => {})
        for (const folder of [finished, unfinished]) write(folder, "later.txt")
        yield* open(resultsDir, () => {})
        const lines = index(resultsDir)
          .split("\n")
          .filter((line) => line.endsWith("later.txt"))
        assert.deepStrictEqual(lines, [`./${unfinished.slice(resultsDir.length + 1)}/later.txt`])
      }),
    ),
  )

  it.effect("loses no line when many runs end at once", () =>
    withResults((resultsDir) =>
      Effect.gen(function* () {
        const runs = Array.from({ length: 8 }, () => open(resultsDir, (to) => write(to, "a.txt", "return.json")))
        yield* Effect.all(runs, { concurrency: "unbounded" })
        assert.strictEqual(index(resultsDir), found(resultsDir))
        assert.strictEqual(index(resultsDir).split("\n").length, 8 * 3 + 1)
      }),
    ),
  )

  it.effect(
    "waits for whoever is writing it, as long as that lives",
    () =>
      withResults((resultsDir) =>
        Effect.gen(function* () {
          const lock = join(resultsDir, ".index.lock")
          writeFileSync(lock, "somebody")
          let asked = 0
          const isAlive = (name: string) =>
            Effect.sync(() => {
              assert.strictEqual(name, "somebody")
              assert.isFalse(existsSync(join(resultsDir, "index.txt")))
              // More often than somebody unknown would be waited for.
              if (++asked === 60) rmSync(lock)
              return true
            })
          const owner = { name: "me", isAlive }
          yield* RunStore.use((store) => store.open(identity)).pipe(
            Effect.scoped,
            Effect.provide(runStore({ resultsDir, time, owner })),
          )
          assert.strictEqual(asked, 60)
          assert.strictEqual(index(resultsDir), found(resultsDir))
          assert.isFalse(existsSync(lock))
        }),
      ),
    { tags: "slow" },
  )

  it.effect("is written at once where whoever was writing it has gone", () =>
    withResults((resultsDir) =>
      Effect.gen(function* () {
        const lock = join(resultsDir, ".index.lock")
        writeFileSync(lock, "somebody")
        let asked = 0
        const owner = { name: "me", isAlive: () => Effect.sync(() => ++asked < 0) }
        yield* RunStore.use((store) => store.open(identity)).pipe(
          Effect.scoped,
          Effect.provide(runStore({ resultsDir, time, owner })),
        )
        assert.strictEqual(asked, 1)
        assert.strictEqual(index(resultsDir), found(resultsDir))
        assert.isFalse(existsSync(lock))
      }),
    ),
  )
})

describe("git.json", () => {
  it.effect("says what code made the run", () =>
    withResults((resultsDir) =>
      open(resultsDir, (directory) => {
        assert.deepEqual(JSON.parse(readFileSync(join(directory, "git.json"), "utf8")), provenance)
        assert.isFalse(existsSync(join(directory, "git.diff")))
      }),
    ),
  )

  it.effect("has what had been changed beside it, of which it says the digest", () =>
    withResults((resultsDir) =>
      open(
        resultsDir,
        (directory) => {
          assert.deepEqual(JSON.parse(readFileSync(join(directory, "git.json"), "utf8")), provenance)
          assert.strictEqual(readFileSync(join(directory, "git.diff"), "utf8"), "--- a\n+++ b\n")
        },
        { ...provenance, diff: "--- a\n+++ b\n" },
      ),
    ),
  )

  it("of a changed working tree has its diff, which git applies to the commit", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const git = (...args: ReadonlyArray<string>) =>
        execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: folder, encoding: "utf8" })
      writeFileSync(join(folder, "train.ts"), program("totalSteps: 256"))
      git("init", "--quiet")
      git("add", ".")
      git("commit", "--quiet", "-m", "first")
      const changed = program("totalSteps: 512")
      writeFileSync(join(folder, "train.ts"), changed)
      const { ended } = start(["run", "train.ts", "--quiet", "--results-dir", "results"], folder)
      const outcome = await ended
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      const [run] = runsIn(join(folder, "results"))
      const said = JSON.parse(readFileSync(join(run, "git.json"), "utf8"))
      assert.deepInclude(said, { commit: git("rev-parse", "HEAD").trim(), dirty: true })
      assert.strictEqual(
        createHash("sha256")
          .update(readFileSync(join(run, "git.diff")))
          .digest("hex"),
        said.diff_sha256,
      )
      git("checkout", "--quiet", "train.ts")
      git("apply", join(run, "git.diff"))
      assert.strictEqual(readFileSync(join(folder, "train.ts"), "utf8"), changed)
    }),
  )
})
