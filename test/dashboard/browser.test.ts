/** The page in a real browser, over what real trainings left. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { extname, join } from "node:path"
import { gzipSync } from "node:zlib"
import { Effect, Exit, Scope } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { serve } from "../../src/dashboard/server-node.ts"
import { effect, start } from "../cli/effect.ts"
import { type Browser, chromium, launch, type Page } from "./chromium.ts"
import { makeRun, withFolder, write } from "./folder.ts"

if (chromium === undefined) console.warn("browser tests are skipped: no chromium here (CHROMIUM names one)")

/** Draws a bar as wide as the first number of the state says, and tries what a frame may not do. */
const drawing = `
export const init = async (canvas) => {
  const tried = []
  const attempt = async (name, action) => {
    try { await action(); tried.push(name) } catch {}
  }
  await attempt("parent", () => parent.document.title)
  await attempt("storage", () => localStorage.length)
  await attempt("cookie", () => document.cookie)
  await attempt("network", () => fetch("/data/runs.json", { mode: "no-cors" }))
  await attempt("top", () => { top.location = "about:blank#stolen" })
  await attempt("import", () => import("/main.js"))
  await attempt("eval", () => new Function("return 1")())
  if (tried.length > 0) throw new Error("escaped: " + tried.join(", "))
  return { canvas, context: canvas.getContext("2d") }
}
export const episode_init = (ui, parameters) => { ui.color = parameters.color }
export const render = (ui, parameters, state) => {
  ui.context.clearRect(0, 0, ui.canvas.width, ui.canvas.height)
  ui.context.fillStyle = ui.color
  ui.context.fillRect(0, 0, (ui.canvas.width * state[0]) / 100, ui.canvas.height)
}
`

