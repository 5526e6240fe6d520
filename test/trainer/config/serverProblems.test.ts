import * as NodeServices from "@effect/platform-node/NodeServices"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { isPlain, type Plain } from "../../../src/base/config/Config.ts"
import * as Trust from "../../../src/base/trust/Trust.ts"
import { RunOptions } from "../../../src/run/RunOptions.ts"
import { readConfig } from "../../../src/trainer/config/readConfig.ts"

const trainer = { type: "tinker", baseUrl: "http://127.0.0.1:8000", width: 32, block: 8, lora: { rank: 2, alpha: 32 } }
const letters = {
  trainDataset: { type: "reverse_text", numTasks: 8 },
  maxSteps: 1,
  objective: { type: "grpo", kl: null },
  sampling: { maxTokens: 4 },
}
const right: Plain = { kind: "multirun", model: { type: "folder", path: "m" }, trainer, runs: { letters } }

/** Sets a key of a config, such as `trainer.ranks`. */
const changed = (config: Plain, [key, ...rest]: ReadonlyArray<string>, value: unknown): Plain => {
  const inner = config[key]
  return { ...config, [key]: rest.length === 0 ? value : changed(isPlain(inner) ? inner : {}, rest, value) }
}

const problemOf = (config: Plain, trust: Trust.TrustService = Trust.allowAll) =>
  Effect.flatMap(RunOptions, (options) => readConfig({ config, baseDir: "/", lines: new Map(), options })).pipe(
    Effect.scoped,
    Effect.match({ onFailure: ({ message }) => message, onSuccess: () => "none" }),
    Effect.provideService(Trust.Trust, trust),
    Effect.provide(NodeServices.layer),
    Effect.provide(NodeHttpClient.layerUndici),
    Effect.runPromise,
  )

describe("a config with trainer.type: tinker", () => {
  it("is refused by the names of settings that a server cannot carry out", async () => {
    assert.strictEqual(await problemOf(right), "none")
    const mistakes: ReadonlyArray<readonly [key: string, value: unknown]> = [
      ["trainer.baseUrl", null],
      ["trainer.apiKey", "tml-0123456789"],
      ["trainer.lora", null],
      ["trainer.lora.alpha", 16],
      ["trainer.lora.targets", ["q_proj"]],
      ["trainer.ranks", 2],
      ["trainer.mixing", "many-runs"],
      ["trainer.referenceThread", true],
      ["inference", { pageSize: 8 }],
      ["orchestrators", "outside"],
      ["broadcast.keep", 3],
      ["runs.letters.optimiser", { type: "muon" }],
      ["runs.letters.objective", { type: "grpo", kl: { type: "k3", coefficient: 0.1 } }],
      ["runs.letters.sampling.temperature", 0.5],
      ["runs.letters.sampling.minP", 0.1],
      ["runs.letters.lora", { alpha: 8 }],
      ["runs.letters.weights", { every: 1 }],
      ["runs.letters.critic", {}],
    ]
    for (const [key, value] of mistakes) {
      const message = await problemOf(changed(right, key.split("."), value))
      const written = key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
      assert.include(message, written)
      assert.notInclude(message, "tml-0123456789")
    }
    const model = { type: "scratch", maxPositions: 32 }
    assert.include(await problemOf({ ...right, model }), "model.type: expected folder")
  })

  it("asks whether anything may be sent to an address elsewhere, and the key to any", async () => {
    const elsewhere = changed(right, ["trainer", "baseUrl"], "https://example.org")
    assert.strictEqual(await problemOf(right, Trust.refuseAll), "none")
    assert.include(await problemOf(elsewhere, Trust.refuseAll), "trainer.base_url: this would send texts")
    const withKey = changed(right, ["trainer", "apiKey"], "${KEY}")
    assert.include(await problemOf(withKey, Trust.refuseAll), '"KEY"')
  })

  it("has no settings of a server with trainer.type: local", async () => {
    assert.include(await problemOf(changed(right, ["trainer", "type"], "local")), "trainer.base_url: expected null")
  })
})
