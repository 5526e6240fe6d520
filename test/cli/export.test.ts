import { existsSync, readFileSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import * as ort from "onnxruntime-node"
import { assert, describe, it } from "vitest"
import { decode } from "../../src/formats/safetensors.ts"
import { ticksOf } from "../../src/export/curveFiles.ts"
import { effect, program, resultOf, withFolder, write } from "./effect.ts"

const settings = "validation: { everySteps: 1024, episodes: 4 }, checkpoint: { everySteps: 1024 }"

describe("effect export", () => {
  it("writes the policy of a run in every format, and its curve", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program(settings))
      const outcome = await effect(["run", file, "--results-dir", join(folder, "results"), "--quiet", "--json"])
      const run = resultOf(outcome).runDir
      const exported = async (format: string, ...more: ReadonlyArray<string>): Promise<Buffer> => {
        const out = join(folder, `policy.${format}`)
        const done = await effect(["export", run, "--to", format, "--out", out, ...more])
        assert.strictEqual(done.code, 0, done.stderr)
        assert.strictEqual(done.stdout, `${out}\n`)
        return readFileSync(out)
      }
      const weights = join(run, "checkpoints", "step_000000000001024", "weights.safetensors")
      assert.deepEqual(decode(await exported("safetensors", "--step", "1024")), decode(readFileSync(weights)))
      const policy = await ort.InferenceSession.create(await exported("onnx"))
      assert.deepEqual(policy.outputNames, ["actions"])
      assert.match((await exported("h")).toString(), /evaluate\(const float/)
      assert.strictEqual((await exported("h5")).subarray(1, 4).toString(), "HDF")
      const csv = (await exported("csv")).toString().trim().split("\n")
      assert.strictEqual(csv[0], "step,runs,mean,std,median,iqm,low,high")
      const evaluations = JSON.parse(readFileSync(join(run, "return.json"), "utf8"))
      assert.deepEqual(
        csv.slice(1).map((line) => line.split(",").slice(0, 3).map(Number)),
        evaluations.map(({ step, returns_mean: mean }: { readonly step: number; readonly returns_mean: number }) => [
          step,
          1,
          mean,
        ]),
      )
      // The folder above the seeds is all of them.
      const above = await effect(["export", dirname(run), "--to", "svg", "--out", join(folder, "curve.svg")])
      assert.strictEqual(above.code, 0, above.stderr)
      assert.match(readFileSync(join(folder, "curve.svg"), "utf8"), /<polyline points="[\d., ]+"/)
      assert.isFalse(existsSync(join(run, "steps")))
      // The folders that are in steps/ already belong to other steps.
      const kept = await effect(["eval", run, "--step", "1024", "--render"])
      assert.strictEqual(kept.code, 0, kept.stderr)
      const newest = join(run, "checkpoints", "step_000000000002048", "weights.safetensors")
      assert.deepEqual(decode(await exported("safetensors")), decode(readFileSync(newest)))
    }))

  it("needs no code for the files that a checkpoint holds", () =>
    withFolder(async (folder) => {
      const own = program("").replace("CartPole.env", '{ ...CartPole.env, id: "my-pole" }')
      const file = write(folder, "train.ts", own)
      const { runDir } = resultOf(await effect(["run", file, "--quiet", "--json"], folder))
      rmSync(file)
      for (const format of ["onnx", "safetensors"]) {
        const done = await effect(["export", runDir, "--to", format, "--out", `policy.${format}`], folder)
        assert.strictEqual(done.code, 0, done.stderr)
      }
      const checkpoint = join(folder, runDir, "checkpoints", "latest")
      assert.deepEqual(readFileSync(join(folder, "policy.onnx")), readFileSync(join(checkpoint, "policy.onnx")))
      const refused = await effect(["export", runDir, "--to", "h"], folder)
      assert.include(refused.stderr, "my-pole")
    }))

  it("says what can't be written", () =>
    withFolder(async (folder) => {
      const text = program("").replace("Ppo.make({ nsteps: 32 })", "Ppo.make({ nsteps: 32, lstm: 8 })")
      const outcome = await effect([
        "run",
        write(folder, "train.ts", text),
        "--results-dir",
        join(folder, "results"),
        "--quiet",
        "--json",
      ])
      const run = resultOf(outcome).runDir
      for (const [args, message] of [
        [[run, "--to", "h"], "--to h only works with policies that have only dense layers, and the policy of "],
        [[run, run, "--to", "h5"], "--to h5: expected one run, found 2"],
        [[folder, "--to", "csv"], "expected a finished run, found no return.json"],
        [[run, "--to", "csv"], "the runs have no validation at the same step"],
        [[run, "--to", "onnx", "--out", join(folder, "no", "where")], "--out"],
      ] as const) {
        const refused = await effect(["export", ...args])
        assert.strictEqual(refused.code, 2)
        assert.include(refused.stderr, message)
      }
    }))
})

describe("the ticks of an axis", () => {
  it("are round, few, and hold everything", () => {
    for (const [low, high] of [
      [0, 500],
      [-1600, -120.5],
      [3, 3],
      [0, 0],
      [0.001, 0.0042],
    ]) {
      const ticks = ticksOf(low, high)
      assert.isAtMost(ticks[0], low)
      assert.isAtLeast(ticks[ticks.length - 1], high)
      assert.isTrue(ticks.length >= 2 && ticks.length <= 9, ticks.join())
    }
  })
})
