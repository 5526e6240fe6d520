/** The backend `onnx-web` in a real browser: a training there has the digest that it has in Node. */
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { Effect } from "effect"
import { build } from "esbuild"
import { assert, it } from "vitest"
import * as OnnxWeb from "../../src/backend/onnx-web.ts"
import * as Train from "../../src/train/Train.ts"
import * as Web from "../../src/web.ts"
import { root } from "../cli/effect.ts"
import { withFolder } from "../dashboard/folder.ts"
import { inBrowser } from "../dashboard/inBrowser.ts"
import { plainServer } from "../dashboard/plainServer.ts"
import { ort } from "./onnxWeb.ts"

const config = {
  env: "CartPole-v1",
  num_envs: 4,
  total_steps: 256,
  algorithm: { name: "ppo", nsteps: 32, hidden: [8] },
}

const program = `
import { Effect } from "effect"
import { OnnxWeb, Train } from "effect-rl"
import * as Web from "effect-rl/web"
import * as ort from "onnxruntime-web/wasm"

globalThis.train = async (config) => {
  ort.env.wasm.wasmBinary = await (await fetch("ort.wasm")).arrayBuffer()
  const training = Train.fromConfig(config).pipe(Effect.provide(OnnxWeb.layer(ort)), Effect.provide(Web.layer))
  return (await Effect.runPromise(training)).digest
}
`

inBrowser("onnx-web", ({ page }) => {
  it("trains in a page with the digest that it has in Node", () =>
    withFolder(async (folder) => {
      const site = join(folder, "site")
      mkdirSync(site)
      const wasm = createRequire(import.meta.url).resolve("onnxruntime-web/ort-wasm-simd-threaded.wasm")
      copyFileSync(wasm, join(site, "ort.wasm"))
      writeFileSync(join(site, "index.html"), `<!doctype html><script type="module" src="page.js"></script>`)
      await build({
        stdin: { contents: program, resolveDir: root, sourcefile: "program.js" },
        bundle: true,
        format: "esm",
        platform: "browser",
        outfile: join(site, "page.js"),
        logLevel: "silent",
      })
      const server = await plainServer(folder)
      try {
        await page.goto(server.url)
        await page.until("globalThis.train !== undefined")
        const training = Train.fromConfig(config).pipe(Effect.provide(OnnxWeb.layer(ort)), Effect.provide(Web.layer))
        const { digest } = await Effect.runPromise(training)
        assert.strictEqual(await page.evaluate(`train(${JSON.stringify(config)})`), digest)
      } finally {
        server.close()
      }
    }))
})
