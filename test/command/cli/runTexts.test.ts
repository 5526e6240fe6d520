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

/** Returns what the command prints about a run whose best candidate is `best`. */
const texts = async (best: number, ...args: ReadonlyArray<string>): Promise<string> => {
  const run = join(folder, "run")
  mkdirSync(run, { recursive: true })
  writeFileSync(join(run, "config.yaml"), "kind: prompts\n")
  const merges = { due: 0, accepted: 0, isNext: false, triplets: [], origins: [] }
  const candidates = [candidate("Be brief.", [], [0, 0]), candidate("Be kind.", [0], [1, 1])]
  const file = { best, candidates, iterations: [], metricCalls: 4, tokens: 0, merges }
  writeFileSync(join(run, "candidates.json"), JSON.stringify(file))
  const { code, stdout, stderr } = await effect(["runs", "texts", run, ...args], folder)
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

  it("are those of the candidate that the user chose, whichever is the best", async () => {
    const seed = await texts(1, "--candidate", "0")
    assert.notInclude(seed, none)
    assert.include(seed, "candidate 0 is the seed itself")
    const other = await texts(0, "--candidate", "1")
    assert.include(other, "+ Be kind.\n")
    assert.include(other, none)
  })
})
