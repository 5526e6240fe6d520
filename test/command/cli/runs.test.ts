import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { toPath } from "../../../src/run/identifier.ts"
import { ownerName } from "../../../src/run/store/owner-node.ts"
import { effect, type Outcome, program, root } from "./effect.ts"

/** The real command, over trainings of a second each and folders as others leave them. */

let folder = ""
let results = ""
/** The folders of runs of PPO with two learning rates, and of A2C. */
let slow = ""
let fast = ""
let a2c = ""
const theirs = toPath({
  time: "2025-01-01_00-00-00",
  commit: "no-hash",
  name: "zoo",
  population: { environment: "l2f", algorithm: "sac" },
  seed: 3,
})
const halfWritten = toPath({ time: "2025-02-01_00-00-00", commit: "no-hash", name: "cut", population: {}, seed: 4 })

const put = (path: string, text: string): void => {
  mkdirSync(dirname(join(results, path)), { recursive: true })
  writeFileSync(join(results, path), text)
}

const train = async (settings: string, args: ReadonlyArray<string>): Promise<string> => {
  const file = join(folder, "train.ts")
  writeFileSync(file, settings)
  const outcome = await effect(["run", file, "--results-dir", results, "--quiet", "--json", ...args])
  assert.strictEqual(outcome.code, 0, outcome.stderr)
  return JSON.parse(outcome.stdout).runDir
}

beforeAll(async () => {
  folder = mkdtempSync(join(root, ".tmp-"))
  results = join(folder, "results")
  const ppo = program("validation: { everySteps: 512, episodes: 3 }, checkpoint: { everySteps: 1024 }")
  slow = await train(ppo, ["--seed", "1", "--set", "algorithm.learning_rate=1e-4"])
  fast = await train(ppo, ["--seed", "2", "--set", "algorithm.learning_rate=1e-2"])
  a2c = await train(ppo, ["--seed", "1", "--set", "algorithm.name=a2c"])
  const record = {
    returns_mean: -40,
    returns_std: 1,
    episode_length_mean: 5,
    episode_length_std: 0,
    returns: [-41, -39],
  }
  put(`${theirs}/return.json`, JSON.stringify([{ step: 1000, ...record }]))
  put(`${theirs}/steps/000000000001000/checkpoint.h5`, "weights")
  put(`${halfWritten}/config.yaml`, "env: CartPo")
  put("notes/0001/readme.txt", "not a run")
  put("2025-03-01_00-00-00/README", "a file where a folder should be")
  put("2025-03-01_00-00-00/no-hash_a_b/c/seed-one/x", "")
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const lines = ({ stdout, stderr, code }: Outcome): ReadonlyArray<Record<string, unknown>> => {
  assert.strictEqual(code, 0, stderr)
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))
}
const list = async (...args: ReadonlyArray<string>) => lines(await effect(["runs", results, "--json", ...args]))
const pathsOf = async (...args: ReadonlyArray<string>) => (await list(...args)).map(({ path }) => path)
const inResults = (path: string): string => join(results, path)

