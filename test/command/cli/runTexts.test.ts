import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { effect } from "./effect.ts"

let folder = ""
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "texts-"))))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const candidate = (text: string, parents: ReadonlyArray<number>, scores: ReadonlyArray<number>) => ({
  texts: { system_prompt: text },
  parents,
  scores,
  nextText: 0,
  foundAfter: 4 * parents.length,
})

type TestCandidate = ReturnType<typeof candidate>

const usual = [candidate("Be brief.", [], [0, 0]), candidate("Be kind.", [0], [1, 1])]

/** Runs the command for a run with these candidates, of which `best` is the best. */
const run = (best: number, args: ReadonlyArray<string>, candidates: ReadonlyArray<TestCandidate> = usual) => {
  const place = join(folder, "run")
  mkdirSync(place, { recursive: true })
  writeFileSync(join(place, "config.yaml"), "kind: prompts\n")
  const merges = { due: 0, accepted: 0, isNext: false, triplets: [], origins: [] }
  const file = { best, candidates, iterations: [], metricCalls: 4, tokens: 0, merges }
  writeFileSync(join(place, "candidates.json"), JSON.stringify(file))
  return effect(["runs", "texts", place, ...args], folder)
}

/** Returns what the command prints. */
const texts = async (best: number, ...args: ReadonlyArray<string>): Promise<string> => {
  const { code, stdout, stderr } = await run(best, args)
  assert.strictEqual(code, 0, stderr)
  return stdout
}

describe("the texts of a run that learns prompts", () => {
  const none = "no candidate is better than the seed"

  it("are those of the best candidate", async () => {
    const shown = await texts(1)
    assert.include(shown, "- Be brief.\n+ Be kind.\n")
    assert.notInclude(shown, none)
    assert.include(await texts(0), none)
  })

  it("are preceded by the comparison with the seed, once the run is finished", async () => {
    assert.notInclude(await texts(1), "difference")
    const scores = {
      tasks: 50,
      seed: { mean: 0.16, low: 0.083, high: 0.285 },
      best: { mean: 0.74, low: 0.604, high: 0.841 },
      difference: { difference: 0.58, low: 0.442, high: 0.706 },
    }
    const metrics = { validation_scores: { ...scores, tasks: 25 }, test_scores: scores }
    writeFileSync(join(folder, "run/metrics.json"), JSON.stringify(metrics))
    const shown = await texts(1)
    assert.match(
      shown,
      /^25 validation .*\n50 test +0\.160 +\[0\.083, 0\.285\] +0\.740 .* \+0\.580 +\[0\.442, 0\.706\]$/m,
    )
  })

  it("are those of the candidate that the user chose, whichever is the best", async () => {
    const seed = await texts(1, "--candidate", "0")
    assert.notInclude(seed, none)
    assert.include(seed, "candidate 0 is the seed itself")
    const other = await texts(0, "--candidate", "1")
    assert.include(other, "+ Be kind.\n")
    assert.include(other, none)
  })
})

describe("the texts of somebody else's run", () => {
  it("may have any names, and control no terminal", async () => {
    const [seed, other] = usual
    const named = { ...other, texts: JSON.parse('{ "__proto__": "x\\u001b[3J", "\\u001b[2Jb": "y" }') }
    const { code, stdout, stderr } = await run(1, [], [seed, named])
    assert.strictEqual(code, 0, stderr)
    assert.match(stdout, /^__proto__ {2}candidate 0 → 1\n\+ x/m)
    assert.match(stdout, /^\+ y$/m)
    assert.notInclude(stdout, "\u001b")
  })

  it("are refused in one line if no candidate is the best", async () => {
    const { code, stderr } = await run(-1, [])
    assert.strictEqual(code, 2)
    assert.match(stderr, /candidates\.json: .*greater than or equal to 0; at \["best"\]/)
    assert.notInclude(stderr, "TypeError")
  })
})
