/** Titles, notes, tags, archiving, deleting and tables as files, in a real browser. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "vitest"
import { lowContrasts } from "./contrast.ts"
import { makeRun, withFolder, write } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"
import { makeStudy } from "./study.ts"

const changeToken = "token-for-changes"

/** Keeps the texts of the files that the page saves. */
const keepSaved = `(() => {
  window.texts = []
  URL.createObjectURL = (blob) => { blob.text().then((text) => window.texts.push(text)); return "data:," }
  HTMLAnchorElement.prototype.click = () => {}
})()`

inBrowser("what the page changes", ({ page, served, count, click, text }) => {
  it("is allowed by the printed address, and then shown", () =>
    withFolder(async (folder) => {
      const runs = [1, 2].map((seed) => makeRun(folder, { seed }))
      await page.look(1280, 900)
      await served(
        folder,
        async (url) => {
          const runPage = `${url}?changes=${changeToken}#/run/${runs[0]}`
          await page.goto(runPage)
          await page.until("document.querySelector('.labels')?.checkVisibility() === true")
          await click(".labels summary")
          assert.notInclude(String(await page.evaluate("location.href")), "token")
          const typed = { title: "Baseline <b>", tags: "paper, best", note: "first line" }
          for (const [label, value] of Object.entries(typed))
            await page.evaluate(`void (document.querySelector("#label-${label}").value = ${JSON.stringify(value)})`)
          await click("#save-labels")
          await page.until("document.querySelector('h1').textContent.startsWith('Baseline <b>')")
          assert.deepStrictEqual(((await page.evaluate(lowContrasts)) as { readonly low: unknown }).low, [])
          // The next page knows the token, too.
          await page.goto(`${url}#/?by=none&columns=tags&filter=tag%3Dpaper`)
          await count(".runs tbody tr", 1)
          assert.include(await text(".runs tbody tr"), "Baseline <b>")
          assert.include(await text(".runs tbody .tags"), "best")

          await page.goto(`${url}#/run/${runs[0]}`)
          await page.until("document.querySelector('#archive')?.checkVisibility() === true")
          await click("#archive")
          await page.until("document.querySelector('#archive').textContent === 'Show in lists again'")
          await page.goto(`${url}#/?by=none`)
          await count(".runs tbody tr", 1)
          await click("#archived")
          await count(".runs tbody tr", 2)

          await page.goto(`${url}#/run/${runs[1]}`)
          await page.until("document.querySelector('.labels')?.checkVisibility() === true")
          await page.evaluate("void (window.confirm = () => false)")
          await click("#delete")
          assert.isTrue(existsSync(join(folder, runs[1])))
          await page.evaluate("void (window.confirm = (text) => text.includes('cannot be undone'))")
          await click("#delete")
          await page.until("location.hash === '#/'")
          assert.isFalse(existsSync(join(folder, runs[1])))
          // The page may have asked once more for the run that is gone.
          page.complaints()
        },
        { changeToken },
      )
      // Another address of the same server only shows.
      write(folder, `${runs[0]}/labels.json`, JSON.stringify({ note: "a note", tags: ["t"] }))
      await served(folder, async (url) => {
        await page.goto(`${url}#/run/${runs[0]}`)
        await page.until("document.querySelector('.labels .note')?.textContent === 'a note'")
        assert.isFalse(await page.evaluate("document.querySelector('.labels form').checkVisibility()"))
      })
    }))

  it("are files with the runs of the table and of a run's validations", () =>
    withFolder(async (folder) => {
      const runs = [1, 2].map((seed) => makeRun(folder, { seed }))
      await page.look(1280, 900)
      await served(folder, async (url) => {
        await page.goto(url)
        await count(".runs tbody tr", 1)
        await page.evaluate(keepSaved)
        await click(".csv")
        await page.until("window.texts.length === 1")
        const lines = String(await page.evaluate("window.texts[0]"))
          .trim()
          .split("\r\n")
        assert.strictEqual(lines[0], "path,title,name,state,seed,steps,episodes,score,best,seconds,time")
        assert.deepStrictEqual(
          lines
            .slice(1)
            .map((line) => line.split(",")[0])
            .toSorted(),
          runs.toSorted(),
        )
        await page.goto(`${url}#/run/${runs[0]}`)
        await page.until(
          "document.querySelector('[aria-label=\"Save “Validations” as CSV\"]')?.checkVisibility() === true",
        )
        await page.evaluate(keepSaved)
        await click("[aria-label='Save “Validations” as CSV']")
        await page.until("window.texts.length === 1")
        assert.match(
          String(await page.evaluate("window.texts[0]")),
          /^step,mean,std,episodes,length,terminated\r\n\d+,/,
        )
      })
    }))

  it("are the charts of a study as SVG and PNG, with the page's colours, and its table", () =>
    withFolder(async (folder) => {
      makeStudy(folder)
      await page.look(1280, 900)
      await served(folder, async (url) => {
        await page.goto(`${url}#/study/2026-02-01_10-00-00`)
        await page.until("document.querySelectorAll('.slice').length === 2")
        await page.evaluate(keepSaved)
        const files = (wanted: number) => page.until(`window.texts.length === ${wanted}`)
        await click(".slice .saves button")
        await files(1)
        const svg = String(await page.evaluate("window.texts[0]"))
        assert.match(svg, /^<svg [^>]*width="320" height="170"/)
        assert.match(svg, /<circle [^>]*fill="rgb\(/)
        await click(".slice .saves button + button")
        await files(2)
        assert.include(String(await page.evaluate("window.texts[1]")).slice(0, 8), "PNG")
        await page.evaluate(`document.querySelector("[aria-label='Save “Trials” as CSV']").click()`)
        await files(3)
        const lines = String(await page.evaluate("window.texts[2]"))
          .trim()
          .split("\r\n")
        assert.match(lines[0], /^trial,.*,steps$/)
        assert.lengthOf(lines, 13)
      })
    }))

  it("has any number of runs side by side", () =>
    withFolder(async (folder) => {
      const runs = Array.from({ length: 10 }, (_, index) => makeRun(folder, { seed: index + 1 }))
      for (const [index, run] of runs.entries())
        write(folder, `${run}/config.yaml`, `env: CartPole-v1\nseed: ${index + 1}\ngamma: ${index === 4 ? 0.5 : 0.9}\n`)
      await page.look(1280, 900)
      await served(folder, async (url) => {
        await page.goto(url)
        await count(".runs tbody tr", 1)
        await page.until("document.querySelector('.compareLink').textContent === 'compare the 10 runs'")
        await click(".compareLink")
        await page.until("document.querySelectorAll('.compare table').length === 2")
        assert.strictEqual(await text("h1"), "10 runs side by side")
        const rows = (await page.evaluate(
          "[...document.querySelectorAll('.compare table')[1].rows].map((row) => [...row.cells].map((one) => one.textContent).join(' | '))",
        )) as ReadonlyArray<string>
        const gammas = runs.map((_, index) => (index === 4 ? "0.5" : "0.9"))
        assert.include(rows, ["gamma", ...gammas].join(" | "))
        assert.include(rows, ["seed", ...runs.map((_, index) => index + 1)].join(" | "))
        assert.isFalse(rows.some((row) => row.startsWith("env")))
      })
    }))
})