describe("effect runs", () => {
  it("lists all runs, the newest first, of every layout and in every state", async () => {
    const outcome = await effect(["runs", results, "--json"])
    const found = lines(outcome)
    assert.deepEqual(
      found.map(({ path }) => path),
      [a2c, fast, slow, inResults(halfWritten), inResults(theirs)],
    )
    assert.strictEqual(outcome.stderr, "")
    const metrics = JSON.parse(readFileSync(join(fast, "metrics.json"), "utf8"))
    const { time, commit, ...rest } = found[1]
    assert.match(String(time), /^\d{4}-\d\d-\d\d_/)
    assert.isString(commit)
    assert.deepEqual(rest, {
      path: fast,
      name: "train",
      population: { environment: "CartPole-v1", algorithm: "ppo" },
      seed: 2,
      state: "finished",
      steps: 2048,
      validation: metrics.validation.mean_return,
    })
    assert.include(found[3], { state: "stopped", steps: null, validation: null, name: "cut", seed: 4 })
    assert.include(found[4], { state: "finished", steps: 1000, validation: -40, name: "zoo", seed: 3 })
  })

  it("is a table for people, without what stands only for programs", async () => {
    const { stdout, stderr, code } = await effect(["runs", results, "--where", "time<2026", "--sort", "seed:desc"])
    assert.strictEqual(code, 0, stderr)
    const rows = stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/ +/))
    assert.deepEqual(rows, [
      ["time", "name", "environment", "algorithm", "seed", "state", "steps", "validation", "path"],
      ["2025-02-01_00-00-00", "cut", "-", "-", "4", "stopped", "-", "-", inResults(halfWritten)],
      ["2025-01-01_00-00-00", "zoo", "l2f", "sac", "3", "finished", "1000", "-40", inResults(theirs)],
    ])
  })

  it("filters by the population, by any setting and by results, and shows the keys of the filter", async () => {
    assert.deepEqual(await pathsOf("--where", "algorithm=ppo", "--where", "seed!=1"), [fast])
    assert.deepEqual(await pathsOf("--where", "algorithm.learning_rate=0.0001"), [slow])
    assert.deepEqual(await pathsOf("--where", "name=train", "--where", "validation.episodes>2", "--limit", "2"), [
      a2c,
      fast,
    ])
    assert.deepEqual(await pathsOf("--finished", "--where", "validation<0"), [inResults(theirs)])
    assert.deepEqual(await pathsOf("--unfinished"), [inResults(halfWritten)])
    const [first] = await list("--where", "algorithm=ppo", "--sort", "algorithm.learning_rate:desc")
    assert.deepEqual(first.values, { "algorithm.learning_rate": 0.01 })
    assert.strictEqual(first.path, fast)
  })

  it("takes a folder inside of a results folder, or a run", async () => {
    // Runs that began in the same second share the first two folders.
    for (const path of [a2c, dirname(a2c)]) {
      const found = lines(await effect(["runs", path, "--json"]))
      assert.deepEqual(
        found.map(({ path }) => path),
        [a2c],
      )
    }
    for (const path of [join(a2c, "../.."), join(a2c, "../../..")]) {
      const found = lines(await effect(["runs", path, "--json"]))
      assert.deepEqual(
        found.map(({ path }) => path),
        [a2c, fast, slow].filter((run) => run.startsWith(`${path}/`)),
      )
    }
  })

  it("knows the flat layout, whose runs say their names in their configs", async () => {
    const flat = join(folder, "flat/20260102_030405")
    cpSync(fast, flat, { recursive: true })
    const found = lines(await effect(["runs", dirname(flat), "--json", "--where", "name=train", "--where", "seed=2"]))
    assert.strictEqual(found.length, 1)
    assert.include(found[0], { path: flat, time: "2026-01-02_03-04-05", commit: null, name: "train", seed: 2 })
  })

  it("says that there is nothing, on stderr", async () => {
    const empty = join(folder, "empty")
    mkdirSync(empty)
    for (const [args, message] of [
      [[empty], `no runs in ${empty}\n`],
      [[results, "--where", "name=other"], "none of the 5 runs matches\n"],
    ] as const) {
      const { code, stdout, stderr } = await effect(["runs", ...args])
      assert.deepEqual([code, stdout, stderr], [0, "", message])
    }
  })

  it("is not troubled by damaged files, and names each", async () => {
    const damaged = join(folder, "damaged")
    const run = join(damaged, slow.slice(results.length))
    cpSync(slow, run, { recursive: true })
    writeFileSync(join(run, "metrics.json"), '{"steps": ')
    writeFileSync(join(run, "config.yaml"), "env: [1\n")
    const outcome = await effect(["runs", damaged, "--json", "--where", "env!=Acrobot-v1"])
    const [found] = lines(outcome)
    assert.include(found, { steps: 2048, state: "finished" })
    assert.isNumber(found.validation)
    const warnings = outcome.stderr.trim().split("\n").sort()
    assert.strictEqual(warnings.length, 2, outcome.stderr)
    assert.include(warnings[0], `warning: ${run}/config.yaml: not a config`)
    assert.include(warnings[1], `warning: ${run}/metrics.json: not valid JSON`)
  })

  it("names what cannot be read, once", async () => {
    const odd = join(folder, "odd")
    mkdirSync(join(odd, theirs, "metrics.json"), { recursive: true })
    const { stderr, stdout, code } = await effect(["runs", odd, "--sort", "mean_return", "--where", "steps!=3"])
    assert.strictEqual(code, 0)
    assert.include(stdout, theirs)
    assert.match(stderr, /^warning: .*\/metrics\.json: expected a regular file, found a directory\n$/)
    assert.include(stderr, join(odd, theirs))
  })
})

