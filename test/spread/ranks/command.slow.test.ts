import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, assert, beforeAll, describe, it } from "vitest"
import { stringify } from "yaml"
import { runsIn } from "../../command/cli/crash.ts"
import { effect, type Outcome, resultOf, start, until, withFolder, write } from "../../command/cli/effect.ts"
import { isRunning } from "../../command/cli/isRunning.ts"
import { hasPostgres, type Postgres, startPostgres } from "../cluster/postgres.ts"
import { interrupted, killAll, startWorker, watched } from "../cluster/workers.ts"

if (!hasPostgres) console.warn("command.slow.test.ts: postgresql is not installed here, so clusters are NOT tested")

/** The steps of one iteration. */
const iteration = 32 * 64

const config = {
  env: "CartPole-v1",
  num_envs: 32,
  total_steps: 100_000_000,
  algorithm: { name: "ppo", nsteps: 64, slices: 4, hidden: [64, 64], schedule: "constant" },
}

/** A training below a folder. It goes on until it is stopped, so that a test can wait for its ranks however long they take. */
const trainingIn = (folder: string) => {
  const file = write(folder, "train.yaml", stringify(config))
  const results = join(folder, "results")
  const words = ["run", file, "--backend", "wasm", "--json", "--quiet"]
  const runDir = (): string => runsIn(results)[0] ?? folder
  const log = (): string =>
    existsSync(join(runDir(), "run.log")) ? readFileSync(join(runDir(), "run.log"), "utf8") : ""
  const spread = (...more: ReadonlyArray<string>) =>
    watched(start([...words, "--results-dir", results, ...more], folder))
  return {
    spread,
    log,
    logs: (pattern: RegExp) => until(() => pattern.test(log())),
    /** The processes of the ranks that were started, in their order. */
    pids: () => [...log().matchAll(/rank \d+ starts as process (\d+)/g)].map(([, pid]) => Number(pid)),
    /**
     * Stops a training as Ctrl-C does, resumes it on other ranks for one more iteration, and returns its digest, and that of
     * as many steps in one process.
     */
    digests: async (training: ReturnType<typeof spread>, ...more: ReadonlyArray<string>) => {
      assert.strictEqual((await interrupted(training)).code, 130)
      const steps = readdirSync(join(runDir(), "checkpoints")).map((name) =>
        Number(/^step_(\d+)$/.exec(name)?.[1] ?? 0),
      )
      const until = ["--total-steps", String(Math.max(...steps) + iteration)]
      const resumed = await spread("--resume", runDir(), ...until, ...more).ended
      const alone = await effect([...words, "--results-dir", join(folder, "alone"), ...until], folder)
      return { resumed: digestOf(resumed), alone: digestOf(alone) }
    },
  }
}

const digestOf = (outcome: Outcome): string => {
  assert.strictEqual(outcome.code, 0, outcome.stderr)
  return resultOf(outcome).digest
}

describe("effect run --ranks, with processes of this machine", () => {
  afterEach(killAll)

  it("has the digest of one process, although a rank is killed, and when resumed on other ranks", () =>
    withFolder(async (folder) => {
      const { spread, log, logs, pids, digests } = trainingIn(folder)
      const training = spread("--ranks", "3")
      await logs(/rank 1 computes slices/)
      await logs(/rank 2 computes slices/)
      process.kill(pids()[0], "SIGKILL")
      await logs(/rank 1 was lost: its connection .*; this process computes its slices/)
      // Another process takes its place.
      await logs(/(computes slices[^]*){3}/)
      const { resumed, alone } = await digests(training, "--ranks", "2")
      assert.strictEqual(resumed, alone, log())
      assert.strictEqual(pids().length, 4, log())
      assert.deepStrictEqual(pids().filter(isRunning), [])
    }))

  it("leaves no process behind if it is killed", () =>
    withFolder(async (folder) => {
      const { spread, logs, pids } = trainingIn(folder)
      const { child, ended } = spread("--ranks", "3")
      await logs(/rank 1 computes slices/)
      child.kill("SIGKILL")
      await ended
      assert.strictEqual(pids().length, 2)
      await until(() => !pids().some(isRunning))
    }))
})

describe.skipIf(!hasPostgres)("effect run --ranks --cluster", () => {
  let postgres: Postgres
  beforeAll(async () => void (postgres = await startPostgres()))
  afterEach(killAll)
  afterAll(() => postgres.remove())

  it("has the digest of one process, although a worker is killed", () =>
    withFolder(async (folder) => {
      const { spread, log, logs, digests } = trainingIn(folder)
      // The workers do not share the results folder.
      const places = [0, 1].map(() => mkdtempSync(join(tmpdir(), "worker-")))
      const workers = places.map((place) => startWorker(postgres.url, place, ["--slots", "1"]))
      await Promise.all(workers.map(({ says }) => says(/joined/)))
      const training = spread("--ranks", "2", "--cluster", postgres.url)
      await logs(/rank 1 computes slices/)
      const busy = workers.find((worker) => /begins slices/.test(worker.lines().join("\n")))
      const idle = workers.find((worker) => worker !== busy)
      if (busy === undefined || idle === undefined) assert.fail("no worker computes slices")
      busy.child.kill("SIGKILL")
      await logs(/rank 1 computes slices[^]*this process computes its slices[^]*rank 1 computes slices/)
      const { resumed, alone } = await digests(training)
      assert.strictEqual(resumed, alone, log())
      // The slot of the worker is free again.
      await idle.says(/did slices/)
      await interrupted(idle)
      for (const place of places) rmSync(place, { recursive: true })
    }))
})
