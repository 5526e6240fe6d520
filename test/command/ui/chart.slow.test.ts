/** Charts in a real browser: zoom, logarithmic axes and many points, by mouse and by keyboard. */
import { assert, it } from "vitest"
import { makeRun, scoreLine, withFolder, write } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"

const zoomOf = (chart: number) => `document.querySelectorAll(".plot")[${chart}].dataset.zoom`

inBrowser("a chart", ({ page, served, drawn }) => {
  /** The edges of a chart's plotting area in the window. */
  const areaOf = async (chart: number) => {
    const box = `document.querySelectorAll(".plot")[${chart}].querySelector(".u-over").getBoundingClientRect()`
    const [left, width, top] = (await page.evaluate(`[${box}.left, ${box}.width, ${box}.top]`)) as ReadonlyArray<number>
    return { at: (share: number) => left + share * width, top }
  }

  it("zooms to the part that is dragged over, keeps it when values change, and shows all again", () =>
    withFolder(async (folder) => {
      const run = makeRun(folder, {}, { steps: 10_000, finished: false })
      await page.look(1280, 900)
      await served(folder, async (url) => {
        await page.goto(`${url}#/?by=none`)
        await drawn(1, 1)
        const { at, top } = await areaOf(1)
        await page.mouse("mouseMoved", at(0.5), top + 40)
        await page.mouse("mousePressed", at(0.5), top + 40)
        await page.mouse("mouseMoved", at(0.6), top + 40)
        await page.mouse("mouseMoved", at(0.75), top + 40)
        await page.mouse("mouseReleased", at(0.75), top + 40)
        await page.until(`${zoomOf(1)}?.includes(" ") === true`)
        const [low, high] = String(await page.evaluate(zoomOf(1))).split(" ")
        // The axis runs from 200 to 10,000 steps.
        assert.closeTo(Number(low), 5100, 30)
        assert.closeTo(Number(high), 7550, 30)

        write(
          folder,
          `${run}/scores/train/scores.jsonl`,
          [100, 5000, 9900].map((step, index) => scoreLine(step, index, index)).join(""),
        )
        await page.until("document.querySelectorAll('.plot')[1].dataset.points === '3'")
        assert.strictEqual(await page.evaluate(zoomOf(1)), `${low} ${high}`)

        await page.until("document.querySelectorAll('.reset')[1].checkVisibility()")
        await page.evaluate("document.querySelectorAll('.reset')[1].click()")
        await page.until(`${zoomOf(1)} === ""`)
        assert.strictEqual(await page.evaluate("document.querySelectorAll('.reset')[1].hidden"), true)
      })
    }))

  it("zooms around the cursor by keyboard, and moves the cursor within what is visible", () =>
    withFolder(async (folder) => {
      makeRun(folder, {}, { steps: 10_000 })
      await page.look(1280, 900)
      await served(folder, async (url) => {
        await page.goto(url)
        await drawn(1, 1)
        await page.evaluate("document.querySelectorAll('.plot')[1].focus()")
        await page.press("End")
        await page.press("+", "+")
        await page.until(`${zoomOf(1)}?.endsWith(" 10000") === true`)
        assert.closeTo(Number(String(await page.evaluate(zoomOf(1))).split(" ")[0]), 5100, 1)
        await page.press("Home")
        const title = "document.querySelectorAll('figcaption')[1].textContent"
        await page.until(`${title} === "Training return at 5,200 steps"`)
        await page.press("0", "0")
        await page.until(`${zoomOf(1)} === ""`)
        await page.press("Home")
        await page.until(`${title} === "Training return at 200 steps"`)
      })
    }))

  it("has a logarithmic y axis on which equal factors have equal distances, also with zero and negative values", () =>
    withFolder(async (folder) => {
      const values = { positive: [1, 10, 100], mixed: [-Math.sinh(5), 0, Math.sinh(5)] }
      for (const [name, scores] of Object.entries(values)) {
        const run = makeRun(folder, { name }, { lean: true, finished: false })
        const lines = scores.map((score, index) => scoreLine(100 * (index + 1), score, index))
        write(folder, `${run}/scores/train/scores.jsonl`, lines.join(""))
      }
      await page.look(1280, 900)
      await served(folder, async (url) => {
        for (const name of Object.keys(values)) {
          await page.goto(`${url}#/?by=none&log=y&filter=${name}`)
          await drawn(1, 1)
          await page.evaluate("document.querySelectorAll('.plot')[1].focus()")
          const heights: Array<number> = []
          for (const [index, key] of ["Home", "ArrowRight", "ArrowRight"].entries()) {
            await page.press(key)
            await page.until(
              `document.querySelectorAll('figcaption')[1].textContent.includes("at ${100 * (index + 1)} steps")`,
            )
            const point = "document.querySelectorAll('.plot')[1].querySelector('.u-cursor-pt').getBoundingClientRect()"
            heights.push(Number(await page.evaluate(`${point}.top`)))
          }
          const [first, second, third] = heights
          assert.isAbove(first - second, 50, name)
          assert.closeTo(first - second, second - third, 1.5, name)
        }
      })
    }))

  it("draws as many points as the server sends, of several runs over each other", () =>
    withFolder(async (folder) => {
      for (const seed of [1, 2]) {
        const run = makeRun(folder, { seed }, { lean: true, finished: false })
        const lines = Array.from({ length: 5000 }, (_, index) => scoreLine((index + 1) * seed, index % 7, index))
        write(folder, `${run}/scores/train/scores.jsonl`, lines.join(""))
      }
      await page.look(1280, 900)
      await served(folder, async (url) => {
        await page.goto(`${url}#/?by=none`)
        await drawn(1, 2)
        assert.isAtLeast(Number(await page.evaluate("document.querySelectorAll('.plot')[1].dataset.points")), 800)
        const { at, top } = await areaOf(1)
        await page.mouse("mouseMoved", at(0.25), top + 40)
        await page.until("document.querySelectorAll('.readout')[1].textContent.includes('seed 2')")
        await page.until("document.querySelectorAll('figcaption')[1].textContent.includes(' at 2,')")
        // Run 1 has ended where run 2 goes on.
        await page.mouse("mouseMoved", at(0.9), top + 40)
        await page.until("/seed 1: –/.test(document.querySelectorAll('.readout')[1].textContent)")
      })
    }))

  /** The number of charts with a line drawn on them, of those below the window's end. */
  const below =
    "[...document.querySelectorAll('.plot')].filter((plot) => plot.getBoundingClientRect().top > innerHeight && plot.clientWidth > 0)"
  const inked =
    `${below}.filter((plot) => { const canvas = plot.querySelector('canvas'); return canvas !== null && ` +
    "canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0) }).length"

  it("is there below the window in a screenshot of the whole page, soon after those in the window", () =>
    withFolder(async (folder) => {
      const run = makeRun(folder)
      await page.look(700, 300)
      await served(folder, async (url) => {
        await page.goto(`${url}#/run/${run}`)
        await page.until(`${below}.length > 0`)
        await page.until(`${inked} === ${below}.length`)
      })
    }))

  it("is there in print, even if the page was never idle, and is no wider than the paper", () =>
    withFolder(async (folder) => {
      const run = makeRun(folder)
      // So low that no chart is ever in the window.
      await page.look(1800, 40)
      await served(folder, async (url) => {
        await page.goto(`${url}#/`)
        await drawn(1, 1)
        await page.evaluate("void (window.requestIdleCallback = () => 0)")
        await page.evaluate(`location.hash = ${JSON.stringify(`#/run/${run}`)}`)
        await page.until("document.querySelectorAll('.run .plot').length > 1")
        await page.until("document.querySelector('.run .plot').dataset.lines === '1'")
        assert.strictEqual(await page.evaluate(inked), 0)
        await page.evaluate(
          "void addEventListener('beforeprint', () => { " +
            `window.printed = [${below}.length, ${inked}, ` +
            "Math.max(...[...document.querySelectorAll('.plot .u-wrap')].map((one) => one.offsetWidth))] })",
        )
        assert.isAbove((await page.pdf()).length, 10_000)
        const [there, drawnOnes, width] = (await page.evaluate("window.printed")) as ReadonlyArray<number>
        assert.isAbove(there, 0)
        assert.deepStrictEqual([drawnOnes, width <= 660], [there, true])
      })
    }))
})