describe("effect runs show", () => {
  it("tells all about a run", async () => {
    const { stdout, code, stderr } = await effect(["runs", "show", fast])
    assert.strictEqual(code, 0, stderr)
    assert.isTrue(stdout.startsWith(`${fast}\n`))
    for (const part of [
      /^ {2}state +finished$/m,
      /^ {2}algorithm +ppo$/m,
      /^ {4}learning_rate: 0.01$/m,
      /^ {2}validation.mean_return +\d/m,
      /^ +2048 +[\d.]+ +[\d.]+ {2}[█▏▎▍▌▋▊▉]+$/m,
      /^ +2048 .* checkpoints\/step_0+2048 \(latest\)$/m,
      /^ {2}return.json +\d+ B$/m,
      /^ {2}scores\/ +[\d.]+ kB +5 files$/m,
    ]) {
      assert.match(stdout, part)
    }
  })

  it("does so for programs", async () => {
    const [about] = lines(await effect(["runs", "show", "latest", "--results-dir", results, "--json"]))
    assert.include(about, { path: a2c, state: "finished" })
    const { validations, checkpoints, files, config, metrics, steps } = JSON.parse(JSON.stringify(about))
    assert.strictEqual(validations.length, 4)
    assert.strictEqual(validations.at(-1).step, steps)
    assert.strictEqual(config.algorithm.name, "a2c")
    assert.strictEqual(metrics.steps, steps)
    // In camelCase, as all that is printed for programs.
    assert.strictEqual(config.validation.everySteps, 512)
    assert.isNumber(metrics.wallSeconds)
    assert.notMatch(JSON.stringify([config, metrics]), /"[a-z]\w*_\w*":/)
    assert.strictEqual(checkpoints.at(-1).latest, true)
    assert.strictEqual(checkpoints.at(-1).score, validations.at(-1).mean)
    assert.deepInclude(files, { path: "return.json", bytes: readFileSync(join(a2c, "return.json")).length })
  })

  it("tells of a run that was stopped how far it came, and where a resume would begin", async () => {
    const stopped = join(folder, "stopped")
    const run = join(stopped, relative(results, fast))
    cpSync(fast, run, { recursive: true })
    for (const file of ["return.json", "metrics.json"]) rmSync(join(run, file))
    const scores = join(run, "scores/train/scores.jsonl")
    const lastStep = Number(/"step_index": ?(\d+)(?!.*step_index)/s.exec(readFileSync(scores, "utf8"))?.[1])
    // The last episode ended before the last checkpoint was saved.
    assert.isBelow(lastStep, 2048)
    rmSync(join(run, "scores/val"), { recursive: true })
    const show = async () => lines(await effect(["runs", "show", run, "--json"]))[0]
    assert.include(await show(), { state: "stopped", steps: 2048, resumesFrom: 2048 })
    assert.match((await effect(["runs", "show", run])).stdout, /^ {2}steps +2048\n {2}resumes from +2048$/m)
    rmSync(join(run, "checkpoints/step_000000000002048"), { recursive: true })
    rmSync(join(run, "checkpoints/latest"), { force: true })
    rmSync(join(run, "checkpoints/latest.json"), { force: true })
    assert.include(await show(), { steps: Math.max(1024, lastStep), resumesFrom: 1024 })
    rmSync(join(run, "checkpoints"), { recursive: true })
    assert.include(await show(), { steps: lastStep, resumesFrom: 0 })
    assert.include(lines(await effect(["runs", "show", fast, "--json"]))[0], { resumesFrom: null })
  })

  it("knows RLtools' own runs, and copies that lie somewhere else", async () => {
    const [about] = lines(await effect(["runs", "show", "l2f_sac", "--results-dir", results, "--json"]))
    assert.deepEqual(about.checkpoints, [
      { path: "steps/000000000001000", step: 1000, score: null, bytes: 7, latest: false },
    ])
    const copy = join(folder, "copy")
    cpSync(fast, copy, { recursive: true })
    for (const path of [copy, `${copy}/`, join(copy, "config.yaml")]) {
      const [found] = lines(await effect(["runs", "show", path, "--json"]))
      assert.include(found, { time: null, name: "train", seed: 2, state: "finished" }, path)
    }
  })

  it("names the command for the scores of an evaluation, which a shell reads as it is meant", async () => {
    put("evals/it's $(here)/config.yaml", "kind: evaluation\n")
    const path = inResults("evals/it's $(here)")
    const { code, stdout } = await effect(["runs", "show", path])
    assert.strictEqual(code, 0)
    const quoted = `'${path.replace("'", "'\\''")}'`
    assert.include(stdout, `\nits scores and comparisons: effect eval ${quoted}\n`)
    rmSync(inResults("evals"), { recursive: true })
  })
})

