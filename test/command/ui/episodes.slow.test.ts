/** Episodes in a real browser: the run's own drawing code in its frame. */
import { gzipSync } from "node:zlib"
import { assert, it } from "vitest"
import { makeRun, withFolder, write } from "./folder.ts"
import { inBrowser } from "./inBrowser.ts"

/** Draws a bar as wide as the first number of the state says, and tries what a frame may not do. */
const drawing = `
const xhtml = "http://www.w3.org/1999/xhtml"
const inner = (html) => {
  const element = document.createElement("div")
  element.innerHTML = html
  return element.firstChild ?? undefined
}
const swapping = (tag) => {
  let asked = 0
  return { toString: () => (asked++ === 0 ? "div" : tag) }
}
const elements = {
  iframe: () => document.createElement("iframe"),
  IFRAME: () => document.createElement("IFRAME"),
  link: () => Object.assign(document.createElement("link"), { rel: "dns-prefetch", href: "//localhost" }),
  a: () => document.createElement("a"),
  script: () => document.createElement("script"),
  meta: () => document.createElement("meta"),
  object: () => document.createElement("object"),
  embed: () => document.createElement("embed"),
  template: () => document.createElement("template"),
  "iframe by namespace": () => document.createElementNS(xhtml, "iframe"),
  "iframe by prefix": () => document.createElementNS(xhtml, "x:iframe"),
  "iframe by swapping": () => {
    const made = document.createElement(swapping("iframe"))
    if (made.localName !== "iframe") throw new Error(made.localName)
    return made
  },
  "iframe by another document": () => document.implementation.createDocument(xhtml, "iframe").documentElement,
  "iframe by a custom element": () => {
    class Own extends HTMLIFrameElement {}
    customElements.define("own-frame", Own, { extends: "iframe" })
    return new Own()
  },
  "iframe in innerHTML": () => inner("<iframe></iframe>"),
  "link in innerHTML": () => inner("<link rel=preconnect href=//localhost>"),
  "iframe by a range": () => document.createRange().createContextualFragment("<iframe></iframe>"),
  "iframe by a parser": () => new DOMParser().parseFromString("<iframe></iframe>", "text/html").querySelector("iframe"),
  "link by a sanitizer": () => {
    const element = document.createElement("div")
    element.setHTML("<link rel=preconnect href=//localhost>", { sanitizer: { elements: ["link"] } })
    return element.firstChild
  },
  "iframe by writing": () => document.write("<iframe></iframe>"),
  "iframe by patched functions": () => {
    Set.prototype.has = () => true
    Array.prototype.includes = () => true
    Reflect.apply = () => undefined
    String.prototype.toLowerCase = () => "div"
    return document.createElement("iframe")
  },
}
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
  await attempt("worker", () => new Promise((resolve, reject) => {
    const worker = new Worker(URL.createObjectURL(new Blob(["postMessage(1)"])))
    worker.onmessage = resolve
    worker.onerror = reject
  }))
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection"]) {
    if (name in globalThis) tried.push(name)
  }
  for (const [name, make] of Object.entries(elements)) {
    await attempt(name, () => {
      const made = make()
      if (made === undefined) throw new Error("nothing")
      document.body.append(made)
    })
  }
  if (window.length > 0) tried.push("a window of its own")
  await attempt("an old link", () => document.querySelector("link, meta, script, title").remove())
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

inBrowser("the player", ({ page, served, text, count }) => {
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
          await count(".runs tbody tr", 1)
          await page.goto(`${url}#/run/${run}`)
          const frame = "document.querySelector('iframe')"
          await page.until(`${frame}?.dataset.drawn === '0:0'`)
          assert.strictEqual(await text(".player .problem"), "")
          assert.strictEqual(await page.evaluate(`${frame}.sandbox.value`), "allow-scripts")
          // The browser complains about the attempts that it refused, which is no defect of the page.
          const refused = page.complaints()
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
          assert.include(await text(".where"), "step 100 of 100, reward 1, return 100, terminated")
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
        { token: "0123456789" },
      )
    }))
})
