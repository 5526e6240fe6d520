/**
 * From a config to a model that can be asked: its name says whom, and around it is what the config asks for.
 *
 * @example
 * ```ts
 * const config = LmConfig.make({ model: "scripted:reader", cache: "record" })
 * const lm = yield* Lms.open(config)
 * const { content } = yield* lm.complete(LmConfig.request(config, [{ role: "user", content: "Hello" }]))
 * ```
 */
import { Effect, type FileSystem, Layer, type Path } from "effect"
import { LanguageModel } from "effect/ai"
import type { HttpClient } from "effect/http"
import { closest } from "../config/closest.ts"
import { ConfigError } from "../config/Config.ts"
import { mostBytes, readText } from "../config/files.ts"
import { locate } from "../config/places.ts"
import { messageOf } from "../config/text.ts"
import * as Anthropic from "./providers/anthropic.ts"
import { budgeted, priceOf, Spent } from "./middleware/budgeted.ts"
import { cached } from "./middleware/cached.ts"
import { limited } from "./middleware/limited.ts"
import { Lm, type LmService } from "./Lm.ts"
import type { LmConfig } from "./LmConfig.ts"
import type { LmError } from "./LmError.ts"
import { logged } from "./middleware/logged.ts"
import { toLm } from "./providers/languageModel.ts"
import * as Ngram from "./providers/ngram.ts"
import * as OpenAi from "./providers/openAi.ts"
import { retrying } from "./middleware/retrying.ts"
import { seeded } from "./middleware/seeded.ts"
import * as Scripted from "./providers/scripted.ts"

export interface OpenOptions {
  /** What the run has spent so far, over all of its models; from nothing on, unless given. */
  readonly spent?: Spent
  /** Functions to be asked as `scripted:NAME`, besides those that there are. */
  readonly scripts?: Readonly<Record<string, Scripted.Script>>
  /** Models to be asked as `builtin:NAME`, besides those that there are: one that learns, for instance. */
  readonly models?: Readonly<Record<string, LmService>>
  /** Who said it, for messages. */
  readonly source?: string
  /** The folder that `builtin:FILE.json` is named from, before the current one; the current one unless given. */
  readonly baseDir?: string
}

export type Needs = HttpClient.HttpClient | FileSystem.FileSystem | Path.Path

/**
 * The model that a config says. From the inside out: each try is counted and paid for, waits for its turn, is tried
 * again if it fails in a way that may pass; answers are kept, seeds are given, and calls are told of.
 */
export const open = Effect.fnUntraced(function* (
  config: LmConfig,
  how: OpenOptions = {},
): Effect.fn.Return<LmService, ConfigError | LmError, Needs> {
  const { spent = new Spent() } = how
  yield* checkPrices(config, how)
  const { thinkingBudget } = config
  const cache =
    config.cache === "off"
      ? undefined
      : yield* cached({
          mode: config.cache,
          directory: config.cacheDir,
          also: thinkingBudget === null ? {} : { thinkingBudget },
        })
  const asked = config.cache === "replay" ? unasked : yield* provider(config, how)
  const around = [
    budgeted(config.budget, config.prices, spent),
    limited(config.limits),
    retrying(config),
    ...(cache === undefined ? [] : [cache]),
    logged,
    seeded,
  ]
  return around.reduce((inner, around) => around(inner), asked)
})

/** The same for what asks for an `Lm`. */
export const layer = (config: LmConfig, how: OpenOptions = {}): Layer.Layer<Lm, ConfigError | LmError, Needs> =>
  Layer.effect(Lm, open(config, how))

/** Provides `Lm` from Effect's own `LanguageModel`, whichever layer provides that. */
export const fromLanguageModel: Layer.Layer<Lm, never, LanguageModel.LanguageModel> = Layer.effect(
  Lm,
  Effect.map(LanguageModel.LanguageModel, toLm),
)

/** What stands behind a cache that is only replayed. */
const unasked: LmService = {
  complete: ({ model }) =>
    Effect.die(new Error(`${model} was asked, though its answers are to come from the cache alone`)),
}

type Opening = Effect.Effect<LmService, ConfigError | LmError, Needs>

/** Whom a name means: the first that matches. What stands before a colon isn't told to the server. */
const servers: ReadonlyArray<{
  readonly name: RegExp
  readonly protocol: "openai" | "anthropic"
  /** Unless `base_url` says where. */
  readonly at: string
}> = [
  { name: /^vllm:/, protocol: "openai", at: "http://127.0.0.1:8000/v1" },
  { name: /^toka:/, protocol: "openai", at: "http://127.0.0.1:10210/v1" },
  { name: /gemini/, protocol: "openai", at: OpenAi.geminiUrl },
  { name: /^(ft:)?(chat)?gpt-|^(ft:)?o\d/, protocol: "openai", at: OpenAi.openAiUrl },
  { name: /claude/, protocol: "anthropic", at: Anthropic.anthropicUrl },
]
const own = { openai: OpenAi.openAiUrl, anthropic: Anthropic.anthropicUrl }

