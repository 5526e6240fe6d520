import { spawn } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { until } from "../../command/cli/effect.ts"
import { isRunning } from "../../command/cli/isRunning.ts"
import { hasRedis, redisServer } from "../store/redisServer.ts"
import { digestAlone, digestOf, withTrainer } from "../trainerCommand.ts"

const rankProgram = fileURLToPath(new URL("../../../src/trainer/ranks/rank-node.ts", import.meta.url))

const ranksFlag = (ranks: number) => ["--set", `trainer.ranks=${ranks}`]

describe("effect run with several ranks", () => {
  it.for([4])("ends with the digest of one rank on %i ranks", (ranks) =>
    withTrainer(async (trainer) => {
      assert.strictEqual(digestOf(await trainer.run(ranksFlag(ranks)).ended), await digestAlone())
      const pids = trainer.ranks()
      assert.strictEqual(pids.length, ranks - 1)
      assert.deepStrictEqual(pids.filter(isRunning), [])
      assert.isFalse(existsSync(join(trainer.runDir(), "ranks")))
    }),
  )

  it("names a rank that was killed, and goes on to the same digest", () =>
    withTrainer(async (trainer) => {
      const { ended } = trainer.run(ranksFlag(3))
      for (const [victim, step] of [
        [1, 2],
        [2, 6],
      ] as const) {
        await trainer.has(`run_b/rollouts/step_${step}`)
        const pid = trainer.ranks().at(victim === 1 ? -2 : -1)
        if (pid === undefined) assert.fail("no rank was started")
        process.kill(pid, "SIGKILL")
        const warning = `rank ${victim} was lost: its process was ended by SIGKILL; all ranks start again`
        await until(() => trainer.log().includes(warning))
      }
      assert.strictEqual(digestOf(await ended), await digestAlone())
      assert.strictEqual(trainer.ranks().length, 6)
      assert.deepStrictEqual(trainer.ranks().filter(isRunning), [])
    }))

  it("names a rank that was stopped and does not answer, and goes on to the same digest", () =>
    withTrainer(async (trainer) => {
      const { ended } = trainer.run([...ranksFlag(2), "--set", "trainer.rank_deadline=5"])
      await trainer.has("run_b/rollouts/step_3")
      const [pid] = trainer.ranks()
      process.kill(pid, "SIGSTOP")
      assert.strictEqual(digestOf(await ended), await digestAlone())
      assert.match(trainer.log(), /rank 1 of 2 did not arrive within 5s; .*trainer\.rank_deadline/)
      assert.isFalse(isRunning(pid))
    }))

  it("exchanges gradients through a Redis server, and says what is missing", () =>
    withTrainer(async (trainer) => {
      const flags = [...ranksFlag(2), "--set", "trainer.store.type=redis"]
      const preloaded = join(trainer.folder, "preloaded.mjs")
      writeFileSync(
        preloaded,
        `import { registerHooks } from "node:module"
         registerHooks({ resolve: (name, context, next) => {
           if (name === "redis") throw new Error("Cannot find package 'redis'")
           return next(name, context)
         } })`,
      )
      const withoutPackage = {
        NODE_OPTIONS: `--import ${pathToFileURL(preloaded).href}`,
        REDIS_URL: "redis://127.0.0.1:1",
      }
      for (const [env, problem] of [
        [
          { REDIS_URL: "" },
          "trainer.store: expected the address of the Redis server in url, or in the environment variable REDIS_URL",
        ],
        [
          { REDIS_URL: "redis://:secret@127.0.0.1:1" },
          `trainer.store: cannot open "redis://127.0.0.1:1" in the ranks' store: Redis: connect ECONNREFUSED`,
        ],
        [
          withoutPackage,
          `trainer.store: cannot open "redis" in the ranks' store: the package is not installed; run: npm install redis`,
        ],
      ] as const) {
        const { code, stderr } = await trainer.run(flags, env).ended
        assert.strictEqual(code, 1, stderr)
        assert.include(stderr, problem)
        assert.notInclude(stderr, "secret")
      }
      assert.isTrue(hasRedis, "redis-server is not installed; .ci/system-packages.sh installs it")
      await Effect.runPromise(
        Effect.gen(function* () {
          const { url } = yield* redisServer
          const outcome = yield* Effect.promise(() => trainer.run(flags, { REDIS_URL: url }).ended)
          assert.strictEqual(digestOf(outcome), yield* Effect.promise(digestAlone))
        }).pipe(Effect.scoped),
      )
    }))

  it("ends its ranks if it is killed or interrupted, and can be resumed on another number of ranks", () =>
    withTrainer(async (trainer) => {
      const first = trainer.run(ranksFlag(3))
      await trainer.has("run_b/rollouts/step_3")
      first.child.kill("SIGKILL")
      await first.ended
      await until(() => !trainer.ranks().some(isRunning))
      const resume = ["--resume", trainer.runDir()]
      const second = trainer.run([...resume, ...ranksFlag(2)])
      await trainer.has("run_b/rollouts/step_7")
      second.child.kill("SIGINT")
      assert.strictEqual((await second.ended).code, 130)
      assert.deepStrictEqual(trainer.ranks().filter(isRunning), [])
      assert.strictEqual(digestOf(await trainer.run([...resume, ...ranksFlag(1)]).ended), await digestAlone())
    }))

  it("gives up if its ranks end again and again, and logs what they wrote on standard error", () =>
    withTrainer(async (trainer) => {
      const preloaded = join(trainer.folder, "preloaded.mjs")
      const program = `if (process.argv[1]?.includes("rank-node")) { console.error("no memory left"); process.exit(7) }`
      writeFileSync(preloaded, program)
      const env = { NODE_OPTIONS: `--import ${pathToFileURL(preloaded).href}` }
      const { code, stderr } = await trainer.run(ranksFlag(2), env).ended
      assert.strictEqual(code, 1)
      assert.include(stderr, "rank 1 was lost: its process was ended with exit code 7; that was loss 6 without")
      assert.strictEqual(trainer.log().match(/warning: rank 1: no memory left/g)?.length, 6)
    }))
})

describe("the program of a rank", () => {
  const started = () => {
    const child = spawn(process.execPath, [rankProgram], { stdio: ["pipe", "pipe", "inherit"] })
    let output = ""
    child.stdout.on("data", (data) => (output += String(data)))
    const ended = new Promise<{ code: number | null; output: string }>((resolve) =>
      child.once("close", (code) => resolve({ code, output })),
    )
    return { child, ended }
  }

  it("tells why it cannot work", async () => {
    const { child, ended } = started()
    const task = {
      rank: 1,
      model: { type: "folder", path: "missing" },
      trainer: {},
      seed: 1,
      baseDir: "/nowhere",
      outputDirectory: "/nowhere/outputs",
      store: { type: "files", directory: "/nowhere/store" },
    }
    child.stdin.write(`${JSON.stringify({ task, backend: "wasm", threads: 1 })}\n`)
    const { code, output } = await ended
    assert.strictEqual(code, 1)
    const { _tag, reason, message } = JSON.parse(output)
    assert.deepStrictEqual([_tag, reason], ["WorkerError", "failed"])
    assert.match(message, /^rank 1: .*\/nowhere\/missing/)
  })

  it("ends when its input is closed", async () => {
    const { child, ended } = started()
    child.stdin.end()
    assert.deepStrictEqual(await ended, { code: 0, output: "" })
  })
})
