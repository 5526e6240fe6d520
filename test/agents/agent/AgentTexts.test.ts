import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import * as Agents from "../../../src/agents/agent/Agents.ts"
import { AgentTexts } from "../../../src/agents/agent/AgentTexts.ts"
import type { LmRequest } from "../../../src/agents/lm/Chat.ts"
import { Lm } from "../../../src/agents/lm/Lm.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"

const lmConfig = { model: "scripted:test" }
const decoded = (config: Record<string, unknown>, baseDir = ".") =>
  Agents.decode({ lm_config: lmConfig, ...config }, { source: "train.yaml", baseDir, prefix: ["agent"] })

/** The request that the agent of a config makes for an observation. */
const asked = Effect.fnUntraced(function* (config: Record<string, unknown>, texts: Record<string, string> = {}) {
  const requests: Array<LmRequest> = []
  const lm = Scripted.make((request) => {
    requests.push(request)
    return "yes"
  })
  const { make } = yield* decoded(config)
  const agent = yield* make.pipe(Effect.provideService(Lm, lm), Effect.provideService(AgentTexts, texts))
  const tools = [{ name: "look", description: "Looks.", parameters: { type: "object", properties: {} } }]
  yield* agent.act({ _tag: "Observation", text: "Ready?", ...(config["type"] === "tool_agent" ? { tools } : {}) })
  return requests[0]
})

const systemOf = ({ messages }: LmRequest) =>
  messages.flatMap(({ role, content }) => (role === "system" ? content : []))

describe("named texts of an agent", () => {
  it.effect("are its prompts, by the keys of its config", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* decoded({})).texts(), { system_prompt: "" })
      const reflexion = { type: "reflexion_agent", system_prompt: "Act.", reflection_system_prompt: "Look back." }
      assert.deepStrictEqual((yield* decoded(reflexion)).texts(), {
        system_prompt: "Act.",
        reflection_system_prompt: "Look back.",
      })
    }).pipe(Effect.provide(NodeServices.layer)),
  )

  it.effect("are replaced when the agent is made; an empty text removes a prompt, and unknown names are ignored", () =>
    Effect.gen(function* () {
      const config = { type: "memoryless_agent", system_prompt: "Act." }
      assert.deepStrictEqual(systemOf(yield* asked(config)), ["Act."])
      assert.deepStrictEqual(systemOf(yield* asked(config, { system_prompt: "Think.", other: "?" })), ["Think."])
      assert.deepStrictEqual(systemOf(yield* asked(config, { system_prompt: "" })), [])
      assert.deepStrictEqual(systemOf(yield* asked(config, { examples: "1 + 1 = 2" })), ["Act.\n\n1 + 1 = 2"])
      assert.deepStrictEqual(systemOf(yield* asked({ type: "memoryless_agent" }, { examples: "1 + 1 = 2" })), [
        "1 + 1 = 2",
      ])
      const reflexion = { type: "reflexion_agent", system_prompt: "Both.", agent_system_prompt: "Act." }
      assert.deepStrictEqual(systemOf(yield* asked(reflexion, { agent_system_prompt: "Play.", examples: "So." })), [
        "Play.\n\nSo.",
      ])
    }).pipe(Effect.provide(NodeServices.layer)),
  )

  it.effect("describe tools, also those of the task", () =>
    Effect.gen(function* () {
      const { tools = [] } = yield* asked({ type: "tool_agent" }, { "tool:look": "Shows the room." })
      assert.deepStrictEqual(
        tools.map(({ description }) => description),
        ["Shows the room."],
      )
    }).pipe(Effect.provide(NodeServices.layer)),
  )

  it.effect("come from a file or a run's folder, and are saved in the config", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped()
      yield* fs.writeFileString(`${folder}/texts.json`, '{"system_prompt":"Learned {file:x}.","tool:my_tool":"Mine."}')
      for (const texts of [folder, "texts.json"]) {
        const one = yield* decoded({ type: "memoryless_agent", system_prompt: "Own.", texts }, folder)
        assert.deepStrictEqual(one.texts(), { system_prompt: "Learned {file:x}.", "tool:my_tool": "Mine." })
        const again = yield* decoded(one.config)
        assert.deepStrictEqual(again.texts(), one.texts())
        assert.deepStrictEqual(systemOf(yield* asked(one.config)), ["Learned {file:x}."])
      }
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )

  it.effect("are refused with the reason", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped()
      const problem = (config: Record<string, unknown>) =>
        Effect.map(Effect.flip(decoded(config, folder)), ({ message }) => message.replaceAll(folder, "DIR"))
      const list = [["sistem_prompt", ""]]
      assert.strictEqual(
        yield* problem({ texts: list }),
        'train.yaml: agent.texts: unknown text "sistem_prompt"; did you mean "system_prompt"?',
      )
      assert.match(
        yield* problem({ texts: "run" }),
        /agent\.texts: expected texts\.json or a run that learned texts, found nothing at DIR\/run/,
      )
      yield* fs.writeFileString(`${folder}/bad.json`, '{"system_prompt":3}')
      assert.match(yield* problem({ texts: "bad.json" }), /DIR\/bad\.json: expected JSON with a text for each name/)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )
})