/** As the server calls it. */
const nameAtServer = (model: string): string => model.replace(/^(vllm|toka):/, "")

const provider = (config: LmConfig, how: OpenOptions): Opening => {
  const [, kind, name] = /^(scripted|builtin):(.*)$/s.exec(config.model) ?? []
  if (kind === "scripted") return scripted(name, config, how)
  if (kind === "builtin") return builtIn(name, config, how)
  const server = servers.find((server) => server.name.test(config.model))
  if (server === undefined && config.baseUrl === null && config.protocol === null) {
    return Effect.fail(unknown(config.model, how))
  }
  // Who only says where to ask means the protocol that most servers speak.
  const protocol = config.protocol ?? server?.protocol ?? "openai"
  const at = server?.protocol === protocol ? server.at : own[protocol]
  const options = {
    model: nameAtServer(config.model),
    baseUrl: config.baseUrl ?? at,
    apiKey: config.apiKey,
    timeoutS: config.timeoutS,
    maxAnswerMb: config.maxAnswerMb,
    thinkingBudget: config.thinkingBudget,
  }
  return Effect.map(
    protocol === "openai" ? OpenAi.make(options) : Anthropic.make(options),
    ({ complete }): LmService => ({
      complete: (request) => complete({ ...request, model: nameAtServer(request.model) }),
    }),
  )
}

const scripted = (name: string, { model }: LmConfig, how: OpenOptions): Opening => {
  const scripts = { ...Scripted.named, ...how.scripts }
  return Object.hasOwn(scripts, name)
    ? Effect.succeed(Scripted.make(scripts[name]))
    : Effect.fail(
        unknown(
          model,
          how,
          Object.keys(scripts).map((name) => `scripted:${name}`),
        ),
      )
}

/** Forms of `builtin:` that take what they can say: `builtin:choice:left,right`. */
const saying = { choice: "answers", words: "vocabulary" } as const

const builtIn = Effect.fnUntraced(function* (
  name: string,
  { model }: LmConfig,
  how: OpenOptions,
): Effect.fn.Return<LmService, ConfigError, Needs> {
  const { models = {} } = how
  if (Object.hasOwn(models, name)) return models[name]
  if (name === "ngram") return Ngram.make().lm
  const [, form, list] = /^(choice|words):(.*)$/s.exec(name) ?? []
  if (form === "choice" || form === "words") {
    const texts = list.split(",").map((text) => text.trim())
    return yield* Effect.try({
      try: () => Ngram.make({ [saying[form]]: texts }).lm,
      catch: (error) => configError(how, "model", `"${model}": ${messageOf(error)}`),
    })
  }
  if (name.endsWith(".json")) {
    const { path } = yield* locate(name, how.baseDir ?? ".")
    const text = yield* Effect.mapError(readText(path, mostBytes.text), (error) =>
      configError(how, "model", `${name} can't be read: ${messageOf(error)}`),
    )
    return (yield* Ngram.read(text, name)).lm
  }
  return yield* unknown(model, how, [
    ...["ngram", ...Object.keys(models)].map((name) => `builtin:${name}`),
    "builtin:choice:YES,NO",
    "builtin:words:ONE,TWO",
    "builtin:FILE.json",
  ])
})

const configError = ({ source = "lm_config" }: OpenOptions, key: string, problem: string): ConfigError =>
  ConfigError.at({ source }, key, problem)

const kinds = ["vllm", "toka", "scripted", "builtin", "claude", "gemini", "gpt"]

const unknown = (model: string, how: OpenOptions, known: ReadonlyArray<string> = []): ConfigError => {
  const [, head, rest] = /^(\w+)([:-].+)$/s.exec(model) ?? []
  const kind = head === undefined || known.length > 0 ? undefined : closest(head, kinds)
  const near = kind === undefined ? closest(model, known) : `${kind}${rest}`
  const all =
    known.length > 0
      ? known.join(", ")
      : "gpt-…, o1 …, gemini-…, claude-…, vllm:NAME, toka:NAME, scripted:NAME and builtin:NAME, and any other with base_url"
  const hint = near === undefined ? `known are ${all}` : `did you mean "${near}"?`
  return configError(how, "model", `"${model}" is no model that is known; ${hint}`)
}

const checkPrices = ({ model, budget, prices }: LmConfig, how: OpenOptions): Effect.Effect<void, ConfigError> =>
  budget.money === null || priceOf(model, prices) !== undefined
    ? Effect.void
    : Effect.fail(configError(how, "prices", `budget.money is ${budget.money}, but there is no price for ${model}`))
