import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { root } from "../command/cli/effect.ts"
import { docsFolder, filesIn, readPage } from "../../scripts/scores/files.ts"
import { pagesOf } from "../../scripts/scores/page.ts"
import { published } from "../../scripts/scores/published.ts"
import { groups, nameOf, rows } from "../../scripts/scores/rows.ts"
import { readResult, readResults, readSettings, resultFile } from "../../scripts/scores/ScoreResult.ts"

const files = filesIn(docsFolder)
const results = readResults(files.results)

describe("docs/scores.md", () => {
  it("shows the results that are there (npm run scores -- --page)", () => {
    const { page, runs } = pagesOf(results)
    assert.strictEqual(readPage(files.page), page)
    assert.strictEqual(readPage(files.runs), runs)
  })

  it("has results of its rows alone, each in the file of its seed", () => {
    for (const result of results) {
      const row = rows.find((row) => nameOf(row) === nameOf(result))
      assert.isDefined(row, `${nameOf(result)} is no row`)
      assert.isAtLeast(result.steps, row?.steps ?? Infinity)
      assert.deepStrictEqual(readResult(resultFile(files.results, result.trainer, result, result.seed)), result)
      if (result.trainer === "effect-rl") assert.isDefined(readSettings(files.results, result))
    }
  })

  it("has rows of presets, and groups of its rows", () => {
    const names = rows.map(nameOf)
    assert.deepStrictEqual(
      names.filter((name) => !existsSync(join(root, `examples/presets/${name}.yaml`))),
      [],
    )
    const grouped = groups.flatMap(({ algorithms, envs }) =>
      algorithms.flatMap((algorithm) => envs.map((env) => nameOf({ algorithm, env }))),
    )
    assert.deepStrictEqual(
      grouped.filter((name) => !names.includes(name)),
      [],
    )
  })

  it("cites scores of its rows alone", () => {
    const names = rows.map(nameOf)
    assert.deepStrictEqual(
      Object.keys(published).filter((name) => !names.includes(name)),
      [],
    )
    assert.strictEqual(new Set(names).size, names.length)
  })
})
