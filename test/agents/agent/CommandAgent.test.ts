import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Agents from "../../../src/agents/agent/Agents.ts"
import * as Trust from "../../../src/base/trust/Trust.ts"

/** Returns what the agent of a config asks the service `Trust`, and the config that its run saves. */
const requestOf = Effect.fnUntraced(
  function* (settings: object) {
    const requests: Array<Trust.TrustRequest> = []
    const keep = (request: Trust.TrustRequest) => Effect.sync(() => void requests.push(request))
    const { permit, config } = yield* Agents.decode({ type: "command", command: ["./agent"], ...settings })
    yield* Effect.provideService(permit, Trust.Trust, { permit: keep, permitKnown: keep })
    assert.lengthOf(requests, 1)
    const [request] = requests
    return { place: request.place, input: request._tag === "ProgramStart" && request.input, config }
  },
  Effect.provide(Layer.merge(NodeFileSystem.layer, NodePath.layer)),
)

describe("the permission of an agent that is a program", () => {
  it.effect("covers its options and its texts", () =>
    Effect.gen(function* () {
      assert.isNull((yield* requestOf({})).input)
      const { input } = yield* requestOf({ options: { top_k: 3 }, texts: [["style", "Be brief."]] })
      assert.deepStrictEqual(input, { options: { topK: 3 }, texts: { style: "Be brief." } })
    }),
  )

  it.effect("names the file of texts, and is the same for the config that its run saves", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "command-agent-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
      const texts = join(folder, "texts.json")
      writeFileSync(texts, JSON.stringify({ style: "Be brief." }))
      const options = { top_k: 3, nested: { max_length: [1] } }
      const { place, input, config } = yield* requestOf({ options, texts })
      assert.include(place, `with the texts of ${texts}`)
      const saved = yield* requestOf(config)
      assert.deepStrictEqual(saved.input, input)
      assert.notInclude(saved.place, "texts")
    }),
  )
})
