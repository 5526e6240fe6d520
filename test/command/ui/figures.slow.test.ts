/** Tests that the page offers what `effect export` and `effect runs compare` do: figures of several curves, and tests of differences. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "vitest"
import { unpaired } from "../../../src/base/statistics/unpaired.ts"
import { makeRun, withFolder, write } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"

/** Keeps what the page saves: a link with the attribute `download` is not followed, but its contents are read. */
const keepSaved = `void (() => {
  window.saved = []
  const click = HTMLAnchorElement.prototype.click
  HTMLAnchorElement.prototype.click = function () {
    if (this.download === "") return click.call(this)
    const name = this.download
    window.saved.push(name)
  }
  const create = URL.createObjectURL
  URL.createObjectURL = (blob) => {
    blob.arrayBuffer().then((bytes) => (window.bytes = [...new Uint8Array(bytes)]))
    return create.call(URL, blob)
  }
})()`

const table =
  "[...document.querySelectorAll('.comparison table tr')].map((row) => [...row.cells].map((cell) => cell.textContent).join(' | '))"

inBrowser("what the page saves and tests", ({ page, served, count, drawn, click }) => {
  it("are figures of the drawn curves as SVG and PNG, with a legend", () =>
    withFolder(async (folder) => {
      for (const [at, algorithm] of ["a2c", "ppo"].entries())
        for (const seed of [1, 2, 3])
          makeRun(folder, { seed, population: { algorithm } }, { level: 100 * (at + 1) + seed })
      await page.look(1280, 900)
      await served(folder, async (url) => {
        await page.goto(url)
        await count(".runs tbody tr", 2)
        await drawn(0, 2)
        await page.evaluate(keepSaved)
        const saved = async (button: number): Promise<Buffer> => {
          await page.evaluate("void (window.bytes = undefined)")
          await page.evaluate(`document.querySelectorAll('.saves button')[${button}].click()`)
          await page.until("window.bytes !== undefined")
          return Buffer.from((await page.evaluate("window.bytes")) as ReadonlyArray<number>)
        }
        const svg = (await saved(0)).toString()
        assert.match(svg, /^<svg xmlns/)
        assert.include(svg, ">Validation return</text>")
        assert.include(svg, ">IQM of the runs, with its 95 % interval</text>")
        for (const algorithm of ["a2c", "ppo"]) assert.include(svg, `>${algorithm}</text>`)
        assert.lengthOf(svg.match(/<polygon [^>]*opacity="0.18"/g) ?? [], 2)
        const png = await saved(1)
        assert.deepStrictEqual([png.subarray(1, 4).toString(), png.readUInt32BE(16)], ["PNG", 1440])
        assert.deepStrictEqual(await page.evaluate("window.saved"), ["validation-return.svg", "validation-return.png"])
      })
    }))

  it("are differences in each env and over all of them, as the command computes them", () =>
    withFolder(async (folder) => {
      const scores: Record<string, Record<string, Array<number>>> = {}
      for (const [place, environment] of ["CartPole-v1", "corridor"].entries())
        for (const [at, algorithm] of ["a2c", "ppo"].entries())
          for (const seed of [1, 2, 3, 4]) {
            const level = (place === 0 ? 100 : 1) * (1 + at) + seed / 10
            const run = makeRun(folder, { seed, name: "bench", population: { environment, algorithm } }, { level })
            write(
              folder,
              `${run}/config.yaml`,
              `env: ${environment}\nseed: ${seed}\nalgorithm:\n  name: ${algorithm}\n`,
            )
            const [last] = JSON.parse(readFileSync(join(folder, run, "return.json"), "utf8")).slice(-1)
            ;((scores[environment] ??= {})[algorithm] ??= []).push(last.returns_mean)
          }
      await page.look(1280, 900)
      await served(folder, async (url) => {
        await page.goto(`${url}#/?by=algorithm&sort=name`)
        await count(".runs tbody tr", 2)
        await click(".comparison summary")
        await page.until(`${table}.length === 4`)
        const [heading, cartPole, corridor, all] = (await page.evaluate(table)) as ReadonlyArray<string>
        assert.match(heading, /^compared \| environment \| runs \| IQM \| difference \| 95 % \| improves \| 95 % \| p$/)
        const { difference, p } = unpaired([
          { left: scores["CartPole-v1"]["a2c"], right: scores["CartPole-v1"]["ppo"] },
        ])
        const parts = cartPole.split(" | ")
        assert.deepStrictEqual(parts.slice(0, 3), ["ppo − a2c", "CartPole-v1", "4 and 4"])
        assert.strictEqual(parts[4], `+${difference.value}`)
        assert.deepStrictEqual([parts[6], Number(parts[8])], ["100 %", Number(p?.toPrecision(3))])
        assert.include(corridor, " | corridor | ")
        assert.include(all, " | all of them, scores from 0 to 1 | 8 and 8 | ")
        const address = String(await page.evaluate("location.href"))
        assert.include(address, "tests=1")
        await page.goto(address)
        await page.until(`${table}.length === 4`)
      })
    }))
})
