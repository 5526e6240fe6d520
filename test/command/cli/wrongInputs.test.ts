import { execFileSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { effect, type Outcome, program, resultOf, withFolder, write } from "./effect.ts"

/** Whatever is wrong: one line that says what and where, the right exit code, and no stack trace. */
const says = ({ code, stderr, stdout }: Outcome, expectedCode: number, ...words: ReadonlyArray<string>): void => {
  const lines = stderr.trim().split("\n")
  assert.strictEqual(lines.length, 1, stderr)
  assert.isTrue(lines[0].startsWith("effect: "), stderr)
  for (const word of words) assert.include(lines[0], word)
  assert.notMatch(stderr, /\n\s+at /)
  assert.strictEqual(code, expectedCode, stderr)
  assert.strictEqual(stdout, "")
}

/** Runs a program in a folder of its own, results below it. */
const runs =
  (text: string, args: ReadonlyArray<string> = []) =>
  (check: (outcome: Outcome, folder: string) => void) =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", text)
      check(await effect(["run", file, "--results-dir", join(folder, "results"), "--quiet", "--json", ...args]), folder)
    })

const findRun = (folder: string): string => {
  const [time] = readdirSync(join(folder, "results"))
  const [heading] = readdirSync(join(folder, "results", time))
  const [config] = readdirSync(join(folder, "results", time, heading))
  const [seed] = readdirSync(join(folder, "results", time, heading, config))
  return join(folder, "results", time, heading, config, seed)
}

describe.concurrent("a file that is no training", () => {
  it("a missing file", async () => says(await effect(["run", "nowhere.ts"]), 2, "nowhere.ts", "no such file"))

  it("no file at all", async () => {
    const hint = "see `effect run --help`, or try `effect run examples/cartpole.ts`"
    says(await effect(["run"]), 2, `Missing required argument: file; ${hint}`)
    says(await effect(["replay"]), 2, "Missing required argument: run; see `effect replay --help`")
  })

  it("a flag that is misspelt", async () => {
    const { code, stderr } = await effect(["run", "train.ts", "--seedz", "1"])
    assert.strictEqual(code, 2)
    assert.match(stderr, /^effect: unrecognized flag --seedz; did you mean --seeds?( or --seeds?)?\?\n$/)
    says(
      await effect(["run", "train.ts", "--qqqqqqqqqq"]),
      2,
      "unrecognized flag --qqqqqqqqqq; see `effect run --help`",
    )
  })

  it("a results folder that looks like the address of something else", () =>
    withFolder(async (folder) => {
      for (const place of ["s3:runs/team", "S3://runs", "gs://runs/team"]) {
        const outcome = await effect(["run", write(folder, "train.ts", program("")), "--results-dir", place], folder)
        says(outcome, 2, "--results-dir", place, "a folder, or s3://BUCKET/PREFIX", `./${place}`)
      }
      assert.deepStrictEqual(readdirSync(folder), ["train.ts"])
    }))

  it("a file of another kind", () =>
    withFolder(async (folder) =>
      says(await effect(["run", write(folder, "notes.txt", "hello")]), 2, "notes.txt", ".ts"),
    ))

  it("no default export", () =>
    runs("export const a = 1\n")((outcome) => says(outcome, 2, "train.ts", "default export")))

  it("a default export that is not an Effect", { tags: "slow" }, () =>
    runs("export default { env: 1 }\n")((outcome) => says(outcome, 2, "train.ts", "an object", "Train.run")),
  )

  it("a syntax error", () => runs("export default (\n")((outcome) => says(outcome, 2, "train.ts", "SyntaxError")))

  it("a module that throws", { tags: "slow" }, () =>
    runs("const a = 1\nthrow new Error('no luck today')\n")((outcome) =>
      says(outcome, 2, "no luck today", "train.ts:2"),
    ),
  )

  it("YAML that does not parse", () =>
    withFolder(async (folder) => says(await effect(["run", write(folder, "a.yaml", "a: [1\n")]), 2, "a.yaml")))
})

