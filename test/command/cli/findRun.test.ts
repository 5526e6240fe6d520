/** Tests that every command finds a run by its folder, by `latest` and by a part of its path. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, type FileSystem } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { findRun, havingCheckpoint, ofKind, runToResumeAt, warn } from "../../../src/command/cli/findRun.ts"
import { Output } from "../../../src/command/cli/output/output.ts"
import { toPath } from "../../../src/run/identifier.ts"
import { effect as command, type Outcome, root } from "./effect.ts"

/** The command over one folder of results. */
const effect = (...args: ReadonlyArray<string>): Promise<Outcome> => command([...args, "--results-dir", results])

let folder = ""
let results = ""
/** A training that was trained in truth; the others are configs alone. */
let trained = ""

const made = (second: number, name: string, config: string): string => {
  const time = `2026-01-01_00-00-0${second}`
  const path = join(results, toPath({ time, commit: "no-hash", name, population: {}, seed: 0 }))
  mkdirSync(path, { recursive: true })
  writeFileSync(join(path, "config.yaml"), config)
  return path
}

beforeAll(async () => {
  folder = mkdtempSync(join(root, ".tmp-"))
  results = join(folder, "results")
  mkdirSync(results)
  const file = join(folder, "pole.yaml")
  writeFileSync(
    file,
    "env: CartPole-v1\nnum_envs: 2\ntotal_steps: 64\nalgorithm: { name: a2c, nsteps: 8 }\n" +
      "validation: { every_steps: 32, episodes: 2 }\ncheckpoint: { every_steps: 32 }\n",
  )
  const { stdout, code } = await effect("run", file, "--quiet", "--json")
  assert.strictEqual(code, 0)
  trained = JSON.parse(stdout).runDir
  made(1, "older", "env: CartPole-v1\n")
  made(1, "older2", "env: CartPole-v1\n")
  // Newer than all trainings.
  const later = toPath({ time: "2999-01-01_00-00-00", commit: "no-hash", name: "judged", population: {}, seed: 0 })
  mkdirSync(join(results, later), { recursive: true })
  writeFileSync(join(results, later, "config.yaml"), "dataset: { type: codebook }\n")
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

it("a warning about a file is one line, whatever the names in its path are", async () => {
  const lines: Array<string> = []
  const output = { stdout: () => Effect.void, stderr: (text: string) => void lines.push(text) }
  const warning = warn("runs/a\nwarning: all is well\u001b[2J/config.yaml: not a config")
  await Effect.runPromise(Effect.provideService(warning, Output, output))
  const [line = ""] = lines
  assert.include(line, "runs/a\\u{a}warning: all is well\\u{1b}[2J/config.yaml: not a config\n")
  assert.strictEqual(line.split("\n").length, 2)
})

describe("findRun", async () => {
  const trainings = ofKind("a training", "training", "agents")
  const run = <A, E>(effect: Effect.Effect<A, E, FileSystem.FileSystem>): Promise<A> =>
    Effect.runPromise(Effect.provide(effect, NodeFileSystem.layer))
  const found = (wanted: string, usable = trainings): Promise<string> =>
    run(Effect.map(findRun(wanted, { folders: [results], usable }), ({ path }) => path))
  const refused = (wanted: string, usable = trainings): Promise<string> =>
    run(Effect.map(Effect.flip(findRun(wanted, { folders: [results], usable })), ({ message }) => message))

  it("takes a folder, a file in it, latest, and a part of a path", async () => {
    const older = await found("older/-")
    assert.include(older, "no-hash_older")
    assert.strictEqual(await found(older), older)
    assert.strictEqual(await found(`${older}/config.yaml`), older)
    assert.strictEqual(await found(`${older}/`), older)
    assert.strictEqual(await found("latest"), trained)
  })

  it("counts only the runs that a command can use, each by its config", async () => {
    assert.include(await found("latest", ofKind("an evaluation", "evaluation")), "judged")
    assert.include(await found("0", ofKind("an evaluation", "evaluation")), "judged")
    assert.strictEqual(
      await refused("latest", ofKind("an experiment", "agents")),
      `latest: none of the runs in ${results} is an experiment`,
    )
    assert.match(await refused("judged"), /^judged: .*no-hash_judged.* is not a training$/)
  })

  it("counts trainings without a checkpoint only where none is needed", async () => {
    assert.include(await found("older/-"), "no-hash_older")
    assert.match(
      await refused("older/-", havingCheckpoint(trainings)),
      /^older\/-: .*no-hash_older.* is not a training$/,
    )
    assert.strictEqual(await found("latest", havingCheckpoint(trainings)), trained)
  })

  it("lists the candidates where a part has several, and says what to do", async () => {
    assert.match(await refused("dqn"), /^dqn: no run in .* has this in its path; `effect runs` lists them$/)
    assert.match(
      await refused("older"),
      /^older: 2 runs have this in their paths: .*older\/.*, .*older2\/.*; write more of one of these paths$/,
    )
    assert.match(await refused("src"), /^src: it is not a run \(it has no config.yaml\), and no run in /)
  })

  it("names the flag where a run to resume is not found", async () => {
    const failure = await run(Effect.flip(runToResumeAt("nothing", { folders: [results], usable: trainings })))
    assert.match(failure.message, /^--resume nothing: no run in .* has this in its path/)
  })
})

describe("latest and a part of a path", () => {
  const part = () => trained.slice(results.length + 1, -4)

  it.for([() => "latest", part])("are evaluated, with a line that says which run it is", async (wanted) => {
    const { stdout, stderr, code } = await effect("eval", wanted(), "--episodes", "3", "--json")
    assert.strictEqual(code, 0)
    assert.strictEqual(stderr, `run: ${trained}\n`)
    assert.deepInclude(JSON.parse(stdout), { runDir: trained, step: 64, episodes: 3 })
  })

  it("are an evaluation's as well, unless a flag is given that only trainings have", async () => {
    const { stderr } = await effect("eval", "latest")
    assert.match(stderr, /no-hash_judged.*: this evaluation isn't finished/)
  })

  it.for([() => "latest", part])("are replayed", async (wanted) => {
    const { stdout, code } = await effect("replay", wanted(), "--json")
    assert.strictEqual(code, 0)
    assert.strictEqual(JSON.parse(stdout).same, true)
  })

  it.for([() => "latest", part])("are exported: a curve, and a policy", async (wanted) => {
    for (const format of ["csv", "safetensors"]) {
      const out = join(folder, `out.${format}`)
      const { stdout, code } = await effect("export", wanted(), "--to", format, "--out", out)
      assert.strictEqual(code, 0)
      assert.strictEqual(stdout, `${out}\n`)
      assert.isAbove(readFileSync(out).length, 10)
      rmSync(out)
    }
  })

  it("skip a newer training that has saved nothing, as one that failed at its start", async () => {
    const begun = toPath({ time: "2998-01-01_00-00-00", commit: "no-hash", name: "begun", population: {}, seed: 0 })
    mkdirSync(join(results, begun), { recursive: true })
    writeFileSync(join(results, begun, "config.yaml"), "env: CartPole-v1\n")
    const out = join(folder, "out")
    for (const args of [
      ["eval", "latest", "--episodes", "3"],
      ["export", "latest", "--to", "csv", "--out", out],
      ["export", "latest", "--to", "safetensors", "--out", out],
    ]) {
      const { stderr, code } = await effect(...args)
      assert.deepStrictEqual([args, code, stderr], [args, 0, `run: ${trained}\n`])
    }
    rmSync(join(results, "2998-01-01_00-00-00"), { recursive: true })
  })

  it("are resumed as a sweep, by the folder of its time", async () => {
    const [time] = trained.slice(results.length + 1).split("/")
    const again = ["run", join(folder, "pole.yaml"), "--seeds", "1", "--dry-run", "--resume"]
    const { stdout, code } = await effect(...again, time.slice(5))
    assert.strictEqual(code, 0)
    assert.match(stdout, new RegExp(`^is finished +${trained} `))
    const several = await effect(...again, "01-01_00-00-0")
    assert.match(
      several.stderr,
      /--resume 01-01_00-00-0: 2 folders have this in their paths: .*2026.*, .*2999.*; write more of one/,
    )
    const none = await effect(...again, "1999")
    assert.include(
      none.stderr,
      "--resume 1999: expected the folder of a sweep, which is named by its time, or a part of ",
    )
  })

  it("are resumed", async () => {
    const file = join(folder, "pole.yaml")
    const { stdout, code } = await effect("run", file, "--resume", part(), "--total-steps", "96", "--quiet", "--json")
    assert.strictEqual(code, 0)
    assert.deepInclude(JSON.parse(stdout), { runDir: trained, steps: 96 })
  })
})
