import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { runsIn } from "./crash.ts"
import { type Outcome, resultOf, effect, withFolder, write } from "./effect.ts"
import {
  at,
  comparable,
  experiment,
  filesIn,
  jsonOf,
  runsBelow,
  someFaults,
  type Wanted,
  withServer,
} from "./experiment.ts"

const outputs = "outputs/my_experiment"

const run = async (folder: string, wanted: Wanted, ...more: ReadonlyArray<string>): Promise<Outcome> => {
  write(folder, "experiment.yaml", experiment(wanted))
  const outcome = await effect(["run", "experiment.yaml", "--json", "--quiet", ...more], folder)
  assert.strictEqual(outcome.code, 0, outcome.stderr)
  return outcome
}

const small: Wanted = { tasks: 20, heldOut: 4, runtime: { validation_freq: 10 } }

/** Every file with its bytes. */
const bytesOf = (folder: string): ReadonlyMap<string, string> =>
  new Map(
    filesIn(folder)
      .filter((path) => !path.endsWith("latest"))
      .map((path) => [path, readFileSync(join(folder, path), "base64")]),
  )

/** Keeps only the part of a run after an episode; the episodes of metrics.json are those of its scores. */
const sinceEpisode = (episode: number, compared: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(
    Object.entries(compared).flatMap(([path, content]) => {
      const inName = /(?:episode_|val_|ep_|val\/|memory_)0*(\d+)/.exec(path)?.[1]
      if ((inName !== undefined && Number(inName) <= episode) || path === "metrics.json") return []
      if (path.endsWith("/runtime.json")) return [[path, JSON.stringify(content).replace(/"begunAt":\d+,/, "")]]
      if (!path.startsWith("scores/train/") || !Array.isArray(content)) return [[path, content]]
      return [[path, content.filter((line) => line.episode_index > episode)]]
    }),
  )

describe("an experiment, again", () => {
  it(
    "starts from a checkpoint of another run, in a folder of its own, and leaves that run unchanged",
    { tags: "slow" },
    () =>
      withFolder(async (folder) => {
        await run(folder, { ...small, runtime: { ...small.runtime, max_envs_to_visit: 10 } })
        const results = join(folder, outputs)
        const [half] = runsBelow(results)
        const before = bytesOf(half)
        const whole = resultOf(await run(folder, small))
        for (const resume_from of [
          `${half}/checkpoints/ep_000010`,
          `${half}/checkpoints/latest`,
          `${half}/checkpoints`,
        ]) {
          const count = runsBelow(results).length
          const more = { ...small, runtime: { ...small.runtime, resume_from } }
          const gone = resultOf(await run(folder, more))
          assert.strictEqual(runsBelow(results).length, count + 1)
          assert.deepStrictEqual(bytesOf(half), before)
          assert.strictEqual(gone.digest, whole.digest)
          const [one, other] = [gone, whole].map(({ runDir }) => comparable(join(folder, runDir)))
          const { episodes: _1, ...now } = jsonOf(join(folder, gone.runDir, "metrics.json"))
          const { episodes: _2, ...then } = jsonOf(join(folder, whole.runDir, "metrics.json"))
          for (const key of ["mean_score", "train_steps", "train_episodes", "usage", "validation"]) {
            assert.deepStrictEqual(now[key], then[key], key)
          }
          assert.deepStrictEqual(sinceEpisode(10, one), sinceEpisode(10, other))
        }
        // Never without its memory, nor on other tasks.
        const checkpoint = join(folder, "ep_000010")
        cpSync(`${half}/checkpoints/ep_000010`, checkpoint, { recursive: true })
        writeFileSync(join(checkpoint, "memory_10.jsonl"), '{"type":"Reflection","content":"RULE"}\n')
        for (const [wanted, said] of [
          [{ ...small, runtime: { resume_from: checkpoint } }, /memory_10\.jsonl/],
          [{ ...small, tasks: 21, runtime: { resume_from: `${half}/checkpoints` } }, /train_dataset/],
        ] as const) {
          write(folder, "experiment.yaml", experiment(wanted))
          const outcome = await effect(["run", "experiment.yaml", "--quiet"], folder)
          assert.include([1, 2], outcome.code)
          assert.match(outcome.stderr, said)
          assert.match(outcome.stderr, /^effect: [^\n]+\n$/)
        }
      }),
  )

  for (const [how, words, more, place] of [
    ["by the file's name", [], {}, outputs],
    ["by what is in it or laid over it", ["--set", "output.results_dir=outputs/b"], { name: "mine" }, "outputs/b"],
  ] as const) {
    it(`goes on with the newest that is not finished: known ${how}`, { tags: "slow" }, () =>
      withFolder((folder) =>
        withServer({}, async (server) => {
          const lm = { ...at(server), budget: { calls: 30 } }
          write(folder, "experiment.yaml", experiment({ ...small, lm, more }))
          const failed = await effect(["run", "experiment.yaml", "--quiet", ...words], folder)
          assert.strictEqual(failed.code, 1)
          const [unfinished] = runsBelow(join(folder, place))
          const args = [
            "run",
            "experiment.yaml",
            "--quiet",
            "--json",
            ...words,
            "--set",
            "agent.lm_config.budget.calls=null",
          ]
          const outcome = await effect([...args, "--resume", "latest"], folder)
          assert.strictEqual(outcome.code, 0, outcome.stderr)
          assert.strictEqual(join(folder, resultOf(outcome).runDir), unfinished)
          assert.deepStrictEqual(runsBelow(join(folder, place)), [unfinished])
          const whole = resultOf(await run(folder, { ...small, lm: at(server), more }))
          assert.strictEqual(resultOf(outcome).digest, whole.digest)
          // If all runs are finished, the newest one is resumed, and the output says that it is finished.
          const again = await effect([...args, "--resume", "latest"], folder)
          assert.strictEqual(again.code, 0, again.stderr)
          assert.deepStrictEqual(resultOf(again), place === outputs ? whole : resultOf(outcome))
          const others = await effect([...args, "--name", "another", "--resume", "latest"], folder)
          assert.strictEqual(others.code, 2)
          assert.include(others.stderr, `there is no run named another in results or ${place}`)
        }),
      ),
    )
  }

  it("is the same from its own config.yaml, and another with another setting", () =>
    withFolder(async (folder) => {
      const wanted: Wanted = { ...small, more: { train_dataset: { type: "codebook", num_tasks: 20, shuffle: true } } }
      const first = resultOf(await run(folder, wanted, "--seed", "7", "--set", "agent.history_k=3"))
      const config = join(folder, first.runDir, "config.yaml")
      const said = parse(readFileSync(config, "utf8"))
      assert.strictEqual(said.seed, 7)
      assert.strictEqual(said.agent.history_k, 3)
      const elsewhere = join(folder, "elsewhere")
      mkdirSync(elsewhere)
      const again = await effect(["run", config, "--quiet", "--json"], elsewhere)
      assert.strictEqual(again.code, 0, again.stderr)
      assert.strictEqual(resultOf(again).digest, first.digest)
      // The results folder that a file in another folder names is relative to the command's folder.
      assert.isTrue(existsSync(join(elsewhere, resultOf(again).runDir, "return.json")))
    }))

  it("is found to be the same by effect replay, and to be another when its scores are", { tags: "slow" }, () =>
    withFolder((folder) =>
      withServer({ fault: someFaults(8, 0.1) }, async (server) => {
        const { runDir, digest } = resultOf(await run(folder, { ...small, lm: { ...at(server), cache: "record" } }))
        const asked = server.asked.length
        const replayed = await effect(["replay", runDir, "--quiet", "--json"], folder)
        assert.strictEqual(replayed.code, 0, replayed.stderr)
        assert.deepInclude(JSON.parse(replayed.stdout), { same: true, digest: { then: digest, now: digest } })
        // Nobody was asked again.
        assert.strictEqual(server.asked.length, asked)
        const scores = join(folder, runDir, "scores/train/scores.jsonl")
        writeFileSync(scores, readFileSync(scores, "utf8").replace('"episode_index":7', '"episode_index":8'))
        const other = await effect(["replay", runDir, "--quiet"], folder)
        assert.strictEqual(other.code, 1)
        assert.match(other.stderr, /scores\/train\/scores\.jsonl, line 7.*episode_index was 8 and is 7/)
      }),
    ),
  )

  it("is many, of seeds and settings", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      write(folder, "experiment.yaml", experiment({ ...small, tasks: 10 }))
      const args = ["run", "experiment.yaml", "--json", "--jobs", "2", "--results-dir"]
      const words = ["--seeds", "1..2", "--population", "agent.history_k=0,10"]
      const swept = await effect([...args, "results", ...words], folder)
      assert.strictEqual(swept.code, 0, swept.stderr)
      const found = runsIn(join(folder, "results"))
      assert.sameDeepMembers(
        found.map((one) => {
          const { seed, agent } = parse(readFileSync(join(one, "config.yaml"), "utf8"))
          return [seed, agent.history_k]
        }),
        [
          [1, 0],
          [1, 10],
          [2, 0],
          [2, 10],
        ],
      )
      for (const one of found) assert.isTrue(existsSync(join(one, "return.json")), one)
    }),
  )

  it(
    "has scores and checkpoints elsewhere where the file says so, and leaves those of another one alone",
    { tags: "slow" },
    () =>
      withFolder(async (folder) => {
        const runtime = {
          ...small.runtime,
          scores_path: join(folder, "elsewhere/scores.jsonl"),
          checkpoint_dir: join(folder, "kept"),
        }
        const lm = { budget: { calls: 30 } }
        write(folder, "experiment.yaml", experiment({ ...small, lm, runtime }))
        const args = ["run", "experiment.yaml", "--quiet", "--json"]
        const stopped = await effect(args, folder)
        assert.strictEqual(stopped.code, 1)
        assert.isTrue(existsSync(join(folder, "kept/latest/runtime.json")))
        const more = ["--set", "agent.lm_config.budget.calls=null"]
        const resumed = await effect([...args, ...more, "--resume", "latest"], folder)
        assert.strictEqual(resumed.code, 0, resumed.stderr)
        const whole = resultOf(await run(folder, small))
        assert.strictEqual(resultOf(resumed).digest, whole.digest)
        const here = comparable(join(folder, "elsewhere"))
        const there = comparable(join(folder, whole.runDir))
        assert.deepStrictEqual(
          here,
          Object.fromEntries(Object.entries(there).filter(([path]) => path.startsWith("scores/"))),
        )
        assert.isFalse(
          filesIn(join(folder, resultOf(resumed).runDir)).some((path) => /^(scores|checkpoints)/.test(path)),
        )
        const before = [bytesOf(join(folder, "elsewhere")), bytesOf(join(folder, "kept"))]
        write(folder, "experiment.yaml", experiment({ ...small, runtime }))
        const runs = readdirSync(join(folder, outputs))
        assert.isNotEmpty(runs)
        const other = await effect(args, folder)
        assert.strictEqual(other.code, 2)
        assert.match(other.stderr, /^effect: [^\n]*runtime\.scores_path[^\n]*files of another run[^\n]*\n$/)
        assert.deepStrictEqual([bytesOf(join(folder, "elsewhere")), bytesOf(join(folder, "kept"))], before)
        const half = { ...runtime, scores_path: null }
        write(folder, "experiment.yaml", experiment({ ...small, runtime: half }))
        const another = await effect(args, folder)
        assert.strictEqual(another.code, 2)
        assert.match(another.stderr, /^effect: [^\n]*runtime\.checkpoint_dir[^\n]*files of another run[^\n]*\n$/)
        assert.deepStrictEqual(readdirSync(join(folder, outputs)), runs, "what is refused leaves no folder")
      }),
  )
})