describe.concurrent("a run or a file of another kind", () => {
  const evaluation = `dataset: { items: [{ question: Where?, answer: here }] }
agents: { one: { type: memoryless_agent, lm_config: { model: "builtin:choice:here" } } }
`
  const talking = `train_dataset: { type: codebook, num_tasks: 2, words: 4, wordings: 1 }
agent: { type: history_agent, lm_config: { model: "scripted:reader" } }
`
  it("an evaluation is no training, to replay neither, and has no policy", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "tasks.yaml", evaluation)
      says(await effect(["run", file]), 2, `${file}: this is an evaluation; run it with effect eval ${file}`)
      const results = join(folder, "results")
      const bucket = ["eval", file, "--results-dir", "s3://runs"]
      says(
        await effect(bucket),
        2,
        "--results-dir s3://… does not work with a file: an evaluation is saved in a folder",
      )
      const { runDir } = resultOf(await effect(["eval", file, "--results-dir", results, "--quiet", "--json"]))
      says(
        await effect(["replay", runDir]),
        2,
        "this is an evaluation, not a training",
        `effect eval ${runDir}/config.yaml`,
      )
      says(await effect(["export", runDir, "--to", "h"]), 2, "language-model agent, which has no policy", "csv, svg")
    }),
  )

  it("an agent that talks has no policy, no env steps to train for, and no backend", () =>
    withFolder(async (folder) => {
      const file = write(folder, "talks.yaml", talking)
      const args = ["run", file, "--results-dir", join(folder, "results"), "--quiet", "--json"]
      const { runDir } = resultOf(await effect(args))
      says(await effect(["export", runDir, "--to", "h"]), 2, "language-model agent, which has no policy", "csv, svg")
      for (const more of [[], ["--seeds", "1..2"]]) {
        const steps = [...args, ...more, "--total-steps", "9"]
        says(await effect(steps), 2, "--total-steps", "--set runtime.max_envs_to_visit=N")
      }
      says(await effect([...args, "--backend", "wasm"]), 2, "--backend wasm", "this agent asks another language model")
    }))
})

describe.concurrent("settings", () => {
  it("an unknown flag", async () => says(await effect(["run", "examples/cartpole.ts", "--sede", "1"]), 2, "--sede"))

  it("a flag that is not a number", async () =>
    says(await effect(["run", "examples/cartpole.ts", "--seed", "many"]), 2, "seed", "many"))

  it("a misspelt value of a flag suggests the one that was meant", async () => {
    says(await effect(["export", "latest", "--to", "onx"]), 2, "--to", '"onx"', "did you mean onnx?")
    says(await effect(["run", "examples/cartpole.ts", "--backend", "wasn"]), 2, "did you mean wasm?")
  })

  it("no file, in a folder without examples", () =>
    withFolder(async (folder) => {
      const outcome = await effect(["run"], folder)
      says(outcome, 2, "or write one with `effect init train.ts` and run it with `effect run train.ts`")
      assert.notInclude(outcome.stderr, "examples/")
    }))

  it("an unknown backend", async () =>
    says(await effect(["run", "examples/cartpole.ts", "--backend", "tpu"]), 2, "backend", "tpu", "wasm"))

  it("a number of threads that the backend cannot use", { tags: "slow" }, async () => {
    const run = (threads: string, ...more: ReadonlyArray<string>) =>
      effect(["run", "examples/cartpole.ts", "--threads", threads, ...more])
    for (const threads of ["0", "two", "1.5", "Auto", "1000000"])
      says(
        await run(threads),
        2,
        "--threads",
        `"${threads}"`,
        "a whole number between 1 and 1024 (each is a thread), or auto",
      )
    const onReference = "--threads does not work with --backend reference, which uses one thread"
    for (const threads of ["2", "auto"]) says(await run(threads, "--backend", "reference"), 2, onReference)
  })

  it("an unknown key", () =>
    runs(program(""), ["--set", "algorithm.learning_rat=1"])((outcome) =>
      says(outcome, 2, "--set", "algorithm.learning_rat", "learning_rate"),
    ))

  it("an unknown key in a config file names the file and line", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program(""))
      const config = write(folder, "a.yaml", "seed: 1\nnum_env: 3\n")
      says(await effect(["run", file, "--config", config]), 2, "a.yaml:2", "num_env", "num_envs")
    }))

  it("all mistakes of an experiment's file, each with its line or with the flag that made it", () =>
    withFolder(async (folder) => {
      const data = "train_dataset: { type: codebook }\nhistory_k: 3\n"
      const file = write(folder, "a.yaml", `${data}agent:\n  lm_config:\n    modle: scripted:reader\n`)
      const outcome = await effect(["run", file, "--set", "agnet.k=3", "--set", "train_dataset.num_taks=2"])
      says(outcome, 2, 'a.yaml:2: unknown key "history_k"; it belongs below agent;')
      says(outcome, 2, '--set: unknown key "agnet"; did you mean "agent"?')
      says(outcome, 2, '--set: unknown key "train_dataset.num_taks"; did you mean "train_dataset.num_tasks"?')
      says(outcome, 2, 'a.yaml:5: unknown key "agent.lm_config.modle"; did you mean "agent.lm_config.model"?')
    }))

  it("a setting of the algorithm at the top of a config", () =>
    withFolder(async (folder) => {
      const file = write(folder, "a.yaml", "env: CartPole-v1\ntotal_steps: 9\nlearning_rate: 1\nalgorithm: ppo\n")
      says(await effect(["run", file]), 2, 'a.yaml:3: unknown key "learning_rate"; it belongs below algorithm')
    }))

  it("unknown keys of code and of its algorithm, spelled as there", () =>
    runs(program("totalStep: 5, algorithm: Ppo.make({ learningrate: 1 })"))((outcome) => {
      says(outcome, 2, 'train.ts: unknown key "totalStep"; did you mean "totalSteps"?')
      says(outcome, 2, 'train.ts: unknown key "algorithm.learningrate"; did you mean "algorithm.learningRate"?')
    }))

  it("a wrong type", { tags: "slow" }, () =>
    runs(program(""), ["--set", "num_envs=lots"])((outcome) => says(outcome, 2, "--set", "num_envs", "lots")),
  )

  it("negative steps", { tags: "slow" }, () =>
    runs(program(""), ["--total-steps", "-5"])((outcome) =>
      says(outcome, 2, "--total-steps", "-5", "a value of at least 1"),
    ),
  )

  it("steps that are no whole number", () =>
    runs(program(""), ["--total-steps", "2.5"])((outcome) =>
      says(outcome, 2, "--total-steps", "2.5", "a whole number, such as 2000000 or 2_000_000"),
    ))

  it("steps that end with an underscore", { tags: "slow" }, () =>
    runs(program(""), ["--total-steps", "5_"])((outcome) => says(outcome, 2, "--total-steps", "5_")),
  )

  it("a learning rate that is not a number", { tags: "slow" }, () =>
    runs(program(""), ["--set", "algorithm.learning_rate=NaN"])((outcome) =>
      says(outcome, 2, "--set", "algorithm.learning_rate", "NaN"),
    ),
  )

  it("minibatches that do not divide a rollout", () =>
    runs(program(""), ["--set", "algorithm.minibatches=5"])((outcome) => says(outcome, 2, "minibatches", "128", "5")))

  it("an unknown env", () =>
    runs(program(""), ["--set", "env=CartPol-v1"])((outcome) => says(outcome, 2, "CartPol-v1", "CartPole-v1")))

  it("an unknown algorithm", { tags: "slow" }, () =>
    runs(program(""), ["--set", "algorithm=pppo"])((outcome) => says(outcome, 2, "pppo", "ppo")),
  )

  it("another algorithm, whose own settings count", () =>
    runs(program(""), ["--set", "algorithm=a2c", "--set", "algorithm.epochs=3"])((outcome) =>
      says(outcome, 2, "--set", "algorithm.epochs"),
    ))

  it("a learning rate at which it diverges", () =>
    // A resume would diverge again, so nothing advises it, though there is a checkpoint of the start.
    runs(
      program("checkpoint: { onStart: true }"),
      ["algorithm.learning_rate=1e38", "algorithm.max_grad_norm=0"].flatMap((setting) => ["--set", setting]),
    )((outcome) => {
      says(outcome, 1, "diverged", "learning_rate")
      assert.notInclude(outcome.stderr, "resume")
    }))

  it("a setting without a value", () =>
    runs(program(""), ["--set", "seed"])((outcome) => says(outcome, 2, "--set seed", "key.path=value")))
})

