import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { stream } from "../../../../src/base/rng/Rng.ts"
import * as Ppo from "../../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as HalfCheetah from "../../../../src/rl/env/mujoco/bodies/HalfCheetah.ts"
import { layer as threads } from "../../../../src/rl/env/pool/pool-node.ts"
import * as Wasm from "../../../../src/tensor/backend/wasm.ts"
import { bundle } from "../../../bundle/bundle.ts"
import { killAndResume, scoresOf } from "../../../command/cli/crash.ts"
import { effect, resultOf, withFolder, write } from "../../../command/cli/effect.ts"
import { type Browser, chromium, launch } from "../../../command/ui/chromium.ts"
import { resumable } from "../../train/resumable.ts"

/** An iteration has 96 steps, and an episode 1,000, so every checkpoint is in the middle of three episodes. */
const training = {
  env: HalfCheetah.env,
  numEnvs: 3,
  seed: 8,
  totalSteps: 1920,
  normalize: { observations: true, rewards: true },
  algorithm: Ppo.make({ nsteps: 32, minibatches: 2, epochs: 2, hidden: [16], schedule: "constant" }),
} as const

const inThreads = Layer.merge(Wasm.layer, threads)

describe("a training of a body", () => {
  const random = stream(35, "resume")
  const moments = Array.from({ length: 4 }, () => 1 + random.integer(1800))

  it.effect("resumes in the middle of episodes with the same digest, at random moments and in threads", () =>
    Effect.gen(function* () {
      const digests = new Set<string>()
      for (const [at, moment] of moments.entries()) {
        // Threads before, after, and both; the last one has none.
        const [before, after] = [at % 2 === 0 ? 2 : 0, at < 2 ? 3 : 0]
        const input = { ...training, workers: before }
        const { whole, resumed, stoppedAt } = yield* resumable(input, moment, { workers: after }, inThreads)
        assert.isAtLeast(stoppedAt, moment)
        assert.isBelow(stoppedAt, training.totalSteps)
        digests.add(whole.digest).add(resumed.digest)
      }
      assert.strictEqual(digests.size, 1, [...digests].join(", "))
    }),
  )

  it("that is killed again and again resumes with the same digest and scores", () =>
    withFolder(async (folder) => {
      const file = write(
        folder,
        "train.ts",
        `import { HalfCheetah, Ppo, Train, Wrapper } from "effect-rl"
        export default Train.run({ env: Wrapper.timeLimit(HalfCheetah.env, 50), numEnvs: 3, workers: 2, totalSteps: 12800,
          algorithm: Ppo.make({ nsteps: 32, minibatches: 2, epochs: 2, hidden: [16] }), checkpoint: { everySteps: 400 } })`,
      )
      const whole = resultOf(await effect(["run", file, "--results-dir", `${folder}/whole`, "--json", "--quiet"]))
      const further = Array.from({ length: 3 }, () => 1 + random.integer(30))
      const { digest, kills, runDir } = await killAndResume(file, `${folder}/killed`, further)
      assert.isAbove(kills, 0)
      assert.strictEqual(digest, whole.digest)
      assert.deepStrictEqual(scoresOf(runDir), scoresOf(whole.runDir))
    }))
})

/** The package's files, by the paths that they have in it. */
const packageFile = (name: string): Buffer =>
  readFileSync(createRequire(import.meta.url).resolve(`@mujoco/mujoco${name}`.replace(/\/$/, "")))

/** The training in a page, with MuJoCo's module from addresses that the page makes. Returns both digests. */
const inPage = `
import { HalfCheetah } from "effect-rl"
import { MujocoPackage } from "./src/rl/env/mujoco/engine.ts"
const small = Ppo.make({ nsteps: 32, minibatches: 2, epochs: 2, hidden: [16], schedule: "constant" })
export const cheetah = async (url, wasm) => {
  const { default: load } = await import(url)
  const bytes = Uint8Array.from(atob(wasm), (character) => character.charCodeAt(0))
  const part = (store, totalSteps) => Effect.runPromise(Train.run({
    env: HalfCheetah.env, numEnvs: 3, seed: 8, totalSteps, algorithm: small,
    normalize: { observations: true, rewards: true },
  }).pipe(
    Effect.provideService(MujocoPackage, async () => async (options) => load({ ...options, wasmBinary: bytes, locateFile: String })),
    Effect.provide(Layer.merge(Web.layer, store)),
  ))
  const store = RunStore.memory()
  const half = await part(store.layer, 960)
  const resumed = await part(RunStore.memory({ files: store.files, resume: half.runDir }).layer, 1920)
  const whole = await part(RunStore.memory().layer, 1920)
  return { whole: whole.digest, resumed: resumed.digest }
}
`

describe.skipIf(chromium === undefined)("a training of a body in Chromium", () => {
  it("resumes with the digest of Node", async () => {
    const whole = await Effect.runPromise(Effect.map(resumable(training, 960), (both) => both.whole.digest))
    const browser: Browser = await launch(chromium ?? "")
    try {
      await withFolder(async (folder) => {
        // The page of a file is secure, which digests need.
        await browser.page.goto(`file://${write(folder, "page.html", "<!doctype html><title>body</title>")}`)
        const url = (text: string) =>
          `URL.createObjectURL(new Blob([${JSON.stringify(text)}], { type: "text/javascript" }))`
        const own = url(await bundle("esm", inPage))
        const mujoco = url(packageFile("/").toString("utf8"))
        const wasm = packageFile("/mujoco.wasm").toString("base64")
        const program = `(async () => (await import(${own})).cheetah(${mujoco}, "${wasm}"))()`
        assert.deepStrictEqual(await browser.page.evaluate(program), { whole, resumed: whole })
      })
    } finally {
      await browser.close()
    }
  })
})
