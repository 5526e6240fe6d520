import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { runsIn } from "./crash.ts"
import { effect, resultOf, withFolder } from "./effect.ts"
import { answersIn, killedAndResumed, textOf } from "./promptsCrash.ts"

const example = "examples/agents/prompts.yaml"

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
      const { run, result } = await killedAndResumed({
        args: ["run", example],
        results: join(folder, "killed"),
        kills: 20,
        answers: answersIn(wholeRun),
        seed: 1,
      })
      assert.strictEqual(result.digest, resultOf(whole).digest)
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