describe.concurrent("envs that go wrong", () => {
  const env = (step: string, more = ""): string =>
    `import { Env, Ppo, Space, Train } from "effect-rl"
let steps = 0
const env = Env.make({ id: "mine", observationSpace: Space.box(-1, 1), actionSpace: Space.discrete(2), maxSteps: 100,
  reset: () => ({ at: 0 }), observe: ({ at }) => [at], step: ({ at }, action) => { ${step} } ${more} })
export default Train.run({ env, numEnvs: 4, algorithm: Ppo.make({ nsteps: 32 }), totalSteps: 4096 })
`
  it("one that throws at step 1000", () =>
    runs(
      env(
        "if (++steps === 1000) throw new Error('the pole broke'); return { state: { at }, reward: 1, terminated: false }",
      ),
    )((outcome, folder) => {
      says(outcome, 1, "mine", "the pole broke", "step", "; resume with: npx effect run ")
      const run = findRun(folder)
      assert.include(readFileSync(join(run, "run.log"), "utf8"), "the pole broke")
      assert.isTrue(existsSync(join(run, "config.yaml")))
      assert.isFalse(existsSync(join(run, "return.json")))
      for (const line of readFileSync(join(run, "scores/train/scores.jsonl"), "utf8").trim().split("\n"))
        JSON.parse(line)
    }))

  it("one that returns NaN as an observation", { tags: "slow" }, () =>
    runs(env("return { state: { at: NaN }, reward: 1, terminated: false }"))((outcome) => {
      says(outcome, 1, "mine", "NaN", "observation")
      // Without a checkpoint, a resumed run would only begin again.
      assert.notInclude(outcome.stderr, "resume")
    }),
  )

  it("one that returns NaN as a reward", { tags: "slow" }, () =>
    runs(env("return { state: { at }, reward: NaN, terminated: false }"))((outcome) =>
      says(outcome, 1, "mine", "NaN", "reward"),
    ),
  )

  it("one whose observations have another length", { tags: "slow" }, () =>
    runs(env("return { state: { at }, reward: 1, terminated: false }").replace("[at]", "[at, at]"))((outcome) =>
      says(outcome, 1, "mine", "observation"),
    ),
  )

  it("a definition that lacks a field", { tags: "slow" }, () =>
    runs(env("return { state: { at }, reward: 1, terminated: false }").replace("observe:", "obsrve:"))((outcome) =>
      says(outcome, 2, "observe"),
    ),
  )
})

