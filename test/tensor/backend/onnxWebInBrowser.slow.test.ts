/** The backend `onnx-web` in a real browser: a training there has the digest that it has in Node. */
import { Effect } from "effect"
import { assert, it } from "vitest"
import * as OnnxWeb from "../../../src/tensor/backend/onnx-web.ts"
import * as Train from "../../../src/rl/train/Train.ts"
import * as Web from "../../../src/web.ts"
import { withFolder } from "../../command/ui/folder.ts"
import { inBrowser } from "../../command/ui/inBrowser.ts"
import { plainServer } from "../../command/ui/plainServer.ts"
import { writeSite } from "./bundledSite.ts"
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
      await writeSite(folder, program, "onnxruntime-web/ort-wasm-simd-threaded.wasm")
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
