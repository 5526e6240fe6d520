import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { type Outcome, resultOf, start, until, withFolder, write } from "../effect.ts"

/** An evaluation whose agent is a function, which writes down each question before it answers. */
const program = `
import { appendFileSync } from "node:fs"
import { Evaluations, FunctionAgent } from "effect-rl"

const paid = FunctionAgent.make("paid", async ({ text }, { seed }) => {
  appendFileSync(new URL("asked.txt", import.meta.url), text + "\\n")
  await new Promise((resolve) => setTimeout(resolve, 20))
  return text.split(" ").at(-1) + (seed % 3 === 0 ? "" : "!")
})

const items = Array.from({ length: 60 }, (_, n) => ({ id: "q" + n, question: "Say " + n, answer: String(n) }))
export default Evaluations.fromConfig({
  dataset: { items, id_field: "id" },
  agent: { type: paid, concurrency: 2 },
  scorers: ["exact"],
})
`

const linesOf = (file: string): ReadonlyArray<string> =>
  existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : []

describe("an evaluation of a function that is killed", () => {
  it("asks no question again whose answer it has, and ends with the same digest", () =>
    withFolder(async (folder) => {
      const file = write(folder, "paid.ts", program)
      const asked = join(folder, "asked.txt")
      const whole = await start(["run", file, "--json", "--results-dir", join(folder, "whole")], folder).ended
      const { digest } = resultOf(whole)
      const before = linesOf(asked).length
      assert.strictEqual(before, 60)

      const results = ["--results-dir", join(folder, "killed")]
      /** The questions that may have had no answer yet when a process was killed. */
      const open = 2
      let kills = 0
      for (const resume of [[], ["--resume", "latest"], ["--resume", "latest"]]) {
        const begun = linesOf(asked).length
        const running = start(["run", file, ...results, ...resume], folder)
        let outcome: Outcome | undefined
        void running.ended.then((ended) => (outcome = ended))
        await until(() => linesOf(asked).length >= begun + 12 || outcome !== undefined)
        assert.isUndefined(outcome, outcome?.stderr)
        running.child.kill("SIGKILL")
        await running.ended
        kills++
      }
      const resumed = await start(["run", file, "--json", ...results, "--resume", "latest"], folder).ended
      assert.strictEqual(resumed.code, 0, resumed.stderr)
      assert.strictEqual(resultOf(resumed).digest, digest)
      const questions = linesOf(asked).slice(before)
      assert.strictEqual(new Set(questions).size, 60)
      assert.isAtMost(questions.length, 60 + kills * open)
    }))
})
