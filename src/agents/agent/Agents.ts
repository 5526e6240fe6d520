/**
 * Makes agents from their configs, and defines the built-in kinds of agent. Decoding reads the prompt files that a
 * config names.
 *
 * @example
 * ```ts
 * const config = { type: "reflexion_agent", lm_config: { model: "gpt-4.1-mini" }, system_prompt: "{file:prompts/qa.md}" }
 * const { make } = yield* Agents.decode(config, { source: "train.yaml", baseDir: "experiments" })
 * const agent = yield* Effect.provideService(make, Lm, yield* Lms.open(LmConfig.make({ model: "gpt-4.1-mini" })))
 * ```
 */
import { Context, Effect, type FileSystem, type Path, Schema } from "effect"
import { choiceHint } from "../../base/text/closest.ts"
import { ConfigError, display, isPlain, type Plain, toCamelCase } from "../../base/config/Config.ts"
import { bounded, real, withDefault } from "../../base/config/fields.ts"
import { type AgentKind, type DecodedAgent, fields, type From, make, memoryFields, prompt } from "./AgentKind.ts"
import * as CommandAgent from "./CommandAgent.ts"
import * as HistoryAgent from "./HistoryAgent.ts"
import * as HttpAgent from "./HttpAgent.ts"
import { permitTools, ToolSource, toolsOf } from "./Mcp.ts"
import * as MemorylessAgent from "./MemorylessAgent.ts"
import * as ReActAgent from "./ReActAgent.ts"
import * as ReflexionAgent from "./ReflexionAgent.ts"
import * as ToolAgent from "./ToolAgent.ts"
import { MemoryConfig } from "./memory/Memories.ts"

export type { AgentKind, DecodedAgent, From } from "./AgentKind.ts"

const history = Schema.Struct({ ...fields(HistoryAgent.type), ...memoryFields })
const memoryless = Schema.Struct(fields(MemorylessAgent.type))
const reflexion = Schema.Struct({
  ...fields(ReflexionAgent.type),
  ...memoryFields,
  /** Makes the agent reflect when a training episode is over. */
  enableReflection: withDefault(Schema.Boolean, true),
  /** Whether the agent reflects only on failed episodes: those whose scores add up to less than `failure_threshold`. */
  reflectOnFailureOnly: withDefault(Schema.Boolean, false),
  /** An episode counts as a success if its scores add up to at least this number. */
  failureThreshold: withDefault(real, 1),
  /** The number of reflections (the newest ones) in a prompt, before the history; null means all. */
  maxReflectionsInPrompt: withDefault(Schema.NullOr(bounded("countOrNone")), 10),
  /** The system prompt for acting; null uses `system_prompt`. */
  agentSystemPrompt: prompt,
  /** The system prompt for reflecting; null uses the built-in prompt. */
  reflectionSystemPrompt: prompt,
  /** Examples for the prompt for reflecting, before the episode, as a text or as the name of a file; null shows none. */
  reflectionFewShotExamples: prompt,
})

/** The fields of agents that may call the model several times for one action, including the fields of a memory. */
const loopFields = {
  ...memoryFields,
  /** The largest number of calls of the model for one action. */
  maxCalls: withDefault(bounded("count"), 8),
  /** The MCP servers whose tools the agent may call, besides the tools of the task. */
  tools: withDefault(Schema.Array(ToolSource), []),
}

const tool = Schema.Struct({
  ...fields(ToolAgent.type),
  ...loopFields,
  /** Whether the last of the `max_calls` requests forbids tool calls, so that the model has to act. */
  shotClock: withDefault(Schema.Boolean, true),
})

const react = Schema.Struct({ ...fields(ReActAgent.type), ...loopFields })

/** The built-in kinds of agent; the first is the default. */
export const builtIn: ReadonlyArray<AgentKind> = [
  make({
    type: HistoryAgent.type,
    schema: history,
    memory: { _type: "history_list", maxLength: 100 },
    make: ({ historyK }, { settings, memory }) =>
      Effect.flatMap(memory, (memory) => HistoryAgent.make({ ...settings, memory, historyK })),
  }),
  make({
    type: MemorylessAgent.type,
    schema: memoryless,
    make: (_, { settings }) => MemorylessAgent.make(settings),
  }),
  make({
    type: ReflexionAgent.type,
    schema: reflexion,
    memory: { _type: "reflections", maxLength: 200 },
    prompts: ["agentSystemPrompt", "reflectionSystemPrompt", "reflectionFewShotExamples"],
    fileNames: ["reflectionFewShotExamples"],
    make: (config, { settings, memory, texts }) => {
      const { historyK, maxReflectionsInPrompt, enableReflection, reflectOnFailureOnly, failureThreshold } = config
      const reflecting = { maxReflectionsInPrompt, enableReflection, reflectOnFailureOnly, failureThreshold }
      return Effect.flatMap(memory, (memory) =>
        // The keys of `texts` are the names of the settings in `prompts`.
        ReflexionAgent.make({ ...texts, ...settings, ...reflecting, memory, historyK }),
      )
    },
  }),
  make({
    type: ToolAgent.type,
    schema: tool,
    memory: null,
    permit: ({ tools: sources }, from) => permitTools(sources, from),
    make: ({ historyK, maxCalls, shotClock, tools: sources }, { settings, memory: making }) =>
      Effect.gen(function* () {
        const [memory, tools] = [yield* making, yield* toolsOf(sources)]
        return yield* ToolAgent.make({ ...settings, memory, historyK, maxCalls, shotClock, tools })
      }),
  }),
  make({
    type: ReActAgent.type,
    schema: react,
    memory: null,
    permit: ({ tools: sources }, from) => permitTools(sources, from),
    make: ({ historyK, maxCalls, parser, tools: sources }, { settings, memory: making }) =>
      Effect.gen(function* () {
        const [memory, tools] = [yield* making, yield* toolsOf(sources)]
        const { parser: decoded, ...rest } = settings
        // The agent's default parser also reads `finish[…]`, so it is only replaced if the config sets another one.
        const own = parser === "whole" || decoded === undefined ? {} : { parser: decoded }
        return yield* ReActAgent.make({ ...rest, ...own, memory, historyK, maxCalls, tools })
      }),
  }),
  CommandAgent.kind,
  HttpAgent.kind,
]

