import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Ppo from "../../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as pool from "../../../../src/rl/env/pool/pool-node.ts"
import * as Wasm from "../../../../src/tensor/backend/wasm.ts"
import { has, python } from "../foreign/python.ts"
import { resumable } from "../../train/resumable.ts"
import { follow, games } from "./minAtarTrace.ts"

const script = fileURLToPath(new URL("minatar_trace.py", import.meta.url))

describe("MinAtar's games", () => {
  for (const game of Object.keys(games)) {
    it.skipIf(!has("minatar"))(`${game}: equals MinAtar's own in episodes that are played now`, () => {
      const { stdout, stderr } = spawnSync(python, [script, game, "101", "4000"], {
        encoding: "utf8",
        maxBuffer: 2 ** 28,
      })
      assert.notStrictEqual(stdout, "", stderr)
      const steps = follow(game, stdout).map((run) => run.steps)
      assert.deepStrictEqual(steps, [4000, 2000, 800])
    })

    it.effect(`${game}: a training resumes in the middle, and with other threads, to the same digest`, () =>
      Effect.gen(function* () {
        const settings = {
          env: games[game].make(),
          numEnvs: 4,
          algorithm: Ppo.make({ nsteps: 64, hidden: [16], epochs: 1 }),
          totalSteps: 1024,
        }
        const layer = Layer.merge(Wasm.layer, pool.layer)
        const { whole, resumed, stoppedAt } = yield* resumable({ ...settings, workers: 2 }, 512, { workers: 0 }, layer)
        assert.strictEqual(stoppedAt, 512)
        assert.strictEqual(resumed.digest, whole.digest)
        const alone = yield* resumable(settings, 512)
        assert.strictEqual(alone.whole.digest, whole.digest)
      }),
    )
  }
})
