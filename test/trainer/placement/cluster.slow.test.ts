import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, afterEach, assert, beforeAll, describe, it } from "vitest"
import { stringify } from "yaml"
import { runsIn } from "../../command/cli/crash.ts"
import { effect, resultOf, start, until, withFolder, write } from "../../command/cli/effect.ts"
import { hasPostgres, type Postgres, startPostgres } from "../../spread/cluster/postgres.ts"
import { freePort } from "../../servers/listen.ts"
import { interrupted, killAll, startWorker, watched, type Worker } from "../../spread/cluster/workers.ts"
import { configOf, runConfig, validated } from "../smallTraining.ts"

if (!hasPostgres) console.warn("cluster.slow.test.ts: postgresql is not installed here, so clusters are NOT tested")

const runs = {
  a: runConfig(1, { ...validated, max_steps: 4, checkpoint: { every: 1 } }),
  b: runConfig(2, { max_steps: 10, batch: { size: 16, group_size: 4 }, checkpoint: { every: 2 } }),
}

/** The trainers of a test, whose results are below its folder. */
const trainersIn = (folder: string, postgres: Postgres, orchestrators: "inside" | "outside" = "inside") => {
  const config = { ...configOf(runs), broadcast: { keep: 2 } }
  const files = {
    alone: write(folder, "alone.yaml", stringify(config)),
    spread: write(folder, "spread.yaml", stringify({ ...config, orchestrators })),
  }
  const words = (results: "alone" | "spread") =>
    ["run", files[results], "--results-dir", join(folder, results)].concat("--backend", "wasm", "--json", "--quiet")
  const runDir = (): string => runsIn(join(folder, "spread"))[0] ?? folder
  let isOver = false
  /** Waits while a trainer works; if it ends, the test sees that by its result. */
  const meanwhile = (condition: () => boolean) => until(() => isOver || condition())
  return {
    digestAlone: async (): Promise<string> => {
      const outcome = await effect(words("alone"), folder)
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      return resultOf(outcome).digest
    },
    spread: (...more: ReadonlyArray<string>): Worker => {
      const trainer = watched(start([...words("spread"), "--cluster", postgres.url, ...more], folder))
      isOver = false
      void trainer.ended.then(() => (isOver = true))
      return trainer
    },
    runDir,
    log: (): string => (existsSync(join(runDir(), "run.log")) ? readFileSync(join(runDir(), "run.log"), "utf8") : ""),
    meanwhile,
    /** Waits until a run has the samples of a step. */
    played: (run: string, step: number) =>
      meanwhile(() => existsSync(join(runDir(), `run_${run}`, "rollouts", `step_${step}`))),
  }
}

/** Sends a signal to a worker and to the processes of its ranks, as if the whole machine were frozen. */
const signalAll = ({ child }: Worker, signal: "SIGSTOP" | "SIGCONT"): void => {
  const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim().split(" ")
  for (const pid of [child.pid, ...children.filter((text) => text !== "")]) process.kill(Number(pid), signal)
}

const countOf = (text: string, pattern: RegExp): number => text.match(new RegExp(pattern, "g"))?.length ?? 0

