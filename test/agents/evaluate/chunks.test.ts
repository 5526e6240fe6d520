import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, FileSystem, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Dispatcher } from "../../../src/spread/cluster/Dispatcher.ts"
import { layerUnreliable } from "../../../src/spread/cluster/unreliable.ts"
import { chunkSize, chunksOf, indicesOf } from "../../../src/spread/cluster/sent/chunks.ts"
import { type ChunkPayload, chunkJob } from "../../../src/agents/evaluate/chunks.ts"
import * as Evaluations from "../../../src/agents/evaluate/Evaluations.ts"
import { evaluationHandler } from "../../../src/agents/evaluate/worker.ts"
import { httpClient } from "../../../src/node.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { scores } from "../../../src/run/record/scores.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { below } from "./support.ts"

const needs = Layer.merge(NodeServices.layer, httpClient)

const config = {
  dataset: { type: "codebook", num_tasks: 20 },
  agents: {
    guesses: {
      type: "memoryless_agent",
      lm_config: { model: "builtin:choice:A,B,C", temperature: 1, log_calls: true },
    },
    echoes: { type: "memoryless_agent", lm_config: { model: "scripted:echo", log_calls: true } },
  },
  scorers: ["score", "tokens"],
  repeats: 14,
}

const timed = /"(duration_ms|latency_ms|timestamp\w*|step_start|step_end|\w*[sS]econds)": ?[^,}\n]*/g

/** Runs an evaluation in memory, and returns its result and its files without the values that measure time. */
const evaluated = Effect.gen(function* () {
  const files = new Map<string, Uint8Array>()
  const layers = Layer.mergeAll(RunStore.memory({ files }).layer, Recorder.layer(scores))
  const fiber = yield* Effect.forkChild(Effect.provide(Evaluations.fromConfig(config), layers))
  yield* TestClock.adjust("1 hour")
  const { wallSeconds: _, ...result } = yield* Fiber.join(fiber)
  const timeless = [...below(files, result.runDir)].map(([path, text]) => [
    path,
    // In the table, the duration is the last column but one.
    text.replaceAll(timed, "").replaceAll(path === "table.csv" ? /,\d+,([^,\n]*)$/gm : /^$/g, ",,$1"),
  ])
  return { result, files: Object.fromEntries(timeless) }
})

describe("chunks of an evaluation", () => {
  it("have all episodes once, in order, at most 64 of them", () => {
    for (const total of [0, 1, 255, 256, 257, 5000, 1e6]) {
      const size = chunkSize(total)
      assert.isAtMost(size, 64)
      assert.deepStrictEqual(
        chunksOf(total, size).flatMap(indicesOf),
        Array.from({ length: total }, (_, index) => index),
      )
    }
    assert.strictEqual(chunkSize(5000), 20)
  })

  it.effect(
    "played by workers of a bad network leave the same files, calls of models among them",
    () =>
      Effect.gen(function* () {
        const here = yield* evaluated
        assert.strictEqual(here.result.episodes, 560)
        assert.isAbove(Object.keys(here.files).filter((path) => path.startsWith("llm_calls/")).length, 100)
        const handler = yield* evaluationHandler
        let performed = 0
        const counting = {
          ...handler,
          perform: (payload: unknown) => Effect.suspend(() => (performed++, handler.perform(payload))),
        }
        const spread = yield* Effect.provide(evaluated, layerUnreliable({ seed: 5, handlers: [counting] }))
        // 280 episodes of each agent, two in a chunk, and many chunks played twice or more.
        assert.isAbove(performed, 400)
        assert.deepStrictEqual(spread.result, here.result)
        assert.deepStrictEqual(Object.keys(spread.files).sort(), Object.keys(here.files).sort())
        for (const [path, text] of Object.entries(here.files)) assert.strictEqual(spread.files[path], text, path)
      }).pipe(Effect.scoped, Effect.provide(needs)),
    { tags: "slow" },
  )

  it.effect(
    "are refused by a worker whose data set differs, or whose agents do",
    () =>
      Effect.gen(function* () {
        const handler = yield* evaluationHandler
        const payloads: Array<ChunkPayload> = []
        const remembering = Layer.succeed(Dispatcher, {
          inFlight: 1,
          run: (_job, payload, here) => {
            if (isPayload(payload)) payloads.push(payload)
            return here
          },
        })
        yield* Effect.provide(evaluated, remembering)
        const [payload] = payloads
        const refusal = (changed: object) =>
          Effect.flatMap(handler.perform({ ...payload, ...changed }), (answer) =>
            answer._tag === "Failed" ? Effect.succeed(JSON.stringify(answer.failure)) : Effect.die("it played"),
          )
        assert.match(
          yield* refusal({ identity: { ...payload.identity, dataset: "another" } }),
          /on a worker of the cluster: dataset: expected \\"another\\" as where the run was started, found/,
        )
        assert.match(yield* refusal({ agent: 2 }), /there is no agent 3/)
        const folder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped()
        const file = join(folder, "nowhere.jsonl")
        const missing = { ...payload.config, dataset: { type: "qa", dataset_path: file } }
        assert.match(yield* refusal({ config: missing }), /on a worker of the cluster: .*nowhere\.jsonl/)
        // Once the file is there, the worker opens it.
        writeFileSync(file, `{"question": "1+1?", "answer": "2"}\n`)
        assert.match(yield* refusal({ config: missing }), /dataset.*: expected .* as where the run was started/)
      }).pipe(Effect.scoped, Effect.provide(needs)),
    { tags: "slow" },
  )
})

const isPayload = (value: unknown): value is ChunkPayload =>
  typeof value === "object" && value !== null && "config" in value && chunkJob.name === "evaluation"
