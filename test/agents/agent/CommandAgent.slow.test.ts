import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { existsSync, mkdtempSync, readFileSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Agents from "../../../src/agents/agent/Agents.ts"
import { layer as agentPrograms } from "../../../src/agents/agent/outside/programs-node.ts"
import { Lm } from "../../../src/agents/lm/Lm.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"

const needs = Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, agentPrograms)

/** Asks a program of Node with this code, in a new folder. Returns the turn and the folder. */
const asks = (code: string, settings: object = {}, text = "2 + 2?") =>
  Effect.gen(function* () {
    const cwd = realpathSync(mkdtempSync(join(tmpdir(), "command-agent-")))
    const command = [process.execPath, "-e", code]
    const { make } = yield* Agents.decode({ type: "command", command, cwd, ...settings })
    const agent = yield* Effect.provideService(make, Lm, Scripted.make(Scripted.echo))
    return { cwd, turn: Effect.provide(agent.act({ _tag: "Observation", text }), needs) }
  }).pipe(Effect.provide(needs))

const answerOf = (code: string, settings?: object, text?: string) =>
  Effect.map(
    Effect.flatMap(asks(code, settings, text), ({ turn }) => turn),
    ({ outcome }) => (outcome._tag === "Act" ? outcome.action : outcome),
  )

const problemOf = (code: string, settings?: object) =>
  Effect.map(Effect.flip(answerOf(code, settings)), ({ message }) => message)

/** Tells whether a process is alive. A zombie, which only waits to be reaped, is not. */
const isAlive = (pid: number): boolean => {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))
  } catch {
    return false
  }
}

const readsTask = 'const task = JSON.parse(require("node:fs").readFileSync(0, "utf8"));'

describe("an agent that is a program", () => {
  it.live("reads its task from stdin and from the environment, and writes its answer", () =>
    Effect.gen(function* () {
      const code = `${readsTask} console.log(task.text + (process.env.EFFECT_RL_TASK === JSON.stringify(task)))`
      assert.strictEqual(yield* answerOf(code), "2 + 2?true")
      const long = "x".repeat(300_000)
      assert.strictEqual(yield* answerOf(`${readsTask} console.log(task.text.length)`, {}, long), "300000")
      assert.strictEqual(yield* answerOf('console.log(JSON.stringify({ text: " 4 " }))'), "4")
      assert.strictEqual(yield* answerOf("console.log(4)", {}, long), "4")
    }),
  )

  it.live("gets no variable of ours but the common ones and those that its config names", () =>
    Effect.gen(function* () {
      process.env["OPENAI_API_KEY"] = "ours"
      process.env["WANTED"] = "yes"
      const code = "console.log(String(process.env.OPENAI_API_KEY) + process.env.WANTED)"
      assert.strictEqual(yield* answerOf(code, { variables: ["WANTED"] }), "undefinedyes")
      assert.match(yield* problemOf(code, { variables: ["NOT_SET_AT_ALL"] }), /variable NOT_SET_AT_ALL is not set/)
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          delete process.env["OPENAI_API_KEY"]
          delete process.env["WANTED"]
        }),
      ),
    ),
  )

  it.live("that fails says why, in one line", () =>
    Effect.gen(function* () {
      assert.match(yield* problemOf('throw new Error("no luck")'), /ended with exit code 1/)
      assert.match(yield* problemOf('console.error("bad luck"); process.exit(3)'), /ended with exit code 3: bad luck$/)
      assert.match(yield* problemOf('process.kill(process.pid, "SIGKILL")'), /ended by SIGKILL/)
      assert.match(
        yield* problemOf('setInterval(() => process.stdout.write("x".repeat(2 ** 20)), 0)'),
        /more than 67108864 bytes/,
      )
      const impossible: ReadonlyArray<readonly [object, RegExp]> = [
        [{ command: ["no-such-program-at-all"] }, /cannot start: .*ENOENT/],
        [{ cwd: process.execPath }, /cannot start: .*ENOTDIR/],
        [{ command: ["echo", "a\0b"] }, /cannot start: .*null bytes/],
        [{ command: ["echo", "x".repeat(2 ** 22)] }, /cannot start: .*E2BIG/],
      ]
      for (const [settings, message] of impossible) {
        assert.match(yield* problemOf("1", settings), message)
      }
    }),
  )

  it.live("answers although a process that has left its group holds its outputs open", () =>
    Effect.gen(function* () {
      const spawned = 'spawn("sleep", ["1000"], { stdio: "inherit", detached: true })'
      const leaves = `const child = require("node:child_process").${spawned};
        require("node:fs").writeFileSync("pid", String(child.pid)); console.log("4"); process.exit()`
      const { cwd, turn } = yield* asks(leaves, { timeout_s: 60 })
      const exit = yield* Effect.exit(turn)
      process.kill(Number(readFileSync(join(cwd, "pid"), "utf8")), "SIGKILL")
      assert.strictEqual(exit._tag === "Success" && exit.value.outcome._tag, "Act")
    }),
  )

  it.live("leaves no process behind: neither after its answer, nor at its time limit", () =>
    Effect.gen(function* () {
      const child = 'require("node:child_process").spawn("sleep", ["1000"], { stdio: "inherit" })'
      const forks = `const child = ${child}; require("node:fs").writeFileSync("pid", String(child.pid));`
      const answered = yield* asks(`${forks} console.log("4"); process.exit()`)
      yield* answered.turn
      const late = yield* asks(`${forks} setInterval(() => {}, 1000)`, { timeout_s: 5 })
      const { message } = yield* Effect.flip(late.turn)
      assert.match(message, /command: it gave no answer within 5 s/)
      for (const { cwd } of [answered, late]) {
        assert.isTrue(existsSync(join(cwd, "pid")))
        const pid = Number(readFileSync(join(cwd, "pid"), "utf8"))
        while (isAlive(pid)) yield* Effect.sleep("10 millis")
      }
    }),
  )
})
