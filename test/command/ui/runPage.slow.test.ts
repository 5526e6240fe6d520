/** The page of a run that goes on, in a real browser. */
import { join } from "node:path"
import { assert, it } from "vitest"
import { start } from "../cli/effect.ts"
import { makeRun, withFolder, write } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"

inBrowser("a run's page", ({ page, served, text }) => {
  it("follows a run: its validations, its log, and what it costs its machine", () =>
    withFolder(async (folder) => {
      const args = ["--total-steps", "4000000", "--set", "validation.every_steps=4000", "--quiet"]
      const going = start(["run", "examples/cartpole.ts", "--results-dir", folder, ...args])
      try {
        await served(folder, async (url) => {
          await page.goto(url)
          await page.until("document.querySelector('.badge.running') !== null")
          await page.evaluate("document.querySelector('button.open').click()")
          await page.evaluate("document.querySelector('.member a').click()")
          await page.until("document.querySelector('.facts') !== null")
          const validated = "Number(document.querySelector('tbody td')?.textContent.replaceAll(',', ''))"
          await page.until(`${validated} > 0`)
          const before = Number(await page.evaluate(validated))
          await page.until(`${validated} > ${before}`)
          // The newest one is written as the finished run has it, every column of it.
          assert.match(
            String(await page.evaluate("[...document.querySelectorAll('tbody tr')].at(-1).innerText")),
            /^[\d,]+\t[\d.]+\t[\d.]+\t20\t[\d.]+\t\d+ %$/,
          )
          const system = "[...document.querySelectorAll('.system .plot')]"
          await page.until(`${system}.map(({ dataset }) => dataset.lines).join() === '1,1,3'`)
          const points = `Math.min(...${system}.map(({ dataset }) => Number(dataset.points)))`
          const few = Number(await page.evaluate(points))
          await page.until(`${points} > ${few}`)
          assert.match(await text(".system"), /steps\/s.*cores.*MB/)
          assert.match(await text(".facts"), /speed[\d,]+ steps\/s/)
          assert.isAbove(Number(await page.evaluate("document.querySelector('progress').value")), 0)
          assert.include(await text(".log"), "validation at step")
        })
      } finally {
        going.child.kill("SIGINT")
        await going.ended
      }
    }))

  it("is there where a single run is served, with its files", () =>
    withFolder(async (folder) => {
      await served(join(folder, makeRun(folder, { seed: 7 })), async (url) => {
        await page.goto(`${url}#/run/0007`)
        await page.until("document.querySelector('.config')?.textContent.includes('CartPole-v1') === true")
        await page.until("[...document.querySelectorAll('.plot')].some(({ dataset }) => Number(dataset.points) > 0)")
        assert.strictEqual(await page.evaluate("fetch('files/0007/config.yaml').then(({ status }) => status)"), 200)
      })
    }))

  it("of a run that recorded no figures has no section for them, and what it says is text", () =>
    withFolder(async (folder) => {
      const run = makeRun(folder)
      write(folder, `${run}/config.yaml`, "env: CartPole-v1\nname: <img src=x onerror=window.stolen=1>\n")
      await served(folder, async (url) => {
        await page.goto(`${url}#/run/${run}`)
        await page.until("document.querySelector('.config')?.textContent.includes('<img') === true")
        assert.isTrue(await page.evaluate("document.querySelector('.system').hidden"))
        assert.isTrue(
          await page.evaluate("window.stolen === undefined && document.querySelector('article img') === null"),
        )
      })
    }))
})
