/** All metrics of runs as charts, in a real browser, over what real trainings left. */
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { assert, it } from "vitest"
import { exportSite } from "../../../src/command/ui/exportSite.ts"
import { effect, start } from "../cli/effect.ts"
import { withFolder } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"
import { plainServer } from "./plainServer.ts"

const captions = "[...document.querySelectorAll('.metrics figcaption')].map((one) => one.firstChild.textContent)"
const plotOf = (name: string) =>
  `[...document.querySelectorAll('.metrics .chart')].find((one) => one.textContent.startsWith('${name}')).querySelector('.plot')`

inBrowser("all metrics", ({ page, served, text, count, drawn, click, set }) => {
  it("are charts of the run's page, grouped by prefix, searched by name, and in an exported site too", () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      const args = ["--seed", "1", "--total-steps", "8000", "--set", "validation.every_steps=2000", "--quiet"]
      const trained = await effect(["run", "examples/cartpole.ts", "--results-dir", results, ...args])
      assert.strictEqual(trained.code, 0, trained.stderr)
      await page.look(1280, 900)
      const look = async (url: string) => {
        await page.goto(url)
        await count(".runs tbody tr", 1)
        await click("button.open")
        await click(".member a")
        await page.until(`${captions}.length > 5`)
        const names = (await page.evaluate(captions)) as ReadonlyArray<string>
        for (const name of [
          "losses/policy_loss",
          "losses/value_loss",
          "losses/entropy",
          "charts/SPS",
          "charts/learning_rate",
          "validation/score",
        ]) {
          assert.include(names, name)
        }
        assert.deepStrictEqual(
          await page.evaluate("[...document.querySelectorAll('.metricGroups summary')].map((one) => one.firstChild.textContent)"), // prettier-ignore
          [...new Set(names.map((name) => name.split("/")[0]))],
        )
        await page.until(`Number(${plotOf("losses/entropy")}.dataset.points) > 5`)
        // The lines have the colours of the theme.
        const colors = "new Set([...document.querySelectorAll('.swatch')].map(({ style }) => style.background))"
        const light = await page.evaluate(`[...${colors}].join()`)
        await page.look(1280, 900, "dark")
        await page.until(`![...${colors}].some((color) => ${JSON.stringify(light)}.includes(color))`)
        await page.look(1280, 900)
        await page.until(`[...${colors}].join() === ${JSON.stringify(light)}`)

        await set(".findMetric", "loss ENTROPY")
        await page.until(`${captions}.join() === 'losses/entropy'`)
        assert.match(await text(".metricCount"), /^1 of \d+ metrics$/)
        await page.until("location.hash.includes('metric=loss+ENTROPY')")
        await set(".findMetric", "no such metric")
        await page.until(`${captions}.length === 0`)
        await set(".findMetric", "")
        await page.until(`${captions}.length === ${names.length}`)
        // A chart below the window is drawn when it is scrolled to.
        const last = "[...document.querySelectorAll('.metrics .plot')].at(-1)"
        assert.isNull(await page.evaluate(`${last}.querySelector('canvas')`))
        await page.evaluate(`${last}.scrollIntoView()`)
        await page.until(`${last}.querySelector('canvas') !== null`)
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

  it("of several runs are lines of one chart, which grow while a run trains", () =>
    withFolder(async (folder) => {
      const train = (...args: ReadonlyArray<string>) => ["run", "examples/cartpole.ts", "--results-dir", folder, "--set", "validation.every_steps=4000", "--quiet", ...args] // prettier-ignore
      const trained = await effect(train("--seeds", "1..2", "--total-steps", "8000"))
      assert.strictEqual(trained.code, 0, trained.stderr)
      await page.look(1280, 900)
      await served(folder, async (url) => {
        await page.goto(`${url}#/?by=none&metric=entropy`)
        await drawn(0, 2)
        await click(".allMetrics summary")
        await page.until("location.hash.includes('metrics=1')")
        const plot = plotOf("losses/entropy")
        await page.until(`${plot}.dataset.lines === '2'`)
        assert.include(String(await page.evaluate(`${plot}.ariaLabel`)), "seed 1: ")

        // The two as one group are their mean, with a thin line for each.
        await set(".slot select", "config")
        await page.until(`${plot}.dataset.lines === '3'`)
        assert.notInclude(String(await page.evaluate(`${plot}.ariaLabel`)), "seed")
        await set(".slot select", "none")
        await page.until(`${plot}.dataset.lines === '2'`)

        const going = start(train("--seed", "9", "--total-steps", "4000000"))
        try {
          await page.until(`${plot}.dataset.lines === '3'`)
          const points = `Number(${plot}.dataset.points)`
          const before = Number(await page.evaluate(points))
          await page.until(`${points} > ${before}`)
        } finally {
          going.child.kill("SIGINT")
          await going.ended
        }
      })
    }))
})
