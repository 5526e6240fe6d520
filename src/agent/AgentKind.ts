/**
 * A kind of agent: what a config can say of it below `agent`, and how it is made. Kinds of one's own are given beside the
 * built-in ones, by the reference `Agents.Kinds`.
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
 * const decoded = yield* Agents.decode(said, { source: "train.yaml" }).pipe(
 *   Effect.provideService(Agents.Kinds, [...Agents.builtIn, shouting]),
 * )
 * ```
 */
import { Effect, type FileSystem, type Path, Schema } from "effect"
import { type ConfigError, decode, isPlain, type Plain } from "../config/Config.ts"
import { withDefault } from "../config/fields.ts"
import type { Lm } from "../lm/Lm.ts"
import { LmConfig } from "../lm/LmConfig.ts"
import type { Agent } from "./Agent.ts"
import type { AgentError } from "./AgentError.ts"
import type { AgentSettings } from "./Conversation.ts"
import { type From, inject } from "./internal/prompts.ts"
import * as HistoryList from "./memory/HistoryList.ts"
import type { Memory } from "./memory/Memory.ts"
import type { DecodedMemory } from "./memory/MemoryKind.ts"
import * as Memories from "./memory/Memories.ts"
import { fromConfig, ParserConfig } from "./parsing.ts"

export type { From } from "./internal/prompts.ts"

/** A text, or none. */
export const prompt = withDefault(Schema.NullOr(Schema.String), null)

/** What is said of every agent. */
export const fields = <Type extends string>(type: Type) => ({
  /** The kind of the agent. */
  type: Schema.Literal(type),
  /** The language model, and how it is asked. */
  lmConfig: LmConfig,
  /**
   * The system prompt, which stands before all other messages; `{file:path}` inserts the text of a file. null is none.
   */
  systemPrompt: prompt,
  /**
   * How the action is found in an answer: all of it, the boxed part, the content of a tag, or the value of a key of
   * JSON. Of several parsers, the first that can read the answer is used.
   */
  parser: withDefault(ParserConfig, "whole"),
  /** Does not act upon an answer that was cut off at its length limit. */
  rejectIncompleteCompletions: withDefault(Schema.Boolean, true),
  /** Asks the server for the tokens of every call, to train on. */
  traceTokens: withDefault(Schema.Boolean, false),
  /** Has no effect: an agent prints nothing. The key is accepted so that files that have it stay valid. */
  verbose: withDefault(Schema.Boolean, true),
})

/** What is said of agents with a memory. */
export const memoryFields = {
  /** The memory that keeps experience, by its `_type`; null takes the default memory of the kind of agent. */
  memoryConfig: withDefault(Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown)), null),
  /**
   * The number of memory entries in a prompt: the last ones, or those most similar to the observation. null is all, 0
   * is none.
   */
  historyK: withDefault(Schema.NullOr(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))), null),
}

const Common = Schema.Struct(fields(""))
/** What all kinds' configs have in common, as it is read. */
type Common = Omit<typeof Common.Type, "type">

export interface Parts {
  /** Of the conversation with the model. */
  readonly settings: AgentSettings
  /** The prompts with what files hold, by their keys. */
  readonly texts: Readonly<Record<string, string>>
  /** Null where none is asked for. */
  readonly memory: Effect.Effect<Memory | null, AgentError>
}

export interface DecodedAgent {
  readonly type: string
  /** With every default and every file's text in it: it needs nothing else, and comes to the same agent. */
  readonly config: Plain
  readonly lmConfig: LmConfig
  readonly make: Effect.Effect<Agent, ConfigError | AgentError, Lm>
}

export interface AgentKind {
  readonly type: string
  readonly schema: Schema.Codec<unknown, unknown>
  readonly decode: (
    said: Plain,
    from: From,
  ) => Effect.Effect<DecodedAgent, ConfigError, FileSystem.FileSystem | Path.Path>
}

export interface KindRules<Config extends Common & { readonly memoryConfig?: unknown }, Encoded> {
  readonly type: string
  /** It has the `fields`, those for a memory if there is one, and its own. */
  readonly schema: Schema.Codec<Config, Encoded>
  /** What `memory_config` is unless given, and how long one is; null: none. Kinds that have none at all leave it out. */
  readonly memory?: Plain | null
  /** Keys of other prompts than the system's, which may name files. */
  readonly prompts?: ReadonlyArray<string>
  /** Of them, those whose whole text may be a file's name. */
  readonly fileNames?: ReadonlyArray<string>
  readonly make: (config: Config, parts: Parts) => Effect.Effect<Agent, ConfigError | AgentError, Lm>
}

/** What an agent is told of its model. */
const settingsOf = (config: Common, systemPrompt: string | null): AgentSettings => ({
  model: config.lmConfig.model,
  temperature: config.lmConfig.temperature,
  maxOutputTokens: config.lmConfig.maxOutputTokens,
  stop: config.lmConfig.stopSequences,
  traceTokens: config.traceTokens,
  systemPrompt,
  parser: fromConfig(config.parser),
  rejectIncompleteCompletions: config.rejectIncompleteCompletions,
})

/** A kind over its Schema; the rest of a config means the same for all of them. */
export const make = <Config extends Common & { readonly memoryConfig?: unknown }, Encoded>(
  rules: KindRules<Config, Encoded>,
): AgentKind => ({
  type: rules.type,
  schema: rules.schema,
  decode: Effect.fnUntraced(function* (said: Plain, from: From) {
    const { type, schema, memory, prompts = [], fileNames = [] } = rules
    const config = yield* decode(schema, said, from)
    const memorySaid = memory === undefined ? null : memoryOf(config.memoryConfig, memory)
    const remembering: DecodedMemory | null =
      memorySaid === null
        ? null
        : yield* Memories.decode(memorySaid, { ...from, prefix: [...(from.prefix ?? []), "memoryConfig"] })
    const encoded: unknown = Schema.encodeSync(schema)(config)
    const plain = isPlain(encoded) ? encoded : {}
    const { texts, config: whole } = yield* inject(plain, ["systemPrompt", ...prompts], fileNames, from)
    const settings = settingsOf(config, texts["systemPrompt"] ?? null)
    return {
      type,
      config: remembering === null ? whole : { ...whole, memoryConfig: remembering.config },
      lmConfig: config.lmConfig,
      make: Effect.suspend(() =>
        rules.make(config, { settings, texts, memory: remembering?.make ?? Effect.succeed(null) }),
      ),
    }
  }),
})

/** What is said, over the agent's own defaults where they are about that kind of memory. */
const memoryOf = (said: unknown, unlessGiven: Plain | null): Plain | null => {
  if (!isPlain(said)) return unlessGiven
  if (unlessGiven === null) return { _type: HistoryList.type, ...said }
  const { _type: type = unlessGiven["_type"] } = said
  const { maxLength } = unlessGiven
  const isOwn = maxLength !== undefined && (type === unlessGiven["_type"] || type === HistoryList.type)
  return { ...(isOwn ? { maxLength } : {}), ...said, _type: type }
}
