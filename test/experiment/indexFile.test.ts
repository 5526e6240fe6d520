import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { RunStore } from "../../src/experiment/RunStore.ts"
import { runStore } from "../../src/node.ts"

const withResults = <A, E>(body: (resultsDir: string) => Effect.Effect<A, E>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-rl-"))),
    body,
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
  )

const identity = { name: "tune", population: { algorithm: "ppo" }, seed: 3 }
const provenance = { commit: "0123456789abcdef", dirty: true, diff_sha256: "ab" }
const time = new Date("2026-01-31T12:00:00Z")

const open = (resultsDir: string, body: (directory: string) => void) =>
  Effect.gen(function* () {
    const { directory } = yield* (yield* RunStore).open(identity)
    body(directory)
  }).pipe(Effect.scoped, Effect.provide(runStore({ resultsDir, time, commit: "0123456", provenance })))

describe("index.txt", () => {
  it.effect("lists every file of all runs when one has ended, sorted, and nothing else", () =>
    withResults((resultsDir) =>
      Effect.gen(function* () {
        mkdirSync(join(resultsDir, ".git"))
        writeFileSync(join(resultsDir, ".git", "HEAD"), "")
        writeFileSync(join(resultsDir, "notes.md"), "")
        for (let run = 0; run < 2; run++) {
          yield* open(resultsDir, (directory) => {
            mkdirSync(join(directory, "steps"))
            writeFileSync(join(directory, "steps", "b.json"), "1")
            writeFileSync(join(directory, "a.txt"), "1")
          })
        }
        const folders = ["00", "01"].map((second) => `./2026-01-31_12-00-${second}/0123456_tune_algorithm/ppo/0003`)
        const files = folders.flatMap((folder) => [`${folder}/a.txt`, `${folder}/git.json`, `${folder}/steps/b.json`])
        assert.strictEqual(readFileSync(join(resultsDir, "index.txt"), "utf8"), [...files, ""].join("\n"))
      }),
    ),
  )
})

describe("git.json", () => {
  it.effect("says what code made the run", () =>
    withResults((resultsDir) =>
      open(resultsDir, (directory) => {
        assert.deepEqual(JSON.parse(readFileSync(join(directory, "git.json"), "utf8")), provenance)
      }),
    ),
  )
})
