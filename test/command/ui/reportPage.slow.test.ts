/** The pages of runs that are no trainings: evaluations, rollouts by themselves, and groups without a common step. */
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "vitest"
import * as Rollouts from "../../../src/agents/episode/rollouts/Rollouts.ts"
import { effect } from "../cli/effect.ts"
import { makeRun, scoreLine, withFolder, write } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"
import { callStep, envStep, rolloutOf } from "./rollouts.ts"

inBrowser("what is no training", ({ page, served, text, count, click, drawn, set }) => {
  const seen = (selector: string) =>
    page.evaluate(
      `[...document.querySelectorAll(${JSON.stringify(selector)})].filter((one) => one.checkVisibility()).length`,
    )
  const rows = (table: number) =>
    page.evaluate(
      `[...document.querySelectorAll('.report table')[${table}].rows].map((row) => [...row.cells].map((cell) => cell.textContent).join('|'))`,
    )

  it("has an evaluation's report as tables, and no curves over steps", () =>
    withFolder(async (folder) => {
      const done = await effect(["eval", "examples/agents/evaluate.yaml", "--results-dir", folder, "--quiet"])
      assert.strictEqual(done.code, 0, done.stderr)
      await page.look(1280, 900)
      await served(folder, async (url) => {
        await page.goto(url)
        await count(".runs tbody tr", 1)
        assert.strictEqual(await page.evaluate("document.querySelector('.runs .box input').checked"), false)
        await click(".runs .box input")
        await page.until(
          "document.querySelector('.readout').textContent.includes('capitals: an evaluation has no curve')",
        )
        await click("button.open")
        await click(".member a")
        await page.until("document.querySelectorAll('.report table').length === 3")
        assert.strictEqual(await seen(".charts:not(.small)"), 0)
        assert.notInclude(await text("article"), "best")
        // The score is that of the agent with which the others are compared.
        assert.match(await text(".facts"), /agentsguesses\+was_toldscore0\.2083/)
        const scores = (await rows(0)) as ReadonlyArray<string>
        assert.deepStrictEqual(scores.slice(0, 3), [
          "agent|score|mean|95 %|tasks",
          "guesses|exact|0.208|0.083 to 0.333|6",
          "tokens|37.33|37.08 to 37.71|6",
        ])
        assert.include(scores, "pass@4|0.667|0.300 to 0.903|6")
        assert.include(scores, "was_told|exact|0.333|0.097 to 0.700|6")
        assert.deepStrictEqual(((await rows(1)) as ReadonlyArray<string>).slice(0, 2), [
          "compared|score|difference|95 %|better|worse|tasks|p|by",
          "was_told − guesses|exact|+0.125|-0.419 to 0.669|2|3|6|0.75|permutation",
        ])
        assert.match(
          ((await rows(1)) as ReadonlyArray<string>)[2],
          /^was_told − guesses\|tokens \(lower is better\)\|-10\.00\|[^|]+\|6\|0\|6\|/,
        )
        assert.include((await rows(2)) as ReadonlyArray<string>, "guesses|24|0|24|844|52|–")
      })
    }))

  it("has the agreement of an evaluation's judge with labels", () =>
    withFolder(async (folder) => {
      const items = [1, 0, 1, 0].map((human) => ({ question: `Is it ${human}?`, answer: "yes", human }))
      const lm_config = { model: "builtin:choice:SCORE=1" }
      const config = {
        dataset: { items, meta_fields: ["human"] },
        agents: { mine: { type: "memoryless_agent", lm_config: { model: "builtin:choice:yes" } } },
        scorers: [{ type: "judge", rubric: "Is it true?", label: "human", lm_config }],
      }
      const file = join(folder, "tasks.yaml")
      writeFileSync(file, JSON.stringify(config))
      const results = join(folder, "results")
      const done = await effect(["eval", file, "--results-dir", results, "--quiet", "--trust"])
      assert.strictEqual(done.code, 0, done.stderr)
      await served(results, async (url) => {
        await page.goto(url)
        await count(".runs tbody tr", 1)
        await click(".runs .box input")
        await click("button.open")
        await click(".member a")
        await page.until("document.querySelectorAll('.report table').length === 3")
        assert.deepStrictEqual(await rows(1), [
          "judge and label|agent|agreement|kappa|95 %|answers|tasks",
          "judge and human|mine|0.500|0.000|0.000 to 0.000|4|4",
        ])
      })
    }))

  it("has the report and the transcripts of an evaluation that another program played", () =>
    withFolder(async (folder) => {
      const sample = (id: number, value: string) => ({
        id,
        epoch: 1,
        input: "Is it so?",
        target: "Yes",
        messages: [
          { role: "user", content: "Is it so?" },
          { role: "assistant", content: "Yes, it is." },
        ],
        scores: { match: { value } },
      })
      const log = { version: 2, status: "success", eval: { task: "t", model: "some/model" } }
      const file = join(folder, "log.json")
      writeFileSync(file, JSON.stringify({ ...log, samples: [sample(1, "C"), sample(2, "I")] }))
      const results = join(folder, "results")
      const done = await effect(["import", file, "--results-dir", results, "--quiet"])
      assert.strictEqual(done.code, 0, done.stderr)
      await served(results, async (url) => {
        await page.goto(url)
        await count(".runs tbody tr", 1)
        await click(".runs .box input")
        await click("button.open")
        await click(".member a")
        await page.until("document.querySelectorAll('.report table').length === 2")
        assert.include(((await rows(0)) as ReadonlyArray<string>)[1], "some/model|match|0.500|")
        await count(".episodeList a", 2)
        await click(".episodeList a")
        await page.until("document.querySelector('article').textContent.includes('Yes, it is.')")
      })
    }))

  it("says of an evaluation that is not finished that its report comes", () =>
    withFolder(async (folder) => {
      write(folder, "half/config.yaml", "name: half\nseed: 1\ndataset:\n  type: qa\n")
      await served(folder, async (url) => {
        await page.goto(`${url}#/run/half`)
        await page.until("document.querySelector('.report')?.textContent.includes('when all episodes') === true")
        assert.strictEqual(await seen(".chart"), 0)
      })
    }))

  it("has of rollouts by themselves the transcripts, and neither charts nor a state", () =>
    withFolder(async (folder) => {
      const two = [callStep("a", 0), envStep("a", 1), callStep("a", 2, { turn: 1 }), envStep("a", 3, { turn: 1 })]
      const rollouts = [rolloutOf("a", { steps: two }), rolloutOf("b")]
      write(folder, "games/rollouts.jsonl", rollouts.map(Rollouts.line).join(""))
      await served(folder, async (url) => {
        await page.goto(url)
        await count(".runs tbody tr", 1)
        assert.strictEqual(await text(".runs td.state"), "–")
        await page.goto(`${url}#/run/games`)
        await count(".episodeList a", 2)
        assert.strictEqual(await seen(".chart, .badge, .log, .config, .facts > div"), 0)
        await page.press("j")
        await page.until("document.querySelector('.turn.current')?.dataset.turn === '1'")
        assert.strictEqual(await page.evaluate("document.querySelector('[aria-current]').dataset.key"), String(await page.evaluate("document.querySelector('.episodeList a').dataset.key"))) // prettier-ignore
        await page.press("j")
        await page.until("document.querySelector('.turn.current').dataset.turn === '2'")
      })
    }))

  it("says that a group's configs differ, and that its runs share no steps", () =>
    withFolder(async (folder) => {
      for (const [index, step] of [10, 500, 90_000].entries()) {
        const run = makeRun(folder, { seed: index + 1 }, { finished: false })
        rmSync(join(folder, run, "scores/val"), { recursive: true })
        write(folder, `${run}/scores/val/1_seen_episodes_scores.jsonl`, scoreLine(step, 5, 0, "validation"))
        write(folder, `${run}/config.yaml`, `env: CartPole-v1\nseed: ${index}\nalgorithm:\n  name: ppo\n`)
      }
      await served(folder, async (url) => {
        await page.goto(url)
        await count(".runs tbody tr", 1)
        await drawn(1, 1)
        assert.notInclude(await text(".runs td.name"), "configs differ")
        const note = "tune: its runs share no steps"
        await page.until(`document.querySelectorAll('.readout')[0].textContent === ${JSON.stringify(note)}`)
        assert.strictEqual(await text(".frame .empty"), "its runs share no steps")
        assert.include(String(await page.evaluate("document.querySelector('.plot').ariaLabel")), note)
        const run = makeRun(folder, { seed: 4 }, { lean: true })
        write(folder, `${run}/config.yaml`, "env: CartPole-v1\nseed: 4\nalgorithm:\n  name: ppo\n  gamma: 0.5\n")
        await page.until("document.querySelector('.runs td.name').textContent.endsWith('4 runs, configs differ')")
        await set("#filter", "state=runing")
        await page.until(
          "document.querySelector('.runs tbody').textContent === '“runing” is no state; the states are running, finished, stopped, failed.'",
        )
        await set("#filter", "state=running")
        await page.until("document.querySelector('.runs tbody').textContent === 'No run passes the filter.'")
      })
    }))

  it("has no speed of 0 for a run that ended", () =>
    withFolder(async (folder) => {
      const run = makeRun(folder, {}, { finished: false })
      const sample = (seconds: number, speed: number): string =>
        `${JSON.stringify({ seconds, steps_per_second: speed })}\n`
      write(folder, `${run}/system.jsonl`, sample(1, 500) + sample(4000, 0))
      await served(folder, async (url) => {
        await page.goto(`${url}#/run/${run}`)
        await page.until("document.querySelector('.facts')?.textContent.includes('speed0.25 steps/s') === true")
      })
    }))
})
