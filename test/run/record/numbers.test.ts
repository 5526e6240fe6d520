import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Metric } from "effect"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { csv } from "../../../src/run/record/csv.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { telemetry } from "../../../src/run/record/telemetry.ts"
import * as Train from "../../../src/rl/train/Train.ts"
import { startHttp } from "../../servers/listen.ts"
import { program, root, withFolder, write } from "../../command/cli/effect.ts"
import { spawn } from "node:child_process"
import { runsIn } from "../../command/cli/crash.ts"

const input = {
  env: CartPole.env,
  numEnvs: 2,
  totalSteps: 128,
  recordEvery: 1,
  algorithm: Ppo.make({ nsteps: 16, minibatches: 1, epochs: 1 }),
  validation: { everySteps: 64, episodes: 3 },
  checkpoint: { everySteps: 64 },
}

describe("progress.csv", () => {
  it.effect("has a line for each number of each update and validation, and goes on where a run goes on", () =>
    Effect.gen(function* () {
      const store = RunStore.memory()
      const layers = (layer: Layer.Layer<RunStore>) => Layer.mergeAll(Wasm.layer, layer, Recorder.layer(csv))
      const { runDir } = yield* Train.run(input).pipe(Effect.provide(layers(store.layer)))
      const textOf = (files: ReadonlyMap<string, Uint8Array>) =>
        new TextDecoder().decode(files.get(`${runDir}/progress.csv`))
      const [heading, ...lines] = textOf(store.files).trim().split("\n")
      assert.strictEqual(heading, "step,name,value")
      const rows = lines.map((line) => line.split(","))
      assert.isTrue(rows.every(([step, , value]) => Number(step) % 32 === 0 && Number.isFinite(Number(value))))
      const of = (name: string) => rows.filter((row) => row[1] === name).map(([step]) => Number(step))
      assert.deepEqual(of("losses/policy_loss"), [32, 64, 96, 128])
      assert.deepEqual(of("validation/score"), [64, 128])

      const left = new Map([...store.files].filter(([path]) => !/step_0+128\/|return\.json/.test(path)))
      const rest = RunStore.memory({ files: left, resume: runDir })
      yield* Train.run(input).pipe(Effect.provide(layers(rest.layer)))
      const timeless = (text: string): string => text.replace(/^.*SPS.*\n/gm, "")
      assert.strictEqual(timeless(textOf(rest.files)), timeless(textOf(store.files)))
    }),
  )
})

describe("telemetry", () => {
  it.effect("keeps every number of a run as a gauge of Effect's", () =>
    Effect.gen(function* () {
      const layers = Layer.mergeAll(Wasm.layer, RunStore.layerMemory, Recorder.layer(telemetry))
      const { validation } = yield* Train.run(input).pipe(Effect.provide(layers))
      const found = (yield* Metric.snapshot).filter(({ id }) => id.startsWith("effect_rl."))
      const valueOf = (id: string) => found.find((metric) => metric.id === id)
      assert.deepInclude(valueOf("effect_rl.step")?.state, { value: 128 })
      assert.deepInclude(valueOf("effect_rl.validation.score")?.state, { value: validation?.meanReturn ?? NaN })
      assert.deepInclude(valueOf("effect_rl.losses.policy_loss")?.attributes, {
        algorithm: "ppo",
        env: "CartPole-v1",
        seed: "1",
      })
    }),
  )

  it.live(
    "goes to a collector of OpenTelemetry's where one is named",
    () =>
      Effect.promise(() =>
        withFolder(async (folder) => {
          const bodies = new Map<string, string>()
          const { port, close } = await startHttp((request, response) => {
            let text = ""
            request.on("data", (chunk) => (text += String(chunk)))
            request.on("end", () => {
              bodies.set(request.url ?? "", `${bodies.get(request.url ?? "") ?? ""}${text}`)
              response.writeHead(200, { "content-type": "application/json" }).end("{}")
            })
          })
          try {
            const file = write(folder, "train.ts", program("validation: { everySteps: 1024, episodes: 2 }"))
            const results = join(folder, "results")
            const child = spawn(
              process.execPath,
              [join(root, "bin/effect.js"), "run", file, "--results-dir", results, "--quiet", "--csv"],
              {
                cwd: root,
                env: { ...process.env, OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` },
                stdio: "inherit",
              },
            )
            assert.strictEqual(await new Promise((resolve) => child.on("close", resolve)), 0)
            assert.include(bodies.get("/v1/metrics"), "effect_rl.validation.score")
            assert.include(bodies.get("/v1/traces"), "effect-rl.checkpoint")
            const [run] = runsIn(results)
            assert.match(readFileSync(join(run, "progress.csv"), "utf8"), /^2048,validation\/score,[\d.]+$/m)
          } finally {
            await close()
          }
        }),
      ),
    { tags: "slow" },
  )
})