describe("effect runs diff", () => {
  it("says what differs, key by key", async () => {
    const [found] = lines(await effect(["runs", "diff", slow, fast, "--json"]))
    assert.deepEqual(found, {
      left: slow,
      right: fast,
      differences: [
        { key: "seed", left: 1, right: 2 },
        { key: "algorithm.learning_rate", left: 0.0001, right: 0.01 },
      ],
    })
    const { stdout } = await effect(["runs", "diff", slow, a2c])
    assert.match(stdout, /^algorithm\.name +ppo +a2c$/m)
    assert.match(stdout, /^algorithm\.clip +0\.2 +-$/m)
    assert.include((await effect(["runs", "diff", slow, slow])).stdout, "their configs are equal")
  })
})

describe("effect runs best", () => {
  it("is the best of all, or of each group", async () => {
    const scores = new Map(
      (await list("--where", "name=train")).map(({ path, validation }) => [path, Number(validation)]),
    )
    const top = [...scores].sort((a, b) => b[1] - a[1])[0]
    const [found, ...others] = lines(await effect(["runs", "best", results, "--json"]))
    assert.deepEqual(others, [])
    assert.deepEqual([found.value, found.by, found.runs], [top[1], "validation", 4])
    assert.deepInclude(found.run, { path: top[0] })

    const grouped = lines(await effect(["runs", "best", results, "--group", "algorithm", "--json"]))
    const of = (algorithm: string) => grouped.find(({ group }) => JSON.stringify(group).includes(algorithm))
    assert.strictEqual(grouped.length, 3)
    assert.deepInclude(of("sac"), { value: -40, runs: 1, mean: -40 })
    assert.deepInclude(of("ppo"), { value: Math.max(scores.get(slow) ?? 0, scores.get(fast) ?? 0), runs: 2 })
  })

  it("goes by any metric, also where less is better", async () => {
    const seconds = (run: string): number => JSON.parse(readFileSync(join(run, "metrics.json"), "utf8")).wall_seconds
    const [found] = lines(await effect(["runs", "best", results, "--by", "wall_seconds", "--lowest", "--json"]))
    assert.strictEqual(found.value, Math.min(...[slow, fast, a2c].map(seconds)))
    const table = await effect([
      "runs",
      "best",
      results,
      "--by",
      "best_validation",
      "--group",
      "algorithm",
      "--limit",
      "1",
    ])
    assert.match(table.stdout, /^algorithm +best_validation +runs +mean +seed +state +steps +path\n(ppo|a2c) .*\n$/)
  })
})

