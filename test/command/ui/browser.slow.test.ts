/** The first page in a real browser, over what real trainings left, and by keyboard. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "vitest"
import { effect, start } from "../cli/effect.ts"
import { makeRun, withFolder } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"

inBrowser("the page", ({ page, served, text, count, drawn, click, set }) => {
  it("shows, filters, groups, sorts and draws what real runs left, and moves while one goes on", () =>
    withFolder(async (folder) => {
      const train = ["run", "examples/cartpole.ts", "--results-dir", folder]
      const trained = await effect([
        ...train,
        "--seeds",
        "1..2",
        "--total-steps",
        "8000",
        "--set",
        "validation.every_steps=2000",
        "--quiet",
      ])
      assert.strictEqual(trained.code, 0, trained.stderr)
      await page.look(1280, 900)
      await served(folder, async (url) => {
        await page.goto(url)
        await count(".runs tbody tr", 1)
        assert.include(await text(".runs td.name"), "2 runs")
        await drawn(0, 1)
        await drawn(1, 1)
        const colours = `(() => {
          const { width, height } = document.querySelector(".plot canvas")
          const pixels = document.querySelector(".plot canvas").getContext("2d").getImageData(0, 0, width, height).data
          return new Set(new Uint32Array(pixels.buffer)).size
        })()`
        await page.until(`${colours} > 10`)
        assert.include(
          String(await page.evaluate("document.querySelector('.plot').ariaLabel")),
          "Validation return over steps",
        )

        // Group by the settings that vary, then by nothing, then select some runs.
        await set(".slot select", "none")
        await count(".runs tbody tr", 2)
        await drawn(0, 2)
        await click("#sort-seed")
        assert.strictEqual(await page.evaluate("document.querySelector('th[aria-sort]').textContent"), "seed ▾")
        await page.evaluate("document.querySelector('#filter').focus()")
        await page.type("seed=2")
        await count(".runs tbody tr", 1)
        assert.include(await text(".count"), "1 of 2 runs")
        await set("#filter", "")

        // A run that goes on: its curve grows, and nobody reloads.
        await page.evaluate("window.sameDocument = true")
        const going = start([
          ...train,
          "--seed",
          "9",
          "--total-steps",
          "400000",
          "--set",
          "validation.every_steps=4000",
          "--quiet",
        ])
        try {
          await page.until("document.querySelector('.badge.running') !== null")
          const key = "document.querySelector('.badge.running').closest('tr').querySelector('input')"
          await page.evaluate(`${key}.checked || ${key}.click()`)
          await drawn(0, 3)
          const points = "Number(document.querySelectorAll('.plot')[0].dataset.points)"
          const before = Number(await page.evaluate(points))
          await page.until(`${points} > ${before}`)
        } finally {
          going.child.kill("SIGINT")
        }
        assert.strictEqual((await going.ended).code, 130)
        await page.until(
          "document.querySelector('.badge.running') === null && document.querySelector('.badge.stopped') !== null",
        )
        assert.strictEqual(await page.evaluate("window.sameDocument"), true)
      })
    }))

  it("is used by keyboard alone", () =>
    withFolder(async (folder) => {
      const run = makeRun(folder)
      makeRun(folder, { seed: 2 })
      await served(folder, async (url) => {
        await page.goto(url)
        await count(".runs tbody tr", 1)
        await drawn(0, 1)
        const tabTo = async (condition: string) => {
          for (let presses = 0; presses < 60; presses++) {
            await page.press("Tab")
            if ((await page.evaluate(`document.activeElement.matches(${JSON.stringify(condition)})`)) === true) return
          }
          assert.fail(`Tab never came to ${condition}`)
        }
        await tabTo(".skip")
        await tabTo(".plot")
        await page.press("ArrowRight")
        await page.until("document.querySelector('.readout').textContent.includes('500')")
        await tabTo("button.open")
        await page.press("Enter", "\r")
        await count(".runs tbody tr", 3)
        // The row was made anew, and the place in it is kept.
        assert.strictEqual(await page.evaluate("document.activeElement.className"), "open")
        await tabTo("a[href*='/0001']")
        await page.press("Enter", "\r")
        await page.until("document.querySelector('.facts') !== null")
        assert.include(await text(".facts"), "CartPole-v1")
        assert.include(await text("article"), "total_steps: 1000")
        assert.include(await text(".log"), "validation at step 1000")
        const saved = await page.evaluate(
          "fetch(document.querySelector('.fileList a').href).then((found) => found.text())",
        )
        assert.strictEqual(saved, readFileSync(join(folder, run, "config.yaml"), "utf8"))
        await page.evaluate("history.back()")
        await page.until("document.querySelector('.runs') !== null")
      })
    }))

  it("draws over what is asked for, smoothed and on logarithmic axes", () =>
    withFolder(async (folder) => {
      for (const [seed, level] of [100, 200, 300, 2000].entries()) makeRun(folder, { seed }, { level })
      await page.look(1280, 900)
      await served(folder, async (url) => {
        await page.goto(url)
        await drawn(0, 1)
        await drawn(1, 1)
        const pictures = new Set<unknown>()
        const picture = async () => {
          const frames = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
          await page.evaluate(frames)
          await drawn(1, 1)
          await page.evaluate(frames)
          pictures.add(await page.evaluate("document.querySelectorAll('.plot canvas')[1].toDataURL()"))
        }
        await picture()
        await set("select", "mean")
        await picture()
        for (const axis of ["time", "episodes"]) {
          await set("select", axis, 1)
          await picture()
        }
        for (const box of [0, 1]) {
          await page.evaluate(`document.querySelectorAll('.boxes input')[${box}].click()`)
          await picture()
        }
        await set("input[type=range]", "0.9")
        await picture()
        assert.strictEqual(pictures.size, 7)
        await page.evaluate("document.querySelectorAll('.boxes input')[2].click()")
        await drawn(1, 5)
        const smoothed =
          "import('/parts/lines.js').then(({ smooth }) => smooth([1, 3, 2], 0.5).map((one) => one.toFixed(3)).join())"
        assert.strictEqual(await page.evaluate(smoothed), "1.000,2.333,2.143")
        const labels = (items: string) =>
          page.evaluate(`import('/parts/runTexts.js').then(({ shortLabels }) => shortLabels(${items}).join('; '))`)
        const item = "{ name: 'a', population: { env: 'e', rate: '1' }, seed: 1 }"
        assert.strictEqual(await labels(`[${item}]`), "a")
        assert.strictEqual(await labels(`[${item}, { ...${item}, seed: 2 }]`), "seed 1; seed 2")
        assert.strictEqual(await labels(`[${item}, { name: 'b', population: { env: 'e' }, seed: 1 }]`), "rate=1 · a; b")
      })
    }))

  it("shows a thousand runs, the first rows at once and the others when asked for", () =>
    withFolder(async (folder) => {
      for (let index = 0; index < 1000; index++) {
        const population = { algorithm: `a${index % 250}` }
        makeRun(folder, { seed: Math.floor(index / 250), population }, { lean: true })
      }
      await served(folder, async (url) => {
        await page.goto(url)
        await count(".runs tbody tr", 200)
        assert.strictEqual(await text(".count"), "1,000 runs")
        assert.strictEqual(await text(".more"), "Show all 250 rows")
        await click(".more")
        await count(".runs tbody tr", 250)
      })
    }))
})
