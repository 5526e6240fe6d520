import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { toPath } from "../../../src/run/identifier.ts"
import { pick, type UsableRuns } from "../../../src/run/find/pick.ts"
import { parseSort, type Query, query, readFilter, runLine } from "../../../src/run/find/query.ts"
import { entryOf } from "../../../src/run/find/RunEntry.ts"
import { over } from "../../../src/run/RunReader.ts"
import { memorySource } from "../read/memorySource.ts"

const pathOf = (second: number, algorithm: string, seed = 1): string =>
  toPath({ time: `2026-01-01_00-00-0${second}`, commit: "0123abc", name: "tune", population: { algorithm }, seed })

const evaluation = (step: number, mean: number) => ({
  step,
  returns_mean: mean,
  returns_std: 0,
  episode_length_mean: 9,
  episode_length_std: 0,
  returns: [mean, mean],
})
const finished = (steps: number, mean: number, rate: number) => ({
  "config.yaml": `algorithm:\n  name: ppo\n  learning_rate: ${rate}\nenv: CartPole-v1\nvalidation:\n  episodes: 5\n`,
  "metrics.json": JSON.stringify({ steps, mean_return: mean + 1, validation: { step: steps, mean_return: mean } }),
  "return.json": JSON.stringify([evaluation(10, mean + 50), evaluation(steps, mean)]),
})
const scoreLine = (step: number, score: number): string => `{"step_index":${step},"score":${score}}\n`

const [slow, fast, stopped, running, theirs] = [
  pathOf(1, "ppo"),
  pathOf(2, "ppo"),
  pathOf(3, "a2c"),
  pathOf(4, "a2c"),
  pathOf(5, "sac"),
]
const files: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries({
    [slow]: finished(100, 20, 1e-4),
    [fast]: finished(200, 10, 1e-3),
    [stopped]: {
      "config.yaml": "algorithm:\n  name: a2c\n",
      "run.lock": "process 1 on here",
      "scores/train/scores.jsonl": `${scoreLine(31, 5)}${scoreLine(47, 5)}{"step_in`,
      "scores/val/9_seen_episodes_scores.jsonl": scoreLine(16, 1),
      // Whoever wrote it was stopped.
      "scores/val/11_seen_episodes_scores.jsonl": "",
      "scores/val/10_seen_episodes_scores.jsonl": `${scoreLine(32, 2)}${scoreLine(32, 4)}${scoreLine(40, 6)}${scoreLine(40, 8)}`,
    },
    [running]: { "run.lock": "process 2 on here", "checkpoints/step_000000000000064/manifest.json": "{}" },
    // RLtools leaves a run like this: it has no config.yaml and no metrics.json.
    [theirs]: { "return.json": JSON.stringify([evaluation(10, 3), evaluation(20, 4)]), "steps/000000000000020/a": "" },
  }).flatMap(([run, inside]) => Object.entries(inside).map(([name, text]) => [`${run}/${name}`, text])),
)
const entries = [slow, fast, stopped, running, theirs].flatMap((path) => entryOf(path) ?? [])

interface Asked {
  readonly where?: ReadonlyArray<string>
  readonly sort?: string
  readonly rest?: Partial<Query>
}

const ask = Effect.fnUntraced(function* ({ where = [], sort, rest = {} }: Asked, source = memorySource(files)) {
  const asked: Query = {
    where: yield* Effect.forEach(where, readFilter),
    ...(sort === undefined ? {} : { sort: yield* parseSort(sort) }),
    ...rest,
  }
  return yield* query(entries, asked, over(source))
})
const paths = (asked: Asked, source = memorySource(files)): ReadonlyArray<string> =>
  Effect.runSync(ask(asked, source)).map(({ entry }) => entry.path)
const problem = (asked: Asked): string => Effect.runSync(Effect.flip(ask(asked))).message

