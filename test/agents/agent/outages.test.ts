import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Agents from "../../../src/agents/agent/Agents.ts"
import * as FunctionAgent from "../../../src/agents/agent/FunctionAgent.ts"
import * as Evaluations from "../../../src/agents/evaluate/Evaluations.ts"
import { Lm } from "../../../src/agents/lm/Lm.ts"
import { LmError } from "../../../src/agents/lm/LmError.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import * as Node from "../../../src/node.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { send } from "../gateway/opened.ts"
import { disk } from "../../run/store/disk.ts"

const machine = Layer.mergeAll(disk, Node.httpClient, Node.gateway)

/** Asks the model by HTTP, as a library would. Returns the status of the response. */
const statusOf = async (lm: FunctionAgent.AgentModel, text: string): Promise<number> => {
  const { baseURL, apiKey: key } = await lm.connect()
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: text }] })
  return Effect.runPromise(Effect.map(send(`${baseURL}/chat/completions`, { key, body }), ({ status }) => status))
}

/** An agent whose own code fails if its model does. */
const strict = FunctionAgent.make("strict", async ({ text }, { lm }) => {
  const status = await statusOf(lm, text)
  if (status !== 200) throw new Error(`status ${status}`)
  return "4"
})

/** An agent that answers something although its model fails. */
const lenient = FunctionAgent.make("lenient", async ({ text }, { lm }) => `status ${await statusOf(lm, text)}`)

/** Takes a turn of an agent whose model always fails for this reason. Returns its end and the number of calls. */
const played = (type: "strict" | "lenient", reason: LmError["reason"]) =>
  Effect.gen(function* () {
    let asked = 0
    const down = Scripted.make(() => {
      asked++
      return Effect.fail(new LmError({ model: "m", reason, attempts: 1, message: `m: ${reason}` }))
    })
    const { make } = yield* Agents.decode({ type, lm_config: { model: "scripted:echo" }, max_retries: 1 })
    const agent = yield* Effect.provideService(make, Lm, down)
    const end = yield* Effect.match(agent.act({ _tag: "Observation", text: "2 + 2?" }), {
      onFailure: ({ message }) => message,
      onSuccess: ({ outcome }) => (outcome._tag === "Act" ? outcome.action : outcome._tag),
    })
    return [end, asked]
  }).pipe(Effect.provideService(Agents.Kinds, [strict, lenient]))

describe("an agent that asks its model over HTTP", () => {
  it.live("fails with the error of its model, not with its own, if the model is out of reach", () =>
    Effect.gen(function* () {
      for (const reason of ["budget", "unauthorised", "exhausted", "unavailable", "cache"] as const)
        assert.deepStrictEqual(yield* played("strict", reason), [`m: ${reason}`, 1])
      assert.deepStrictEqual(yield* played("strict", "rejected"), ["strict: it failed: status 400", 2])
    }).pipe(Effect.provide(machine)),
  )

  it.live("gives no answer that counts after a spent budget or without a recorded answer", () =>
    Effect.gen(function* () {
      for (const reason of ["budget", "unauthorised", "cache"] as const)
        assert.deepStrictEqual(yield* played("lenient", reason), [`m: ${reason}`, 1])
      assert.deepStrictEqual(yield* played("lenient", "exhausted"), ["status 502", 1])
    }).pipe(Effect.provide(machine)),
  )

  it.live("stops an evaluation whose budget is spent, which can be resumed", () =>
    Effect.gen(function* () {
      const kept = new Map<string, Uint8Array>()
      const items = ["a", "b", "c"].map((question) => ({ question, answer: "4" }))
      const evaluated = (calls: number, more: { readonly resume?: string } = {}) =>
        Evaluations.fromConfig({
          dataset: { items },
          scorers: ["exact"],
          agent: { type: strict, lm_config: { model: "scripted:echo", budget: { calls } } },
          workers: 1,
        }).pipe(
          Effect.provide(Layer.mergeAll(RunStore.memory({ files: kept, ...more }).layer, Recorder.layer(), machine)),
        )
      const error = yield* Effect.flip(evaluated(2))
      assert.match(error.message, /budget/)
      const [config] = [...kept.keys()].filter((path) => path.endsWith("/config.yaml"))
      const resumed = yield* evaluated(3, { resume: config.slice(0, -"/config.yaml".length) })
      assert.strictEqual(resumed.episodes, 3)
      assert.strictEqual(resumed.failed, 0)
    }),
  )
})
