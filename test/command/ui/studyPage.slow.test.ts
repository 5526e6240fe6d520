/** The page of a study in a real browser: its best trial, its charts and its trials, and what changes while it is served. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { assert, it } from "vitest"
import { exportSite } from "../../../src/command/ui/exportSite.ts"
import { lowContrasts } from "./contrast.ts"
import { withFolder } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"
import { plainServer } from "./plainServer.ts"
import { makeStudy } from "./study.ts"

const circles = "[...document.querySelectorAll('.slice')].map((one) => one.querySelectorAll('circle').length)"

inBrowser("a study's page", ({ page, served, text, count, click }) => {
  it("shows the best trial, a point for each trial over each parameter, and their importance", () =>
    withFolder(async (folder) => {
      makeStudy(folder)
      await page.look(1280, 900)
      await served(folder, async (url) => {
        await page.goto(`${url}#/`)
        await page.until("document.querySelector('.studies a') !== null")
        assert.strictEqual(await text(".studies"), "Studies: tune (12 trials)")
        await click(".studies a")
        await count(".study tbody tr", 14)
        assert.match(await text(".study .facts"), /best307 in trial 7.*trials12 of 20pruned2failed1/s)
        assert.deepStrictEqual(await page.evaluate(circles), [11, 11])
        assert.match(await text(".importance tbody tr"), /^algorithm\.learning_rate\d+ %/)
        assert.strictEqual(await page.evaluate("document.querySelectorAll('circle.best').length"), 2)
        // The page shows what a program wrote as text, never as markup.
        assert.include(await text(".study"), "<b>no luck</b>")
        for (const scheme of ["light", "dark"] as const) {
          await page.look(1280, 900, scheme)
          assert.deepStrictEqual(((await page.evaluate(lowContrasts)) as { readonly low: unknown }).low, [])
        }
        await click(".study tbody th a")
        await page.until("document.querySelector('.studyLink') !== null")
        await click(".studyLink")
        await count(".study tbody tr", 14)
      })
    }))

  it("is the same in an exported site", () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      mkdirSync(results)
      const { path } = makeStudy(results)
      const site = join(folder, "site")
      await Effect.runPromise(Effect.provide(exportSite(results, site), NodeServices.layer))
      const { url, close } = await plainServer(folder)
      try {
        await page.goto(`${url}#/study/${path}`)
        await count(".study tbody tr", 14)
        assert.deepStrictEqual(await page.evaluate(circles), [11, 11])
      } finally {
        close()
      }
    }))
})
