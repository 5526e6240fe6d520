import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { pathToFileURL } from "node:url"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { bandOf } from "../../../src/command/ui/curves/bands.ts"
import { pageFiles } from "../../../src/command/ui/page-node.ts"
import { withFolder } from "./folder.ts"

const curve = (level: number) => {
  const x = [0, 10 + level, 20]
  return { steps: x, time: x, episodes: x, mean: [0, level, 2 * level], min: [0, 0, 0], max: [9, 9, 9] }
}

describe("what the page is given", () => {
  it("computes a band as the server does, with nothing but the files that it is given", () =>
    withFolder(async (folder) => {
      writeFileSync(join(folder, "package.json"), `{"type": "module"}`)
      for (const { name, bytes } of await Effect.runPromise(pageFiles)) {
        mkdirSync(dirname(join(folder, name)), { recursive: true })
        writeFileSync(join(folder, name), bytes)
      }
      const page = await import(/* @vite-ignore */ pathToFileURL(join(folder, "lib/command/ui/curves/bands.js")).href)
      const curves = [1, 3, 4, 8].map(curve)
      assert.deepStrictEqual(page.bandOf(curves, "time"), bandOf(curves, "time"))
    }))

  it("imports nothing that it is not given", async () => {
    const files = await Effect.runPromise(pageFiles)
    const names = new Set(files.map(({ name }) => name))
    for (const { name, bytes } of files.filter(({ name }) => name.endsWith(".js"))) {
      const text = new TextDecoder().decode(bytes)
      for (const [, wanted] of text.matchAll(/^import [^"]*"([^"]+)"/gm)) {
        const found = new URL(wanted, `file:///${name}`).pathname.slice(1)
        assert.isTrue(names.has(found), `${name} imports ${wanted}`)
      }
    }
  })

  it("names no file that it is not given, such as a module to load early", async () => {
    const files = await Effect.runPromise(pageFiles)
    const names = new Set(files.map(({ name }) => name))
    const html = files.find(({ name }) => name === "index.html")
    const linked = [...new TextDecoder().decode(html?.bytes).matchAll(/<link rel="\w+" href="([^"]+)"/g)]
    assert.isAbove(linked.length, 5)
    for (const [, href] of linked) assert.isTrue(names.has(href), `index.html names ${href}`)
  })
})
