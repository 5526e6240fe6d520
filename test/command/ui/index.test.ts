import { appendFileSync, rmSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { allGroups, groupKey, variablesOf } from "../../../src/command/ui/grouping.ts"
import { mostAtOnce as mostBytes } from "../../../src/run/read/FileSource.ts"
import { openResults, type ResultsFolder } from "../../../src/command/ui/results-node.ts"
import { makeIndex } from "../../../src/command/ui/runIndex.ts"
import { confinedTo } from "../../../src/run/read/confined-node.ts"
import { owner } from "../../../src/run/store/owner-node.ts"
import { makeRun, scoreLine, withFolder, write } from "./folder.ts"

const done = Effect.runPromise
const open = (folder: string): Promise<ResultsFolder> => done(openResults(folder))
const refresh = ({ index }: ResultsFolder) => done(index.refresh)

describe("the index of runs", () => {
  it("knows what a finished run was and how well it did", () =>
    withFolder(async (folder) => {
      const path = makeRun(folder, { population: { env_id: "a/b", algorithm: "ppo" }, seed: 7 })
      const results = await open(folder)
      await refresh(results)
      assert.deepInclude(results.index.runs()[0], {
        path,
        name: "tune",
        population: { env_id: "a/b", algorithm: "ppo" },
        seed: 7,
        env: "CartPole-v1",
        state: "finished",
        steps: 1000,
        score: 100,
        scoreStd: 1,
        best: 100,
        seconds: 2,
      })
    }))

  it("has a single run by the name of its folder, and reads nothing beside it", () =>
    withFolder(async (folder) => {
      const path = makeRun(folder, { seed: 7 })
      const sibling = makeRun(folder, { seed: 8 })
      const results = await open(join(folder, path))
      await refresh(results)
      const [run, ...others] = results.index.runs()
      assert.deepInclude(run, { path: "0007", name: "tune", seed: 7, state: "finished", score: 100 })
      assert.deepStrictEqual(others, [])
      assert.isString(await done(results.files.text("0007/config.yaml")))
      for (const outside of ["0008/config.yaml", "0007/../0008/config.yaml", "."]) {
        assert.isUndefined(await done(results.files.locate(outside)), outside)
      }
      assert.include(sibling, "0008")
    }))

  it("tells what is new, what has gone, and nothing where nothing changed", () =>
    withFolder(async (folder) => {
      const first = makeRun(folder)
      const results = await open(folder)
      assert.lengthOf((await refresh(results)).changed, 1)
      assert.deepStrictEqual(await refresh(results), { changed: [], gone: [] })
      const second = makeRun(folder, { seed: 2 }, { finished: false })
      assert.deepStrictEqual((await refresh(results)).changed.map(({ path }) => path), [second]) // prettier-ignore
      appendFileSync(join(folder, second, "scores/train/scores.jsonl"), scoreLine(1500, 3, 50))
      const { changed } = await refresh(results)
      assert.deepStrictEqual([changed[0].path, changed[0].steps, changed[0].episodes], [second, 1500, 51])
      rmSync(join(folder, first), { recursive: true })
      assert.deepStrictEqual((await refresh(results)).gone, [first])
    }))

  it("counts steps where one is a line, anew when the file was cut", () =>
    withFolder(async (folder) => {
      const step = (index: number, said: string): string =>
        `${JSON.stringify({ episode_index: 1, step_index: index, score: 1, episode_cum_score: index, action: said })}\n`
      const results = await open(folder)
      const steps = async (lines: ReadonlyArray<string>) => {
        write(folder, "r/scores/train/scores.jsonl", lines.join(""))
        await refresh(results)
        return results.index.runs().map((run) => run.steps)
      }
      assert.deepStrictEqual(await steps([step(1, "a"), step(2, "b")]), [2])
      assert.deepStrictEqual(await steps([step(1, "a"), step(2, "b"), step(3, "c")]), [3])
      // Cut back, and longer by now than it was.
      assert.deepStrictEqual(await steps([1, 2, 3, 4].map((index) => step(index, "c".repeat(999)))), [4])
    }))

  it("tells running, stopped and failed ones apart", () =>
    withFolder(async (folder) => {
      const states = async () => {
        const results = await open(folder)
        await refresh(results)
        return results.index.runs().map(({ state, score }) => [state, score])
      }
      const path = makeRun(folder, {}, { finished: false })
      assert.deepStrictEqual(await states(), [["stopped", 100]])
      write(folder, `${path}/run.lock`, owner.name)
      assert.deepStrictEqual(await states(), [["running", 100]])
      write(folder, `${path}/run.lock`, owner.name.replace(/\d+/, "999999999"))
      assert.deepStrictEqual(await states(), [["stopped", 100]])
      appendFileSync(
        join(folder, path, "run.log"),
        "2026-01-31T12:00:01Z failed at step 3 after 0 episodes: no\n    at f (a.ts:1:2)\n",
      )
      assert.deepStrictEqual(await states(), [["failed", 100]])
    }))

  it("sees that a run ends between two questions about its process", () =>
    withFolder(async (folder) => {
      const path = makeRun(folder, {}, { finished: false })
      write(folder, `${path}/run.lock`, owner.name)
      // The process ends after it was asked for the first, the second, … time.
      for (const lives of [1, 2, 3]) {
        let asked = 0
        const files = await done(confinedTo(folder))
        const index = makeIndex({ ...files, isAlive: () => Effect.sync(() => asked++ < lives) })
        for (let look = 0; look < 4; look++) await done(index.refresh)
        assert.deepStrictEqual(
          index.runs().map(({ state }) => state),
          ["stopped"],
          `${lives}`,
        )
      }
    }))

  it("tells trainings, evaluations and rollouts by themselves apart; an evaluation's score is its first agent's", () =>
    withFolder(async (folder) => {
      const trained = makeRun(folder)
      write(folder, "measured/config.yaml", "name: quiz\ndataset:\n  type: qa\n")
      write(
        folder,
        "measured/return.json",
        JSON.stringify([0.25, 0.75].map((mean, step) => ({ step, returns_mean: mean }))),
      )
      write(folder, "said/rollouts.jsonl", "")
      write(folder, "scored/scores/val/0_seen_episodes_scores.jsonl", "")
      const results = await open(folder)
      await refresh(results)
      const found = results.index.runs().map(({ path, kind, state, score }) => [path, kind, state, score])
      assert.sameDeepMembers(found, [
        [trained, "run", "finished", 100],
        ["measured", "evaluation", "finished", 0.25],
        ["said", "rollouts", "stopped", null],
        ["scored", "run", "stopped", null],
      ])
    }))

  it("knows which configs are alike but for the seed", () =>
    withFolder(async (folder) => {
      const configs = ["seed: 1\ngamma: 0.9\n", "seed: 2\ngamma: 0.9\n", "seed: 1\ngamma: 0.8\n"]
      for (const [index, config] of configs.entries()) write(folder, `${index}/config.yaml`, config)
      const results = await open(folder)
      await refresh(results)
      const digests = new Map(results.index.runs().map(({ path, configDigest }) => [path, configDigest]))
      assert.strictEqual(digests.get("0"), digests.get("1"))
      assert.notStrictEqual(digests.get("0"), digests.get("2"))
    }))

  it("survives half a file, folders that are no runs, and links", () =>
    withFolder(async (folder) => {
      const path = makeRun(folder)
      write(folder, `${path}/metrics.json`, `{"steps": 12`)
      write(folder, `${path}/return.json`, `[{"step": 5, "returns_m`)
      write(folder, "notes/todo.txt", "nothing")
      symlinkSync("/", join(folder, "root"))
      const results = await open(folder)
      await refresh(results)
      assert.deepStrictEqual(
        results.index.runs().map(({ score, steps, state }) => [score, steps, state]),
        // The score files tell what the damaged ones don't.
        [[100, 1000, "finished"]],
      )
    }))

  it("reads runs of the flat layout, and one started from in the middle", () =>
    withFolder(async (folder) => {
      write(folder, "20260131_120000/config.yaml", "env: Pendulum-v1\nname: flat\nseed: 3\n")
      const path = makeRun(folder)
      const results = await open(folder)
      await refresh(results)
      const flat = results.index.runs().find(({ env }) => env === "Pendulum-v1")
      assert.deepInclude(flat, { name: "flat", seed: 3, time: "2026-01-31_12-00-00" })
      const below = await open(join(folder, path.split("/").slice(0, 2).join("/")))
      await refresh(below)
      assert.deepInclude(below.index.runs()[0], { name: "tune", seed: 1, path: "ppo/0001" })
    }))
})

describe("groups", () => {
  it("are what the page can show without a filter, each once", () =>
    withFolder(async (folder) => {
      const runs = [1, 2].flatMap((seed) => ["ppo", "a2c"].map((algorithm) => makeRun(folder, { seed, population: { algorithm } }))) // prettier-ignore
      const results = await open(folder)
      await refresh(results)
      const all = results.index.runs()
      assert.deepStrictEqual(variablesOf(all), ["algorithm"])
      assert.strictEqual(groupKey(all[0], "config"), "tune algorithm=a2c")
      assert.deepStrictEqual(
        allGroups(all).map((group) => group.length),
        [2, 2, 4],
      )
      assert.sameMembers([...(allGroups(all).at(-1) ?? [])], runs)
      // The page draws the runs of each env in charts of their own.
      const pixels = allGroups(all.map((run, at) => (at === 0 ? { ...run, env: "pixels" } : run)))
      assert.sameMembers(
        pixels.map((group) => group.length),
        [2, 1, 1, 2, 4, 3],
      )
    }))
})

describe("curves of a folder", () => {
  it("are read on as the files grow, and anew when they were cut", () =>
    withFolder(async (folder) => {
      const path = makeRun(folder, {}, { finished: false })
      const { curves } = await open(folder)
      const before = await done(curves.of(path))
      assert.strictEqual(before.train.mean.length, 50)
      assert.deepStrictEqual([before.validation.steps, before.validation.mean], [[500, 1000], [50, 100]]) // prettier-ignore
      assert.strictEqual(await done(curves.of(path)), before)
      const file = join(folder, path, "scores/train/scores.jsonl")
      const line = scoreLine(2000, 77, 50)
      appendFileSync(file, line.slice(0, 30))
      assert.strictEqual((await done(curves.of(path))).train.mean.length, 50)
      appendFileSync(file, line.slice(30))
      assert.strictEqual((await done(curves.of(path))).train.mean.at(-1), 77)
      write(folder, `${path}/scores/train/scores.jsonl`, scoreLine(1, 5, 0))
      assert.deepStrictEqual((await done(curves.of(path))).train.mean, [5])
      // Cut back, and longer by now than it was.
      write(folder, `${path}/scores/train/scores.jsonl`, scoreLine(1, 6, 0) + scoreLine(2, 7, 1))
      assert.deepStrictEqual((await done(curves.of(path))).train.mean, [6, 7])
    }))

  it("are read part by part where a file is long", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const line = scoreLine(1, 5, 0).replace("}", `,"filler":"${"x".repeat(1 << 20)}"}`)
      write(folder, "a/scores/train/scores.jsonl", line.repeat(1 + Math.ceil(mostBytes / line.length)))
      const { curves } = await open(folder)
      assert.strictEqual((await done(curves.of("a"))).train.episodes.length, 1 + Math.ceil(mostBytes / line.length))
    }),
  )

  it("of several runs are a band, made anew when one of them changes", () =>
    withFolder(async (folder) => {
      const paths = [10, 20, 60].map((level, index) => makeRun(folder, { seed: index }, { finished: false, level }))
      const { curves } = await open(folder)
      const band = await done(curves.band(paths, "validation", "steps"))
      assert.deepStrictEqual(band.mean, [15, 30])
      assert.strictEqual(await done(curves.band(paths, "validation", "steps")), band)
      write(folder, `${paths[0]}/scores/val/60_seen_episodes_scores.jsonl`, scoreLine(1500, 5, 0))
      assert.notStrictEqual(await done(curves.band(paths, "validation", "steps")), band)
    }))

  it("of RLtools' own runs come from their return.json", () =>
    withFolder(async (folder) => {
      write(folder, "a/return.json", JSON.stringify([{ step: 10, returns_mean: 2, returns_std: 0, returns: [1, 3] }]))
      const { curves } = await open(folder)
      assert.deepStrictEqual((await done(curves.of("a"))).validation.mean, [2])
    }))
})
