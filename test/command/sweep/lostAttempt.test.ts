import { createHash } from "node:crypto"
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { type Child, RunCommand } from "../../../src/command/sweep/child.ts"
import { sweepHandler } from "../../../src/command/sweep/job.ts"
import { contentOf } from "../../spread/cluster/workers.ts"
import { runsIn } from "../cli/crash.ts"
import { program, withFolder, write } from "../cli/effect.ts"
import { runChild } from "../cli/inProcess.ts"

const time = "2026-01-31_12-00-00"

describe("a run of a sweep whose worker was lost", () => {
  it(
    "has the files of a run that was never interrupted, and was resumed from its newest checkpoint",
    { tags: "slow" },
    () =>
      withFolder(async (folder) => {
        const settings = "validation: { everySteps: 1024, episodes: 5 }, checkpoint: { everySteps: 512 }"
        const file = write(folder, "train.ts", program(settings))
        const part = { time, commit: "no-hash", population: {}, command: "effect run" }
        const args = ["--seed", "1"]
        /** Trains the run of the sweep as a worker does, and returns its folder. */
        const swept = async (resultsDir: string, command: typeof RunCommand.Service): Promise<string> => {
          mkdirSync(join(resultsDir, time), { recursive: true })
          const sha256 = createHash("sha256").update(readFileSync(file)).digest("hex")
          const payload = { args, files: [{ path: file, sha256 }], resultsDir, path, part }
          const answer = await Effect.gen(function* () {
            return yield* (yield* sweepHandler).perform(payload)
          }).pipe(Effect.provideService(RunCommand, command), Effect.provide(NodeServices.layer), Effect.runPromise)
          assert.strictEqual(answer._tag, "Done", JSON.stringify(answer))
          return join(resultsDir, path)
        }
        // The path of the run, from a first training of it.
        const lost = join(folder, "lost")
        await Effect.runPromise(
          runChild({ args: [file, ...args, "--results-dir", lost], part, onProgress: () => {} }).pipe(Effect.orDie),
        )
        const [trained] = runsIn(lost)
        const path = trained.slice(lost.length + 1)
        const alone = await swept(join(folder, "alone"), runChild)

        // A worker that is killed after 1024 steps leaves such a folder: its logs are already ahead of its checkpoint.
        const resultsDir = join(folder, "results")
        const left = join(resultsDir, ".attempts", `${time}_killed`, path)
        cpSync(trained, left, { recursive: true, verbatimSymlinks: true })
        for (const name of ["metrics.json", "return.json", "checkpoints/latest", "checkpoints/latest.json"])
          rmSync(join(left, name), { force: true })
        const later = readdirSync(join(left, "checkpoints")).filter((name) => name > "step_000000000001024")
        assert.isNotEmpty(later)
        for (const name of later) rmSync(join(left, "checkpoints", name), { recursive: true })

        const commands: Array<Child["args"]> = []
        const resumed = await swept(resultsDir, (child) => {
          commands.push(child.args)
          return runChild(child)
        })
        assert.deepStrictEqual(
          commands.map((words) => words.includes("--resume")),
          [true],
        )
        assert.match(readFileSync(join(resumed, "run.log"), "utf8"), /resumed .*1024/)
        assert.deepStrictEqual(contentOf(resumed), contentOf(alone))
      }),
  )
})
