/** The page of a multi-run trainer in a real browser: its runs over each other, and answers coloured by advantage. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { assert, it } from "vitest"
import { exportSite } from "../../../src/command/ui/exportSite.ts"
import * as Multirun from "../../../src/trainer/Layout.ts"
import { runsIn } from "../cli/crash.ts"
import { start } from "../cli/effect.ts"
import { configOf, runConfig, validated } from "../../trainer/smallTraining.ts"
import { lowContrasts } from "./contrast.ts"
import { withFolder, write } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"
import { plainServer } from "./plainServer.ts"
import { makeTrainer, writeFound, writeRun } from "./trainer.ts"

const rows =
  "[...document.querySelectorAll('.trainerRuns tbody tr')].map((row) => [...row.children].slice(1, 4).map((one) => one.textContent).join(' | '))"
const linesOf = (title: string) =>
  `[...document.querySelectorAll('.chart')].find((one) => one.textContent.startsWith('${title}'))?.querySelector('.plot').dataset.lines`
const heads = "[...document.querySelectorAll('.groupHead')].map((one) => one.textContent)"
const firstAnswer =
  "[...document.querySelectorAll('.episodeList a .token')].slice(0, 2).map((one) => [one.textContent, one.className])"

const segments = (path: string): string => path.split("/").map(encodeURIComponent).join("/")

/** Writes a trainer with a run of each state; the paths of the trainer and of a run that is trained. */
const makeRuns = (folder: string): { readonly trainer: string; readonly letters: string } => {
  const trainer = makeTrainer(folder, { maxRuns: 2 })
  const letters = writeRun(folder, trainer, "letters", { steps: 60, perGroup: 8 })
  writeRun(folder, trainer, "digits", { steps: 40, level: 0.6 })
  for (const [place, name] of ["letters", "digits", "next", "wrong", "evicted"].entries())
    writeFound(folder, `${trainer}/run_${name}`, place + 1)
  write(folder, `${trainer}/run_wrong/${Multirun.configProblem}`, "orch.yaml:1: expected <b>a number</b>\n")
  write(folder, `${trainer}/run_evicted/${Multirun.evicted}`, "its loss is not finite\n")
  return { trainer, letters }
}

