/** Tests the player in a real browser with runs whose code floods it with messages or is slow, and with damaged trajectories. */
import { assert, it } from "vitest"
import { makeRun, withFolder, write } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"

const episode = [{ trajectory: [1, 2, 3].map((at) => ({ state: [at], action: [0], dt: 0.02, reward: 1 })) }]

/** Makes a run with this code and these trajectories, and returns the address of its page. */
const runWith = (folder: string, seed: number, code: string | undefined, trajectories: string): string => {
  const run = makeRun(folder, { seed })
  if (code !== undefined) write(folder, `${run}/ui.esm.js`, code)
  write(folder, `${run}/steps/000000000001000/trajectories.json`, trajectories)
  return `#/run/${run}`
}

const playing = JSON.stringify(episode)
const drawing = "export const init = () => 1; export const render = () => {}"

inBrowser("the player of a hostile run", ({ page, served, text, click }) => {
  it.for([
    ["a flood of messages", `setInterval(() => { for (let at = 0; at < 10000; at++) parent.postMessage("x".repeat(1000), "*") }, 0); ${drawing}`], // prettier-ignore
    ["a flood of answers", `setInterval(() => { for (let at = 0; at < 10000; at++) parent.postMessage({ type: "drawn" }, "*") }, 0); ${drawing}`], // prettier-ignore
    [
      "a frame that loads itself again",
      `export const init = () => { location.reload(); return new Promise(() => {}) }`,
    ],
  ])("ends %s, says so, and writes numbers", ([, code]) =>
    withFolder(async (folder) => {
      const address = runWith(folder, 1, code, playing)
      await served(folder, async (url) => {
        await page.goto(url + address)
        await page.until("document.querySelector('.player .numbers')?.textContent.includes('state') === true")
        assert.match(await text(".player .problem"), /^ui\.esm\.js: it was stopped, because it /)
        await page.until("document.querySelector('iframe') === null")
        await click(".player .play")
        await page.until("document.querySelector('.where').textContent.startsWith('step 3 of 3')")
      })
    }),
  )

  it.for(["null", "undefined", "7", '"x"', "[]", "{ type: null }", '{ type: "drawn", index: {} }', '{ type: "show" }'])(
    "plays on after a message %s",
    (message) =>
      withFolder(async (folder) => {
        const address = runWith(folder, 1, `parent.postMessage(${message}, "*"); ${drawing}`, playing)
        await served(folder, async (url) => {
          await page.goto(url + address)
          await page.until("document.querySelector('iframe')?.dataset.drawn === '0:0'")
          assert.strictEqual(await text(".player .problem"), "")
        })
      }),
  )

  it.for([
    ["throw null", "ui.esm.js: null"],
    ["throw { toString() { throw 1 } }", "ui.esm.js: it failed"],
    ['throw new Error("a\\n\\n" + "b".repeat(100000))', `ui.esm.js: Error: a ${"b".repeat(290)}`],
    ['parent.postMessage({ type: "failed", message: { toString: 1 } }, "*")', "ui.esm.js: it failed"],
  ])("writes the failure of %s on one line", ([code, message]) =>
    withFolder(async (folder) => {
      const address = runWith(folder, 1, `export const init = () => { ${code} }`, playing)
      await served(folder, async (url) => {
        await page.goto(url + address)
        await page.until("document.querySelector('.player .problem')?.textContent > ''")
        assert.strictEqual(await text(".player .problem"), message)
        await page.until("document.querySelector('.player .numbers')?.textContent.includes('state') === true")
      })
    }),
  )

  it("plays nothing before its frame has loaded, and everything after that", () =>
    withFolder(async (folder) => {
      const code = `await new Promise((go) => addEventListener("message", ({ data }) => data === "go" && go())); ${drawing}`
      const address = runWith(folder, 1, code, playing)
      await served(folder, async (url) => {
        await page.goto(url + address)
        await page.until("document.querySelector('.where')?.textContent === 'waiting for ui.esm.js …'")
        await click(".player .play")
        await page.evaluate("document.querySelector('.player').focus()")
        for (const key of [" ", "End", "ArrowRight"]) await page.press(key)
        assert.strictEqual(await text(".player .play"), "Play")
        // Sent again and again, as the frame may not listen yet.
        const go = "document.querySelector('iframe').contentWindow.postMessage('go', '*')"
        await page.evaluate(`void (window.sending = setInterval(() => ${go}, 50))`)
        await page.until("document.querySelector('iframe')?.dataset.drawn === '0:0'")
        await page.evaluate("clearInterval(window.sending)")
        await click(".player .play")
        await page.until("document.querySelector('iframe').dataset.drawn === '0:2'")
        assert.strictEqual(await text(".player .problem"), "")
      })
    }))

  it("says on one line what is wrong with trajectories", () =>
    withFolder(async (folder) => {
      const file = "steps/000000000001000/trajectories.json"
      const cases = [
        ["{", `${file}: expected JSON: Expected property name`],
        ["null", `${file}: expected a list of episodes, found null`],
        ["[null]", `${file}: episode 1: expected a list of steps as \`trajectory\`, found nothing`],
        ['[{"trajectory":{}}]', `${file}: episode 1: expected a list of steps as \`trajectory\`, found an object`],
        ["[[null]]", `${file}: episode 1, step 1: expected an object, found null`],
        ['[[{"reward":"1"}]]', `${file}: episode 1, step 1: expected a number as \`reward\`, found "1"`],
        ["\u001f\u008b", `${file}: the compressed data is damaged`],
      ] as const
      const addresses = cases.map(([trajectories], seed) =>
        seed < cases.length - 1 ? runWith(folder, seed, drawing, trajectories) : runWith(folder, seed, drawing, ""),
      )
      write(folder, `${addresses.at(-1)?.slice("#/run/".length)}/${file}`, Buffer.from([0x1f, 0x8b, 1, 2, 3]))
      addresses.push(runWith(folder, 90, drawing, "[]"), runWith(folder, 91, undefined, '[[{"reward":null}]]'))
      await served(folder, async (url) => {
        for (const [at, [, message]] of cases.entries()) {
          await page.goto(url + addresses[at])
          await page.until("document.querySelector('.episodes .problem')?.textContent > ''")
          assert.include(await text(".episodes .problem"), message)
        }
        await page.goto(url + addresses[cases.length])
        await page.until(`document.querySelector('.where')?.textContent === '${file} has no episodes'`)
        await page.goto(url + addresses[cases.length + 1])
        await page.until("document.querySelector('.where')?.textContent === 'step 1 of 1, reward –, return –'")
      })
    }))
})
