/**
 * The backend `onnx-web` on WebGPU in a real browser, whose device computes on the CPU: the same code as on a GPU, with the
 * driver that Chromium brings for machines without one.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, it, type TestContext } from "vitest"
import { softwareGpu } from "../../command/ui/chromium.ts"
import { inBrowser } from "../../command/ui/inBrowser.ts"
import { plainServer } from "../../command/ui/plainServer.ts"
import { writeSite } from "./bundledSite.ts"

const ppo = { name: "ppo", nsteps: 8, hidden: [4, 4], epochs: 1, minibatches: 2 }
const config = { env: "CartPole-v1", num_envs: 2, total_steps: 32, algorithm: ppo }

const program = `
import * as ort from "onnxruntime-web/webgpu"
import { functionsOf } from "./test/tensor/backend/webgpuPage.ts"

ort.env.wasm.wasmBinary = await (await fetch("ort.wasm")).arrayBuffer()
Object.assign(globalThis, functionsOf(ort))
`

inBrowser(
  "onnx-web on WebGPU",
  ({ page }) => {
    const folder = mkdtempSync(join(tmpdir(), "effect-webgpu-"))
    let server: { readonly url: string; readonly close: () => void } | undefined
    let hasAdapter = false
    beforeAll(async () => {
      await writeSite(folder, program, "onnxruntime-web/ort-wasm-simd-threaded.asyncify.wasm")
      server = await plainServer(folder)
      await page.goto(server.url)
      await page.until("globalThis.train !== undefined")
      hasAdapter = (await page.evaluate("navigator.gpu?.requestAdapter().then((adapter) => adapter !== null)")) === true
    })
    afterAll(() => {
      server?.close()
      rmSync(folder, { recursive: true, force: true })
    })
    /** Calls a function of the page. Skips the test if the browser has no WebGPU adapter. */
    const call = (context: TestContext, name: string, ...values: ReadonlyArray<unknown>): Promise<unknown> => {
      if (!hasAdapter) context.skip(`this browser has no WebGPU adapter with ${softwareGpu.join(" ")}`)
      return page.evaluate(`${name}(${values.map((value) => JSON.stringify(value)).join()})`)
    }

    for (const [title, algorithm, programs, tolerance] of [
      [
        "PPO's act program, and an update that can end early",
        { ...ppo, target_kl: 0.01 },
        ["ppo.act", "ppo.update"],
        1e-4,
      ],
      // WGSL allows an error of 2^-11 in sine and cosine, which move the pole.
      ["a rollout and an update in the graph", { ...ppo, rollouts: "graph" }, ["ppo.rollout", "ppo.update"], 5e-4],
    ] as const)
      it(`computes ${title} as the reference does`, async (context) => {
        const { steps, differences } = compared(await call(context, "compare", { ...config, algorithm }))
        assert.strictEqual(steps, 32)
        const seen = new Set(Object.keys(differences).map((key) => key.split(" ")[0]))
        assert.deepStrictEqual([...seen], [...programs])
        for (const [key, difference] of Object.entries(differences)) assert.isBelow(difference, tolerance, key)
      })

    it("trains to the end; if the device is lost, says so in one line and can train again", async (context) => {
      const trained = await call(context, "train", config)
      assert.match(JSON.stringify(trained), /"digest":"[0-9a-f]{64}","steps":32/)
      const error = String(await call(context, "lose", config, 5))
      assert.match(error, /^BackendError: the GPU was lost \(.*\); resume the run from its last checkpoint$/)
      assert.deepStrictEqual(await call(context, "train", config), trained)
    })

    it("says in one line that the device has no room for a program, and then runs another", async (context) => {
      const error = String(await call(context, "fill", 20_000))
      assert.match(error, /^BackendError: the GPU has no room for this program \(.*max buffer size.*\); use fewer envs/)
      assert.strictEqual(await call(context, "fill", 10), 0)
    })
  },
  softwareGpu,
)

const compared = (
  value: unknown,
): { readonly steps: number; readonly differences: Readonly<Record<string, number>> } => {
  assert.isObject(value, String(value))
  return JSON.parse(JSON.stringify(value))
}
