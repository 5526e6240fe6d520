/**
 * Defines kinds of agents. A kind has a Schema for the config below the key `agent`, and makes an agent from that
 * config. To add a kind of your own, provide a longer list of kinds by the reference `Agents.Kinds`.
 *
 * @example
 * ```ts
 * const shouting = AgentKind.make({
 *   schema: Schema.Struct({
 *     ...AgentKind.fields("shouting_agent"),
 *     ...AgentKind.memoryFields,
 *     loud: Schema.Boolean,
 *   }),
 *   type: "shouting_agent",
 *   memory: { _type: "history_list", maxLength: 10 },
 *   make: ({ loud }, { settings, memory }) =>
 *     Effect.flatMap(memory, (memory) => Shouting.make({ ...settings, memory, loud })),
 * })
 * const decoded = yield* Agents.decode({ type: "shouting_agent", loud: true }, { source: "train.yaml" }).pipe(
 *   Effect.provideService(Agents.Kinds, [...Agents.builtIn, shouting]),
 * )
 * ```
 */
import { Effect, type FileSystem, type Path, Schema } from "effect"
import { type ConfigError, decode, isPlain, type Plain } from "../../base/config/Config.ts"
import { bounded, withDefault } from "../../base/config/fields.ts"
import type { Lm } from "../lm/Lm.ts"
import { LmConfig } from "../lm/LmConfig.ts"
import type { Agent } from "./Agent.ts"
import type { AgentError } from "./AgentError.ts"
import { AgentTexts } from "./AgentTexts.ts"
import type { AgentSettings } from "./Conversation.ts"
import { applied, NamedTexts, ownTexts, readTexts } from "./internal/namedTexts.ts"
import { type From, inject } from "./internal/prompts.ts"
import * as HistoryList from "./memory/HistoryList.ts"
import type { AgentMemory } from "./memory/Memory.ts"
import type { DecodedMemory } from "./memory/MemoryKind.ts"
import * as Memories from "./memory/Memories.ts"
import { fromConfig, ParserConfig } from "./Parser.ts"

export type { From } from "./internal/prompts.ts"

/** The Schema of a setting that holds a prompt; null means no prompt, or the default one. */
export const prompt = withDefault(Schema.NullOr(Schema.String), null)

/** Returns the fields of the Schema that all kinds of agent have. */
export const fields = <Type extends string>(type: Type) => ({
  /** The kind of the agent. */
  type: Schema.Literal(type),
  /** The language model, and the settings of its calls. */
  lmConfig: LmConfig,
  /**
   * The system prompt, the first message of every prompt; `{file:path}` inserts the text of a file. null: no system prompt.
   */
  systemPrompt: prompt,
  /**
   * Texts that replace the agent's own by name: the run that learned them (a folder, `latest` or a part of its path), a
   * `texts.json`, or pairs of a name and a text. Names are the keys of prompts, `examples` and `tool:NAME`.
   */
  texts: Schema.optionalKey(NamedTexts),
  /**
   * The parser, which finds the action in an answer: all of the answer (`whole`), its boxed part, the content of a tag, or
   * the value of a key in JSON. In a list of parsers, the first one that can read the answer is used.
   */
  parser: withDefault(ParserConfig, "whole"),
  /** Whether answers that were cut off at the length limit are refused, so that the agent does not act. */
  rejectIncompleteCompletions: withDefault(Schema.Boolean, true),
  /** Asks the server for the tokens of every call, to train on. */
  traceTokens: withDefault(Schema.Boolean, false),
  /** This setting has no effect, because agents print nothing. It is accepted so that existing files stay valid. */
  verbose: withDefault(Schema.Boolean, true),
})

/** The fields of the Schema that kinds of agent with a memory have in addition. */
export const memoryFields = {
  /** The memory, by its `_type`; null uses the default memory of the agent's type. */
  memoryConfig: withDefault(Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown)), null),
  /**
   * The number of memory entries in a prompt: the last ones or, for some memories, those most similar to the observation.
   * null means all entries, 0 none.
   */
  historyK: withDefault(Schema.NullOr(bounded("countOrNone")), null),
}

const CommonAgentSettings = Schema.Struct(fields(""))
/** The decoded settings that all kinds of agent have. */
type CommonAgentSettings = Omit<typeof CommonAgentSettings.Type, "type">

/** The inputs of a kind's `make` besides the config. They are made in the same way for all kinds of agent. */
export interface AgentParts {
  /** The settings of the conversation with the model. */
  readonly settings: AgentSettings
  /** The prompts by their keys, with the texts of files inserted. */
  readonly texts: Readonly<Record<string, string>>
  /** Makes the memory; its value is null if the agent has no memory. */
  readonly memory: Effect.Effect<AgentMemory | null, AgentError>
}

/** A valid config of an agent, with an Effect that makes the agent. */
export interface DecodedAgent {
  readonly type: string
  /**
   * The config with all defaults and with the texts of all files, so that the same agent can be made without these
   * files.
   */
  readonly config: Plain
  /** The model; null for an agent with code of its own that asks none through us. */
  readonly lmConfig: LmConfig | null
  /**
   * Returns the texts of the agent that can be replaced by `AgentTexts`, by name. An agent with code of its own has those of
   * its config and those for which it has asked (`AskedTexts`), with its own values.
   */
  readonly texts: (asked?: Readonly<Record<string, string>>) => Readonly<Record<string, string>>
  /** Asks the service `Trust` about the programs that the agent would start. `make` does this, too. */
  readonly permit: Effect.Effect<void, ConfigError>
  readonly make: Effect.Effect<Agent, ConfigError | AgentError, Lm>
}

