import { assert, describe, it } from "vitest"
import { Effect } from "effect"
import * as FunctionAgent from "../../src/agents/agent/FunctionAgent.ts"
import { gateway } from "../../src/node.ts"
import { configOf, resultsFolder, runConfig, runFiles, trained } from "./smallTraining.ts"

/** Asks as a memoryless agent does, whose prompts begin with `Q: `. */
const asking = FunctionAgent.make("asking", ({ text }, { lm }) => lm.ask(`Q: ${text}`))

/** Asks in the same way, through the address of the gateway. */
const connected = FunctionAgent.make("connected", async ({ text }, { lm, signal }) => {
  const { baseURL, apiKey } = await lm.connect()
  const response = await fetch(`${baseURL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model: lm.name, messages: [{ role: "user", content: `Q: ${text}` }] }),
    signal,
  })
  const { choices } = JSON.parse(await response.text())
  return choices[0].message.content
})

describe("a trainer of an agent with code of its own", () => {
  it("learns the same as one of an agent of ours, whether its calls pass through the gateway or not", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const learnt = (agent: object) =>
          Effect.map(trained(configOf({ a: runConfig(1, { agent }) }), { resultsDir }), ({ runDir, digest }) => ({
            weights: runFiles(runDir, "a").weightsAt(3),
            digest,
          }))
        const ours = yield* learnt({ type: "memoryless_agent" })
        assert.deepStrictEqual((yield* learnt({ type: asking })).weights, ours.weights)
        assert.deepStrictEqual((yield* learnt({ type: connected })).weights, ours.weights)
      }).pipe(Effect.provide(gateway), Effect.scoped),
    ))
})
