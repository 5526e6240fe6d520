/** Tests the hints for configs that name parts which only a program defines, or that hold only some settings. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { effect, root, write } from "../effect.ts"

let folder = ""
let trained = ""

beforeAll(async () => {
  folder = mkdtempSync(join(root, ".tmp-"))
  const file = write(
    folder,
    "pole.yaml",
    "env: CartPole-v1\nnum_envs: 2\ntotal_steps: 32\nalgorithm: { name: a2c, nsteps: 8 }\n" +
      "validation: { every_steps: 32, episodes: 1 }\n",
  )
  const { stdout, code } = await effect(["run", file, "--results-dir", folder, "--quiet", "--json"])
  assert.strictEqual(code, 0)
  trained = JSON.parse(stdout).runDir
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A run whose config names something else. */
const runWith = (name: string, from: string, to: string): string => {
  const run = join(folder, name)
  cpSync(trained, run, { recursive: true })
  const config = join(run, "config.yaml")
  const text = readFileSync(config, "utf8")
  assert.include(text, from)
  writeFileSync(config, text.replace(from, to))
  return run
}

describe("a run of one's own code", () => {
  const hint = "if your own program defines it, name that program: --file FILE.ts"

  for (const [what, from, to, problem] of [
    ["env", "env: CartPole-v1", "env: river", 'env: unknown env "river"'],
    ["algorithm", "name: a2c", "name: mine", 'unknown algorithm "mine"'],
    ["algorithm that learns from demonstrations", "name: a2c", "name: bc", "bc learns from data"],
  ] as const) {
    it(`names --file where its ${what} is not known`, async () => {
      const run = runWith(what.replaceAll(" ", "-"), from, to)
      // A policy that was learned from demonstrations is played without them.
      const players =
        to === "name: bc"
          ? []
          : [
              ["eval", run],
              ["export", run, "--to", "h5"],
            ]
      for (const args of [["replay", run], ...players]) {
        const { stderr: message } = await effect(args)
        assert.include(message, `${run}/config.yaml:`)
        assert.include(message, problem)
        assert.isTrue(message.endsWith(`; ${hint}\n`), message)
        assert.notInclude(message, "expected one of")
        assert.notInclude(message, "expected one of")
      }
      const { stderr: message } = await effect(["run", join(run, "config.yaml"), "--results-dir", folder])
      assert.isTrue(message.endsWith(`name that program: effect run FILE.ts --config ${run}/config.yaml\n`), message)
    })
  }
})

it("a program that does not define the run's env is named, with the env that it has", async () => {
  const run = runWith("of-another-program", "env: CartPole-v1", "env: river")
  const file = write(
    folder,
    "other.ts",
    'import { A2c, CartPole, Train } from "effect-rl"\n' +
      "export default Train.run({ env: CartPole.env, algorithm: A2c.make(), totalSteps: 32 })\n",
  )
  const { stderr, code } = await effect(["eval", run, "--file", file])
  assert.strictEqual(code, 2)
  assert.match(stderr, /env: unknown env "river"; .*; the env of this program is CartPole-v1\n$/)
})

describe("a file with only some settings", () => {
  it("names --config where it is run alone, also as a sweep", async () => {
    for (const [name, text] of [
      ["plain-conv.yaml", readFileSync(join(root, "examples/planning/plain-conv.yaml"), "utf8")],
      ["steps.yaml", "total_steps: 100\n"],
      ["runtime.yaml", "runtime: { validation_freq: 3 }\n"],
    ]) {
      const file = write(folder, name, text)
      for (const more of [[], ["--seeds", "1..2", "--dry-run"]]) {
        const { stderr: message } = await effect(["run", file, ...more, "--results-dir", folder])
        assert.include(message, "missing key")
        const expected = `; a file with only some settings goes with a program: effect run FILE.ts --config ${file}\n`
        assert.isTrue(message.endsWith(expected), message)
      }
    }
  })

  it("isn't printed when something else is missing", async () => {
    const file = write(folder, "short.yaml", "env: CartPole-v1\nalgorithm: ppo\n")
    const { stderr: message } = await effect(["run", file, "--results-dir", folder])
    assert.strictEqual(message, `effect: ${file}: total_steps: missing key\n`)
  })
})

describe("a run with callbacks of a program", () => {
  it("is evaluated without the program, and replayed only with it", async () => {
    const run = runWith("with-callbacks", "callbacks: []", "callbacks: [patient]")
    const evaluated = await effect(["eval", run, "--episodes", "1", "--json"])
    assert.strictEqual(evaluated.code, 0, evaluated.stderr)
    const replayed = await effect(["replay", run])
    assert.notStrictEqual(replayed.code, 0)
    assert.include(
      replayed.stderr,
      'the callback "patient" is made in code, by the program of the run; if your own program',
    )
    assert.include(replayed.stderr, "--file FILE.ts")
    assert.notInclude(replayed.stderr, "--set")
  })
})
