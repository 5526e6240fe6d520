/** Two runs side by side in a real browser: settings that differ, results, and charts over each other. */
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { assert, it } from "vitest"
import { exportSite } from "../../../src/command/ui/exportSite.ts"
import { effect } from "../cli/effect.ts"
import { lowContrasts } from "./contrast.ts"
import { makeRun, withFolder, write } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"
import { plainServer } from "./plainServer.ts"

const tables =
  "[...document.querySelectorAll('.compare table')].map((table) => [...table.querySelectorAll('tbody tr')].map((row) => [...row.children].map((one) => one.textContent).join(' | ')))"

inBrowser("two runs side by side", ({ page, served, count, drawn, set }) => {
  it("show what differs between their settings, their results, and lines of both in every chart", () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      const train = async (...args: ReadonlyArray<string>) => {
        const common = ["--total-steps", "6000", "--set", "validation.every_steps=2000", "--quiet"]
        const done = await effect(["run", "examples/cartpole.ts", "--results-dir", results, ...common, ...args])
        assert.strictEqual(done.code, 0, done.stderr)
      }
      await train("--seed", "1")
      await train("--seed", "2", "--set", "algorithm.learning_rate=0.0025")
      await page.look(1280, 900)
      const look = async (url: string) => {
        await page.goto(`${url}#/?by=none&sort=seed`)
        await count(".runs tbody tr", 2)
        await page.until("document.querySelector('.compareLink').checkVisibility()")
        await page.evaluate("document.querySelector('.compareLink').click()")
        await page.until(`${tables}.length === 2`)
        const [facts, settings] = (await page.evaluate(tables)) as ReadonlyArray<ReadonlyArray<string>>
        assert.include(facts, "state | finished | finished")
        assert.isTrue(facts.some((row) => /^steps \| [\d,]+ \| [\d,]+$/.test(row)))
        const learningRate = settings.find((row) => row.startsWith("algorithm.learning_rate | "))
        assert.match(learningRate ?? "", /^algorithm\.learning_rate \| 0\.\d+ \| 0\.0025$/)
        assert.include(settings, "seed | 1 | 2")
        assert.isFalse(settings.some((row) => row.startsWith("total_steps")))
        await drawn(0, 2)
        await drawn(1, 2)
        const lines = "[...document.querySelectorAll('.metrics .plot')].map(({ dataset }) => dataset.lines)"
        await page.until(`${lines}.length > 5 && ${lines}.filter((one) => one === '2').length > 5`)

        // The address shows the same page again, and the way back is the overview.
        const address = String(await page.evaluate("location.href"))
        await page.goto(address)
        await page.until(`${tables}.length === 2`)
        await page.evaluate("document.querySelector('.back').click()")
        await page.until("document.querySelector('.runs tbody tr') !== null")
      }
      await served(results, look)
      await Effect.runPromise(Effect.provide(exportSite(results, join(folder, "site")), NodeServices.layer))
      const server = await plainServer(folder)
      try {
        await look(server.url)
        assert.deepStrictEqual(page.complaints(), [])
      } finally {
        // The page may still be reading when the server goes away.
        await page.goto("about:blank")
        page.complaints()
        server.close()
      }
    }))

  for (const scheme of ["light", "dark"] as const) {
    it(`have texts of enough contrast (WCAG AA), ${scheme}, and name a run that is not there`, () =>
      withFolder(async (folder) => {
        const runs = [1, 2].map((seed) => makeRun(folder, { seed }))
        write(folder, `${runs[1]}/config.yaml`, "env: CartPole-v1\ntotal_steps: 1000\nseed: 2\n")
        await page.look(1280, 900, scheme)
        await served(folder, async (url) => {
          await page.goto(`${url}#/compare?${runs.map((run) => `run=${encodeURIComponent(run)}`).join("&")}`)
          await page.until(`${tables}.length === 2`)
          const rows = (await page.evaluate(tables)) as ReadonlyArray<ReadonlyArray<string>>
          assert.include(rows[1], "algorithm.name | ppo | not set")
          assert.deepStrictEqual(((await page.evaluate(lowContrasts)) as { readonly low: unknown }).low, [])
          await page.goto(
            `${url}#/compare?${new URLSearchParams([
              ["run", runs[0]],
              ["run", "nope"],
            ])}`,
          )
          await page.until("document.querySelector('.problem').textContent === 'There is no run “nope” here.'")

          // The choice of columns and the zoomed chart are texts, too.
          await page.goto(`${url}#/?metrics=1`)
          await count(".runs tbody tr", 1)
          await page.evaluate("document.querySelector('.chooser summary').click()")
          await page.until("document.querySelectorAll('.choices input').length > 11")
          await set("#filter", "sed=1")
          await page.until("document.querySelector('#filter-problem').textContent !== ''")
          assert.deepStrictEqual(((await page.evaluate(lowContrasts)) as { readonly low: unknown }).low, [])
        })
        await page.look(1280, 900)
      }))
  }
})
