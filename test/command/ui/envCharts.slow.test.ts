/** Tests that each env has charts of its own in a real browser, and how runs and groups are named. */
import { assert, it } from "vitest"
import { makeRun, withFolder, write } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"

const charts =
  "[...document.querySelectorAll('.curves .chart')].map((one) => [one.querySelector('figcaption').firstChild.textContent, one.querySelector('.plot').dataset.lines].join(': '))"
const captions = `${charts}.join(', ')`

/** A run of this algorithm in this env, as a benchmark leaves it. */
const benchRun = (folder: string, environment: string, algorithm: string, seed: number, level: number): string => {
  const run = makeRun(folder, { name: "bench", seed, population: { environment, algorithm } }, { level })
  write(folder, `${run}/config.yaml`, `env: ${environment}\nseed: ${seed}\nalgorithm:\n  name: ${algorithm}\n`)
  return run
}

inBrowser("runs in several envs", ({ page, served, text, count, click, set }) => {
  it("are drawn in charts of their own, or in one if the reader wants it, also after a reload", () =>
    withFolder(async (folder) => {
      for (const seed of [1, 2]) {
        for (const algorithm of ["a2c", "ppo"]) {
          benchRun(folder, "CartPole-v1", algorithm, seed, 500)
          benchRun(folder, "corridor", algorithm, seed, 1)
        }
      }
      await page.look(1280, 1600)
      await served(folder, async (url) => {
        await page.goto(url)
        await count(".runs tbody tr", 4)
        const apart = [
          "Validation return · CartPole-v1: 2",
          "Training return · CartPole-v1: 2",
          "Validation return · corridor: 2",
          "Training return · corridor: 2",
        ].join(", ")
        await page.until(`${captions} === ${JSON.stringify(apart)}`)
        assert.strictEqual(await text(".runs td.name b"), "a2c · CartPole-v1 · bench")
        // A group of several envs has a line in the charts of each.
        await set(".slot select", "algorithm")
        await count(".runs tbody tr", 2)
        await page.until(`${captions} === ${JSON.stringify(apart)}`)
        const label = "document.querySelector('.curves .readout .label').textContent"
        assert.strictEqual(await page.evaluate(label), "a2c: ")
        await page.evaluate(
          "[...document.querySelectorAll('.boxes label')].find((one) => one.textContent === 'envs in one chart').querySelector('input').click()",
        )
        const together = "Validation return: 2, Training return: 2"
        await page.until(`${captions} === ${JSON.stringify(together)}`)
        const address = String(await page.evaluate("location.href"))
        await page.goto(address)
        await page.until(`${captions} === ${JSON.stringify(together)}`)
        // With runs of one env left, its charts need no name.
        await page.goto(`${url}#/?filter=corridor`)
        await page.until(`${captions} === ${JSON.stringify(together)}`)
        await click("button.open")
        await click(".member a")
        await page.until("document.querySelector('h1')?.textContent === 'a2c · corridor · bench · seed 1 finished'")
        assert.strictEqual(await page.evaluate("document.title"), "a2c · corridor · bench · seed 1 · effect-rl")
      })
    }))
})
