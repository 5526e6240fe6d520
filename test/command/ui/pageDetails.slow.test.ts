/** Tests the page's details in a real browser: layout, numbers, charts, folded parts, and contrast. */
import { assert, it } from "vitest"
import * as Rollouts from "../../../src/agents/episode/rollouts/Rollouts.ts"
import { effect } from "../cli/effect.ts"
import { lowContrasts } from "./contrast.ts"
import { makeRun, scoreLine, withFolder, write } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"
import { callStep, envStep, rolloutOf } from "./rollouts.ts"
import { namingRun } from "./talk.ts"

inBrowser("the page's details", ({ page, served, text, count, drawn, click, set }) => {
  /** Moves the mouse over a chart, or away from it, and waits until that is drawn. */
  const pointAt = async (chart: number, x: number | undefined) => {
    const place = await page.evaluate(
      `(() => { const { x, y, width } = document.querySelectorAll('.plot .u-over')[${chart}].getBoundingClientRect(); return [x, width, y] })()`,
    )
    const [left, width, top] = place as ReadonlyArray<number>
    await page.mouse("mouseMoved", x === undefined ? 0 : left + x * (width - 1), x === undefined ? 0 : top + 50)
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
  }
  const readout = (chart: number) =>
    page.evaluate(
      `[...document.querySelectorAll('.chart')[${chart}].querySelectorAll('figcaption, .value')].map((one) => one.textContent.trim())`,
    )
  const heights = () =>
    page.evaluate("[...document.querySelectorAll('.chart, .table')].map((one) => one.getBoundingClientRect().top + ':' + one.getBoundingClientRect().height).join()") // prettier-ignore

  for (const width of [1280, 700, 360]) {
    it(`the table stays where it is while a chart is pointed at, ${width} pixels wide`, () =>
      withFolder(async (folder) => {
        for (const rate of ["0.0001", "0.0003", "0.001"])
          for (const seed of [1, 2, 3])
            makeRun(folder, { seed, population: { learning_rate: rate, environment: "CartPole-v1" } }, { level: 100 + seed, steps: 8192 }) // prettier-ignore
        await page.look(width, 900)
        await served(folder, async (url) => {
          await page.goto(url)
          await drawn(0, 3)
          await drawn(1, 3)
          const before = await heights()
          for (const x of [0.2, 0.6, 0.99]) {
            await pointAt(0, x)
            assert.strictEqual(await heights(), before)
          }
          assert.deepStrictEqual(((await readout(0)) as ReadonlyArray<string>).slice(0, 2), [
            "Validation return at 8,192 steps",
            "learning_rate=0.0001: 102 (101 to 103)",
          ])
          await pointAt(0, undefined)
          assert.strictEqual(((await readout(0)) as ReadonlyArray<string>)[0], "Validation return over steps")
          assert.strictEqual(await heights(), before)
        })
        await page.look(1280, 900)
      }))
  }

  it("says how many runs go on where the others have ended, and names the value at the end of half of them", () =>
    withFolder(async (folder) => {
      const runs: ReadonlyArray<readonly [ReadonlyArray<number>, ReadonlyArray<number>]> = [
        [[20_480, 100_000], [500, 500]],
        [[20_480, 100_000], [500, 500]],
        [[20_480, 30_000], [480, 500]],
        [[20_480, 30_000], [485, 498]],
        [[20_480, 30_000], [485, 498]],
      ] // prettier-ignore
      for (const [index, [steps, scores]] of runs.entries()) {
        const run = makeRun(folder, { seed: index + 1 }, { lean: true })
        for (const [place, step] of steps.entries())
          write(folder, `${run}/scores/val/${step}_seen_episodes_scores.jsonl`, scoreLine(step, scores[place], 0, "validation")) // prettier-ignore
        const records = steps.map((step, place) => ({ step, returns_mean: scores[place], returns_std: 0, returns: [scores[place]] })) // prettier-ignore
        write(folder, `${run}/return.json`, JSON.stringify(records))
      }
      await served(folder, async (url) => {
        await page.goto(`${url}#/?middle=mean`)
        await drawn(0, 1)
        assert.include(await text(".runs tbody tr"), "499.2")
        assert.deepStrictEqual(((await readout(0)) as ReadonlyArray<string>)[1], "tune: 499.2")
        await pointAt(0, 1)
        const [at, line] = (await readout(0)) as ReadonlyArray<string>
        assert.strictEqual(at, "Validation return at 100,000 steps")
        assert.strictEqual(line, "tune: 500 (500 to 500) 2 of 5 runs")
      })
    }))

  it("draws what the table shows, of whatever environment, as far as there are colours", () =>
    withFolder(async (folder) => {
      for (let index = 0; index < 10; index++) makeRun(folder, { name: `env-${index}`, time: `2026-01-3${index % 2}_12-00-0${index}` }) // prettier-ignore
      await served(folder, async (url) => {
        await page.goto(url)
        await count(".runs tbody tr", 10)
        await drawn(0, 8)
        const note = "[...document.querySelectorAll('.overview > p')].find((one) => one.checkVisibility())?.textContent"
        assert.strictEqual(await page.evaluate(note), "The first 8 of 10 are drawn: untick some to draw others.")
        const names = "[...document.querySelectorAll('.chart .value')].slice(0, 8).map((one) => one.textContent)"
        assert.strictEqual(new Set((await page.evaluate(names)) as ReadonlyArray<string>).size, 8)
        await page.evaluate("[...document.querySelectorAll('.runs .box input')].at(-1).click()")
        await page.until(`${note} === 'At most 8 are drawn at once: untick one first.'`)
        await set("#filter", "env-3")
        await drawn(0, 1)
        assert.isUndefined(await page.evaluate(note))
      })
    }))

  it("asks for the band of as many runs as the server takes, of a group of any size", () =>
    withFolder(async (folder) => {
      const run = makeRun(folder)
      await served(folder, async (url) => {
        await page.goto(url)
        await drawn(0, 1)
        const asked = await page.evaluate(`(async () => {
          const { fetchBand } = await import("/data.js")
          const own = fetch
          const bodies = []
          window.fetch = (address, options) => (bodies.push(options.body), own(address, options))
          const paths = Array.from({ length: 40_000 }, (_, index) => "0".repeat(100) + String(index).padStart(5, "0"))
          const band = await fetchBand([${JSON.stringify(run)}, ...paths], "train", "steps", true)
          window.fetch = own
          const { runs } = JSON.parse(bodies[0])
          return [runs.length, runs[1] > runs[0], runs.at(-1), band.of]
        })()`)
        assert.deepStrictEqual(asked, [2000, true, run, 1])
      })
    }))

  it("of an empty folder says how to make a run, and shows the first one at once", () =>
    withFolder(async (folder) => {
      await served(folder, async (url) => {
        const seen = "[...document.querySelectorAll('.chart, .table, #filter')].filter((one) => one.checkVisibility()).length" // prettier-ignore
        await page.goto(url)
        await page.until("document.querySelector('.welcome')?.checkVisibility() === true")
        assert.include(await text(".welcome"), "npx effect run FILE")
        assert.strictEqual(await page.evaluate(seen), 0)
        makeRun(folder)
        await page.until("document.querySelector('.welcome').checkVisibility() === false")
        await drawn(0, 1)
        assert.strictEqual(await page.evaluate(seen), 4)
      })
    }))

  it("folds the folders of a run that have several files", () =>
    withFolder(async (folder) => {
      const run = makeRun(folder)
      for (const file of ["calls/1.json", "calls/2.json", "memories/one.jsonl", "checkpoints/latest.json"])
        write(folder, `${run}/${file}`, "{}")
      for (const file of ["a", "b"]) write(folder, `${run}/checkpoints/step_1/${file}`, "x")
      await served(folder, async (url) => {
        await page.goto(`${url}#/run/${run}`)
        await page.until("document.querySelectorAll('.fileList').length > 1")
        const folders = "[...document.querySelectorAll('details[id^=folder] summary')].map((one) => one.firstChild.textContent)" // prettier-ignore
        assert.deepStrictEqual(await page.evaluate(folders), ["calls", "checkpoints/step_1", "scores"])
        const listed = await text(".fileList")
        for (const file of ["memories/one.jsonl", "checkpoints/latest.json", "config.yaml"])
          assert.include(listed, file)
      })
    }))

  it("opens the transcript where there is one episode, with no other address", () =>
    withFolder(async (folder) => {
      write(folder, "one/rollouts.jsonl", Rollouts.line(rolloutOf("a")))
      await served(folder, async (url) => {
        await page.goto(`${url}#/run/one`)
        await page.until("document.querySelector('.transcript h3')?.textContent === 'a'")
        await count(".episodeList [aria-current]", 1)
        assert.notInclude(String(await page.evaluate("location.hash")), "episode=")
        assert.strictEqual(await page.evaluate("scrollY"), 0)
      })
    }))

  it("writes how fast a run was that has ended, not that it does nothing now", () =>
    withFolder(async (folder) => {
      const run = makeRun(folder)
      const sample = (seconds: number, speed: number): string =>
        `${JSON.stringify({ seconds, steps_per_second: speed, cpu: 1, rss: 2e8, heap: 1e8, buffers: 1e6 })}\n`
      write(folder, `${run}/system.jsonl`, sample(1, 480) + sample(2, 520) + sample(3, 0))
      await served(folder, async (url) => {
        await page.goto(`${url}#/run/${run}`)
        await page.until("document.querySelector('.system .value') !== null")
        assert.deepStrictEqual(((await readout(2)) as ReadonlyArray<string>)[1], "speed: 520 steps/s")
        assert.strictEqual(await page.evaluate("document.querySelectorAll('.system .plot')[0].dataset.points"), "2")
        assert.strictEqual(await page.evaluate("document.querySelectorAll('.system .plot')[1].dataset.points"), "3")
        assert.notInclude(await text("article"), " 0 steps/s")
      })
    }))

  for (const scheme of ["light", "dark"] as const) {
    it(`has texts of enough contrast (WCAG AA), ${scheme}`, () =>
      withFolder(async (folder) => {
        makeRun(folder)
        makeRun(folder, { seed: 2 }, { finished: false })
        const failed = makeRun(folder, { name: "broken" }, { finished: false })
        write(folder, `${failed}/run.log`, "2026-01-31T12:00:00Z failed at step 9: no\n")
        const steps = [callStep("a", 0), envStep("a", 1), callStep("a", 2, { turn: 1 }), envStep("a", 3, { turn: 1 })]
        const failing = rolloutOf("b", { steps: [callStep("b", 0)] })
        write(folder, "games/rollouts.jsonl", [rolloutOf("a", { steps }), failing].map(Rollouts.line).join(""))
        const talk = await namingRun(folder)
        const done = await effect(["eval", "examples/agents/evaluate.yaml", "--results-dir", folder, "--quiet"])
        assert.strictEqual(done.code, 0, done.stderr)
        await page.look(1280, 900, scheme)
        await served(folder, async (url) => {
          const look = async (where: string, atLeast: number) => {
            const { low, texts } = (await page.evaluate(lowContrasts)) as { readonly low: ReadonlyArray<string>; readonly texts: number } // prettier-ignore
            assert.deepStrictEqual(low, [], where)
            assert.isAtLeast(texts, atLeast, where)
          }
          await page.goto(url)
          await page.until("document.querySelectorAll('.runs tbody tr').length >= 5")
          await look("the overview", 60)
          await set("#filter", "state=runing")
          await page.until("document.querySelector('.runs tbody').textContent.includes('no state')")
          await look("a filter that finds nothing", 20)
          const runPath = makeRun(folder, { seed: 3 })
          await page.goto(`${url}#/run/${runPath}`)
          await page.until("document.querySelector('.facts') !== null")
          await look("a run", 60)
          await page.goto(`${url}#/run/nope`)
          await page.until("document.querySelector('.problem')?.textContent === 'There is no run “nope” here.'")
          await look("a run that is not there", 4)
          page.complaints()
          await page.goto(`${url}#/run/games?episode=rollouts-1&turn=2`)
          await page.until("document.querySelectorAll('.turn').length === 2")
          await page.evaluate("document.querySelectorAll('.transcript details').forEach((one) => { one.open = true })")
          await look("rollouts", 40)
          await page.goto(`${url}#/run/${talk.split("/").map(encodeURIComponent).join("/")}?episode=train-2&turn=2`)
          await page.until("document.querySelector('.turn.current') !== null")
          await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
          await look("a transcript", 60)
          await page.goto(`${url}#/?filter=capitals`)
          await count(".runs tbody tr", 1)
          await click("button.open")
          await click(".member a")
          await page.until("document.querySelectorAll('.report table').length === 3")
          await look("an evaluation", 60)
        })
        await page.look(1280, 900)
      }))
  }
})
