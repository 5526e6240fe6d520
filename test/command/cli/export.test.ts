import { cpSync, existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { GifReader } from "omggif"
import * as ort from "onnxruntime-node"
import { assert, describe, it } from "vitest"
import { decodePng } from "../../../src/base/formats/picture/png.ts"
import { decode } from "../../../src/base/formats/safetensors.ts"
import { ticksOf } from "../../../src/rl/export/curveFiles.ts"
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
      assert.deepEqual(policy.outputNames, ["actions", "logits", "value"])
      assert.match(
        (await exported("h")).toString(),
        /void effect_policy_act\(const float \*observation, int32_t \*action\)/,
      )
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

  it(
    "draws the curves of several algorithms in one figure, also if they were measured at different steps",
    { tags: "slow" },
    () =>
      withFolder(async (folder) => {
        const results = join(folder, "results")
        const trained = async (name: string, everySteps: number, seed: number): Promise<string> => {
          const text = `validation: { everySteps: ${everySteps}, episodes: 2 }, seed: ${seed}`
          const file = write(folder, `${name}.ts`, program(text))
          return resultOf(await effect(["run", file, "--results-dir", results, "--quiet", "--json"])).runDir
        }
        const runs = [await trained("one", 512, 1), await trained("one", 1024, 2), await trained("other", 1024, 1)]
        const figure = async (name: string, ...args: ReadonlyArray<string>) => {
          const done = await effect(["export", ...args, "--out", join(folder, name)])
          assert.strictEqual(done.code, 0, done.stderr)
          return readFileSync(join(folder, name))
        }
        const csv = (await figure("a.csv", ...runs, "--to", "csv")).toString()
        const names = new Set(csv.split("\n").map((line) => line.split(",")[0]))
        assert.lengthOf(
          [...names].filter((name) => name.startsWith("one")),
          2,
        )
        // A folder of seeds that were measured at different steps is one curve; a label names it.
        const seeds = join(folder, "seeds")
        mkdirSync(seeds)
        for (const [index, run] of runs.slice(0, 2).entries())
          cpSync(run, join(seeds, String(index)), { recursive: true })
        const labels = ["--label", "first", "--label", "second"]
        const both = (await figure("b.csv", seeds, runs[2], ...labels, "--to", "csv")).toString()
        const lines = both.trim().split("\n").slice(1).map((line) => line.split(",").slice(0, 3)) // prettier-ignore
        assert.deepEqual(
          lines,
          [["first", "1024", "2"], ["first", "1536", "2"], ["first", "2048", "2"], ["second", "1024", "1"], ["second", "2048", "1"]], // prettier-ignore
        )
        const args = [seeds, runs[2], ...labels, "--title", "CartPole"]
        assert.match(
          (await figure("b.svg", ...args, "--to", "svg")).toString(),
          />CartPole<[^]*>first \(2\)<[^]*>second \(1\)</,
        )
        assert.strictEqual((await figure("b.pdf", ...args, "--to", "pdf")).subarray(0, 5).toString(), "%PDF-")
        const png = await Effect.runPromise(decodePng(await figure("b.png", ...args, "--to", "png")))
        assert.deepEqual([png.width, png.height], [1440, 880])
        const refused = await effect(["export", seeds, runs[2], "--label", "a", "--to", "svg"])
        assert.include(refused.stderr, "--label: expected a name for each curve, found 1 for 2 curves: ")
      }),
  )

  it("needs no code for the files that a checkpoint holds", () =>
    withFolder(async (folder) => {
      const own = program("").replace("CartPole.env", '{ ...CartPole.env, id: "my-pole" }')
      const file = write(folder, "train.ts", own)
      const { runDir } = resultOf(await effect(["run", file, "--quiet", "--json"], folder))
      rmSync(file)
      for (const format of ["onnx", "safetensors", "h"]) {
        const done = await effect(["export", runDir, "--to", format, "--out", `policy.${format}`], folder)
        assert.strictEqual(done.code, 0, done.stderr)
      }
      const checkpoint = join(folder, runDir, "checkpoints", "latest")
      assert.deepEqual(readFileSync(join(folder, "policy.onnx")), readFileSync(join(checkpoint, "policy.onnx")))
      const refused = await effect(["export", runDir, "--to", "h5"], folder)
      assert.include(refused.stderr, "my-pole")
    }))

  it("writes episodes as a moving picture", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program(settings.replace("episodes: 4", "episodes: 4, maxSteps: 20")))
      const { runDir } = resultOf(await effect(["run", file, "--quiet", "--json"], folder))
      const exported = async (...args: ReadonlyArray<string>) => {
        const done = await effect(["export", runDir, ...args], folder)
        assert.strictEqual(done.code, 0, done.stderr)
        return readFileSync(join(folder, done.stdout.trim()))
      }
      const bytes = await exported("--to", "gif", "--episodes", "2", "--speed", "50", "--step", "1024")
      const gif = new GifReader(bytes)
      assert.deepEqual([gif.width, gif.height], [600, 400])
      // The first episodes of the validation at this step: each lasts as long as there, and its end half a second longer.
      const evaluation = await effect(["eval", runDir, "--step", "1024", "--episodes", "2", "--json"], folder)
      const { meanLength } = JSON.parse(evaluation.stdout)
      const delays = Array.from({ length: gif.numFrames() }, (_, index) => gif.frameInfo(index).delay)
      assert.strictEqual(delays.length, 2 * meanLength)
      const ends = delays.flatMap((delay, index) => (delay === 52 ? [index] : []))
      assert.strictEqual(ends.length, 2)
      assert.strictEqual(ends[1], delays.length - 1)
      assert.isTrue(delays.every((delay) => delay === 2 || delay === 52))
    }),
  )

  it("writes videos by ffmpeg, and shows why that fails", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const { runDir } = resultOf(
        await effect(["run", write(folder, "train.ts", program("")), "--quiet", "--json"], folder),
      )
      const before = process.env.PATH
      const withProgram = async (text: string | undefined) => {
        const bin = join(folder, "bin")
        mkdirSync(bin, { recursive: true })
        if (text !== undefined) writeFileSync(join(bin, "ffmpeg"), `#!${process.execPath}\n${text}`, { mode: 0o755 })
        process.env.PATH = bin
        try {
          return await effect(["export", runDir, "--to", "mp4", "--out", "a.mp4", "--speed", "60"], folder)
        } finally {
          process.env.PATH = before
        }
      }
      const missing = await withProgram(undefined)
      assert.deepEqual(
        [missing.code, missing.stderr],
        [2, "effect: CartPole-v1: --to mp4: mp4 needs the program ffmpeg (https://ffmpeg.org); gif needs none\n"],
      )
      const refused = await withProgram(`console.error("no such\\nencoder"); process.exit(3)`)
      assert.deepEqual(
        [refused.code, refused.stderr],
        [2, "effect: CartPole-v1: --to mp4: ffmpeg failed (exit code 3): no such; encoder\n"],
      )
      // A file is replaced as a whole: under its other name, the earlier one stays as it was.
      linkSync(write(folder, "a.mp4", "earlier"), join(folder, "earlier.mp4"))
      const done = await withProgram(`
        import { writeFileSync } from "node:fs"
        let bytes = 0
        process.stdin.on("data", (chunk) => (bytes += chunk.length))
        process.stdin.on("end", () => writeFileSync(process.argv.at(-1), JSON.stringify([bytes, process.argv])))
      `)
      assert.strictEqual(done.code, 0, done.stderr)
      assert.strictEqual(readFileSync(join(folder, "earlier.mp4"), "utf8"), "earlier")
      const [bytes, args] = JSON.parse(readFileSync(join(folder, "a.mp4"), "utf8"))
      assert.include(args.join(" "), "-f rawvideo -pix_fmt rgb24 -s 600x400 -framerate 60 -i -")
      assert.isTrue(bytes > 0 && bytes % (3 * 600 * 400) === 0)
    }),
  )

  it("takes a part of a path that names the folder of several seeds", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program(settings))
      const outcome = await effect(["run", file, "--seeds", "1,2", "--results-dir", "results", "--quiet"], folder)
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      const done = await effect(["export", "CartPole-v1_ppo", "--to", "csv", "--out", "both.csv"], folder)
      assert.strictEqual(done.code, 0, done.stderr)
      assert.match(readFileSync(join(folder, "both.csv"), "utf8").split("\n")[1], /^1024,2,/)
    }))

  it("says what can't be written", () =>
    withFolder(async (folder) => {
      const text = program("totalSteps: 128").replace("Ppo.make({ nsteps: 32 })", "Ppo.make({ nsteps: 32, lstm: 8 })")
      const outcome = await effect([
        "run",
        write(folder, "train.ts", text),
        "--results-dir",
        join(folder, "results"),
        "--quiet",
        "--json",
      ])
      const run = resultOf(outcome).runDir
      const empty = join(folder, "empty")
      mkdirSync(empty)
      for (const [args, message] of [
        [[run, "--to", "h5"], "RLtools has no LSTM layer (its gru layer computes something else); use --to h, onnx"],
        [
          [run, "--to", "h", "--prefix", "a;b"],
          "prefix: expected up to 40 small letters, digits and single underscores",
        ],
        [[run, "--to", "onnx", "--prefix", "left"], "--prefix only works with --to h"],
        [[run, run, "--to", "h5"], "--to h5: expected one run, found 2"],
        [[run, "--to", "gif", "--episodes", "0"], '--episodes: "0". Expected: a value between 1 and 100000'],
        [[run, "--to", "csv", "--speed", "9"], "--speed only works with --to gif and mp4"],
        [[empty, "--to", "csv"], "expected a finished run, found no return.json"],
        [[run, "--to", "csv"], "the run has no validation, so it has no curve"],
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
