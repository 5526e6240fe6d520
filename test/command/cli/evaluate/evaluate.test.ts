import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { differenceInEpisode, firstScoreDifference } from "../../../../src/command/cli/replay/compareScores.ts"
import { effect, program, resultOf, withFolder, write } from "../effect.ts"

const settings = "validation: { everySteps: 1024, episodes: 5 }, checkpoint: { everySteps: 1024 }"

/** A finished run of a second, and what it said. */
const trained = async (folder: string) => {
  const file = write(folder, "train.ts", program(settings))
  const outcome = await effect(["run", file, "--results-dir", join(folder, "results"), "--quiet", "--json"])
  assert.strictEqual(outcome.code, 0, outcome.stderr)
  return { file, result: resultOf(outcome), run: resultOf(outcome).runDir }
}

describe("effect eval", () => {
  it("plays what the run's own validation played, an earlier checkpoint, and as many episodes as one likes", () =>
    withFolder(async (folder) => {
      const { run, result } = await trained(folder)
      const before = readdirSync(run).sort()
      const own = await effect(["eval", run, "--json"])
      assert.strictEqual(own.code, 0, own.stderr)
      const { wallSeconds, stepsPerSecond, ...about } = resultOf(own)
      assert.isAbove(Number(wallSeconds), 0)
      assert.isAbove(Number(stepsPerSecond), 0)
      const [first, last] = JSON.parse(readFileSync(join(run, "return.json"), "utf8"))
      // The output describes the evaluation alone, without the training's episodes, scores and digest.
      assert.deepEqual<object>(about, {
        runDir: run,
        ...Object(result.validation),
        minReturn: Math.min(...last.returns),
        maxReturn: Math.max(...last.returns),
        meanLength: last.episode_length_mean,
        terminated: last.num_terminated,
        truncated: last.returns.length - last.num_terminated,
      })
      const earlier = await effect(["eval", run, "--step", String(first.step), "--json"])
      assert.deepInclude(resultOf(earlier), { step: first.step, episodes: 5, meanReturn: first.returns_mean })
      const more = await effect(["eval", run, "--episodes", "30"])
      assert.match(more.stdout, /^[\d.]+ ± [\d.]+ over 30 episodes, by the policy of step 2048\n$/)
      // It only looked.
      assert.deepEqual(readdirSync(run).sort(), before)
      const kept = await effect(["eval", run, "--render", "--json"])
      assert.strictEqual(kept.code, 0, kept.stderr)
      assert.includeMembers(readdirSync(join(run, "steps", "000000000002048")), ["episode.svg", "checkpoint.onnx"])
      assert.isTrue(existsSync(join(run, "ui.esm.js")))
      const filmed = await effect([
        "eval",
        run,
        "--video",
        "gif",
        "--set",
        "render.episodes=3",
        "--set",
        "render.size=90",
      ])
      assert.strictEqual(filmed.code, 0, filmed.stderr)
      const video = join(run, "steps", "000000000002048", "episode.gif")
      assert.strictEqual(filmed.stdout.split("\n")[1], video)
      const gif = readFileSync(video)
      assert.strictEqual(gif.toString("latin1", 0, 6), "GIF89a")
      assert.isAtMost(gif.readUInt16LE(6), 90)
    }))

  it("says what is wrong in a line", () =>
    withFolder(async (folder) => {
      const { run } = await trained(folder)
      const wrong = await effect(["eval", run, "--step", "7"])
      assert.strictEqual(wrong.code, 2)
      assert.include(wrong.stderr, "--step 7")
      assert.include(wrong.stderr, "has no checkpoint of this step; expected one of 1024, 2048")
      const nothing = await effect(["eval", folder])
      assert.strictEqual(nothing.code, 2)
      assert.include(nothing.stderr, "it is not a run (it has no config.yaml)")
    }))
})

