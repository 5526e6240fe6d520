import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import * as Agents from "../../../../src/agents/agent/Agents.ts"
import * as Mcp from "../../../../src/agents/agent/Mcp.ts"
import { isRunning } from "../../../command/cli/isRunning.ts"
import { disk } from "../../../run/store/disk.ts"
import { calls, inTurn, look } from "../support.ts"
import { call, platform, problem, variables } from "./support.ts"

const script = new URL("server.ts", import.meta.url).pathname
const local = (...more: ReadonlyArray<string>) => ({ command: process.execPath, args: [script, ...more] })

describe("tools of MCP servers", () => {
  it.live("of a program are listed and called, and their failures are results", () =>
    Effect.gen(function* () {
      const tools = yield* Mcp.tools({ ...local(), env: ["OWN"] })
      assert.deepStrictEqual(
        tools.map(({ spec }) => spec.name),
        ["broken", "echo", "hang", "leave", "sum", "variable"],
      )
      assert.deepStrictEqual(tools.find(({ spec }) => spec.name === "sum")?.spec, {
        name: "sum",
        description: "Adds two numbers.",
        parameters: {
          type: "object",
          properties: { first_one: { type: "number" }, b: { type: "number" } },
          required: ["first_one", "b"],
        },
      })
      assert.deepStrictEqual(yield* call(tools, "sum", { first_one: 1, b: 2 }), ["3", false])
      assert.deepStrictEqual(yield* call(tools, "echo", { text: "hi" }), ["hi\n[image]", false])
      assert.deepStrictEqual(yield* call(tools, "broken", {}), ["broken failed: the disk is full", true])
      assert.deepStrictEqual(yield* call(tools, "sum", { b: 2 }), [
        'sum failed: the arguments are invalid: expected a key "first_one", found none',
        true,
      ])
      assert.deepStrictEqual(yield* call(tools, "sum", { first_one: "1", b: 2 }), [
        'sum failed: the arguments are invalid: first_one: expected a value of type number, found "1"',
        true,
      ])
      // The program gets the variables that the config names, and no others.
      assert.deepStrictEqual(yield* call(tools, "variable", { name: "OWN" }), ["mine", false])
      assert.deepStrictEqual(yield* call(tools, "variable", { name: "SECRET" }), ["not set", false])
      const [left, isError] = yield* call(tools, "leave", {})
      assert.isTrue(isError)
      assert.match(String(left), /^leave failed: MCP (?:process exited \(7\)|server closed stdout)$/)
      const [after] = yield* call(tools, "sum", { first_one: 1, b: 2 })
      assert.match(String(after), /^sum failed: /)
    }).pipe(Effect.provide(platform), variables({ OWN: "mine", SECRET: "no" })),
  )

  it.live("may be some of them, with a prefix and a time limit", () =>
    Effect.gen(function* () {
      const tools = yield* Mcp.tools({ ...local(), only: ["hang"], prefix: "test_", timeoutS: 0.1 })
      assert.deepStrictEqual(
        tools.map(({ spec }) => spec.name),
        ["test_hang"],
      )
      assert.deepStrictEqual(yield* call(tools, "test_hang", {}), [
        "test_hang took longer than 100ms and was stopped.",
        true,
      ])
    }).pipe(Effect.provide(platform)),
  )

  it.live("of a program whose answer never ends are refused, before it takes the memory", () =>
    Effect.gen(function* () {
      const args = [new URL("endless.ts", import.meta.url).pathname]
      assert.match(
        yield* problem({ command: process.execPath, args }),
        /endless\.ts cannot be used: MCP message exceeds maxMessageBytes$/,
      )
    }).pipe(Effect.provide(platform)),
  )

  it.live("end their program with the Layer, and share it until then", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const file = `${yield* fs.makeTempDirectoryScoped()}/pid`
      const pid = yield* Effect.gen(function* () {
        yield* Mcp.tools(local(file))
        const first = readFileSync(file, "utf8")
        yield* Mcp.tools(local(file))
        assert.strictEqual(readFileSync(file, "utf8"), first)
        return Number(first)
      }).pipe(Effect.provide(Layer.fresh(platform)))
      assert.isFalse(isRunning(pid))
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )

  it.live("end their program when this side is killed", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const file = `${yield* fs.makeTempDirectoryScoped()}/pid`
      const holder = spawn(process.execPath, [new URL("holder.ts", import.meta.url).pathname, script, file])
      yield* Effect.promise(() => once(holder.stdout, "data"))
      const pid = Number(readFileSync(file, "utf8"))
      assert.isTrue(isRunning(pid))
      holder.kill("SIGKILL")
      yield* Effect.promise(() => once(holder, "close"))
      while (isRunning(pid)) yield* Effect.sleep(10)
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )

  it.live("are refused with one line if their server cannot be used", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* problem({}), "mcp: expected either command or url, found neither")
      assert.strictEqual(
        yield* problem({ ...local(), only: ["add"] }),
        `mcp: only: ${process.execPath} ${script} has no tool "add"; expected some of broken, echo, hang, leave, sum, variable`,
      )
      assert.strictEqual(
        yield* problem({ ...local(), env: ["NOT_SET"] }),
        "mcp: env: the environment variable NOT_SET is not set",
      )
      assert.match(yield* problem({ command: "/no/such/program" }), /^mcp: \/no\/such\/program cannot be used: [^\n]+$/)
      assert.match(
        yield* problem({ command: process.execPath, args: ["-e", "process.exit(3)"] }),
        /cannot be used: MCP [^\n]+$/,
      )
    }).pipe(Effect.provide(platform), variables({})),
  )

  it.live("are named in an agent's config, and the turn records the calls with their results", () =>
    Effect.gen(function* () {
      const config = {
        type: "tool_agent",
        lm_config: { model: "m" },
        tools: [{ mcp: { ...local(), only: ["sum", "broken"], timeout_s: 20 } }],
      }
      const { make, config: complete } = yield* Agents.decode(config, { source: "conf.yaml" })
      const again = yield* Agents.decode(complete, { source: "conf.yaml" })
      assert.deepStrictEqual(again.config, complete)
      const script = inTurn(calls(["1", "sum", { first_one: 1, b: 2 }], ["2", "broken", {}]), "3")
      const agent = yield* Effect.provide(make, script.layer)
      const turn = yield* agent.act(look("1 + 2?"))
      assert.deepStrictEqual(turn.outcome, { _tag: "Act", action: "3", reward: 0 })
      assert.deepStrictEqual(turn.calls[0].toolResults, [
        { toolCallId: "1", toolName: "sum", content: "3", isError: false },
        { toolCallId: "2", toolName: "broken", content: "broken failed: the disk is full", isError: true },
      ])
      const wrong = yield* Effect.flip(
        Agents.decode({ ...config, tools: [{ mcp: { comand: "x" } }] }, { source: "conf.yaml" }),
      )
      assert.match(wrong.message, /^conf\.yaml: unknown key "tools\.0\.mcp\.comand"/)
    }).pipe(Effect.provide(platform)),
  )
})
