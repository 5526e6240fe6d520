import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, globSync, readFileSync, watch } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { docsFolder, filesIn } from "../../scripts/scores/files.ts"
import { picturesOf } from "../../scripts/scores/page.ts"
import { readResult, readResults, resultFile } from "../../scripts/scores/ScoreResult.ts"
import { root, withFolder } from "../command/cli/effect.ts"

const row = { algorithm: "ppo", env: "CartPole-v1" }

const scores = (...flags: ReadonlyArray<string>): ChildProcess =>
  spawn(process.execPath, ["scripts/scores/scores.ts", ...flags], { cwd: root, stdio: "ignore" })

/** Starts `npm run scores` for a row that takes seconds, in these folders. */
const start = (docs: string, work: string): ChildProcess =>
  scores("--only", "ppo/CartPole-v1", "--docs", docs, "--work", work, "--no-peers")

const ended = (child: ChildProcess): Promise<number | null> => new Promise((resolve) => child.once("close", resolve))

/** Waits until something holds, which is asked again whenever a file below the folder changes. */
const until = (folder: string, holds: () => boolean): Promise<void> =>
  new Promise((resolve) => {
    const look = (): void => {
      if (!holds()) return
      watcher.close()
      resolve()
    }
    const watcher = watch(folder, { recursive: true }, look)
    look()
  })

describe("npm run scores", () => {
  it("goes on where it was interrupted, and reaches the digest of a training that runs through", () =>
    withFolder(async (folder) => {
      const train = async (name: string, holds: (docs: string, work: string) => boolean): Promise<number | null> => {
        const child = start(join(folder, name), join(folder, name, "work"))
        const code = ended(child)
        await until(folder, () => holds(join(folder, name), join(folder, name, "work")))
        child.kill("SIGINT")
        return code
      }
      const fileIn = (docs: string): string => resultFile(filesIn(docs).results, "effect-rl", row, 1)
      const hasResult = (docs: string): boolean => existsSync(fileIn(docs))
      const hasCheckpoint = (_: string, work: string): boolean =>
        globSync(join(work, "ppo/CartPole-v1/*/*/*/0001/checkpoints/step_*")).length > 0

      assert.strictEqual(await train("interrupted", hasCheckpoint), 130)
      assert.isFalse(hasResult(join(folder, "interrupted")))
      assert.strictEqual(await train("interrupted", hasResult), 130)
      assert.strictEqual(await train("whole", hasResult), 130)
      const [one, other] = ["interrupted", "whole"].map((name) => readResult(fileIn(join(folder, name))))
      const { seconds: _seconds, cpu_seconds: _cpu, ...rest } = one
      assert.deepStrictEqual({ ...other, ...rest }, other)
      assert.include(readFileSync(filesIn(join(folder, "whole")).page, "utf8"), "| ppo | CartPole-v1 | 100,000 |")
      assert.strictEqual(await ended(scores("--page", "--docs", join(folder, "whole"))), 0)
      assert.isTrue(existsSync(join(filesIn(join(folder, "whole")).pictures, "ppo-CartPole-v1.svg")))
    }))

  it("has drawn the pictures of the page from the results that are there", () => {
    const { pictures, results } = filesIn(docsFolder)
    const drawn = picturesOf(readResults(results))
    assert.deepStrictEqual(globSync("*.svg", { cwd: pictures }).toSorted(), [...drawn.keys()].toSorted())
    for (const [name, drawing] of drawn) assert.strictEqual(readFileSync(join(pictures, name), "utf8"), drawing)
  })
})
