/** The page of a run that learns prompts. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "vitest"
import { runsIn } from "../cli/crash.ts"
import { effect } from "../cli/effect.ts"
import { withFolder } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"

inBrowser("a run that learns prompts", ({ page, served, text }) => {
  it("shows the tree of candidates with scores and differences, and texts of models as text alone", () =>
    withFolder(async (folder) => {
      const words = ["--set", "learner.max_metric_calls=100", "--results-dir", folder, "--quiet"]
      const done = await effect(["run", "examples/agents/prompts.yaml", ...words])
      assert.strictEqual(done.code, 0, done.stderr)
      const [run] = runsIn(folder)
      const file = join(run, "candidates.json")
      writeFileSync(file, readFileSync(file, "utf8").replace("RULE: ", "<img src=x> RULE: "))
      await served(folder, async (url) => {
        await page.goto(`${url}#/run/${run.slice(folder.length + 1)}`)
        await page.until("document.querySelectorAll('.prompts details').length > 2")
        assert.match(await text(".prompts"), /candidate 0 the seed: 0\.000 \[0\.000, 0\.194\], best on \d+ of 16 tasks/)
        assert.match(await text(".prompts"), /candidate \d+ \(best\) from \d+: 0\.\d+ \[/)
        assert.match(
          await text(".prompts table"),
          /16 validation tasks.*50 test tasks0\.000 \[0\.000, 0\.071\]0\.\d+ \[/,
        )
        // The score of the run is that of its best candidate, whichever was validated last.
        const best = /\(best\) from \d+: (0\.\d\d)/.exec(await text(".prompts"))?.[1]
        assert.include(await text("dl"), `score${Number(best)}`)
        assert.strictEqual(await page.evaluate("document.querySelectorAll('.prompts img').length"), 0)
        assert.match(await text(".prompts .added"), /^\+ /)
        // The changes of a candidate are drawn when it is opened.
        const drawn = "document.querySelectorAll('.prompts .changes').length"
        const closed = "document.querySelectorAll('.prompts details:not([open])')"
        const before = Number(await page.evaluate(drawn))
        assert.strictEqual(await page.evaluate(`[...${closed}].filter((one) => one.children.length > 1).length`), 0)
        await page.evaluate(`${closed}[0].open = true`)
        await page.until(`${drawn} > ${before}`)
        // Charts of the validations are there as for a training.
        assert.strictEqual(await page.evaluate("document.querySelector('.report').hidden"), true)
      })
    }))
})
