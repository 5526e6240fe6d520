import { readFileSync } from "node:fs"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, FileSystem, Schema } from "effect"
import * as AgentKind from "../../../src/agents/agent/AgentKind.ts"
import * as Agents from "../../../src/agents/agent/Agents.ts"
import * as HistoryAgent from "../../../src/agents/agent/HistoryAgent.ts"
import * as HistoryList from "../../../src/agents/agent/memory/HistoryList.ts"
import * as Memories from "../../../src/agents/agent/memory/Memories.ts"
import * as MemoryKind from "../../../src/agents/agent/memory/MemoryKind.ts"
import { type Plain, toSnakeCase } from "../../../src/base/config/Config.ts"
import { positiveInt } from "../../../src/base/config/fields.ts"
import { inTurn, lastOf, linesOf, look, play, scripted, told } from "./support.ts"

const lm_config = { model: "scripted:x" }

/** A folder with these files. */
const folder = (files: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const baseDir = yield* fs.makeTempDirectoryScoped()
    yield* fs.makeDirectory(`${baseDir}/prompts`)
    for (const [name, text] of Object.entries(files)) yield* fs.writeFileString(`${baseDir}/${name}`, text)
    return baseDir
  })

/** A decoded agent, and the request of its first turn. */
const asked = (config: unknown, from: Agents.From = { source: "train.yaml", prefix: ["agent"] }) =>
  Effect.gen(function* () {
    const decoded = yield* Agents.decode(config, from)
    const script = scripted(() => "yes")
    const agent = yield* Effect.provide(decoded.make, script.layer)
    yield* agent.act(look("Well?"))
    return { decoded, agent, request: script.requests[0] }
  })

const errorOf = (config: unknown, from: Agents.From = { source: "train.yaml", prefix: ["agent"] }) =>
  Effect.map(Effect.flip(Agents.decode(config, from)), ({ message }) => message)