describe("effect replay", () => {
  it("finds a run that is what its seed makes of it the same, and else the first thing that differs", () =>
    withFolder(async (folder) => {
      const { run, result } = await trained(folder)
      const same = await effect(["replay", run, "--quiet", "--json"])
      assert.strictEqual(same.code, 0, same.stderr)
      assert.deepInclude(JSON.parse(same.stdout), { same: true, digest: { then: result.digest, now: result.digest } })

      const path = join(run, "scores", "train", "scores.jsonl")
      const lines = readFileSync(path, "utf8").split("\n")
      const third = JSON.parse(lines[2])
      lines[2] = JSON.stringify({ ...third, score: 999 })
      writeFileSync(path, lines.join("\n"))
      const changed = await effect(["replay", run, "--quiet"])
      assert.strictEqual(changed.code, 1)
      const where = `scores/train/scores.jsonl, line 3, step ${third.step_index}: score was 999 and is ${third.score}`
      assert.include(changed.stderr, where)

      // Replay one episode, as far as it was played.
      const [first, wrong] = [JSON.parse(lines[0]).episode_index, third.episode_index]
      const good = await effect(["replay", run, "--episode", String(first), "--json"])
      assert.strictEqual(good.code, 0, good.stderr)
      assert.deepInclude(JSON.parse(good.stdout), { same: true, episode: first, lines: 1, difference: null })
      assert.match(good.stderr, /stopped after/)
      assert.notInclude(good.stderr, "interrupted")
      const bad = await effect(["replay", run, "--quiet", "--episode", String(wrong)])
      assert.strictEqual(bad.code, 1)
      assert.include(bad.stderr, where)
      const none = await effect(["replay", run, "--quiet", "--episode", "99999"])
      assert.strictEqual(none.code, 2)
      assert.include(none.stderr, "/scores/train/scores.jsonl has no such episode")

      // An unfinished run is compared by the scores that it has so far.
      writeFileSync(path, `${lines.slice(0, 2).join("\n")}\n`)
      rmSync(join(run, "return.json"))
      rmSync(join(run, "scores", "val"), { recursive: true })
      const part = await effect(["replay", run, "--quiet"])
      assert.strictEqual(part.code, 0, part.stderr)
      assert.include(part.stdout, "the same: 2 scores; it was not finished")
    }))
})

describe("two runs' scores", () => {
  const files = (...lines: ReadonlyArray<object>) =>
    new Map([["scores/train/scores.jsonl", lines.map((line) => `${JSON.stringify(line)}\n`).join("")]])
  const one = { timestamp: "1", step_index: 8, score: 1 }
  const two = { timestamp: "2", step_index: 16, score: 2 }

  it("are the same whenever they were made", () => {
    assert.isUndefined(firstScoreDifference(files(one, two), files({ ...one, timestamp: "9" }, two), false))
  })

  it("differ by a line that one of them lacks, unless that one was not finished", () => {
    assert.deepInclude(firstScoreDifference(files(one), files(one, two), false), { line: 2, step: 16, key: "the line" })
    assert.isUndefined(firstScoreDifference(files(one), files(one, two), true))
    assert.deepInclude(firstScoreDifference(files(one, two), files(one), true), { line: 2, now: null })
  })

  it("of one episode are the same wherever else its lines stand", () => {
    const of = (episode: number, line: object) => ({ episode_index: episode, ...line })
    const then = files(of(0, one), of(1, one), of(0, two))
    assert.isUndefined(differenceInEpisode(then, files(of(1, two), of(0, one), of(0, two), of(2, one)), 0))
    assert.deepInclude(differenceInEpisode(then, files(of(0, one), of(0, { ...two, score: 7 })), 0), {
      line: 3,
      key: "score",
      now: 7,
    })
    assert.deepInclude(differenceInEpisode(then, files(of(0, one)), 0), { line: 3, key: "the line", now: null })
  })

  it("differ first where the fewest steps were done", () => {
    const then = new Map([...files(one, two), ["scores/val/1_seen.jsonl", '{"step_index":4,"score":1}\n']])
    const now = new Map([
      ...files({ ...one, score: 5 }, two),
      ["scores/val/1_seen.jsonl", '{"step_index":4,"score":2}\n'],
    ])
    assert.deepInclude(firstScoreDifference(then, now, false), { step: 4, key: "score", then: 1, now: 2 })
    assert.deepInclude(firstScoreDifference(files({ ...one, odd: 1 }), files(one), false), { key: "odd", now: null })
  })
})