inBrowser("a trainer's page", ({ page, served, text, count, click, set }) => {
  it("shows every run, its state and its curves, and takes up a run that is added while it works", () =>
    withFolder(async (folder) => {
      const { trainer } = makeRuns(folder)
      await page.look(1280, 900)
      await served(folder, async (url) => {
        // Go there from the overview, by way of a run.
        await page.goto(`${url}#/?by=none`)
        await count(".runs tbody tr", 2)
        assert.strictEqual(await text(".trainers"), "Many runs in one trainer: words (5 runs)")
        assert.strictEqual(await page.evaluate("document.querySelector('.trainers a').hash"), `#/trainer/${segments(trainer)}`) // prettier-ignore
        await click(".runs td.name a")
        await page.until("document.querySelector('.trainerLink') !== null")
        await click(".trainerLink")
        await page.until(`${rows}.length === 5`)
        assert.deepStrictEqual(await page.evaluate(rows), [
          "digits | training | 40 of 100",
          "evictedits loss is not finite | evicted | – of 100",
          "letters | training | 60 of 100",
          "next | waiting 1 in the queue | – of 100",
          "wrongorch.yaml:1: expected <b>a number</b> | invalid | – of 100",
        ])
        for (const title of ["Validation return", "Reward", "Loss", "Gradient norm", "Staleness", "Entropy"])
          await page.until(`${linesOf(title)} === '2'`)
        for (const title of ["Tokens a second", "Runs over"]) await page.until(`${linesOf(title)} === '2'`)

        // One line less, which the address says, too.
        await click("#draw-run_letters")
        await page.until(`${linesOf("Reward")} === '1'`)
        const address = String(await page.evaluate("location.href"))
        await page.goto(address)
        await page.until(`${linesOf("Reward")} === '1'`)
        assert.isFalse(await page.evaluate("document.querySelector('#draw-run_letters').checked"))
        await click("#draw-run_letters")
        await page.until(`${linesOf("Reward")} === '2'`)

        await page.evaluate("window.sameDocument = true")
        writeFound(folder, `${trainer}/run_added`, 6)
        await page.until(`${rows}[0] === 'added | waiting 2 in the queue | – of 100'`)
        write(folder, `${trainer}/run_letters/${Multirun.finished}`, "100\n")
        writeRun(folder, trainer, "next", { steps: 20 })
        await page.until(`${rows}.join().includes('next | training | 20 of 100')`)
        await page.until(`${rows}[0] === 'added | waiting 1 in the queue | – of 100'`)
        await click("#draw-run_next")
        await page.until(`${linesOf("Validation return")} === '3'`)
        assert.strictEqual(await page.evaluate("window.sameDocument"), true)
      })
    }))

  it("follows a real trainer with room for one run: it is trained, evicted, and the next one begins", () =>
    withFolder(async (folder) => {
      const runs = {
        a: runConfig(1, { ...validated, max_steps: 100_000, transcripts: { every: 2 } }),
        b: runConfig(2, { ...validated, max_steps: 3 }),
      }
      // JSON is YAML, too.
      write(folder, "small.yaml", JSON.stringify(configOf(runs, { trainer: { max_runs: 1 } })))
      const results = join(folder, "results")
      const args = ["run", join(folder, "small.yaml"), "--results-dir", results, "--backend", "wasm", "--quiet"]
      mkdirSync(results)
      const { child, ended } = start(args)
      try {
        await served(results, async (url) => {
          await page.goto(url)
          await page.until("document.querySelector('.trainers a') !== null")
          await click(".trainers a")
          await page.until(
            `/^a \\| training \\| \\d+ of 100,000;b \\| waiting 1 in the queue \\| – of 3$/.test(${rows}.join(';'))`,
          )
          await page.until(`${linesOf("Reward")} === '1' && ${linesOf("Tokens a second")} === '2'`)
          await click(".trainerRuns td.name a")
          await page.until("document.querySelector('.episodeList .token') !== null")
          await page.evaluate("history.back()")
          await page.until(`${rows}.length === 2`)

          const [trainer] = runsIn(results)
          write(trainer, `run_a/${Multirun.evicted}`, "enough\n")
          await page.until(`/^aenough \\| evicted \\|.*;b \\| finished \\| 3 of 3$/.test(${rows}.join(';'))`)
          const { code, stderr } = await ended
          assert.strictEqual(code, 1)
          assert.match(
            stderr,
            /run_a was evicted: enough; to let it in again, remove .*evicted\.txt; the other runs are finished/,
          )
          await page.until("document.querySelector('h1 .badge').textContent !== 'running'")
        })
      } finally {
        child.kill("SIGKILL")
      }
    }))

  it("is the same in an exported site", () =>
    withFolder(async (folder) => {
      const { trainer, letters } = makeRuns(join(folder, "results"))
      const site = join(folder, "site")
      await Effect.runPromise(Effect.provide(exportSite(join(folder, "results"), site), NodeServices.layer))
      const server = await plainServer(folder)
      try {
        await page.goto(`${server.url}#/trainer/${segments(trainer)}`)
        await page.until(`${linesOf("Tokens a second")} === '2' && ${linesOf("Reward")} === '2'`)
        await page.goto(`${server.url}#/run/${segments(letters)}?order=highestAdvantage&leastAdvantage=0.5`)
        await page.until("document.querySelector('.episodeList a') !== null")
        assert.deepStrictEqual(await page.evaluate(firstAnswer), [
          ["dcba", "token up4"],
          ["+0.875", "token up4"],
        ])
        assert.deepStrictEqual(page.complaints(), [])
      } finally {
        await page.goto("about:blank")
        page.complaints()
        server.close()
      }
    }))

  for (const scheme of ["light", "dark"] as const) {
    it(`has answers by group in the colours of their advantages, sorted and filtered by them, ${scheme}`, () =>
      withFolder(async (folder) => {
        const { trainer, letters } = makeRuns(folder)
        await page.look(1280, 900, scheme)
        await served(folder, async (url) => {
          await page.goto(`${url}#/run/${segments(letters)}?episode=train-2`)
          await page.until("document.querySelector('.transcript .token.answer') !== null")
          const [first, second] = (await page.evaluate(heads)) as ReadonlyArray<string>
          assert.strictEqual(first, "Step 0, group 0 reverse_text-abcdreverse abcd")
          assert.strictEqual(second, "Step 0, group 1 reverse_text-wordsreverse words")
          assert.deepStrictEqual(await page.evaluate(firstAnswer), [
            ["dcba", "token up4"],
            ["+0.875", "token up4"],
          ])
          assert.include(await text(".legend"), "answers by advantage -0.875-0.4380+0.438+0.875")
          assert.include(await text(".transcript .facts"), "advantage-0.125")
          assert.strictEqual(await text(".transcript .token.answer"), "abcd")
          // An answer that was cut off is no action, but has an advantage, too.
          await click(".episodeList a[data-key=train-8]")
          await page.until("document.querySelector('.transcript .part.action .label')?.textContent === 'says'")
          assert.strictEqual(await text(".transcript .token.answer"), "abcd")
          const back = (one: string) =>
            page.evaluate(`getComputedStyle(document.querySelector('${one}')).backgroundColor`)
          const colors = [await back(".legend .up4"), await back(".legend .down4"), await back(".legend .none")]
          assert.strictEqual(new Set(colors).size, 3)
          const { low } = (await page.evaluate(lowContrasts)) as { readonly low: ReadonlyArray<string> }
          assert.deepStrictEqual(low, [])

          // Sorted by advantage, the list has no groups.
          await page.evaluate("document.querySelectorAll('.talk select')[1].id = 'order'")
          await set("#order", "lowestAdvantage")
          await page.until(`${heads}.length === 0 && ${firstAnswer}[1]?.[0] === '-0.875'`)
          await set(".bound", "0.5", 2)
          await page.until("document.querySelector('.talk .count').textContent.includes(' of ')")
          await page.until("location.hash.includes('leastAdvantage=0.5')")
          await page.until("[...document.querySelectorAll('.episodeList a .token')].every((one) => one.matches('.up3, .up4'))") // prettier-ignore
        })
        await served(folder, async (url) => {
          await page.goto(`${url}#/trainer/${segments(trainer)}`)
          await page.until(`${rows}.length === 5 && ${linesOf("Reward")} === '2'`)
          const { low, texts } = (await page.evaluate(lowContrasts)) as {
            readonly low: ReadonlyArray<string>
            readonly texts: number
          }
          assert.deepStrictEqual(low, [])
          assert.isAbove(texts, 30)
        })
      }))
  }

  it("shows hundreds of answers without delay", () =>
    withFolder(async (folder) => {
      const trainer = makeTrainer(folder)
      // 2 groups of 64 answers in each of 20 steps.
      const run = writeRun(folder, trainer, "many", { steps: 200, perGroup: 64 })
      await served(folder, async (url) => {
        await page.goto(`${url}#/run/${segments(run)}`)
        await count(".episodeList a", 100)
        assert.match(await text(".talk .count"), /^2,\d{3} episodes$/)
        for (let shown = 200; shown <= 600; shown += 100) {
          await page.evaluate("document.querySelectorAll('.more')[1].click()")
          await count(".episodeList a", shown)
        }
        // The groups stay whole where two parts of the list meet.
        const groups = (await page.evaluate(heads)) as ReadonlyArray<string>
        assert.strictEqual(new Set(groups).size, groups.length)
      })
    }))
})
