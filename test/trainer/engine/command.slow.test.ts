import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { assert, describe, it } from "vitest"
import { digestAlone, digestOf, withTrainer } from "../trainerCommand.ts"

const inThread = ["--set", "inference.own_thread=true"]

/** Returns an environment in which the thread of an engine ends itself at its nth message, `times` times in a process. */
const endingThread = (folder: string, message: number, times: number): NodeJS.ProcessEnv => {
  const preloaded = join(folder, "preloaded.mjs")
  writeFileSync(
    preloaded,
    `import { appendFileSync, existsSync, readFileSync } from "node:fs"
     import { isMainThread, parentPort } from "node:worker_threads"
     const file = ${JSON.stringify(join(folder, "ends"))}
     const ends = existsSync(file) ? readFileSync(file, "utf8").length : 0
     let messages = 0
     if (!isMainThread && ends < ${times})
       parentPort.on("message", () => {
         if (++messages < ${message}) return
         appendFileSync(file, "x")
         process.exit(9)
       })`,
  )
  return { NODE_OPTIONS: `--import ${pathToFileURL(preloaded).href}` }
}

/** Returns the files of the weights of all runs, by their paths, without the folder of the trainer in them. */
const weightsBelow = (runDir: string, folder: string): ReadonlyMap<string, string> =>
  new Map(
    readdirSync(runDir, { recursive: true, encoding: "utf8", withFileTypes: true })
      .filter((entry) => entry.isFile() && /run_[ab]\/(weights|broadcast)\//.test(`${entry.parentPath}/`))
      .map(({ parentPath, name }) => join(parentPath, name))
      .sort()
      .map((file) => [
        file.slice(runDir.length),
        readFileSync(file, "latin1").replaceAll(runDir, "").replaceAll(folder, ""),
      ]),
  )

describe("effect run with an engine in a thread of its own", () => {
  it("ends with the digest of a training in one thread, with one rank and with two", () =>
    withTrainer(async ({ run, log }) => {
      for (const ranks of ["trainer.ranks=1", "trainer.ranks=2"])
        assert.strictEqual(digestOf(await run([...inThread, "--set", ranks]).ended), await digestAlone())
      assert.notInclude(log(), "warning")
    }))

  it("names a thread that has ended, evicts no run, and goes on to the same digest", () =>
    withTrainer(async ({ run, folder, log }) => {
      const outcome = await run(inThread, endingThread(folder, 40, 2)).ended
      assert.strictEqual(digestOf(outcome), await digestAlone())
      assert.strictEqual(readFileSync(join(folder, "ends"), "utf8"), "xx")
      const warning = /the engine's thread was lost: it has ended with exit code 9; .* from the last checkpoints/g
      assert.strictEqual(log().match(warning)?.length, 2)
    }))

  it("gives up if the thread ends again and again", () =>
    withTrainer(async ({ run, folder }) => {
      const { code, stderr } = await run(inThread, endingThread(folder, 1, 100)).ended
      assert.strictEqual(code, 1)
      assert.include(stderr, "it has ended with exit code 9; that was loss 6 without a step in between")
    }))

  it("saves the runs when it is interrupted, and resumes to the same digest with and without the thread", () =>
    withTrainer(async ({ run, has, runDir }) => {
      const first = run(inThread)
      await has("run_b/rollouts/step_3")
      first.child.kill("SIGINT")
      assert.strictEqual((await first.ended).code, 130)
      const second = run(["--resume", runDir(), ...inThread])
      await has("run_b/rollouts/step_6")
      second.child.kill("SIGKILL")
      await second.ended
      const last = run(["--resume", runDir(), "--set", "inference.own_thread=false"])
      assert.strictEqual(digestOf(await last.ended), await digestAlone())
    }))

  it("keeps the weights of every step, which are written while it trains, wherever it is killed", () =>
    withTrainer(({ run, runDir, has, folder }) =>
      withTrainer(async (whole) => {
        const every = ["a", "b"].flatMap((name) => ["--set", `runs.${name}.weights.every=1`])
        const flags = [...inThread, ...every, "--set", "broadcast.keep=2"]
        for (const step of [2, 5, 8]) {
          const killed = run(step === 2 ? flags : ["--resume", runDir(), ...flags])
          await has(`run_b/rollouts/step_${step}`)
          killed.child.kill("SIGKILL")
          await killed.ended
        }
        const outcome = await run(["--resume", runDir(), ...flags]).ended
        assert.strictEqual(digestOf(outcome), digestOf(await whole.run(flags).ended))
        const written = weightsBelow(whole.runDir(), whole.folder)
        assert.deepStrictEqual(weightsBelow(runDir(), folder), written)
        // Steps 1 to 4 of one run and 1 to 10 of the other, and the last two broadcasts of each.
        assert.strictEqual([...written.keys()].filter((file) => file.endsWith("STABLE")).length, 4 + 10 + 2 + 2)
      }),
    ))
})
