/** The page "Cluster" in a real browser: what it shows of a cluster, while the cluster changes and its database is gone. */
import { Effect } from "effect"
import { assert, it } from "vitest"
import type { Observed } from "../../../src/spread/cluster/overview.ts"
import { lowContrasts } from "./contrast.ts"
import { makeRun, withFolder } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"

const version = "0.1.0+0123456789ab"

/** A worker with a job, one that has been silent for a while, and a client; after so many finished jobs. */
const observed = (done: number): Observed => ({
  database: "postgres://rl@db.example/rl",
  problem: null,
  age: 0,
  overview: {
    members: [
      {
        id: "1",
        role: "worker",
        name: "process 71 on one",
        address: "10.0.0.1:4001",
        version,
        slots: 4,
        busy: 1,
        jobs: [{ key: "evaluation 1234 agent 1 episodes 1-<b>20</b>", seconds: 71 }],
        finished: done,
        joined: 3700,
        age: 0.4,
      },
      {
        id: "2",
        role: "worker",
        name: "process 72 on two",
        address: "10.0.0.2:4001",
        version,
        slots: 4,
        busy: 0,
        jobs: [],
        finished: 3,
        joined: 90,
        age: 9,
      },
      {
        id: "3",
        role: "client",
        name: "process 73 on one",
        address: "",
        version,
        slots: 0,
        busy: 12,
        jobs: Array.from({ length: 12 }, (_, at) => ({ key: `evaluation 1234 agent 1 episodes ${at}`, seconds: 80 })),
        finished: done,
        joined: 95,
        age: 0.1,
      },
    ],
    kinds: [{ kind: "evaluation", waiting: 11, underWay: 1, done, failed: 1 }],
    repeated: [{ key: "evaluation 1234 agent 1 episodes 41-60", times: 3, state: "underWay" }],
    failures: [{ key: "evaluation 1234 agent 2 episodes 1-20", message: "no such model", worker: "process 72 on two", age: 33 }], // prettier-ignore
  },
})

const cells = (row: number) =>
  `[...document.querySelectorAll(".cluster tbody tr")[${row}].children].map((one) => one.textContent).join(" | ")`

inBrowser("the page of a cluster", ({ page, served, text, count, click }) => {
  it("shows workers, clients, the queue and failures, and goes on while the database is gone", () =>
    withFolder(async (folder) => {
      makeRun(folder)
      let now = observed(40)
      await page.look(1280, 900)
      await served(
        folder,
        async (url) => {
          await page.goto(url)
          await page.until("document.querySelector('.runs tbody tr') !== null")
          await click("#toCluster")
          await count(".cluster tbody tr", 6)
          assert.strictEqual(await text(".cluster .line"), "postgres://rl@db.example/rl answers.")
          assert.match(
            String(await page.evaluate(cells(0))),
            /^process 71 on one10\.0\.0\.1:4001, version 0\.1\.0\+0123456789ab \| running \| evaluation 1234 agent 1 episodes 1-<b>20<\/b> for 1 min 11 s \| 1 of 4 \| 40 \| 1 h 1 min ago \| now$/,
          )
          assert.match(
            String(await page.evaluate(cells(1))),
            /\| silent \|  \| 0 of 4 \| 3 \| 1 min 30 s ago \| 9 s ago$/,
          )
          assert.match(
            String(await page.evaluate(cells(2))),
            /^process 73 on one.* \| 12 jobs \| .*and 4 more \| 40 \|/,
          )
          assert.strictEqual(await page.evaluate(cells(3)), "evaluation | 11 | 1 | 40 | 1")
          assert.strictEqual(await page.evaluate(cells(4)), "evaluation 1234 agent 1 episodes 41-60 | 3 | under way")
          assert.strictEqual(
            await page.evaluate(cells(5)),
            "evaluation 1234 agent 2 episodes 1-20 | no such model | process 72 on two | 33 s ago",
          )
          for (const scheme of ["light", "dark"] as const) {
            await page.look(1280, 900, scheme)
            const { low } = (await page.evaluate(lowContrasts)) as { readonly low: ReadonlyArray<string> }
            assert.deepStrictEqual(low, [])
          }
          now = observed(41)
          await page.until(`${cells(3)} === "evaluation | 11 | 1 | 41 | 1"`)
          now = { ...now, problem: "connection refused", age: 12 }
          await page.until("document.querySelector('.cluster').dataset.state === 'gone'")
          assert.strictEqual(
            await text(".cluster .problem"),
            "postgres://rl@db.example/rl does not answer (connection refused); this page shows what it said 12 s ago. Jobs that are under way continue.",
          )
          assert.include(String(await page.evaluate(cells(0))), "12 s ago")
          now = { ...now, problem: "connection refused", overview: null }
          await page.until("document.querySelector('.cluster > div').hidden")
          now = observed(42)
          await page.until(`${cells(3)} === "evaluation | 11 | 1 | 42 | 1"`)
          await page.goto(`${url}#/`)
          await page.until("document.querySelector('.runs tbody tr') !== null")
        },
        { cluster: Effect.sync(() => now) },
      )
      await served(folder, async (url) => {
        await page.goto(url)
        await page.until("document.querySelector('.runs tbody tr') !== null")
        assert.isTrue(await page.evaluate("document.querySelector('#toCluster').hidden"))
      })
    }))
})
