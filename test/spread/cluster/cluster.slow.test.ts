import { spawnSync } from "node:child_process"
import { appendFileSync, cpSync, mkdirSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { afterAll, afterEach, assert, beforeAll, describe, it } from "vitest"
import { runsIn } from "../../command/cli/crash.ts"
import { effect, program, resultOf, root, start, withFolder, write } from "../../command/cli/effect.ts"
import { hasPostgres, type Postgres, startPostgres } from "./postgres.ts"
import { contentOf, interrupted, killAll, lastCheckpointOnly, startWorker, watched } from "./workers.ts"

if (!hasPostgres) console.warn("cluster.slow.test.ts: postgresql is not installed here, so clusters are NOT tested")

/** Agents whose answers take a while, so that work is under way when a worker is killed. */
const tasks = `
name: words
seed: 4
dataset: { type: codebook, num_tasks: 30 }
agents:
  guesses: { type: memoryless_agent, lm_config: { model: "builtin:choice:A,B,C", temperature: 1 } }
  echoes: { type: memoryless_agent, lm_config: { model: "scripted:echo" } }
scorers: [score, tokens]
repeats: 10
workers: 2
`

describe.skipIf(!hasPostgres)("a cluster over Postgres", () => {
  let postgres: Postgres
  beforeAll(async () => void (postgres = await startPostgres()))
  afterEach(killAll)
  afterAll(() => postgres.remove())

  it("leaves the files of one machine for a sweep and an evaluation, although a worker is killed in the middle", () =>
    withFolder(async (folder) => {
      const file = write(
        folder,
        "train.ts",
        program(`validation: { everySteps: 1024, episodes: 5 }, ${lastCheckpointOnly}`),
      )
      write(folder, "tasks.yaml", tasks)
      const arguments_ = (results: string) => ({
        sweep: ["run", file, "--seeds", "1..4", "--results-dir", join(folder, results, "sweep"), "--json", "--quiet"],
        eval: ["eval", "tasks.yaml", "--results-dir", join(folder, results, "eval"), "--json", "--quiet"],
      })
      const alone = arguments_("alone")
      const sweptAlone = await effect(alone.sweep, folder)
      assert.strictEqual(sweptAlone.code, 0, sweptAlone.stderr)
      const evaluatedAlone = await effect(alone.eval, folder)
      assert.strictEqual(evaluatedAlone.code, 0, evaluatedAlone.stderr)

      const [doomed, other] = [0, 1].map(() => startWorker(postgres.url, folder, ["--slots", "2"]))
      await Promise.all([doomed, other].map((worker) => worker.says(/joined/)))
      const spread = arguments_("spread")
      const evaluation = start([...spread.eval, "--cluster", postgres.url], folder)
      await doomed.says(/did evaluation/)
      const sweep = start([...spread.sweep, "--cluster", postgres.url], folder)
      await doomed.says(/begins run/)
      doomed.child.kill("SIGKILL")
      const swept = await sweep.ended
      assert.strictEqual(swept.code, 0, swept.stderr)
      const evaluated = await evaluation.ended
      assert.strictEqual(evaluated.code, 0, evaluated.stderr)

      // The result names the folders, and measures times; the digests are over weights, scores and rows.
      const digests = (stdout: string) => stdout.match(/"digest":"[0-9a-f]{64}"/g)
      assert.lengthOf(digests(swept.stdout) ?? [], 4)
      assert.deepStrictEqual(digests(swept.stdout), digests(sweptAlone.stdout))
      assert.strictEqual(resultOf(evaluated).digest, resultOf(evaluatedAlone).digest)
      for (const part of ["sweep", "eval"]) {
        const [here, there] = ["alone", "spread"].map((results) => runsIn(join(folder, results, part)).toSorted())
        assert.lengthOf(there, part === "sweep" ? 4 : 1)
        for (const [at, run] of here.entries()) assert.deepStrictEqual(contentOf(there[at]), contentOf(run))
      }
      // The policy of a run plays its episodes on the worker that is left.
      const [run] = runsIn(join(folder, "alone", "sweep"))
      const policy = ["eval", run, "--episodes", "100", "--json"]
      const played = await start([...policy, "--cluster", postgres.url], folder).ended
      assert.strictEqual(played.code, 0, played.stderr)
      const returns = (stdout: string) => stdout.replace(/,"wallSeconds".*/, "")
      assert.strictEqual(returns(played.stdout), returns((await effect(policy, folder)).stdout))
      await other.says(/did validation .* batch 3 episodes 29-34 /)
      // Nothing is left of attempts, not even of the killed worker's.
      assert.notInclude(readdirSync(join(folder, "spread", "sweep")), ".attempts")
      assert.match((await interrupted(other)).stderr, /leaves postgres:.*; it did [1-9]\d* jobs/)
    }))

  it("hands work back on Ctrl-C, and waits while Postgres is gone", () =>
    withFolder(async (folder) => {
      write(folder, "tasks.yaml", tasks)
      const words = ["eval", "tasks.yaml", "--results-dir", join(folder, "results"), "--json", "--quiet"]
      const alone = await effect(words, folder)
      const client = watched(start([...words, "--cluster", postgres.url], folder))
      await client.says(/no worker has joined postgres:\/\/effect@127.*start one: npx effect worker --join/)
      const first = startWorker(postgres.url, folder, ["--slots", "1"])
      await first.says(/did evaluation/)
      assert.strictEqual((await interrupted(first)).code, 130)
      const second = startWorker(postgres.url, folder, ["--slots", "2"])
      await second.says(/did evaluation/)
      const list = await effect(["worker", "--join", postgres.url, "--list"], folder)
      assert.match(list.stdout, /^worker process \d+ on .*: [012] of 2 slots busy, \d+ jobs done, version 0\.1\.0\+/m)
      assert.match(list.stdout, /^client process \d+ on .*: waits for \d+ jobs/m)
      await postgres.halt()
      await second.says(/postgres:.* does not answer \(.*\); trying again, nothing is lost/)
      await client.says(/does not answer/)
      await postgres.resume()
      await second.says(/answers again/)
      const { code, stdout, stderr } = await client.ended
      assert.strictEqual(code, 0, stderr)
      assert.strictEqual(JSON.parse(stdout).digest, resultOf(alone).digest)
      assert.notInclude(stderr, postgres.password)
      await interrupted(second)
    }))

  it("refuses a wrong password, another version of the code and another version of a file", () =>
    withFolder(async (folder) => {
      const wrong = await start(["worker", "--join", postgres.url.replace(postgres.password, "wrong")], folder).ended
      assert.strictEqual(wrong.code, 1)
      assert.match(
        wrong.stderr,
        /^effect: postgres:\/\/effect@127\.0\.0\.1:\d+\/postgres: password authentication failed.*\n$/,
      )
      const hidden = ["worker", "--list", "--join", postgres.url.replace(`:${postgres.password}@`, "@")]
      const without = await start(hidden, folder).ended
      assert.match(without.stderr, /^effect: postgres:\/\/effect@127.*password.*\n$/)
      const env = { ...process.env, PGPASSWORD: postgres.password }
      const listed = await start(hidden, folder, { env }).ended
      assert.strictEqual(listed.code, 0, listed.stderr)

      // The version that is compared must differ by nothing but the change.
      const sources = { fromSources: true }
      const worker = startWorker(postgres.url, folder, ["--slots", "1"], sources)
      await worker.says(/joined .* version 0\.1\.0\+[0-9a-f]{12}/)
      const copy = copyOfTheCode(folder)
      appendFileSync(join(copy, "src/base/rng/Rng.ts"), "// This machine has another version.\n")
      const refused = spawnSync(process.execPath, [join(copy, "bin/effect.js"), "worker", "--join", postgres.url])
      assert.strictEqual(refused.status, 1)
      assert.match(
        String(refused.stderr),
        /^effect: this process has version (0\.1\.0\+\w{12}) of the code, and process \d+ on .* has version (?!\1)0\.1\.0\+\w{12}; install/,
      )

      const file = write(folder, "train.ts", program("validation: { everySteps: 1024, episodes: 5 }"))
      const elsewhere = join(folder, "elsewhere")
      mkdirSync(elsewhere)
      write(elsewhere, "train.ts", program("validation: { everySteps: 1024, episodes: 6 }"))
      const words = ["run", "train.ts", "--seeds", "1..2", "--results-dir", "results", "--quiet"]
      const sweep = await start([...words, "--cluster", postgres.url], elsewhere, sources).ended
      assert.strictEqual(sweep.code, 1)
      assert.include(sweep.stderr, `${file}: expected the file with which the run was started, version `)
      // Also a module that the file imports.
      for (const [place, episodes] of [
        [folder, 5],
        [elsewhere, 6],
      ] as const) {
        write(place, "episodes.ts", `export const episodes = ${episodes}\n`)
        const importing = program("validation: { everySteps: 1024, episodes }")
        write(place, "train.ts", `import { episodes } from "./episodes.ts"\n${importing}`)
      }
      const other = await start([...words, "--cluster", postgres.url], elsewhere, sources).ended
      assert.strictEqual(other.code, 1)
      const module = join(folder, "episodes.ts")
      assert.include(other.stderr, `${module}: expected the file with which the run was started, version `)
      await interrupted(worker)
    }))
})

/** Copies the command, so that it can be changed; the copy finds the packages in the folders above. */
const copyOfTheCode = (folder: string): string => {
  const copy = join(folder, "copy")
  for (const part of ["bin", "src", "package.json"]) cpSync(join(root, part), join(copy, part), { recursive: true })
  return copy
}