describe.skipIf(chromium === undefined)("the page", () => {
  let browser: Browser
  let page: Page
  beforeAll(async () => {
    browser = await launch(chromium ?? "")
    page = browser.page
  })
  afterAll(() => browser.close())

  const served = async (directory: string, body: (url: string) => Promise<void>, token?: string): Promise<void> => {
    const scope = await Effect.runPromise(Scope.make())
    const options = { directory, host: "127.0.0.1", port: 0, pollEvery: 100, ...(token === undefined ? {} : { token }) }
    const { port } = await Effect.runPromise(Scope.provide(serve(options), scope))
    try {
      await body(`http://localhost:${port}/`)
      assert.deepStrictEqual(page.complaints, [])
    } finally {
      // What it says of a server that went away is no complaint about the page.
      await page.goto("about:blank")
      page.complaints.length = 0
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  }

  const text = (selector: string): Promise<unknown> =>
    page.evaluate(`document.querySelector(${JSON.stringify(selector)})?.textContent`)
  const rows = (): Promise<unknown> =>
    page.evaluate(
      "[...document.querySelectorAll('.runs tbody tr')].map((row) => row.querySelector('.name').textContent.trim())",
    )
  const drawn = (chart: number, lines: number): Promise<void> =>
    page.until(`document.querySelectorAll('canvas')[${chart}].dataset.lines === '${lines}'`)
  const click = (selector: string): Promise<unknown> =>
    page.evaluate(`document.querySelector(${JSON.stringify(selector)}).click()`)

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
        await page.until("document.querySelectorAll('.runs tbody tr').length === 1")
        assert.include(String(await text(".runs td.name")), "2 runs")
        await drawn(0, 1)
        await drawn(1, 1)
        const blank = await page.evaluate("document.createElement('canvas').toDataURL()")
        assert.notStrictEqual(await page.evaluate("document.querySelector('canvas').toDataURL()"), blank)
        assert.include(
          String(await page.evaluate("document.querySelector('canvas').ariaLabel")),
          "Validation return over steps",
        )

        // By what varies, by nothing, and only some.
        await page.evaluate(
          "(() => { const by = document.querySelector('.slot select'); by.value = 'none'; by.dispatchEvent(new Event('change')) })()",
        )
        await page.until("document.querySelectorAll('.runs tbody tr').length === 2")
        await drawn(0, 2)
        await click("#sort-seed")
        assert.strictEqual(await page.evaluate("document.querySelector('th[aria-sort]').textContent"), "seed ▾")
        await page.evaluate("document.querySelector('#filter').focus()")
        await page.type("seed=2")
        await page.until("document.querySelectorAll('.runs tbody tr').length === 1")
        assert.include(String(await text(".count")), "1 of 2 runs")
        await page.evaluate("(() => { filter.value = ''; filter.dispatchEvent(new Event('input')) })()")

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
          await page.until("document.querySelector('.badge.running') !== null", 20_000)
          const key = "document.querySelector('.badge.running').closest('tr').querySelector('input')"
          await page.evaluate(`${key}.checked || ${key}.click()`)
          await drawn(0, 3)
          const points = "Number(document.querySelectorAll('canvas')[0].dataset.points)"
          const before = Number(await page.evaluate(points))
          await page.until(`${points} > ${before}`, 20_000)
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
        await page.until("document.querySelectorAll('.runs tbody tr').length === 1")
        await drawn(0, 1)
        const tabTo = async (condition: string) => {
          for (let presses = 0; presses < 60; presses++) {
            await page.press("Tab")
            if ((await page.evaluate(`document.activeElement.matches(${JSON.stringify(condition)})`)) === true) return
          }
          assert.fail(`Tab never came to ${condition}`)
        }
        await tabTo(".skip")
        await tabTo("canvas")
        await page.press("ArrowRight")
        await page.until("document.querySelector('.readout').textContent.includes('500')")
        await tabTo("button.open")
        await page.press("Enter", "\r")
        await page.until("document.querySelectorAll('.runs tbody tr').length === 3")
        // The row was made anew, and the place in it is kept.
        assert.strictEqual(await page.evaluate("document.activeElement.className"), "open")
        await tabTo("a[href*='/0001']")
        await page.press("Enter", "\r")
        await page.until("document.querySelector('.facts') !== null")
        assert.include(String(await text(".facts")), "CartPole-v1")
        assert.include(String(await text("article")), "total_steps: 1000")
        assert.include(String(await text(".log")), "validation at step 1000")
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
          await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
          pictures.add(await page.evaluate("document.querySelectorAll('canvas')[1].toDataURL()"))
        }
        await picture()
        for (const [place, value] of [
          [0, "mean"],
          [1, "time"],
          [1, "episodes"],
        ]) {
          await page.evaluate(
            `(() => { const one = document.querySelectorAll('select')[${place}]; one.value = '${value}'; one.dispatchEvent(new Event('change')) })()`,
          )
          await picture()
        }
        for (const box of [0, 1]) {
          await page.evaluate(`document.querySelectorAll('.boxes input')[${box}].click()`)
          await picture()
        }
        await page.evaluate(
          "(() => { const one = document.querySelector('input[type=range]'); one.value = '0.9'; one.dispatchEvent(new Event('input')) })()",
        )
        await picture()
        assert.strictEqual(pictures.size, 7)
        await page.evaluate("document.querySelectorAll('.boxes input')[2].click()")
        await drawn(1, 5)
        const smoothed =
          "import('/curves.js').then(({ smooth }) => smooth([1, 3, 2], 0.5).map((one) => one.toFixed(3)).join())"
        assert.strictEqual(await page.evaluate(smoothed), "1.000,2.333,2.143")
        const found = (filter: string) =>
          page.evaluate(
            `import('/groups.js').then(({ matches }) => matches({ name: 'Tune', state: 'running', seed: 12, env: 'e', algorithm: 'x', commit: 'c', time: 't', population: { Rate: '0.1' } }, ${JSON.stringify(filter)}))`,
          )
        for (const filter of ["", "tune RUN", "rate=0.1", "state=running seed=12", "seed 12"])
          assert.isTrue(await found(filter), filter)
        for (const filter of ["tuna", "rate=0.2", "rate=0.11", "seed=1", "tune stopped"])
          assert.isFalse(await found(filter), filter)
      })
    }))

  it("plays an episode by the run's own code, which can do nothing else", () =>
    withFolder(async (folder) => {
      const run = makeRun(folder)
      const trajectory = Array.from({ length: 100 }, (_, index) => ({
        state: [index + 1],
        action: [0],
        dt: 0.02,
        reward: 1,
        terminated: index === 99,
      }))
      const episodes = [
        { parameters: { color: "#ff0000" }, trajectory },
        { parameters: { color: "#0000ff" }, trajectory },
      ]
      write(folder, `${run}/ui.esm.js`, drawing)
      write(folder, `${run}/steps/000000000001000/trajectories.json.gz`, gzipSync(JSON.stringify(episodes)))
      await page.look(1280, 1600)
      await served(
        folder,
        async (url) => {
          await page.goto(`${url}?token=0123456789`)
          await page.until("document.querySelectorAll('.runs tbody tr').length === 1")
          await page.goto(`${url}#/run/${run}`)
          const frame = "document.querySelector('iframe')"
          await page.until(`${frame}?.dataset.drawn === '0:0'`)
          assert.strictEqual(await text(".player .problem"), "")
          assert.strictEqual(await page.evaluate(`${frame}.sandbox.value`), "allow-scripts")
          // What a browser says of the attempts that it refused is no complaint about us.
          const refused = page.complaints.splice(0)
          assert.deepStrictEqual(
            refused.filter((line) => !/Content Security Policy|sandbox/i.test(line)),
            [],
          )
          const picture = async () => {
            const box = await page.evaluate(
              `(({ x, y, width, height }) => ({ x, y, width, height }))(${frame}.getBoundingClientRect())`,
            )
            return (await page.screenshot(JSON.parse(JSON.stringify(box)))).toString("base64")
          }
          const first = await picture()
          await page.evaluate("document.querySelector('.player').focus()")
          await page.press("End")
          await page.until(`${frame}.dataset.drawn === '0:99'`)
          assert.notStrictEqual(await picture(), first)
          assert.include(String(await text(".where")), "step 100 of 100, reward 1, return 100, terminated")
          await page.press("Home")
          await page.until(`${frame}.dataset.drawn === '0:0'`)
          assert.strictEqual(await picture(), first)
          await page.press(" ", " ")
          await page.until(`Number(${frame}.dataset.drawn.slice(2)) > 10`)
          await page.press(" ", " ")
          assert.strictEqual(await text(".play"), "Play")
          await new Promise((resolve) => setTimeout(resolve, 200))
          const stopped = await page.evaluate(`${frame}.dataset.drawn`)
          const still = await picture()
          await new Promise((resolve) => setTimeout(resolve, 300))
          assert.strictEqual(await page.evaluate(`${frame}.dataset.drawn`), stopped)
          assert.strictEqual(await picture(), still)
          await page.press("ArrowRight")
          await page.until(`${frame}.dataset.drawn !== '${stopped}'`)
          await page.evaluate(
            "(() => { const one = document.querySelector('.player .slot select'); one.value = '1'; one.dispatchEvent(new Event('change')) })()",
          )
          await page.until(`${frame}.dataset.drawn === '1:0'`)
          assert.strictEqual(await page.evaluate("location.hash.startsWith('#/run/')"), true)
        },
        "0123456789",
      )
    }))

  it("is the same as a static site", () =>
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
      const out = join(folder, "site")
      const exported = await effect(["ui", results, "--export", out])
      assert.strictEqual(exported.code, 0, exported.stderr)
      assert.match(exported.stdout, /^3 runs, \d+ files in /)
      // The plainest file server there is, below a folder of its own.
      const server = createServer((request, response) => {
        const path = decodeURIComponent(new URL(request.url ?? "", "http://x").pathname).replace(
          /^\/site\/$/,
          "/site/index.html",
        )
        try {
          const types: Record<string, string> = {
            ".html": "text/html",
            ".js": "text/javascript",
            ".css": "text/css",
            ".svg": "image/svg+xml",
          }
          response
            .writeHead(200, { "content-type": types[extname(path)] ?? "application/octet-stream" })
            .end(readFileSync(join(folder, path)))
        } catch {
          response.writeHead(404).end()
        }
      })
      await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
      try {
        const address = server.address()
        const url = `http://localhost:${typeof address === "object" ? address?.port : ""}/site/`
        await page.goto(url)
        await page.until("document.querySelectorAll('.runs tbody tr').length === 2")
        assert.deepStrictEqual(await rows(), [
          "▸ tune env_id=a/b 50% algorithm=a2c 1 run",
          "▸ tune env_id=a/b 50% algorithm=ppo 2 runs",
        ])
        await drawn(0, 2)
        await drawn(1, 2)
        assert.strictEqual(await text("#live"), "exported")
        await page.evaluate("document.querySelectorAll('button.open')[1].click()")
        await click("a[href*='_ppo/0001']")
        await page.until("document.querySelector('.numbers')?.textContent.includes('42') === true")
        assert.include(String(await text("article")), "total_steps: 1000")
        assert.deepStrictEqual(page.complaints, [])
        // Framed by somebody else's page it runs nothing: here there is no server whose headers would forbid that.
        await page.goto(`${url}frame.html`)
        await page.evaluate("postMessage({ type: 'start', code: 'globalThis.stolen = true' }, '*')")
        await new Promise((resolve) => setTimeout(resolve, 200))
        assert.isUndefined(await page.evaluate("globalThis.stolen"))
      } finally {
        server.closeAllConnections()
        server.close()
      }
      const inside = await effect(["ui", results, "--export", join(results, "site")])
      assert.deepStrictEqual([inside.code, inside.stderr.includes("outside of the results")], [1, true]) // prettier-ignore
      writeFileSync(join(folder, "site/data/runs.json"), "")
      assert.strictEqual((await effect(["ui", results, "--export", out])).code, 0)
      assert.strictEqual((await effect(["ui", results, "--export", folder])).code, 1)
    }))

  it("paints a thousand runs within a second", () =>
    withFolder(async (folder) => {
      for (let index = 0; index < 1000; index++) {
        const population = { algorithm: `a${index % 20}`, rate: String(Math.floor(index / 100)) }
        makeRun(folder, { seed: Math.floor(index / 20) % 5, population }, { lean: true })
      }
      await page.look(1280, 900)
      await served(folder, async (url) => {
        await page.goto(url)
        await page.until("document.querySelectorAll('.runs tbody tr').length > 100")
        assert.strictEqual(await text(".count"), "1000 runs")
        const painted =
          "performance.getEntriesByType('paint').find(({ name }) => name === 'first-contentful-paint')?.startTime ?? 1e9"
        assert.isBelow(Number(await page.evaluate(painted)), 1000)
        // The table too, when the page is opened again.
        await page.goto("about:blank")
        const before = performance.now()
        await page.goto(url)
        await page.until("document.querySelectorAll('.runs tbody tr').length > 100")
        assert.isBelow(performance.now() - before, 2000)
      })
    }))
})
