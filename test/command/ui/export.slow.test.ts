/** The static site in a real browser, from the plainest file server there is. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "vitest"
import { effect } from "../cli/effect.ts"
import { makeRun, withFolder, write } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"
import { plainServer } from "./plainServer.ts"
import { namingRun } from "./talk.ts"

const rows =
  "[...document.querySelectorAll('.runs tbody tr')].map((row) => row.querySelector('.name').textContent.trim())"

inBrowser("an exported site", ({ page, served, text, count, drawn, click, set }) => {
  it("is the page with what was there", () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      mkdirSync(results)
      const run = makeRun(results, { population: { env_id: "a/b 50%", algorithm: "ppo" } })
      makeRun(results, { population: { env_id: "a/b 50%", algorithm: "ppo" }, seed: 2 })
      makeRun(results, { population: { env_id: "a/b 50%", algorithm: "a2c" } })
      write(
        results,
        `${run}/steps/000000000001000/trajectories.json`,
        JSON.stringify([{ trajectory: [{ observation: [42], action: [1], reward: 1 }] }]),
      )
      write(results, `${run}/checkpoints/step_1000/weights.safetensors`, "weights")
      const out = join(folder, "site")
      const exported = await effect(["ui", results, "--export", out])
      assert.strictEqual(exported.code, 0, exported.stderr)
      assert.match(exported.stdout, /^3 runs, \d+ files in .*\nwithout 1 file of checkpoints; --checkpoints/)
      const server = await plainServer(folder)
      try {
        await page.goto(server.url)
        await count(".runs tbody tr", 2)
        assert.deepStrictEqual(await page.evaluate(rows), [
          "▸ a2c · a/b 50% · tune 1 run",
          "▸ ppo · a/b 50% · tune 2 runs",
        ])
        await drawn(0, 2)
        await drawn(1, 2)
        assert.strictEqual(await text("#live"), "exported")
        await page.evaluate("document.querySelectorAll('button.open')[1].click()")
        await click("a[href*='_ppo/0001']")
        await page.until("document.querySelector('.numbers')?.textContent.includes('42') === true")
        assert.include(await text("article"), "total_steps: 1000")
        assert.include(await text("article"), "This export has no checkpoints (1 file)")
        assert.deepStrictEqual(page.complaints(), [])
        // Framed by somebody else's page it runs nothing: here there is no server whose headers would forbid that.
        await page.goto(`${server.url}player/frame.html`)
        await page.evaluate("postMessage({ type: 'start', code: 'globalThis.stolen = true' }, '*')")
        await new Promise((resolve) => setTimeout(resolve, 200))
        assert.isUndefined(await page.evaluate("globalThis.stolen"))
      } finally {
        server.close()
      }
      const inside = await effect(["ui", results, "--export", join(results, "site")])
      assert.deepStrictEqual([inside.code, inside.stderr.includes("outside of the results")], [1, true]) // prettier-ignore
      writeFileSync(join(folder, "site/data/runs.json"), "")
      assert.strictEqual((await effect(["ui", results, "--export", out])).code, 0)
      assert.strictEqual((await effect(["ui", results, "--export", folder])).code, 1)
    }))

  it("has the transcripts of agents that talk, and looks through them by itself", () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      const run = await namingRun(results)
      const exported = await effect(["ui", results, "--export", join(folder, "site")])
      assert.deepStrictEqual([exported.code, exported.stderr], [0, ""])
      const server = await plainServer(folder)
      try {
        await page.goto(`${server.url}#/run/${run.split("/").map(encodeURIComponent).join("/")}?episode=train-2&turn=2`)
        await page.until("document.querySelector('.turn.current h4')?.textContent === 'Turn 2'")
        await count(".episodeList a", 20)
        await set(".find", "NAMING-10")
        await page.until("document.querySelector('.talk .count').textContent === '1 of 20 episodes'")
        await set(".find", "")
        await set(".talk select", "validation")
        await count(".episodeList a", 8)
        await set(".bound", "0.5", 1)
        await count(".episodeList a", 0)
        assert.deepStrictEqual(page.complaints(), [])
      } finally {
        server.close()
      }
    }))

  it("shows the bands of filtered groups as the server does", () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      for (const [seed, level] of [80, 120, 250, 300].entries()) {
        makeRun(results, { seed, population: { a: String(seed), b: seed === 1 ? "poor" : `worthy${seed}` } }, { level })
      }
      const exported = await effect(["ui", results, "--export", join(folder, "site")])
      assert.deepStrictEqual([exported.code, exported.stderr], [0, ""])
      await page.look(1280, 900)
      const seen = async (url: string): Promise<unknown> => {
        await page.goto(`${url}#/?by=name&filter=tune`)
        await drawn(0, 1)
        // Three of the four: no group that the export has.
        await set("#filter", "worthy")
        await page.until("document.querySelector('.runs td.name')?.textContent.includes('3 runs') === true")
        // Until then the curves are those of all four.
        await page.until("document.querySelector('.curves > p').textContent === ''")
        await drawn(0, 1)
        await drawn(1, 1)
        await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return page.evaluate("[...document.querySelectorAll('.plot canvas')].map((one) => one.toDataURL()).join()")
      }
      const server = await plainServer(folder)
      try {
        const asFiles = await seen(server.url)
        await served(results, async (url) => {
          const asked = await seen(url)
          assert.isTrue(asked === asFiles, "the pictures differ")
        })
        assert.deepStrictEqual(page.complaints(), [])
      } finally {
        server.close()
      }
    }))
})