/** The kinds of agent that configs can name. Provide a longer list to add a kind. */
export const Kinds = Context.Reference<ReadonlyArray<AgentKind>>("effect-rl/agent/AgentKinds", {
  defaultValue: () => builtIn,
})

const isKind = (value: unknown): value is AgentKind =>
  typeof value === "object" && value !== null && "decode" in value && typeof value.decode === "function"

/** Replaces the kind in an agent's config by its name, and adds it to `kinds`. */
const nameKind = (agent: unknown, kinds: Set<AgentKind>): unknown => {
  if (isKind(agent)) {
    kinds.add(agent)
    return { type: agent.type }
  }
  if (!isPlain(agent) || !isKind(agent.type)) return agent
  kinds.add(agent.type)
  return { ...agent, type: agent.type.type }
}

/** Replaces the kinds in the sections of a config that hold agents by their names, and adds them to `kinds`. */
const nameKinds = (config: Plain, kinds: Set<AgentKind>): Plain => {
  const named: Record<string, unknown> = { ...config }
  const { agent, agents, runs } = config
  if (agent !== undefined) named.agent = nameKind(agent, kinds)
  if (Array.isArray(agents)) named.agents = agents.map((one) => nameKind(one, kinds))
  else if (isPlain(agents)) named.agents = mapValues(agents, (one) => nameKind(one, kinds))
  if (isPlain(runs)) named.runs = mapValues(runs, (run) => (isPlain(run) ? nameKinds(run, kinds) : run))
  return named
}

const mapValues = (record: Plain, change: (value: unknown) => unknown): Plain =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]))

/**
 * Lets configs that are made in code have kinds of agents as values: `agent: myKind`, `agent: { type: myKind, … }`, the same
 * in `agents`, and in the runs of a trainer. Passes on the config with the names of these kinds, and makes them known to it.
 */
export const withOwnKinds = Effect.fnUntraced(function* <A, E, R>(
  config: unknown,
  use: (config: unknown) => Effect.Effect<A, E, R>,
): Effect.fn.Return<A, E | ConfigError, R> {
  if (!isPlain(config)) return yield* use(config)
  const kinds = new Set<AgentKind>()
  const named = nameKinds(config, kinds)
  const types = [...kinds].map(({ type }) => type)
  const twice = types.find((type, at) => types.indexOf(type) !== at)
  if (twice !== undefined) {
    const problem = `expected different names, found two kinds of agents with the name "${twice}"`
    return yield* ConfigError.at({ source: "agents" }, "type", problem)
  }
  const others = (yield* Kinds).filter(({ type }) => !types.includes(type))
  return yield* Effect.provideService(use(named), Kinds, [...others, ...kinds])
})

/** Replaces the field `memoryConfig`, which accepts any object, by one that lists the built-in kinds of memory. */
const withMemory = { memoryConfig: withDefault(Schema.NullOr(MemoryConfig), null) }

/** The Schema of the config below the key `agent`, for the JSON Schemas of config files: only the built-in kinds. */
export const AgentConfig = Schema.Union([
  Schema.Struct({ ...history.fields, ...withMemory }),
  memoryless,
  Schema.Struct({ ...reflexion.fields, ...withMemory }),
  Schema.Struct({ ...tool.fields, ...withMemory }),
  Schema.Struct({ ...react.fields, ...withMemory }),
  CommandAgent.config,
  HttpAgent.config,
])

/**
 * Decodes a config with keys in snake_case or camelCase. Unknown keys are errors. Adds defaults and the texts of prompt
 * files.
 */
export const decode = (
  config: unknown,
  from: From = { source: "agent" },
): Effect.Effect<DecodedAgent, ConfigError, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const plain = toCamelCase(config)
    if (!isPlain(plain)) return yield* ConfigError.at(from, "", `expected an agent, found ${display(config)}`)
    const kinds = yield* Kinds
    const { type = kinds[0]?.type } = plain
    const kind = kinds.find((candidate) => candidate.type === type)
    if (kind !== undefined) return yield* kind.decode({ ...plain, type }, from)
    const names = kinds.map(({ type }) => type)
    return yield* ConfigError.at(from, "type", `unknown agent ${display(type)}; ${choiceHint(type, names)}`)
  })