layer(NodeServices.layer)("agents of a config", (it) => {
  it.effect("have the defaults that config files rely on", () =>
    Effect.gen(function* () {
      const table: ReadonlyArray<readonly [Plain, Plain]> = [
        [{ lm_config }, { type: "history_agent", memory_config: { _type: "history_list", max_length: 100 } }],
        [
          { type: "history_agent", lm_config, memory_config: null },
          { history_k: null, memory_config: { _type: "history_list", max_length: 100 } },
        ],
        [
          { type: "reflexion_agent", lm_config },
          {
            history_k: null,
            memory_config: { _type: "reflections", max_length: 200, max_reflections: 200 },
            enable_reflection: true,
            reflect_on_failure_only: false,
            failure_threshold: 1,
            max_reflections_in_prompt: 10,
            agent_system_prompt: null,
            reflection_system_prompt: null,
            reflection_few_shot_examples: null,
          },
        ],
        [
          { type: "reflexion_agent", lm_config, memory_config: { _type: "history_list" } },
          { memory_config: { _type: "history_list", max_length: 200 } },
        ],
        [
          { type: "history_agent", lm_config, memory_config: { max_length: null } },
          { memory_config: { _type: "history_list", max_length: null } },
        ],
        [{ type: "memoryless_agent", lm_config }, { type: "memoryless_agent" }],
        [
          { type: "tool_agent", lm_config },
          { memory_config: null, max_calls: 8, shot_clock: true },
        ],
        [
          { type: "react_agent", lm_config, memory_config: { max_length: 3 } },
          { memory_config: { _type: "history_list", max_length: 3 }, max_calls: 8 },
        ],
      ]
      const common = {
        system_prompt: null,
        verbose: true,
        parser: "whole",
        reject_incomplete_completions: true,
        trace_tokens: false,
      }
      for (const [config, expected] of table) {
        const { decoded, agent } = yield* asked(config)
        const effective = toSnakeCase(decoded.config)
        assert.deepInclude(effective, { ...common, ...expected })
        assert.strictEqual(agent.type, decoded.type)
        assert.strictEqual(agent.model, "scripted:x")
        assert.strictEqual(decoded.lmConfig?.maxRetries, 5)
      }
    }),
  )

  it.effect("decode to the same agent from their completed config", () =>
    Effect.gen(function* () {
      const baseDir = yield* folder({ "prompts/qa.md": "Be brief. Write {file:x} as {{file:x}}, and pay $1." })
      const config = {
        type: "reflexion_agent",
        lm_config: { model: "m", temperature: 0.7, api_key: "secret" },
        system_prompt: "First. ${file:prompts/qa.md} Last.",
        memory_config: { _type: "reflections", max_reflections: 3 },
        parser: [{ tag: "move" }, "boxed", { json: "answer" }],
      }
      const first = yield* asked(config, { source: "a.yaml", baseDir })
      const again = yield* asked(toSnakeCase(first.decoded.config), { source: "config.yaml", baseDir: "/nowhere" })
      assert.deepStrictEqual(again.decoded.config, first.decoded.config)
      const prompt = { role: "system", content: "First. Be brief. Write {file:x} as {{file:x}}, and pay $1. Last." }
      assert.deepStrictEqual(first.request?.messages[0], prompt)
      assert.deepStrictEqual(again.request, first.request)
      assert.notInclude(JSON.stringify(first.decoded.config), "secret")
    }),
  )

  it.effect("call their model with the settings of the file", () =>
    Effect.gen(function* () {
      const { request } = yield* asked({
        type: "memoryless_agent",
        lm_config: { model: "vllm:m", temperature: 0.5, max_output_tokens: 7, stop_sequences: ["FEEDBACK"] },
        system_prompt: "Short.",
        trace_tokens: true,
      })
      assert.deepInclude(request, {
        model: "vllm:m",
        temperature: 0.5,
        maxOutputTokens: 7,
        stop: ["FEEDBACK"],
        traceTokens: true,
        messages: [
          { role: "system", content: "Short." },
          { role: "user", content: "Q: Well?" },
        ],
      })
    }),
  )

  it.effect("insert files into prompts, in both forms, from the config's folder", () =>
    Effect.gen(function* () {
      const baseDir = yield* folder({ "prompts/a.md": "A", "b.txt": "B", "ex.txt": "An example." })
      const from = { source: "train.yaml", baseDir }
      const table: ReadonlyArray<readonly [string, string]> = [
        ["{file:prompts/a.md}", "A"],
        ["${file:prompts/a.md}", "A"],
        ["x {file: prompts/a.md } y ${file:b.txt}\nz", "x A y B\nz"],
        [`{file:${baseDir}/b.txt}`, "B"],
        ["{{file:b.txt}", "{file:b.txt}"],
        ["{question} {b.txt}", "{question} {b.txt}"],
        // Only for examples is the name of a file enough.
        ["b.txt", "b.txt"],
      ]
      for (const [prompt, expected] of table) {
        const { request } = yield* asked({ type: "memoryless_agent", lm_config, system_prompt: prompt }, from)
        assert.deepStrictEqual(request?.messages[0], { role: "system", content: expected }, prompt)
      }
      // A file that is not in the config's folder is looked up in the working directory.
      const { request } = yield* asked({ type: "memoryless_agent", lm_config, system_prompt: "{file:LICENSE}" }, from)
      assert.deepStrictEqual(request?.messages[0], { role: "system", content: readFileSync("LICENSE", "utf8") })
      for (const examples of ["ex.txt", "{file:ex.txt}", "${file:ex.txt}", "An example."]) {
        const decoded = yield* Agents.decode(
          {
            type: "reflexion_agent",
            lm_config,
            reflection_few_shot_examples: examples,
            reflection_system_prompt: "{file:b.txt}",
          },
          from,
        )
        const script = inTurn("yes", "be better")
        const agent = yield* Effect.provide(decoded.make, script.layer)
        yield* play(agent, "Well?", [{ observation: null, feedback: told(0) }])
        assert.deepStrictEqual(script.requests[1]?.messages[0], { role: "system", content: "B" })
        assert.match(lastOf(script.requests[1]), /^Examples:\n\nAn example\.\n\nThe episode:/)
      }
    }),
  )

  it.effect("are refused with one line that says where, what, and what was expected", () =>
    Effect.gen(function* () {
      const baseDir = yield* folder({})
      const here = { source: "train.yaml", prefix: ["agent"], baseDir }
      const cases: ReadonlyArray<readonly [Plain | number, RegExp]> = [
        [7, /^train\.yaml: agent: expected an agent, found 7$/],
        [
          { type: "historyagent" },
          /^train\.yaml: agent\.type: unknown agent "historyagent"; did you mean "history_agent"\?$/,
        ],
        [
          { type: "robot" },
          /^train\.yaml: agent\.type: unknown agent "robot"; expected one of history_agent, memoryless_agent, reflexion_agent, tool_agent, react_agent, command, http$/,
        ],
        [{ histroy_k: 3 }, /^train\.yaml: unknown key "agent\.histroy_k"; did you mean "agent\.history_k"\?$/],
        [
          { type: "memoryless_agent", history_k: 3 },
          /^train\.yaml: unknown key "agent\.history_k"; known keys are type, /,
        ],
        [
          { lm_config: { modl: "x" } },
          /train\.yaml: unknown key "agent\.lm_config\.modl"; did you mean "agent\.lm_config\.model"\?/,
        ],
        [{ lm_config: {} }, /^train\.yaml: agent\.lm_config\.model: /],
        [{ history_k: -1 }, /^train\.yaml: agent\.history_k: .*, found -1$/],
        [
          { memory_config: { _type: "histroy_list" } },
          /^train\.yaml: agent\.memory_config\._type: unknown kind of memory "histroy_list"; did you mean "history_list"\?$/,
        ],
        [
          { memory_config: { _type: "history_list", max_lenght: 3 } },
          /^train\.yaml: unknown key "agent\.memory_config\.max_lenght"; did you mean "agent\.memory_config\.max_length"\?$/,
        ],
        [
          { memory_config: { _type: "history_list", max_length: 0 } },
          /^train\.yaml: agent\.memory_config\.max_length: .*, found 0$/,
        ],
        [{ parser: "json" }, /^train\.yaml: agent\.parser: .*, found "json"$/],
        [
          { system_prompt: "{file:missing.md}" },
          /^train\.yaml: agent\.system_prompt: expected a file to read at \/.*\/missing\.md or \/.*\/missing\.md: there is no such file$/,
        ],
        [
          { type: "reflexion_agent", reflection_few_shot_examples: "missing.txt" },
          /^train\.yaml: agent\.reflection_few_shot_examples: expected a file to read at \/.*\/missing\.txt or \/.*\/missing\.txt: there is no such file$/,
        ],
      ]
      for (const [config, message] of cases) {
        const error = yield* errorOf(typeof config === "number" ? config : { lm_config, ...config }, here)
        assert.match(error, message)
        assert.notInclude(error, "\n")
      }
    }),
  )

  it.effect("may be of a user's own kinds, with a user's own memories", () =>
    Effect.gen(function* () {
      const dreams = MemoryKind.make({
        type: "dreams",
        schema: Schema.Struct({ _type: Schema.Literal("dreams"), depth: positiveInt }),
        make: ({ depth }) => Effect.sync(() => HistoryList.make({ maxLength: depth })),
      })
      const shouting = AgentKind.make({
        type: "shouting_agent",
        schema: Schema.Struct({
          ...AgentKind.fields("shouting_agent"),
          ...AgentKind.memoryFields,
          loud: Schema.Boolean,
        }),
        memory: { _type: "dreams", depth: 2 },
        make: ({ loud }, { settings, memory }) =>
          Effect.flatMap(memory, (memory) =>
            HistoryAgent.make({
              ...settings,
              memory,
              parser: (text) => ({ _tag: "Parsed", action: loud ? text.toUpperCase() : text, reward: 0 }),
            }),
          ),
      })
      const { agent, decoded } = yield* asked({ type: "shouting_agent", lm_config, loud: true }).pipe(
        Effect.provideService(Agents.Kinds, [...Agents.builtIn, shouting]),
        Effect.provideService(Memories.Kinds, [...Memories.builtIn, dreams]),
      )
      assert.deepStrictEqual(decoded.config["memoryConfig"], { _type: "dreams", depth: 2 })
      const { turns } = yield* play(agent, "a", [{ observation: null, feedback: told(1, "Fine.") }])
      assert.deepStrictEqual(turns[0]?.outcome, { _tag: "Act", action: "YES", reward: 0 })
      assert.deepStrictEqual(yield* linesOf(agent.memory), ["Action: YES", "Feedback: Fine."])
      assert.match(yield* errorOf({ type: "shouting_agent", lm_config }), /unknown agent "shouting_agent"/)
    }),
  )
})

describe("the schema of all agents", () => {
  layer(NodeServices.layer)((it) => {
    it.effect("accepts completed configs, and nothing else", () =>
      Effect.gen(function* () {
        const decode = Schema.decodeUnknownEffect(Agents.AgentConfig, { onExcessProperty: "error" })
        const required = new Map<string, object>([
          ["command", { command: ["sh"] }],
          ["http", { url: "http://127.0.0.1" }],
        ])
        for (const type of Agents.builtIn.map(({ type }) => type)) {
          const { config } = yield* Agents.decode({ type, lm_config, ...required.get(type) })
          assert.strictEqual((yield* decode(config)).type, type)
          yield* Effect.flip(decode({ ...config, memori: 1 }))
        }
      }),
    )
  })
})
