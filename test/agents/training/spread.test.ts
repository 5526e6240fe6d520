import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Layer, Option } from "effect"
import { Dispatcher, type Handler } from "../../../src/spread/cluster/Dispatcher.ts"
import { layerUnreliable } from "../../../src/spread/cluster/unreliable.ts"
import { httpClient } from "../../../src/node.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { scores } from "../../../src/run/record/scores.ts"
import { trainingHandlers } from "../../../src/run/spread/Serving.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import * as Runtime from "../../../src/agents/training/Runtime.ts"
import { below } from "./support.ts"

const needs = Layer.merge(NodeServices.layer, httpClient)

/** An agent that learns by its memory, one that has none, and one whose model never answers. */
const agents = {
  waits: {
    type: "memoryless_agent",
    lm_config: { model: "vllm:m", base_url: "http://127.0.0.1:9/v1", max_retries: 0 },
  },
  remembers: { type: "history_agent", lm_config: { model: "scripted:reader" } },
  forgets: {
    type: "memoryless_agent",
    lm_config: { model: "builtin:choice:A,B,C", temperature: 1, log_calls: true, budget: { tokens: 1e6 } },
  },
}

const config = (agent: keyof typeof agents, more: object = {}) => ({
  kind: "agents",
  agent: agents[agent],
  train_dataset: { type: "codebook", num_tasks: agent === "forgets" ? 70 : 12 },
  validation_dataset: { type: "codebook", num_tasks: 66, seed: 9 },
  runtime: { validation_freq: agent === "forgets" ? 40 : 7, run_validation_at_start: true, ...more },
  output: { save_rollouts: true, save_memory_every: 5 },
})

const timed =
  /"?(duration_ms|latency_ms|timestamp\w*|step_start|step_end|manifest|run_dir|\w*[sS]econds|\w*_per_second|\w*PerSecond)"?: ?[^,}\n]*/g

/** Trains in memory, and returns the result and the files without the values that measure time. */
const trained = Effect.fnUntraced(function* (
  agent: keyof typeof agents,
  { more = {}, files = new Map<string, Uint8Array>(), resume }: Place = {},
) {
  const store = RunStore.memory({ files, ...(resume === undefined ? {} : { resume }) }).layer
  const layers = Layer.merge(store, Recorder.layer(scores))
  const result = yield* Effect.provide(Runtime.fromConfig(config(agent, more)), layers)
  const { wallSeconds: _, stepsPerSecond: __, ...timeless } = result
  return {
    result: timeless,
    files: Object.fromEntries(
      [...below(files, `${result.runDir}/`)]
        .filter(([path]) => !/manifest\.json$|latest/.test(path))
        // A checkpoint also has the sizes and digests of files with times.
        .map(([path, text]) => [path, text.replaceAll(/"appended": \{.*?\}.*?\}.*?\}/gs, "").replaceAll(timed, "")]),
    ),
  }
})

interface Place {
  readonly more?: object
  readonly files?: Map<string, Uint8Array>
  readonly resume?: string
}

/** Makes the code of a worker, which counts the jobs that it does. */
const worker = Effect.gen(function* () {
  const load = (sent: { readonly _tag: string }) =>
    Effect.succeed(
      Effect.provide("config" in sent ? Runtime.fromConfig(sent.config) : Effect.die("not a config"), [
        RunStore.memory().layer,
        Recorder.layerSilent,
      ]),
    )
  const handlers = yield* trainingHandlers(["agent-validation", "agent-rollouts"], load)
  const counts: Record<string, number> = {}
  const counting = handlers.map((handler): Handler => ({
    ...handler,
    perform: (payload) =>
      Effect.suspend(() => {
        counts[handler.name] = (counts[handler.name] ?? 0) + 1
        return handler.perform(payload)
      }),
  }))
  return { handlers: counting, counts }
})

describe("a training of agents over a bad network", () => {
  for (const agent of ["remembers", "forgets"] as const) {
    it.live(
      `leaves the files of one machine, with an agent that ${agent}`,
      () =>
        Effect.gen(function* () {
          const here = yield* trained(agent)
          const { handlers, counts } = yield* worker
          const spread = yield* Effect.provide(trained(agent), layerUnreliable({ seed: 7, handlers }))
          assert.deepStrictEqual(spread.result, here.result)
          assert.deepStrictEqual(Object.keys(spread.files).sort(), Object.keys(here.files).sort())
          for (const [path, text] of Object.entries(here.files)) assert.strictEqual(spread.files[path], text, path)
          const calls = Object.keys(here.files).filter((path) => path.startsWith("llm_calls/"))
          assert.strictEqual(calls.length > 100, agent === "forgets")
          // Two validations in 33 chunks of 2 tasks each; chunks of 2 training episodes for the agent without a memory.
          assert.isAtLeast(counts["agent-validation"] ?? 0, 2 * 33)
          if (agent === "forgets") assert.isAtLeast(counts["agent-rollouts"] ?? 0, 35)
          else assert.isUndefined(counts["agent-rollouts"])
        }).pipe(Effect.scoped, Effect.provide(needs)),
      { tags: agent === "forgets" ? [] : "slow" },
    )
  }

  it.live("fails as on one machine if the model never answers: in a validation, and in a training episode", () =>
    Effect.gen(function* () {
      const { handlers, counts } = yield* worker
      for (const [at, more] of [{}, { run_validation_at_start: false }].entries()) {
        const failing = trained("waits", { more })
        const here = yield* Effect.flip(failing)
        assert.match(here.message, /no answer after 1 attempt/)
        const spread = yield* Effect.flip(Effect.provide(failing, layerUnreliable({ seed: 5, handlers })))
        assert.deepStrictEqual([spread._tag, spread.message], [here._tag, here.message])
        assert.isAtLeast(counts[at === 0 ? "agent-validation" : "agent-rollouts"] ?? 0, 1)
      }
    }).pipe(Effect.scoped, Effect.provide(needs)),
  )

  it.live(
    "resumes where it was stopped, and leaves the files of one that never stopped",
    () =>
      Effect.gen(function* () {
        const here = yield* trained("forgets")
        const { handlers } = yield* worker
        const files = new Map<string, Uint8Array>()
        const stopped = Effect.provide(trained("forgets", { files }), stoppingAfter(60, handlers))
        assert.isTrue(Cause.hasInterrupts(Exit.getCause(yield* Effect.exit(stopped)).pipe(Option.getOrThrow)))
        const [folder] = [...files.keys()].map((path) => path.split("/").slice(0, -1).join("/"))
        const again = trained("forgets", { files, resume: folder })
        const { result, files: left } = yield* Effect.provide(again, layerUnreliable({ seed: 8, handlers }))
        assert.deepStrictEqual(result, here.result)
        assert.strictEqual(result.runDir, folder)
        for (const [path, text] of Object.entries(here.files)) {
          if (path.startsWith("checkpoints/") || path === "run.log") continue
          assert.strictEqual(left[path], text, path)
        }
      }).pipe(Effect.scoped, Effect.provide(needs)),
    { tags: "slow" },
  )
})

/** Does so many jobs, and then ends the run as Ctrl-C does. */
const stoppingAfter = (count: number, handlers: ReadonlyArray<Handler>) =>
  Layer.effect(
    Dispatcher,
    Effect.gen(function* () {
      const { run, ...rest } = yield* Dispatcher
      let done = 0
      return { ...rest, run: (job, payload, here) => (++done > count ? Effect.interrupt : run(job, payload, here)) }
    }),
  ).pipe(Layer.provide(layerUnreliable({ seed: 3, handlers })))
