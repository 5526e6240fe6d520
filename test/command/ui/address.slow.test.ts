/** The address as what is seen: shared, loaded again, back and forward. */
import { assert, it } from "vitest"
import { makeRun, withFolder } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"

/** All that the page shows of the view. */
const sight = `JSON.stringify({
  filter: document.querySelector("#filter").value,
  selects: [...document.querySelectorAll("select")].map(({ value }) => value),
  smoothing: document.querySelector("input[type=range]").value,
  boxes: [...document.querySelectorAll(".boxes input")].map(({ checked }) => checked),
  sort: document.querySelector("th[aria-sort]").textContent,
  rows: [...document.querySelectorAll(".runs tbody tr")].map((row) => row.querySelector(".name").textContent.trim()),
  drawn: [...document.querySelectorAll(".runs tbody input")].map((box) => box.checked && box.style.accentColor),
  lines: [...document.querySelectorAll(".plot")].map(({ dataset }) => dataset.lines),
})`

inBrowser("the address", ({ page, served, text, count, drawn, click, set }) => {
  it("holds filter, grouping, order, what is drawn and how, through a reload and in another window", () =>
    withFolder(async (folder) => {
      for (const algorithm of ["ppo", "a2c", "sac & co"])
        for (const seed of [1, 2])
          makeRun(folder, { seed, population: { algorithm, rate: algorithm === "ppo" ? "0.1" : "0.2" } })
      await served(folder, async (url) => {
        await page.look(1280, 900)
        await page.goto(url)
        await count(".runs tbody tr", 3)
        await set("#filter", "tune seed=1")
        await page.until("document.querySelector('.count').textContent.startsWith('3 of 6')")
        await set(".slot select", "rate")
        await count(".runs tbody tr", 2)
        await click("#sort-name")
        await click(".runs tbody input")
        await click("button.open")
        await page.until("document.querySelectorAll('.runs tbody tr').length > 2")
        await click(".runs .member input")
        await set("select", "mean")
        await set("select", "time", 1)
        await set("input[type=range]", "0.5")
        await page.evaluate("[...document.querySelectorAll('.boxes input')].map((one) => one.click())")
        await drawn(0, 4)
        const wanted = await page.evaluate(sight)
        const address = String(await page.evaluate("location.href"))
        assert.include(address, "by=rate")

        await page.goto(address)
        await drawn(0, 4)
        assert.strictEqual(await page.evaluate(sight), wanted)
      })
    }))

  it("goes back and forward a choice at a time, a slider or a field being one", () =>
    withFolder(async (folder) => {
      for (const algorithm of ["ppo", "a2c"])
        for (const seed of [1, 2]) makeRun(folder, { seed, population: { algorithm } })
      await served(folder, async (url) => {
        await page.goto(url)
        await count(".runs tbody tr", 2)
        const filter = "document.querySelector('#filter').value"
        await set("select", "time", 1)
        await page.evaluate("document.querySelector('#filter').focus()")
        for (const letter of "a2c") await page.type(letter)
        await page.until("location.hash.includes('filter=a2c')")
        await count(".runs tbody tr", 1)
        await click("button.open")
        await count(".runs tbody tr", 3)
        await click(".member a")
        await page.until("document.querySelector('.facts') !== null")
        // The run is looked at as the others were.
        assert.strictEqual(await page.evaluate("document.querySelector('select').value"), "time")
        assert.include(await text("h1"), "tune")
        await set("select", "episodes")
        assert.match(String(await page.evaluate("location.hash")), /0001\?x=episodes$/)

        await page.evaluate("history.back()")
        await page.until("document.querySelector('select').value === 'time'")
        await page.evaluate("history.back()")
        await count(".runs tbody tr", 3)
        await page.evaluate("history.back()")
        await count(".runs tbody tr", 1)
        assert.strictEqual(await page.evaluate(filter), "a2c")
        await page.evaluate("history.back()")
        await count(".runs tbody tr", 2)
        assert.strictEqual(await page.evaluate(filter), "")
        await page.evaluate("history.back()")
        await page.until("document.querySelectorAll('select')[1].value === 'steps'")
        await page.evaluate("history.go(2)")
        await count(".runs tbody tr", 1)
        assert.strictEqual(await page.evaluate(`${filter} + document.querySelectorAll('select')[1].value`), "a2ctime")
      })
    }))

  it("that nobody could have chosen here shows what is there at first", () =>
    withFolder(async (folder) => {
      makeRun(folder)
      await served(folder, async (url) => {
        await page.goto(`${url}#/?by=nothing+like+it&sort=-constructor&x=mass&smooth=7&middle=&draw=9,x&draw=%ff&log=`)
        await count(".runs tbody tr", 1)
        const values = "[...document.querySelectorAll('select')].map(({ value }) => value).join()"
        assert.strictEqual(await page.evaluate(values), "iqm,steps,config")
        assert.include(await text("th[aria-sort]"), "started")
        await page.goto(`${url}#/run/nothing%zz`)
        await page.until("document.querySelector('.problem')?.textContent === 'There is no run “nothing%zz” here.'")
        assert.isTrue(page.complaints().every((line) => line.includes("404")))
      })
    }))
})