describe.concurrent("used wrongly", () => {
  const cases: ReadonlyArray<readonly [() => ReadonlyArray<string>, number, string]> = [
    [
      () => ["runs", "nowhere"],
      2,
      "nowhere: there is no such folder; the subcommands are show, diff, compare, best, rename, note, tag, archive and delete",
    ],
    [() => ["runs", "./no/where"], 2, "./no/where: there is no such folder"],
    [() => ["runs", "package.json"], 2, "package.json: there is no such folder"],
    [
      () => ["runs", results, "--where", "seed"],
      2,
      "--where seed: expected KEY=VALUE, or one of != < > <= >= between them",
    ],
    [() => ["runs", results, "--where", "=3"], 2, "--where =3: expected KEY=VALUE"],
    [
      () => ["runs", results, "--where", "algoritm=ppo"],
      2,
      "--where algoritm=ppo: no run has the key algoritm; did you mean algorithm?",
    ],
    [() => ["runs", results, "--sort", "steps:down"], 2, "--sort steps:down: expected KEY, KEY:asc or KEY:desc"],
    [
      () => ["runs", results, "--sort", "algorithm.lamda"],
      2,
      "--sort algorithm.lamda: no run has the key algorithm.lamda; did you mean algorithm.lambda?",
    ],
    [() => ["runs", results, "--limit", "0"], 2, '--limit: "0". Expected: a value between 1 and'],
    [() => ["runs", results, "--limit", "few"], 2, "few"],
    [() => ["runs", results, "--finished", "--unfinished"], 2, "--finished and --unfinished exclude each other"],
    [() => ["runs", results, "--newest"], 2, "--newest"],
    [() => ["runs", "show"], 2, "run"],
    [() => ["runs", "show", "latest", "--results-dir", "nowhere"], 2, "latest: there are no runs in nowhere"],
    [() => ["runs", "show", "_train_", "--results-dir", results], 2, "_train_: 3 runs have this in their paths: "],
    [
      () => ["runs", "show", "src", "--results-dir", results],
      2,
      "src: it is not a run (it has no config.yaml), and no run in",
    ],
    [() => ["runs", "diff", "latest", "--results-dir", results], 2, "other-run"],
    [() => ["runs", "diff", "latest", "l2f_sac", "--results-dir", results], 1, "has no config.yaml to compare"],
    [
      () => ["runs", "best", results, "--by", "mean_retur"],
      2,
      "--by mean_retur: no run has the key mean_retur; did you mean mean_return?",
    ],
    [() => ["runs", "best", results, "--group", "tenv"], 2, "--group tenv: no run has the key tenv; did you mean env?"],
    [() => ["runs", "best", results, "--by", "digest"], 1, "has a number for digest"],
    [() => ["runs", "best", results, "--limit", "-1"], 2, '--limit: "-1". Expected: a value between 1 and'],
  ]
  for (const [args, code, message] of cases) {
    it(message, async () => {
      const outcome = await effect(args())
      assert.strictEqual(outcome.code, code, outcome.stderr)
      assert.strictEqual(outcome.stdout, "")
      assert.isTrue(outcome.stderr.startsWith("effect: "), outcome.stderr)
      assert.include(outcome.stderr, message)
      assert.strictEqual(outcome.stderr.trim().split("\n").length, 1)
    })
  }

  it("every subcommand has help with examples", async () => {
    for (const command of [[], ["show"], ["diff"], ["best"]]) {
      const { stdout, code } = await effect(["runs", ...command, "--help"])
      assert.strictEqual(code, 0)
      assert.include(stdout, "EXAMPLES")
      assert.include(stdout, `effect ${["runs", ...command].join(" ")}`)
    }
    assert.include((await effect(["--help"])).stdout, "runs")
    assert.isAbove(readdirSync(join(root, "src/run/find")).length, 5)
  })

  it("takes the folder also as --results-dir, but not two folders", async () => {
    const [byArgument, byFlag] = [
      await effect(["runs", results, "--json"]),
      await effect(["runs", "--results-dir", results, "--json"]),
    ]
    assert.strictEqual(byFlag.code, 0, byFlag.stderr)
    assert.strictEqual(byFlag.stdout, byArgument.stdout)
    const both = await effect(["runs", "one", "--results-dir", "other"])
    assert.include(both.stderr, "--results-dir other and one name two folders; use one of them")
    assert.include((await effect(["runs", "--results-dir", "none"])).stderr, "none: there is no such folder\n")
  })

  it("lists the run of a trainer that waits for an index, while the trainer works", async () => {
    const trainer = toPath({
      time: "2025-04-01_00-00-00",
      commit: "no-hash",
      name: "several",
      population: { environment: "a+b", algorithm: "multirun" },
      seed: 1,
    })
    const parent = `waiting/${trainer}`
    put(`${parent}/config.yaml`, "kind: multirun\n")
    put(`${parent}/run_a/config.yaml`, "kind: multirun\n")
    put(`${parent}/run_b/configs/orch.yaml`, "max_steps: 3\n")
    put(`${parent}/run_c/configs/orch.yaml`, "max_steps: 3\n")
    put(`${parent}/run_c/configs/config_validation_error.txt`, "wrong\n")
    const states = async () => {
      const { stdout } = await effect(["runs", join(results, "waiting"), "--json"])
      return stdout
        .trim()
        .split("\n")
        .map((line): [string, string] => {
          const { path, state } = JSON.parse(line)
          return [path.slice(-5), state]
        })
    }
    put(`${parent}/run.lock`, ownerName(process.ppid))
    assert.deepStrictEqual(await states(), [
      ["run_a", "stopped"],
      ["run_b", "waiting"],
    ])
    put(`${parent}/run.lock`, ownerName(2147483646))
    assert.deepStrictEqual(await states(), [
      ["run_a", "stopped"],
      ["run_b", "stopped"],
    ])
    rmSync(join(results, "waiting"), { recursive: true })
  })
})