describe.skipIf(!hasPostgres)("a trainer with ranks on the workers of a cluster", () => {
  let postgres: Postgres
  beforeAll(async () => void (postgres = await startPostgres()))
  afterEach(killAll)
  afterAll(() => postgres.remove())

  it("ends with the digest of one rank, although workers are killed, frozen and stopped by Ctrl-C", () =>
    withFolder(async (folder) => {
      const { digestAlone, spread, runDir, log, played, meanwhile } = trainersIn(folder, postgres)
      const digest = await digestAlone()
      const workers = [0, 1, 2].map(() => startWorker(postgres.url, folder, ["--slots", "1"]))
      await Promise.all(workers.map(({ says }) => says(/joined/)))
      const trainer = spread("--set", "trainer.ranks=3")
      const working = (): ReadonlyArray<Worker> =>
        workers.filter((worker) => {
          const text = worker.lines().join("\n")
          return countOf(text, /begins rank/) > countOf(text, /(did|hands back|failed) rank/)
        })
      const restarts = () => countOf(log(), /all ranks start again/)

      await played("b", 2)
      const [killed] = working()
      killed.child.kill("SIGKILL")
      await meanwhile(() => restarts() >= 1)
      workers.splice(workers.indexOf(killed), 1, startWorker(postgres.url, folder, ["--slots", "1"]))

      await played("b", 5)
      const [frozen] = working()
      signalAll(frozen, "SIGSTOP")
      await meanwhile(() => restarts() >= 2)
      signalAll(frozen, "SIGCONT")

      await played("b", 8)
      const [stopped] = working()
      assert.strictEqual((await interrupted(stopped)).code, 130)
      workers.splice(workers.indexOf(stopped), 1)

      const { code, stdout, stderr } = await trainer.ended
      assert.strictEqual(code, 0, stderr)
      assert.strictEqual(JSON.parse(stdout).digest, digest, log())
      assert.match(log(), /rank [12] was lost: the worker that computed it has disappeared; all ranks start again/)
      assert.isFalse(existsSync(join(runDir(), "ranks")))
      // The slots of the workers are free again.
      await until(() => working().length === 0)
      for (const worker of workers) await interrupted(worker)
    }))

  it("waits for workers, and goes on with --resume if the trainer was killed", () =>
    withFolder(async (folder) => {
      const { digestAlone, spread, runDir, log, played, meanwhile } = trainersIn(folder, postgres)
      const digest = await digestAlone()
      const first = spread("--set", "trainer.ranks=2")
      await first.says(/no worker has joined postgres:.*, so 1 jobs wait/)
      await meanwhile(() => log().includes("rank 1 waits until a worker of the cluster has a free slot"))
      const worker = startWorker(postgres.url, folder, ["--slots", "1"])
      await played("b", 4)
      first.child.kill("SIGKILL")
      await first.ended
      const second = await spread("--set", "trainer.ranks=2", "--resume", runDir()).ended
      assert.strictEqual(second.code, 0, second.stderr)
      assert.strictEqual(JSON.parse(second.stdout).digest, digest, log())
      // The slot is free again after each of both trainers.
      await until(() => countOf(worker.lines().join("\n"), /(did|failed) rank/) === 2)
      await interrupted(worker)
    }))

  it("has its runs played on the workers, to the digest of one process, although a worker is killed", () =>
    withFolder(async (folder) => {
      const { digestAlone, spread, runDir, log, played, meanwhile } = trainersIn(folder, postgres, "outside")
      const digest = await digestAlone()
      const workers = [0, 1].map(() => startWorker(postgres.url, folder, ["--slots", "3"]))
      await Promise.all(workers.map(({ says }) => says(/joined/)))
      const port = await freePort()
      const trainer = spread("--set", "trainer.ranks=2", "--server", `http://127.0.0.1:${port}`)
      await meanwhile(() => existsSync(join(runDir(), "run_b")))
      const server = watched(start(["serve", runDir(), "--port", String(port), "--backend", "wasm"]))
      await played("b", 3)
      const victim = workers.find((worker) => /begins orchestrator run_b/.test(worker.lines().join("\n")))
      if (victim === undefined) assert.fail("no worker plays run_b")
      victim.child.kill("SIGKILL")
      const { code, stdout, stderr } = await trainer.ended
      assert.strictEqual(code, 0, stderr)
      assert.strictEqual(JSON.parse(stdout).digest, digest, log())
      assert.isFalse(existsSync(join(runDir(), "orchestrators")))
      const other = workers[1 - workers.indexOf(victim)]
      assert.match((await interrupted(other)).stderr, /begins orchestrator run_b/)
      await interrupted(server)
    }))

  it("says when a flag cannot be used", () =>
    withFolder(async (folder) => {
      const { spread } = trainersIn(folder, postgres)
      const inside = await spread("--server", "http://127.0.0.1:1").ended
      assert.strictEqual(inside.code, 1)
      assert.match(inside.stderr, /orchestrators: expected outside, found inside/)
      const worker = startWorker(postgres.url, folder, ["--slots", "2"])
      const wrong = await spread("--set", "orchestrators=outside", "--server", "ftp://127.0.0.1").ended
      assert.strictEqual(wrong.code, 1)
      assert.match(wrong.stderr, /run_[ab]: .*expected an address that begins with http/)
      await interrupted(worker)
      const alone = await effect(["run", join(folder, "spread.yaml"), "--server", "http://127.0.0.1:1"], folder)
      assert.match(alone.stderr, /--server only works with --cluster, for a multi-run trainer/)
    }))
})
