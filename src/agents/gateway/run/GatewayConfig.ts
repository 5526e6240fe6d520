/**
 * Defines the config of a gateway that runs by itself, which `effect gateway` makes from its flags and saves as `config.yaml`.
 *
 * @example
 * ```yaml
 * kind: gateway
 * lm_config: { model: gpt-4.1-mini, budget: { tokens: 1000000 } }
 * aliases: [{ name: small, model: gpt-4.1-nano }]
 * ```
 */
import { Schema } from "effect"
import { bounded, positiveBelow, runName, withDefault } from "../../../base/config/fields.ts"
import { LogLevel } from "../../../run/record/logLevel.ts"
import { kindField } from "../../../run/RunSpec.ts"
import { LmConfig } from "../../lm/LmConfig.ts"
import { defaultLimits } from "../Sessions.ts"

export const GatewayConfig = Schema.Struct({
  kind: kindField("gateway"),
  /** The name of the run, which is a part of its folder's path. */
  name: withDefault(runName, "gateway"),
  /** The seed of the sampling. Each session has its own seed, which depends on this one and on the session's id. */
  seed: withDefault(bounded("seed"), 0),
  /**
   * The model that answers, with its limits, budget, retries and cache. Its temperature and its limit of tokens are not used,
   * because the agents choose them.
   */
  lmConfig: LmConfig,
  /** Other names by which agents ask for models, with the names of these models at the server. */
  aliases: withDefault(Schema.Array(Schema.Struct({ name: Schema.NonEmptyString, model: Schema.NonEmptyString })), []),
  /** Whether a name that is no alias is the name of a model at the server. If false, all such names mean `lm_config.model`. */
  anyModel: withDefault(Schema.Boolean, false),
  /**
   * Whether requests of OpenAI's responses are `passed` on as they are, or `converted` to chat completions; null passes them to
   * OpenAI's own server, and converts them for others.
   */
  responses: withDefault(Schema.NullOr(Schema.Literals(["passed", "converted"])), null),
  /** Whether the server is asked for token ids and log-probabilities, which a training needs. */
  traceTokens: withDefault(Schema.Boolean, false),
  /** The largest number of sessions at the same time. */
  maxSessions: withDefault(bounded("atOnce"), defaultLimits.sessions),
  /** The number of seconds without a call after which a session is ended. */
  idleSeconds: withDefault(positiveBelow("seconds"), 3600),
  /** The largest number of calls of a session. */
  maxCalls: withDefault(bounded("entries"), defaultLimits.calls),
  /**
   * The largest size of all calls of a session, in millions of characters. Each call counts with its whole prompt, since the
   * rollout of the session has it.
   */
  maxSessionMb: withDefault(positiveBelow("megabytes"), defaultLimits.perSession / 1e6),
  /** The largest size of all open sessions in memory, in millions of characters. A message that several calls have counts once. */
  maxMemoryMb: withDefault(positiveBelow("totalMegabytes"), defaultLimits.inMemory / 1e6),
  /**
   * The largest size of the conversations of a session that a later request may continue by the id of an answer, in millions of
   * characters; the oldest ones are dropped.
   */
  maxContinuableMb: withDefault(positiveBelow("megabytes"), defaultLimits.continuable / 1e6),
  /** The largest size of a request's body, in megabytes. */
  maxBodyMb: withDefault(positiveBelow("megabytes"), 64),
  /** The largest size of the bodies that are read at the same time, in megabytes; further ones wait. */
  maxReadingMb: withDefault(positiveBelow("totalMegabytes"), 512),
  /** The number of seconds in which a client must have sent a request with its body. */
  requestSeconds: withDefault(positiveBelow("seconds"), 120),
  /** The level of the messages in `run.log`. */
  logLevel: withDefault(LogLevel, "INFO"),
})
export type GatewayConfig = typeof GatewayConfig.Type

/** Returns the name at the server of the model that an agent asks for by this name. */
export const nameAtServer = ({ aliases, anyModel, lmConfig }: GatewayConfig, name: string): string =>
  aliases.find((alias) => alias.name === name)?.model ?? (anyModel && name !== "" ? name : lmConfig.model)
