import { symlinkSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { silentSource } from "../../../src/run/read/disk-node.ts"
import { findRuns } from "../../../src/run/find/find-node.ts"
import { entryOf, trainerOf } from "../../../src/run/find/RunEntry.ts"
import { withFolder, write } from "../../command/ui/folder.ts"

const trainer = "/r/2026-01-31_12-00-00/0123abc_words_environment_algorithm/a+b_multirun/0007"

/** A disk with these files. */
const disk = (...files: ReadonlyArray<string>) => {
  const below = (folder: string) =>
    files.filter((file) => file.startsWith(`${folder}/`)).map((file) => file.slice(folder.length + 1).split("/"))
  const names = (parts: ReadonlyArray<ReadonlyArray<string>>) => [...new Set(parts.map(([name]) => name))]
  return {
    list: (folder: string) => Effect.succeed(names(below(folder))),
    folders: (folder: string) => Effect.succeed(names(below(folder).filter(({ length }) => length > 1))),
  }
}

const found = (source: ReturnType<typeof disk>, folder = "/r") =>
  Effect.runSync(findRuns(folder, source)).map(({ path, population }) => [path, population["environment"]])

describe("the runs of a trainer", () => {
  it("have its facts, but their own names and seeds", () => {
    assert.deepStrictEqual(entryOf(`${trainer}/run_a.b`), {
      path: `${trainer}/run_a.b`,
      time: "2026-01-31_12-00-00",
      commit: "0123abc",
      name: "words",
      seed: undefined,
      population: { environment: "a.b", algorithm: "multirun" },
    })
    assert.strictEqual(trainerOf(`${trainer}/run_a/`), trainer)
    assert.isUndefined(trainerOf(trainer))
    assert.isUndefined(entryOf("/somewhere/run_a"))
  })

  it("stand in its place, in every layout, once they have begun", () => {
    const flat = "/r/words/20260131_120000"
    const begun = [`${trainer}/config.yaml`, `${trainer}/run_a/config.yaml`, `${trainer}/run_b/configs/orch.yaml`]
    assert.deepStrictEqual(found(disk(...begun)), [[`${trainer}/run_a`, "a"]])
    assert.deepStrictEqual(found(disk(...begun), trainer), [[`${trainer}/run_a`, "a"]])
    assert.deepStrictEqual(found(disk(`${flat}/config.yaml`, `${flat}/run_c/config.yaml`)), [[`${flat}/run_c`, "c"]])
    const waiting = [`${trainer}/config.yaml`, `${trainer}/run_b/configs/orch.yaml`]
    assert.deepStrictEqual(found(disk(...waiting)), [[trainer, "a+b"]])
  })

  it("that wait for the trainer are found if that is asked for, once another one has begun", () => {
    const files = ["config.yaml", "run_a/config.yaml", "run_b/configs/orch.yaml", "run_c/notes.txt"]
    const source = disk(...files.map((file) => `${trainer}/${file}`))
    const isWaiting = (run: string) => Effect.succeed(run.endsWith("run_b"))
    const paths = (folder: string) => Effect.runSync(findRuns(folder, source, isWaiting)).map(({ path }) => path)
    assert.deepStrictEqual(paths("/r"), [`${trainer}/run_a`, `${trainer}/run_b`])
    const none = disk(`${trainer}/config.yaml`, `${trainer}/run_b/configs/orch.yaml`)
    assert.deepStrictEqual(
      Effect.runSync(findRuns("/r", none, isWaiting)).map(({ path }) => path),
      [trainer],
    )
  })

  it("are no links, which can lead back to the trainer or out of the folder", () =>
    withFolder(async (folder) => {
      const at = join(folder, "results", trainer.slice("/r/".length))
      write(at, "config.yaml", "")
      write(at, "run_a/config.yaml", "")
      write(folder, "elsewhere/config.yaml", "")
      symlinkSync(".", join(at, "run_self"))
      symlinkSync(join(folder, "elsewhere"), join(at, "run_out"))
      symlinkSync("..", join(folder, "results/2026-02-01_12-00-00"))
      symlinkSync(join(folder, "results/2026-01-31_12-00-00"), join(folder, "results/2026-03-01_12-00-00"))
      const runs = await Effect.runPromise(findRuns(join(folder, "results"), silentSource))
      assert.deepStrictEqual(
        runs.map(({ path }) => path),
        [join(at, "run_a")],
      )
    }))
})
