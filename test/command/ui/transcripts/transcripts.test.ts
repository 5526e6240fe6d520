import { appendFileSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { confinedTo } from "../../../../src/run/read/confined-node.ts"
import { everything, pageAsked } from "../../../../src/command/ui/transcripts/pageAsked.ts"
import { makeTranscripts, type PageAsked } from "../../../../src/command/ui/transcripts/transcripts.ts"
import { line as outcomeLine } from "../../../../src/agents/episode/rollouts/Outcome.ts"
import * as Rollouts from "../../../../src/agents/episode/rollouts/Rollouts.ts"
import { makeRun, withFolder, write } from "../folder.ts"
import { rolloutOf } from "../rollouts.ts"
import { calendarRun, namingRun } from "../talk.ts"

const all: PageAsked = { ...everything, count: 100 }

/** The list and transcripts of one run in a folder. */
const open = async (folder: string, run: string) => {
  const transcripts = makeTranscripts(await Effect.runPromise(confinedTo(folder)))
  const page = (asked: Partial<PageAsked> = {}) => Effect.runPromise(transcripts.page(run, { ...all, ...asked }))
  return {
    page,
    keys: async (asked: Partial<PageAsked> = {}) => (await page(asked)).episodes.map(({ key }) => key),
    one: async (key: string) => {
      const found = await Effect.runPromise(transcripts.one(run, key))
      assert.isDefined(found)
      return found
    },
    none: (key: string) => Effect.runPromise(transcripts.one(run, key)),
  }
}

const file = "r/rollouts.jsonl"
const three = ["a", "b", "c"].map((id, at) => rolloutOf(id, { reward: at, said: `It's ${id.toUpperCase()}${id}.` }))

describe("the episodes of a run", () => {
  it("are those of its rollouts, training before validations", () =>
    withFolder(async (folder) => {
      const { page, keys } = await open(folder, await namingRun(folder))
      const { total, matching, groups, episodes } = await page()
      assert.deepStrictEqual([total, matching], [20, 20])
      assert.deepStrictEqual(groups, [
        { name: "train", seen: null, contestant: null, episodes: 12 },
        { name: "val6", seen: 6, contestant: null, episodes: 4 },
        { name: "val12", seen: 12, contestant: null, episodes: 4 },
      ])
      const { env, agent, length, ending, failed, ...rest } = episodes[0]
      assert.deepStrictEqual(
        [env, agent, length, ending, failed],
        ["naming-0", "reflexion_agent", 2, "terminated", null],
      )
      assert.deepStrictEqual([rest.key, rest.return, rest.id], ["train-1", 1, "train-1"])
      assert.deepStrictEqual(await keys({ phase: "val12" }), ["val12-1", "val12-2", "val12-3", "val12-4"])
      assert.strictEqual((await page({ phase: "validation" })).matching, 8)
    }))

  it("are found by their returns, by what was said, a page at a time, in any order", () =>
    withFolder(async (folder) => {
      write(folder, file, three.map(Rollouts.line).join(""))
      const { keys, page } = await open(folder, "r")
      assert.deepStrictEqual(await keys({ least: 1 }), ["rollouts-2", "rollouts-3"])
      assert.deepStrictEqual(await keys({ most: 1, order: "highest" }), ["rollouts-2", "rollouts-1"])
      assert.deepStrictEqual(await keys({ order: "newest" }), ["rollouts-3", "rollouts-2", "rollouts-1"])
      assert.deepStrictEqual(await keys({ order: "lowest", from: 1, count: 1 }), ["rollouts-2"])
      assert.deepStrictEqual(await keys({ text: "IT'S bB" }), ["rollouts-2"])
      // The names of fields are not searched.
      assert.deepStrictEqual(await keys({ text: "observation" }), [])
      const { from, matching, episodes } = await page({ at: "rollouts-3", count: 2 })
      assert.deepStrictEqual([from, matching, episodes.map(({ key }) => key)], [2, 3, ["rollouts-3"]])
    }))

  it("are as many as there are whole lines, however the file came to be as it is", () =>
    withFolder(async (folder) => {
      const path = join(folder, file)
      const [a, b, c] = three.map(Rollouts.line)
      write(folder, file, a + b.slice(0, 50))
      const { page, one } = await open(folder, "r")
      const envs = async () => (await page()).episodes.map(({ env }) => env)
      assert.deepStrictEqual(await envs(), ["env of a"])
      appendFileSync(path, b.slice(50))
      assert.deepStrictEqual(await envs(), ["env of a", "env of b"])
      assert.strictEqual((await one("rollouts-2")).played.return, 1)
      // Cut back, and longer by now than it was: what stood there was read, and is no more.
      writeFileSync(path, c + a + b)
      assert.deepStrictEqual(await envs(), ["env of c", "env of a", "env of b"])
      writeFileSync(path, a)
      assert.deepStrictEqual(await envs(), ["env of a"])
      assert.strictEqual((await page({ text: "it's cc" })).matching, 0)
    }))

  it("stand beside lines that are none, and other letters than ASCII", () =>
    withFolder(async (folder) => {
      const strange = rolloutOf("ü 👩‍🚀", { said: "“Grüße” \u2028 \\n" })
      const cut = Buffer.concat([Buffer.from('{"id":"'), Buffer.from([0xff, 0xfe, 10])])
      const lines = [Buffer.from('nonsense\n\n{"id":7}\n[]\nnull\n'), cut, Buffer.from(Rollouts.line(strange))]
      write(folder, file, Buffer.concat([...lines, Buffer.from(Rollouts.line(three[1]))]))
      const { keys, one } = await open(folder, "r")
      assert.deepStrictEqual(await keys(), ["rollouts-1", "rollouts-2"])
      assert.deepStrictEqual(await keys({ text: "GRÜSSE" }), [])
      assert.deepStrictEqual(await keys({ text: "“grüße" }), ["rollouts-1"])
      assert.strictEqual((await one("rollouts-1")).played.turns[0].calls[0].said, "“Grüße” \u2028 \\n")
      assert.strictEqual((await one("rollouts-2")).played.turns[0].calls[0].said, "It's Bb.")
    }))

  it("are trees: who was delegated to is no episode of its own", () =>
    withFolder(async (folder) => {
      const tree = [
        rolloutOf("a"),
        rolloutOf("a/sub/0", { parent: "a" }),
        rolloutOf("b"),
        rolloutOf("a/sub/1", { parent: "a" }),
      ]
      write(folder, file, tree.map(Rollouts.line).join(""))
      const { page, one } = await open(folder, "r")
      assert.deepStrictEqual(
        (await page()).episodes.map(({ key, delegated }) => [key, delegated]),
        [["rollouts-1", 2], ["rollouts-2", 0]], // prettier-ignore
      )
      const { played } = await one("rollouts-1")
      assert.deepStrictEqual(
        played.turns[0].calls[0].children.map(({ id }) => id),
        ["a/sub/0", "a/sub/1"],
      )
    }))

  it("are those of a batch, also where a request failed, or left two rollouts", () =>
    withFolder(async (folder) => {
      const request = { id: "first", task: 0, envSeed: 1, samplingSeed: 2, groupId: null, tags: {} }
      const about = { protocol: "SingleAgent", tasks: "digest" }
      const lines = [
        outcomeLine({ ...about, request, rollouts: [rolloutOf("x"), rolloutOf("y", { said: "no" })], failure: null }),
        outcomeLine({ ...about, request: { ...request, id: "second" }, rollouts: [], failure: { error: "LmError", message: "It hung." } }), // prettier-ignore
      ]
      write(folder, "r/outcomes.jsonl", lines.join(""))
      const { page, one, keys } = await open(folder, "r")
      assert.deepStrictEqual(
        (await page()).episodes.map(({ id, env, failed }) => [id, env, failed]),
        [
          ["x", "env of x", null],
          ["y", "env of y", null],
          [null, "second", "It hung."],
        ],
      )
      assert.deepStrictEqual(await keys({ failed: true }), ["outcomes-3"])
      assert.strictEqual((await one("outcomes-2")).played.turns[0].calls[0].said, "no")
      assert.strictEqual((await one("outcomes-3")).episode.failed, "It hung.")
    }))

  it("that failed in a validation stand at their places among those that didn't", () =>
    withFolder(async (folder) => {
      const run = await namingRun(folder)
      const scores = join(folder, run, "scores/val/6_seen_episodes_scores.jsonl")
      const rollouts = join(folder, run, "rollouts/val/6_seen_episodes_rollouts.jsonl")
      const lines = readFileSync(scores, "utf8").split("\n")
      const failed = { ...JSON.parse(lines[1]), score: null, error: "the model hung" }
      writeFileSync(scores, [lines[0], JSON.stringify(failed), ...lines.slice(2)].join("\n"))
      writeFileSync(rollouts, readFileSync(rollouts, "utf8").split("\n").toSpliced(1, 1).join("\n"))
      const { page, one } = await open(folder, run)
      assert.deepStrictEqual(
        (await page({ phase: "val6" })).episodes.map(({ key, env, failed }) => [key, env, failed]),
        [
          ["val6-1", "naming-0", null],
          ["val6-2", "naming-1", "the model hung"],
          ["val6-3", "naming-2", null],
          ["val6-4", "naming-3", null],
        ],
      )
      assert.strictEqual((await one("val6-2")).played.turns[0].failed, "the model hung")
      assert.strictEqual((await one("val6-3")).played.turns[0].calls.length, 1)
    }))

  it("are found where the run's scores are, if that is elsewhere", () =>
    withFolder(async (folder) => {
      const run = await namingRun(folder, { saveRollouts: false })
      const read = (name: string) => readFileSync(join(folder, run, name), "utf8")
      write(folder, "r/config.yaml", "runtime:\n  scores_path: logs/scores.jsonl\n")
      write(folder, "r/logs/scores/train/scores.jsonl", read("scores/train/scores.jsonl"))
      write(folder, "r/logs/scores/val/6_seen_episodes_scores.jsonl", read("scores/val/6_seen_episodes_scores.jsonl"))
      const { groups } = await (await open(folder, "r")).page()
      assert.deepStrictEqual(groups, [
        { name: "train", seen: null, contestant: null, episodes: 12 },
        { name: "val6", seen: 6, contestant: null, episodes: 4 },
      ])
    }))

  it("are none of a training without words, and none that nobody played", () =>
    withFolder(async (folder) => {
      const { page, none } = await open(folder, makeRun(folder))
      assert.strictEqual((await page()).total, 0)
      assert.isUndefined(await none("train-1"))
    }))
})

describe("the episodes of an evaluation", () => {
  it("are filed by the agents' names, of rollouts and of scores alone", () =>
    withFolder(async (folder) => {
      const config = { dataset: { type: "qa" }, agents: [{ name: "guesses" }, { name: "was_told" }, { type: "x" }] }
      write(folder, "r/config.json", JSON.stringify(config))
      const rollout = Rollouts.line(rolloutOf("task-0"))
      const score = { timestamp: "2026-01-31T12:00:00.000000Z", mode: "val", episode_index: 1, step_index: 1, score: 1, episode_cum_score: 1, env_id: "q-1", env_type: "qa" } // prettier-ignore
      write(folder, "r/rollouts/val/0_seen_episodes_rollouts.jsonl", rollout)
      for (const place of [1, 2]) {
        write(folder, `r/scores/val/${place}_seen_episodes_scores.jsonl`, `${JSON.stringify(score)}\n`)
      }
      const { page, one } = await open(folder, "r")
      const { groups, episodes } = await page()
      assert.deepStrictEqual(groups, [
        { name: "val0", seen: 0, contestant: "guesses", episodes: 1 },
        { name: "val1", seen: 1, contestant: "was_told", episodes: 1 },
        { name: "val2", seen: 2, contestant: null, episodes: 1 },
      ])
      assert.deepStrictEqual(
        episodes.map(({ key, contestant }) => [key, contestant]),
        [
          ["val0-1", "guesses"],
          ["val1-1", "was_told"],
          ["val2-1", null],
        ],
      )
      assert.strictEqual((await one("val1-1")).episode.contestant, "was_told")
      // The config names agents only for an evaluation.
      write(folder, "s/config.json", JSON.stringify({ agents: config.agents }))
      write(folder, "s/rollouts/val/0_seen_episodes_rollouts.jsonl", rollout)
      assert.isNull((await (await open(folder, "s")).page()).groups[0].contestant)
    }))
})

describe("a transcript", () => {
  it("without a rollout is what the scores and the calls' files say", () =>
    withFolder(async (folder) => {
      const run = await namingRun(folder, { saveRollouts: false, logCalls: true })
      const { one, page } = await open(folder, run)
      const { episodes, total } = await page()
      assert.strictEqual(total, 20)
      assert.deepStrictEqual([episodes[0].length, episodes[0].ending, episodes[0].return], [2, "terminated", 1])
      const { played, usage, hint } = await one("train-1")
      assert.isNull(hint)
      assert.strictEqual(usage.calls, 3)
      assert.deepStrictEqual(
        played.turns.map(({ action, reward, cumulative }) => [action, reward, cumulative]),
        [["I don't know.", 0, 0], ["name-0", 1, 1], [null, 0, 1]], // prettier-ignore
      )
      assert.deepStrictEqual(
        played.turns.map(({ calls }) => calls.map(({ purpose, said }) => `${purpose}: ${said}`)),
        [["action: I don't know."], ["action: name-0"], [`reflection: ${played.turns[2].calls[0].said}`]],
      )
    }))

  it("of scores counts what a parser took into the rewards", () =>
    withFolder(async (folder) => {
      const about = { timestamp: "2026-01-31T12:00:00.000000Z", mode: "val", episode_index: 1, env_id: "q-1", env_type: "qa" } // prettier-ignore
      const steps = [
        { ...about, step_index: 1, score: 0, episode_cum_score: 0, reward: -0.1 },
        { ...about, step_index: 2, score: 1, episode_cum_score: 1 },
      ]
      write(
        folder,
        "r/scores/val/5_seen_episodes_scores.jsonl",
        steps.map((step) => `${JSON.stringify(step)}\n`).join(""),
      )
      const { played } = await (await open(folder, "r")).one("val5-1")
      assert.deepStrictEqual(
        played.turns.map(({ reward, cumulative }) => [reward, cumulative]),
        [[-0.1, -0.1], [1, 0.9]], // prettier-ignore
      )
    }))

  it("of scores alone says what would be needed for more", () =>
    withFolder(async (folder) => {
      const run = await namingRun(folder, { saveRollouts: false, verbose: false })
      const { hint, played } = await (await open(folder, run)).one("train-1")
      assert.match(hint ?? "", /^Only scores were kept: output\.save_rollouts/)
      assert.deepStrictEqual(played.turns.map(({ reward }) => reward), [0, 1]) // prettier-ignore
    }))

  it("has who answered each call of a tool, and what a prompt has that the one before hadn't", () =>
    withFolder(async (folder) => {
      const { played } = await (await open(folder, await calendarRun(folder))).one("train-1")
      const [{ calls }] = played.turns
      assert.deepStrictEqual(
        calls.map(({ kept, messages, tools }) => [kept, messages.length, tools.map(({ name, by }) => [name, by])]),
        [
          [0, 1, [["cancel_event", "external"]]],
          [1, 2, [[calls[1].tools[0].name, "external"]]],
          [3, 2, [[calls[2].tools[0].name, "external"]]],
          [5, 2, []],
        ],
      )
      assert.deepStrictEqual(calls[0].tools[0].result, {
        content: "There is no event with the id 99; list_events says which there are.",
        isError: true,
      })
    }))
})

describe("what an address asks of the list", () => {
  it("is said, or refused", () => {
    const asked = (text: string) => pageAsked(new URLSearchParams(text))
    assert.deepStrictEqual(asked(""), all)
    // Fields that are empty say nothing, and not 0.
    assert.deepStrictEqual(asked("text=&least=&most=&leastAdvantage=&from=&at=&failed="), all)
    assert.deepStrictEqual(
      asked(
        "text=a&phase=val5&least=-1&most=2.5&leastAdvantage=-2&mostAdvantage=0&failed=1&order=lowest&from=7&count=3&at=val5-1",
      ),
      {
        text: "a",
        phase: "val5",
        least: -1,
        most: 2.5,
        leastAdvantage: -2,
        mostAdvantage: 0,
        failed: true,
        order: "lowest",
        from: 7,
        count: 3,
        at: "val5-1",
      },
    )
    for (const wrong of [
      "from=-1",
      "from=x",
      "count=0",
      "count=1001",
      "count=1.5",
      "least=x",
      "mostAdvantage=x",
      "order=best",
      "failed=0",
    ])
      assert.isUndefined(asked(wrong), wrong)
  })
})
