/** The page "Play" in a real browser: it trains in a worker, from the server and from an exported site. */
import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "vitest"
import { parse } from "yaml"
import { effect } from "../../cli/effect.ts"
import { withFolder } from "../folder.ts"
import { inBrowser } from "../inBrowser.ts"
import { plainServer } from "../plainServer.ts"
import { configs, digestInNode } from "./configs.ts"

inBrowser("the page Play", ({ page, served, text, count, set }) => {
  const button = (label: string): string =>
    `[...document.querySelectorAll(".play button")].find((one) => one.textContent === ${JSON.stringify(label)})`
  const press = (label: string) => page.evaluate(`${button(label)}.click()`)
  const reaches = (state: string) => page.until(`document.querySelector(".play").dataset.state === "${state}"`)
  const digest = async () => String(await page.evaluate("[...document.querySelectorAll('.facts div')].find((one) => one.textContent.startsWith('digest')).lastChild.textContent")) // prettier-ignore
  const trained = async (config: string) => {
    await set(".configText", config)
    await press("Train")
    await reaches("finished")
    return digest()
  }

  it("trains all three envs with the digest that Node gives", () =>
    withFolder(async (folder) => {
      await served(folder, async (url) => {
        await page.goto(`${url}#/play`)
        await count(".play", 1)
        for (const config of Object.values(configs)) {
          assert.strictEqual(await trained(config), await digestInNode(parse(config)))
          await page.until("document.querySelector('.picture iframe')?.dataset.drawn !== undefined")
        }
        assert.strictEqual(await text(".play .problem"), "")
      })
    }))

  it("is never frozen while it trains, and keeps what was learned over a reload, bit for bit", () =>
    withFolder(async (folder) => {
      await served(folder, async (url) => {
        await page.goto(`${url}#/play`)
        await count(".play", 1)
        const config = configs.CartPole.replace("total_steps: 1024", "total_steps: 40000")
        await set(".configText", config)
        await press("Train")
        await page.until("document.querySelector('.plot').dataset.points > 0")
        const frames = "new Promise((done) => { let left = 30; const next = () => left-- === 0 ? done(true) : requestAnimationFrame(next); next() })" // prettier-ignore
        await page.evaluate(frames)
        // The page has rendered 30 frames and can still be used, and the training has gone on meanwhile.
        assert.strictEqual(await page.evaluate("document.querySelector('.play').dataset.state"), "training")
        await press("Stop")
        await reaches("stopped")
        await count(".saves li", 1)

        await page.goto(`${url}#/play`)
        await count(".saves li", 1)
        await press("Load")
        await reaches("loaded")
        await press("Continue")
        await reaches("finished")
        assert.strictEqual(await digest(), await digestInNode(parse(config)))

        await press("Remove")
        await count(".saves li", 0)
        await page.goto(`${url}#/play`)
        await page.until("document.querySelector('.saves') !== null")
        await count(".saves li", 0)
      })
    }))

  it("shows a wrong setting's error, and trains after it was corrected by a slider", () =>
    withFolder(async (folder) => {
      await served(folder, async (url) => {
        await page.goto(`${url}#/play`)
        await count(".play", 1)
        await set(".configText", configs.CartPole.replace("learning_rate: 0.001", "learning_rate: -1"))
        await press("Train")
        await reaches("failed")
        assert.match(await text(".play .problem"), /^play\.yaml:7: algorithm\.learning_rate: expected .*, found -1/)
        await set("[data-setting='algorithm.learning_rate']", "5")
        assert.include(await page.evaluate("document.querySelector('.configText').value"), "learning_rate: 0.001\n")
        await press("Train")
        await reaches("finished")
        assert.strictEqual(await digest(), await digestInNode(parse(configs.CartPole)))
        assert.strictEqual(await text(".play .problem"), "")
      })
    }))

  it("trains in an exported site, without a server of ours", () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      mkdirSync(results)
      const exported = await effect(["ui", results, "--export", join(folder, "site")])
      assert.strictEqual(exported.code, 0, exported.stderr)
      const server = await plainServer(folder)
      try {
        await page.goto(`${server.url}#/play`)
        await count(".play", 1)
        assert.strictEqual(await trained(configs.GridWorld), await digestInNode(parse(configs.GridWorld)))
        assert.deepStrictEqual(page.complaints(), [])

        rmSync(join(folder, "site/play/worker.js"))
        await page.goto(`${server.url}?again#/play`)
        await reaches("failed")
        assert.match(await text(".play .problem"), /worker\.js could not be loaded; load this page again$/)
        await press("Train")
        await reaches("failed")
        assert.match(await text(".play .problem"), /load this page again$/)
      } finally {
        server.close()
      }
    }))
})