describe("a query", () => {
  it("gives all runs, the newest first", () => {
    assert.deepEqual(paths({}), [theirs, running, stopped, fast, slow])
  })

  it("reads no file where paths say it all", () => {
    const source = memorySource(files)
    assert.deepEqual(
      paths(
        { where: ["algorithm=ppo", "seed<2", "time>2026-01-01_00-00-01"], sort: "name", rest: { limit: 9 } },
        source,
      ),
      [fast],
    )
    assert.deepEqual(source.reads, [])
  })

  it("reads configs only of runs that the other filters leave", () => {
    const source = memorySource(files)
    assert.deepEqual(paths({ where: ["algorithm.learningRate<5e-4", "algorithm=ppo"] }, source), [slow])
    assert.deepEqual(source.reads.toSorted(), [`${slow}/config.yaml`, `${fast}/config.yaml`])
  })

  it("knows each kind of key", () => {
    assert.deepEqual(paths({ where: ["env=CartPole-v1"] }), [fast, slow])
    assert.deepEqual(paths({ where: ["config.algorithm=a2c"] }), [stopped])
    assert.deepEqual(paths({ where: ["population.algorithm!=ppo"] }), [theirs, running, stopped])
    assert.deepEqual(paths({ where: ["mean_return=11"] }), [fast])
    assert.deepEqual(paths({ where: ["validation.mean_return>=20"] }), [slow])
    assert.deepEqual(paths({ where: ["validation.episodes=5"] }), [fast, slow])
    assert.deepEqual(paths({ where: ["metrics.validation.step>100"] }), [fast])
    assert.deepEqual(paths({ where: ["validation>3.5"] }), [theirs, stopped, fast, slow])
    assert.deepEqual(paths({ where: ["best_validation>=60"] }), [fast, slow])
    assert.deepEqual(paths({ where: ["state=stopped"] }), [running, stopped])
    assert.deepEqual(paths({ where: ["steps=64"] }), [running])
  })

  it("tells finished ones from the others", () => {
    assert.deepEqual(paths({ rest: { finished: true } }), [theirs, fast, slow])
    assert.deepEqual(paths({ rest: { finished: false } }), [running, stopped])
  })

  it("orders by any key, and cuts off after that", () => {
    assert.deepEqual(paths({ sort: "validation:desc" }), [slow, fast, stopped, theirs, running])
    assert.deepEqual(paths({ sort: "algorithm.learning_rate", rest: { limit: 2 } }), [slow, fast])
  })

  it("refuses a key that no run has, with the one that was meant", () => {
    assert.strictEqual(
      problem({ where: ["algorithm.learning_rat>1"] }),
      "--where algorithm.learning_rat>1: no run has the key algorithm.learning_rat; did you mean algorithm.learning_rate?",
    )
    assert.strictEqual(
      problem({ sort: "algoritm" }),
      "--sort algoritm: no run has the key algoritm; did you mean algorithm?",
    )
    // A run whose config cannot be read might have had it.
    const unreadable = memorySource({ ...files, [`${slow}/config.yaml`]: "env: [1\n" })
    assert.deepEqual(paths({ where: ["time=2026-01-01_00-00-01", "nowhere!=1"] }, unreadable), [slow])
    // These all runs could have.
    assert.deepEqual(paths({ where: ["wall_seconds>1"] }), [])
    assert.deepEqual(paths({ where: ["name=other", "nowhere=1"] }), [])
  })
})