export interface AgentKind {
  readonly type: string
  readonly schema: Schema.Codec<unknown, unknown>
  readonly decode: (
    config: Plain,
    from: From,
  ) => Effect.Effect<DecodedAgent, ConfigError, FileSystem.FileSystem | Path.Path>
}

/** The rules from which `make` makes a kind of agent. */
export interface KindRules<Config extends CommonAgentSettings & { readonly memoryConfig?: unknown }, Encoded> {
  readonly type: string
  /** The Schema of the config: the `fields`, the `memoryFields` of kinds with a memory, and the kind's own settings. */
  readonly schema: Schema.Codec<Config, Encoded>
  /** The default `memory_config`; null for no memory by default. Kinds that never have a memory leave it out. */
  readonly memory?: Plain | null
  /** The keys of further prompts, besides `systemPrompt`, in which `{file:path}` inserts a file. */
  readonly prompts?: ReadonlyArray<string>
  /** Lists the keys of `prompts` whose whole value may be the name of a file. */
  readonly fileNames?: ReadonlyArray<string>
  /** Asks the service `Trust` about the programs that an agent with this config would start. By default it starts none. */
  readonly permit?: (config: Config, from: From) => Effect.Effect<void, ConfigError>
  readonly make: (config: Config, parts: AgentParts) => Effect.Effect<Agent, ConfigError | AgentError, Lm>
}

/** Converts the settings that all agents have to the settings of a `Conversation`. */
const settingsOf = (
  config: CommonAgentSettings,
  systemPrompt: string | null,
  toolDescriptions: AgentSettings["toolDescriptions"],
): AgentSettings => ({
  model: config.lmConfig.model,
  temperature: config.lmConfig.temperature,
  maxOutputTokens: config.lmConfig.maxOutputTokens,
  stop: config.lmConfig.stopSequences,
  traceTokens: config.traceTokens,
  systemPrompt,
  parser: fromConfig(config.parser),
  rejectIncompleteCompletions: config.rejectIncompleteCompletions,
  ...(toolDescriptions === undefined ? {} : { toolDescriptions }),
})

/**
 * Makes a kind of agent from its rules. The kind's `decode` checks a config, inserts the files of prompts, and prepares the
 * parser and the memory; then `rules.make` makes the agent from them.
 */
export const make = <Config extends CommonAgentSettings & { readonly memoryConfig?: unknown }, Encoded>(
  rules: KindRules<Config, Encoded>,
): AgentKind => ({
  type: rules.type,
  schema: rules.schema,
  decode: Effect.fnUntraced(function* (plainConfig: Plain, from: From) {
    const { type, schema, memory, prompts = [], fileNames = [] } = rules
    const config = yield* decode(schema, plainConfig, from)
    const memoryConfig = memory === undefined ? null : memoryOf(config.memoryConfig, memory)
    const decodedMemory: DecodedMemory | null =
      memoryConfig === null
        ? null
        : yield* Memories.decode(memoryConfig, { ...from, prefix: [...(from.prefix ?? []), "memoryConfig"] })
    const encoded: unknown = Schema.encodeSync(schema)(config)
    const plain = isPlain(encoded) ? encoded : {}
    const promptKeys = ["systemPrompt", ...prompts]
    const { texts: ownPrompts, config: completeConfig } = yield* inject(plain, promptKeys, fileNames, from)
    const own = ownTexts(ownPrompts, yield* readTexts(config.texts, promptKeys, from))
    const permit = rules.permit?.(config, from) ?? Effect.void
    return {
      type,
      config: {
        ...completeConfig,
        ...(config.texts === undefined ? {} : { texts: Object.entries(own) }),
        ...(decodedMemory === null ? {} : { memoryConfig: decodedMemory.config }),
      },
      lmConfig: config.lmConfig,
      permit,
      texts: () => own,
      make: Effect.gen(function* () {
        yield* permit
        const { prompts: texts, toolDescriptions } = applied(ownPrompts, promptKeys, {
          ...own,
          ...(yield* AgentTexts),
        })
        const settings = settingsOf(config, texts["systemPrompt"] ?? null, toolDescriptions)
        return yield* rules.make(config, { settings, texts, memory: decodedMemory?.make ?? Effect.succeed(null) })
      }),
    }
  }),
})

/**
 * Completes a `memory_config` with the defaults of a kind of agent; null means no memory. The default `maxLength` is
 * only used for the default kind of memory and for `history_list`.
 */
const memoryOf = (config: unknown, defaults: Plain | null): Plain | null => {
  if (!isPlain(config)) return defaults
  if (defaults === null) return { _type: HistoryList.type, ...config }
  const { _type: type = defaults["_type"] } = config
  const { maxLength } = defaults
  const applies = maxLength !== undefined && (type === defaults["_type"] || type === HistoryList.type)
  return { ...(applies ? { maxLength } : {}), ...config, _type: type }
}
