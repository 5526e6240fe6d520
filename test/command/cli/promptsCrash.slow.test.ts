import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, describe, it } from "vitest"
import { runsIn } from "./crash.ts"
import { effect, resultOf, start, withFolder } from "./effect.ts"

const example = "examples/agents/prompts.yaml"
const kills = 20

const textOf = (run: string, file: string): string =>
  existsSync(join(run, file)) ? readFileSync(join(run, file), "utf8") : ""
const answersIn = (run: string | undefined): number =>
  run === undefined ? 0 : textOf(run, "prompts.jsonl").split("\n").length - 1

/** The keys of the answers in the journal: the request, and for an episode its task. */
const keysIn = (run: string): ReadonlyArray<string> =>
  textOf(run, "prompts.jsonl")
    .trim()
    .split("\n")
    .slice(1)
    .map((line) => {
      const { place, played } = JSON.parse(line)
      return played === undefined ? place : `${place} ${played.task}`
    })

describe("a run that learns prompts and is killed again and again", () => {
  it("ends with the candidates of one that was not killed, and asks for no answer twice", () =>
    withFolder(async (folder) => {
      const whole = await effect(["run", example, "--results-dir", join(folder, "whole"), "--quiet", "--json"])
      assert.strictEqual(whole.code, 0, whole.stderr)
      const [wholeRun] = runsIn(join(folder, "whole"))
      const each = Math.floor(answersIn(wholeRun) / (kills + 1))

      const results = join(folder, "killed")
      const args = ["run", example, "--results-dir", results, "--quiet", "--json"]
      let killed = 0
      while (killed < kills) {
        const [run] = runsIn(results)
        const wanted = answersIn(run) + each
        const { child, ended } = start(run === undefined ? args : [...args, "--resume", run])
        let over = false
        void ended.then(() => (over = true))
        while (!over && answersIn(runsIn(results)[0]) < wanted) await sleep(1)
        child.kill("SIGKILL")
        const { signal, stderr } = await ended
        assert.strictEqual(signal, "SIGKILL", stderr)
        killed++
      }
      const [run] = runsIn(results)
      const resumed = await effect([...args, "--resume", run])
      assert.strictEqual(resumed.code, 0, resumed.stderr)
      assert.strictEqual(resultOf(resumed).digest, resultOf(whole).digest)
      for (const file of ["candidates.json", "texts.json"])
        assert.strictEqual(textOf(run, file), textOf(wholeRun, file), file)
      const keys = keysIn(run)
      assert.strictEqual(new Set(keys).size, keys.length)
      assert.sameMembers([...keys], [...keysIn(wholeRun)])

      const replayed = await effect(["replay", run, "--quiet"])
      assert.strictEqual(replayed.code, 0, replayed.stderr)
      const shown = await effect(["runs", "texts", run])
      assert.match(shown.stdout, /^- Answer with the code word\.$/m)
      assert.match(shown.stdout, /^\+ RULE: /m)
    }))
})