describe.concurrent("disks and checkpoints", () => {
  it("an unwritable results directory", () =>
    withFolder(async (folder) => {
      // A file where a folder should be stops root too, which permissions do not.
      const file = write(folder, "train.ts", program(""))
      const blocked = write(folder, "results", "not a folder")
      says(await effect(["run", file, "--results-dir", blocked]), 1, "results")
    }))

  it("a full disk", () =>
    withFolder(async (folder) => {
      const small = join(folder, "small")
      mkdirSync(small)
      try {
        execFileSync("mount", ["-t", "tmpfs", "-o", "size=200k", "tmpfs", small], { stdio: "ignore" })
      } catch {
        // Only root may mount; the unwritable directory above stands for it elsewhere.
        return
      }
      try {
        const file = write(
          folder,
          "train.ts",
          program("checkpoint: { everySteps: 128, strategy: { _tag: 'LastN', keep: 0 } }"),
        )
        says(await effect(["run", file, "--results-dir", small, "--quiet"]), 1, "no space left", small)
      } finally {
        execFileSync("umount", [small])
      }
    }))

  it("a directory to resume that is no run", async () =>
    says(await effect(["run", "examples/cartpole.ts", "--resume", "examples"]), 2, "examples", "not a run"))

  const damaged = (damage: (checkpoint: string) => void, ...words: ReadonlyArray<string>) =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program("checkpoint: { everySteps: 100000 }, totalSteps: 512"))
      const args = ["run", file, "--results-dir", join(folder, "results"), "--quiet", "--json"]
      const { runDir } = resultOf(await effect(args))
      const [name] = readdirSync(join(runDir, "checkpoints")).filter((entry) => entry.startsWith("step_"))
      damage(join(runDir, "checkpoints", name))
      const before = readFileSync(join(runDir, "scores/train/scores.jsonl"))
      says(await effect([...args, "--resume", runDir, "--total-steps", "4096"]), 1, ...words)
      assert.deepStrictEqual(readFileSync(join(runDir, "scores/train/scores.jsonl")), before)
    })

  it("a truncated checkpoint", { tags: "slow" }, () =>
    damaged((checkpoint) => truncateSync(join(checkpoint, "weights.safetensors"), 1000), "weights.safetensors", "1000"),
  )

  it("a checkpoint with one flipped byte", () =>
    damaged(
      (checkpoint) => {
        const file = join(checkpoint, "optimizer.safetensors")
        const bytes = readFileSync(file)
        bytes[bytes.length - 5] ^= 1
        chmodSync(file, 0o644)
        writeFileSync(file, bytes)
      },
      "optimizer.safetensors",
      "digest",
    ))

  it("fewer steps than a run has done already", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program("totalSteps: 2000"))
      const args = ["run", file, "--results-dir", join(folder, "results"), "--quiet", "--json"]
      const { runDir, digest } = resultOf(await effect(args))
      const before = readFileSync(join(runDir, "return.json"))
      const fewer = await effect([...args, "--resume", runDir, "--total-steps", "1000"])
      says(fewer, 2, "--total-steps: total_steps", runDir, "has done 2048 steps already", "found 1000")
      assert.deepStrictEqual(readFileSync(join(runDir, "return.json")), before)
      assert.include(readFileSync(join(runDir, "config.yaml"), "utf8"), "total_steps: 2000")
      // A rollout may take it beyond its end; it is finished all the same.
      assert.strictEqual(resultOf(await effect([...args, "--resume", runDir])).digest, digest)
    }),
  )

  it("a run that was saved with other settings", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program(""))
      const args = ["run", file, "--results-dir", join(folder, "results"), "--quiet", "--json"]
      const { runDir } = resultOf(await effect(args))
      says(
        await effect([...args, "--resume", runDir, "--set", "algorithm.hidden=[8]"]),
        1,
        "algorithm.hidden",
        "[64,64]",
        "[8]",
        `start.from=${runDir}/checkpoints/step_`,
      )
    }),
  )
})
