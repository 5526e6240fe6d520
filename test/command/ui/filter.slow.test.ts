/** The overview's filter and columns in a real browser: the language of `effect runs --where`, over settings and results. */
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { assert, it } from "vitest"
import { exportSite } from "../../../src/command/ui/exportSite.ts"
import { makeRun, withFolder, write } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"
import { plainServer } from "./plainServer.ts"

/** Three runs of PPO with other learning rates, of which the first has not ended, and one of DQN. */
const makeRuns = (folder: string): ReadonlyArray<string> =>
  [
    { algorithm: "ppo", rate: 0.0003, level: 120 },
    { algorithm: "ppo", rate: 0.001, level: 300 },
    { algorithm: "ppo", rate: 0.003, level: 480 },
    { algorithm: "dqn", rate: 0.0001, level: 200 },
  ].map(({ algorithm, rate, level }, index) => {
    const run = makeRun(
      folder,
      { seed: index + 1, name: `try-${index + 1}`, population: {} },
      { level, finished: index > 0 },
    )
    const setting = `algorithm:\n  name: ${algorithm}\n  learning_rate: ${rate}\n`
    write(folder, `${run}/config.yaml`, `env: CartPole-v1\ntotal_steps: 1000\nseed: ${index + 1}\n${setting}`)
    return run
  })

/** The names of the runs in the table, which end their titles. */
const names =
  "[...document.querySelectorAll('.runs td.name a')].map((one) => one.textContent.split(' · ').at(-1)).sort().join()"

inBrowser("the filter", ({ page, served, text, count, set }) => {
  const passing = (wanted: string) => page.until(`${names} === ${JSON.stringify(wanted)}`)
  const problem = "document.querySelector('#filter-problem').textContent"

  it("takes settings, results, states and words as effect runs does, also in an exported site", () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      makeRuns(results)
      const look = async (url: string) => {
        await page.goto(`${url}#/?by=none`)
        await count(".runs tbody tr", 4)
        for (const [filter, wanted] of [
          ["algorithm.learning_rate<1e-3", "try-1,try-4"],
          ["algorithm.learning_rate<1e-3 ppo", "try-1"],
          ["validation > 250", "try-2,try-3"],
          ["validation>250 algorithm.learning_rate<=0.001", "try-2"],
          ["algorithm=dqn", "try-4"],
          ["algorithm!=dqn seed>=2", "try-2,try-3"],
          ["state=stopped", "try-1"],
          ["state!=stopped config.seed<4", "try-2,try-3"],
          ["try-4", "try-4"],
          ["", "try-1,try-2,try-3,try-4"],
        ]) {
          await set("#filter", filter)
          await passing(wanted)
          assert.strictEqual(await page.evaluate(problem), "", filter)
        }
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

  it("names a key that no run has, with the one that was probably meant, and a state that doesn't exist", () =>
    withFolder(async (folder) => {
      makeRuns(folder)
      await served(folder, async (url) => {
        await page.goto(`${url}#/?by=none`)
        await count(".runs tbody tr", 4)
        for (const [filter, wanted] of [
          [
            "algorithm.lerning_rate<1",
            "no run has the key algorithm.lerning_rate; did you mean algorithm.learning_rate?",
          ],
          ["validation>", "validation>: expected a value after >"],
          ["state=runing", "“runing” is no state; the states are running, finished, stopped, failed."],
        ]) {
          await set("#filter", filter)
          await page.until(`${problem} === ${JSON.stringify(wanted)}`)
          assert.strictEqual(await page.evaluate("document.querySelector('#filter').ariaInvalid"), "true")
        }
        await set("#filter", "seed=2")
        await page.until(`${problem} === ""`)
        await passing("try-2")
      })
    }))

  it("finds words and variables with - for _, and quoted texts", () =>
    withFolder(async (folder) => {
      makeRun(folder, { name: "my-qa", population: { algorithm: "history-agent", num_envs: "8" }, seed: 12 })
      await served(folder, async (url) => {
        await page.goto(`${url}#/?by=none`)
        await count(".runs tbody tr", 1)
        for (const [filter, isFound] of [
          ["history_agent", true],
          ["algorithm=history_agent", true],
          ["history-agent my_qa", true],
          ["MY-QA", true],
          ["num_envs=8", true],
          ["num-envs=8", true],
          ["num_envs=80", false],
          ["react_agent", false],
          ["2026-01-31_12-00", true],
          ["state=finished seed=12", true],
          ["state=stopped", false],
          ['"seed 12"', true],
          ['"seed 1 "', false],
        ] as const) {
          await set("#filter", filter)
          await passing(isFound ? "my-qa" : "")
          await page.until("!document.querySelector('.count').textContent.includes('reading')")
          await passing(isFound ? "my-qa" : "")
        }
      })
    }))

  it("is beside a choice of columns: settings are found by name, sorted by, and kept in the address", () =>
    withFolder(async (folder) => {
      makeRuns(folder)
      await page.look(1280, 900)
      await served(folder, async (url) => {
        await page.goto(`${url}#/?by=none`)
        await count(".runs tbody tr", 4)
        await page.evaluate("document.querySelector('.chooser summary').click()")
        await page.until("document.getElementById('choice-algorithm.learning_rate') !== null")
        // Settings that differ between the runs come before those that don't.
        const order = "[...document.querySelectorAll('.choices input')].map(({ id }) => id.slice(7))"
        const keys = (await page.evaluate(order)) as ReadonlyArray<string>
        assert.isBelow(keys.indexOf("algorithm.learning_rate"), keys.indexOf("total_steps"))
        await set(".findColumn", "LEARNING")
        await page.until(`${order}.join() === "algorithm.learning_rate"`)
        await page.evaluate("document.getElementById('choice-algorithm.learning_rate').click()")
        await page.until("document.getElementById('sort-algorithm.learning_rate') !== null")
        await set(".findColumn", "")
        await page.evaluate("document.getElementById('choice-episodes').click()")
        await page.until("document.getElementById('sort-episodes') === null")
        await page.evaluate("document.getElementById('sort-algorithm.learning_rate').click()")
        const cells = "[...document.querySelectorAll('.runs tbody tr')].map((row) => row.lastChild.textContent).join()"
        await page.until(`${cells} === "0.003,0.001,0.0003,0.0001"`)

        const address = String(await page.evaluate("location.href"))
        await page.goto(address)
        await page.until(`${cells} === "0.003,0.001,0.0003,0.0001"`)
        assert.include(await text("th[aria-sort]"), "algorithm.learning_rate")
        assert.isTrue(await page.evaluate("document.getElementById('sort-episodes') === null"))

        // A group shows the value that all its runs have.
        await page.evaluate("document.querySelector('.slot select').focus()")
        await set(".slot select", "env")
        await page.until(`${cells} === "several"`)
      })
    }))
})