describe("a line", () => {
  const lineOf = (path: string, source = memorySource(files)) => {
    const entry = entryOf(path)
    if (entry === undefined) throw new Error(path)
    return Effect.runSync(runLine(over(source)(entry), ["env", "mean_return"]))
  }

  it("says where a run is and how far it came", () => {
    assert.deepEqual(lineOf(slow), {
      path: slow,
      time: "2026-01-01_00-00-01",
      commit: "0123abc",
      name: "tune",
      population: { algorithm: "ppo" },
      seed: 1,
      state: "finished",
      steps: 100,
      validation: 20,
      values: { env: "CartPole-v1", mean_return: 21 },
    })
  })

  it("of a run that was stopped comes from its score files: the newest step, the last validation of the newest file", () => {
    const { state, steps, validation } = lineOf(stopped)
    assert.deepEqual({ state, steps, validation }, { state: "stopped", steps: 47, validation: 7 })
  })

  it("says running while whoever holds the lock lives", () => {
    assert.strictEqual(lineOf(running, memorySource(files, ["process 2 on here"])).state, "running")
    assert.strictEqual(lineOf(running).state, "stopped")
    assert.strictEqual(lineOf(running, memorySource({ ...files, [`${running}/run.lock`]: "" }, [""])).state, "stopped")
  })

  it("of RLtools' own run needs nothing but return.json", () => {
    const { state, steps, validation, values } = lineOf(theirs)
    assert.deepEqual([state, steps, validation], ["finished", 20, 4])
    assert.deepEqual(values, { env: null, mean_return: null })
  })

  it("of a damaged run says what is left, and warns once of each damaged file", () => {
    const source = memorySource({
      ...files,
      [`${slow}/metrics.json`]: '{"steps": 1',
      [`${slow}/config.yaml`]: "env: [1\n",
      [`${fast}/metrics.json`]: "[]",
      [`${fast}/return.json`]: '[{"step": "x"}]',
      [`${fast}/scores/val/1_seen_episodes_scores.jsonl`]: `nonsense\n${scoreLine(5, 6)}`,
    })
    const { steps, validation, state } = lineOf(slow, source)
    assert.deepEqual([steps, validation, state], [100, 20, "finished"])
    assert.strictEqual(lineOf(fast, source).validation, 6)
    const begins = [
      `${slow}/config.yaml: not a config: `,
      `${slow}/metrics.json: not valid JSON: `,
      `${fast}/metrics.json: expected keys and values`,
      `${fast}/return.json: expected a list of evaluations`,
      `${fast}/scores/val/1_seen_episodes_scores.jsonl: it has lines that are no scores`,
    ]
    assert.strictEqual(source.warnings.length, begins.length, source.warnings.join("\n"))
    for (const text of begins) {
      assert.isTrue(
        source.warnings.some((warning) => warning.startsWith(text) && !warning.includes("\n")),
        text,
      )
    }

    const again = memorySource({ ...files, [`${slow}/config.yaml`]: "env: [1\n" })
    assert.include(paths({ where: ["env!=x", "config.env!=y"] }, again), slow)
    assert.strictEqual(again.warnings.length, 1)
  })
})

describe("a run", () => {
  const picked = (wanted: string, usable?: UsableRuns): string =>
    Effect.runSync(pick(wanted, entries, { folder: "results", ...(usable === undefined ? {} : { usable }) })).path
  const refused = (wanted: string, usable?: UsableRuns): string =>
    Effect.runSync(
      Effect.flip(pick(wanted, entries, { folder: "results", ...(usable === undefined ? {} : { usable }) })),
    ).message
  const only = (...paths: ReadonlyArray<string>): UsableRuns => ({
    noun: "a training",
    isUsable: ({ path }) => Effect.succeed(paths.includes(path)),
  })

  it("is meant by latest, or by a part of its path that no other has", () => {
    assert.strictEqual(picked("latest"), theirs)
    assert.strictEqual(picked("00-00-02"), fast)
    assert.strictEqual(picked(`${slow}/`), slow)
  })

  it("is not meant by what several have, or none", () => {
    assert.match(
      refused("ppo"),
      /^2 runs have this in their paths: .*00-00-02.*, .*00-00-01[^ ]*; write more of one of these paths$/,
    )
    assert.match(refused("tune"), /^5 runs have this in their paths: .* and 2 more; write more of one of these paths$/)
    assert.strictEqual(refused("dqn"), "no run in results has this in its path; `effect runs` lists them")
  })

  it("is one that the command can use", () => {
    assert.strictEqual(picked("latest", only(slow, fast)), fast)
    assert.strictEqual(picked("ppo", only(slow)), slow)
    assert.strictEqual(refused("latest", only()), "none of the runs in results is a training")
    assert.strictEqual(refused("00-00-02", only(slow)), `${fast} is not a training`)
    assert.strictEqual(refused("ppo", only()), "none of the 2 runs with this in their paths is a training")
  })
})
