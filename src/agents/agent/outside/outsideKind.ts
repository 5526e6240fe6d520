/** Makes the kinds of agents with code of their own: the settings that all of them have, and how their configs are decoded. */
import { Effect, Schema, Semaphore } from "effect"
import { type ConfigError, decode, isPlain, type Plain } from "../../../base/config/Config.ts"
import { atOnce, bounded, positiveBelow, withDefault } from "../../../base/config/fields.ts"
import { Lm, type LmService } from "../../lm/Lm.ts"
import { LmConfig } from "../../lm/LmConfig.ts"
import type { AgentKind, From } from "../AgentKind.ts"
import { AgentTexts, AskedTexts } from "../AgentTexts.ts"
import { requestOf } from "../Conversation.ts"
import { NamedTexts, readOutsideTexts } from "../internal/namedTexts.ts"
import { fromConfig, ParserConfig } from "../Parser.ts"
import { type AskOutside, make } from "./OutsideAgent.ts"

/** Returns the fields of the Schema that all agents with code of their own have. */
export const fields = <Type extends string>(type: Type) => ({
  /** The kind of the agent. */
  type: Schema.Literal(type),
  /**
   * The model that the agent's calls reach through us, and the settings of these calls; null if the agent asks no model, or
   * asks models in its own way. These calls are then not recorded.
   */
  lmConfig: withDefault(Schema.NullOr(LmConfig), null),
  /** The parser, which finds the action in an answer, as for other agents. */
  parser: withDefault(ParserConfig, "whole"),
  /** Whether an answer is refused, and the agent asked again, if it is the text of a call that was cut off at its limit. */
  rejectIncompleteCompletions: withDefault(Schema.Boolean, true),
  /** Asks the server for the tokens of every call, to train on. */
  traceTokens: withDefault(Schema.Boolean, false),
  /** Settings of the agent's own. A function gets their keys in camelCase, a program or a server in snake_case. */
  options: withDefault(Schema.Record(Schema.String, Schema.Json), {}),
  /**
   * Texts that replace the agent's own, by the names with which it asks for them: a record, the run that learned them (a
   * folder, `latest` or a part of its path), a `texts.json`, or pairs of a name and a text. Names stay as they are written.
   */
  texts: withDefault(Schema.Union([NamedTexts, Schema.Record(Schema.String, Schema.String)]), {}),
  /** The seconds after which a turn without an answer fails. */
  timeoutS: withDefault(positiveBelow("seconds"), 600),
  /** How often a turn is tried again after a failure. The agent repeats everything that it does in the turn. */
  maxRetries: withDefault(bounded("countOrNone"), 0),
  /** The largest number of turns that are taken at the same time; null leaves the limit to the run. */
  concurrency: withDefault(Schema.NullOr(atOnce), null),
})

const CommonSettings = Schema.Struct(fields(""))
type CommonSettings = Omit<typeof CommonSettings.Type, "type">

/** The settings of an agent's config, and its texts, for the agent's code. */
export interface OutsideSettings<Config> {
  readonly config: Config
  /** Returns the text with this name: the one of the config or of a learner of prompts, or else the agent's own. */
  readonly text: (name: string, own: string) => string
  /** The texts of the config and of a learner of prompts, by name. */
  readonly texts: Readonly<Record<string, string | undefined>>
}

/** The texts of an agent's config. */
interface SentTexts {
  readonly byName: Readonly<Record<string, string>>
  /** The file or folder from which they were read; null if they are part of the config. */
  readonly file: string | null
}

interface OutsideRules<Config extends CommonSettings, Encoded> {
  readonly type: string
  readonly schema: Schema.Codec<Config, Encoded>
  /** Asks the service `Trust` about what the agent would start or send. */
  readonly permit?: (config: Config, texts: SentTexts, from: From) => Effect.Effect<void, ConfigError>
  readonly ask: (settings: OutsideSettings<Config>) => AskOutside
}

const modelOf = ({ lmConfig, traceTokens }: CommonSettings, service: LmService) => {
  if (lmConfig === null) return null
  const { model, temperature, maxOutputTokens, stopSequences: stop } = lmConfig
  return { service, base: requestOf({ model, temperature, maxOutputTokens, stop, traceTokens }) }
}

/** Makes a kind of agents with code of their own. */
export const outsideKind = <Config extends CommonSettings, Encoded>({
  type,
  schema,
  permit = () => Effect.void,
  ask,
}: OutsideRules<Config, Encoded>): AgentKind => ({
  type,
  schema,
  decode: Effect.fnUntraced(function* (plain: Plain, from: From) {
    const config = yield* decode(schema, plain, from)
    const encoded: unknown = Schema.encodeSync(schema)(config)
    /** The texts of the config. */
    const given = yield* readOutsideTexts(config.texts, from)
    const permitted = permit(
      config,
      { byName: given, file: typeof config.texts === "string" ? config.texts : null },
      from,
    )
    const { lmConfig, parser, timeoutS, maxRetries, concurrency, rejectIncompleteCompletions } = config
    return {
      type,
      config: {
        ...(isPlain(encoded) ? encoded : {}),
        ...(typeof config.texts === "string" && { texts: Object.entries(given) }),
      },
      lmConfig,
      permit: permitted,
      texts: (own = {}) => ({ ...own, ...given }),
      make: Effect.gen(function* () {
        yield* permitted
        const texts: Readonly<Record<string, string | undefined>> = { ...given, ...(yield* AgentTexts) }
        return make({
          type,
          lm: modelOf(config, yield* Lm),
          parser: fromConfig(parser),
          rejectIncompleteCompletions,
          timeoutS,
          maxRetries,
          atOnce: concurrency === null ? null : yield* Semaphore.make(concurrency),
          ask: (turn) =>
            Effect.flatMap(AskedTexts, (asked) => {
              const text = (name: string, own: string): string => {
                asked(name, own)
                return (Object.hasOwn(texts, name) ? texts[name] : undefined) ?? own
              }
              return ask({ config, text, texts })(turn)
            }),
        })
      }),
    }
  }),
})
