import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import * as HistoryAgent from "../../../src/agents/agent/HistoryAgent.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import type { LogLevel } from "../../../src/run/record/logLevel.ts"
import { validate } from "../../../src/run/ValidationRequest.ts"
import { folderOf, keep, tasks } from "./support.ts"

const cutOff = Scripted.layer(() => ({ content: "name-", finishReason: "length" }))
const agent = HistoryAgent.make({ model: "scripted:cut" })

const logAt = (logLevel: LogLevel) =>
  Effect.map(
    keep(
      { agent, train: tasks(2), seed: 1, runtime: { maxStepsPerEpisode: 1 }, output: { logLevel } },
      { model: cutOff },
    ),
    ({ files }) =>
      (files.get("run.log") ?? "")
        .trimEnd()
        .split("\n")
        .map((line) => line.replace(/^\S+ (\w+:?).*$/, "$1")),
  )

describe("run.log of agents that talk", () => {
  it.effect("has the model's warnings, and what the log level asks for", () =>
    Effect.gen(function* () {
      const info = ["started:", "devices:", "warning:", "saved", "warning:", "saved", "finished"]
      assert.deepStrictEqual(yield* logAt("INFO"), info)
      assert.deepStrictEqual(yield* logAt("WARN"), ["started:", "warning:", "warning:"])
      assert.deepStrictEqual(yield* logAt("ERROR"), ["started:"])
      assert.deepStrictEqual(
        (yield* logAt("DEBUG")).filter((word) => word !== "episode" && word !== "update"),
        info,
      )
      assert.include(yield* logAt("DEBUG"), "episode")
    }),
  )
})

describe("an evaluation of a run", () => {
  it.effect("logs what the run's log level asks for", () =>
    Effect.gen(function* () {
      const logged = Effect.fnUntraced(function* (logLevel: LogLevel) {
        const input = {
          agent,
          train: tasks(1),
          validation: tasks(1),
          seed: 1,
          runtime: { maxStepsPerEpisode: 1 },
          output: { logLevel },
        }
        const files = new Map<string, Uint8Array>()
        yield* keep(input, { files, model: cutOff })
        const lines: Array<unknown> = []
        const logger = Logger.make(({ message }) => void lines.push(message))
        const again = keep(input, { files, resume: folderOf(files), model: cutOff })
        yield* validate(again, { checkpoint: "latest" }).pipe(Effect.provide(Logger.layer([logger])))
        return lines.length
      })
      assert.deepStrictEqual([yield* logged("WARN"), yield* logged("ERROR")], [1, 0])
    }),
  )
})
