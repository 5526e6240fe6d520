/**
 * Opens the model that a config describes. The model's name determines the provider (the code that calls the model), and the
 * other settings determine the middleware. Opening a model reads the API key from the environment, the file of
 * `builtin:FILE.json`, or the model of `decoder:FOLDER`. It does not use the network; only calls do.
 *
 * @example
 * ```ts
 * const config = LmConfig.make({ model: "scripted:reader", cache: "record" })
 * const lm = yield* Lms.open(config)
 * const { content } = yield* lm.complete(LmConfig.request(config, [{ role: "user", content: "Hello" }]))
 * ```
 */
import { Effect, type FileSystem, Layer, type Path } from "effect"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as HttpClient from "effect/http/HttpClient"
import { closest } from "../../base/text/closest.ts"
import { ConfigError } from "../../base/config/Config.ts"
import { mostBytes, readText } from "../../base/files/files.ts"
import { locate } from "../../base/config/places.ts"
import { messageOf } from "../../base/text/text.ts"
import { Decoders } from "./Decoders.ts"
import * as Anthropic from "./providers/anthropic.ts"
import { budgeted, priceOf, SpendingCounter } from "./middleware/budgeted.ts"
import { cached } from "./middleware/cached.ts"
import { limited } from "./middleware/limited.ts"
import { Lm, type LmService, type Middleware } from "./Lm.ts"
import type { LmConfig } from "./LmConfig.ts"
import type { LmError } from "./LmError.ts"
import { type CallDestination, ownProvider, traced } from "./genAi.ts"
import { logged } from "./middleware/logged.ts"
import { toLm } from "./providers/languageModel.ts"
import * as Ngram from "./providers/ngram.ts"
import * as OpenAi from "./providers/openAi.ts"
import { retrying } from "./middleware/retrying.ts"
import { seeded } from "./middleware/seeded.ts"
import * as Scripted from "./providers/scripted.ts"
import * as Toka from "./providers/toka.ts"

export interface LmOpenOptions {
  /** The counter of the tokens and money that all models of the run have spent; a new counter by default. */
  readonly spent?: SpendingCounter
  /** The middleware that limits the calls, if other services share its limits; by default a new one for the config's limits. */
  readonly limiting?: Middleware
  /**
   * Whether the server gets bodies of OpenAI's responses as they are, or converted to chat completions; by default, only OpenAI's
   * own server gets them as they are.
   */
  readonly responses?: "passed" | "converted" | null
  /** Additional scripts, which configs can name as `scripted:NAME`. */
  readonly scripts?: Readonly<Record<string, Scripted.Script>>
  /** Additional models, such as one that is being trained, which configs can name as `builtin:NAME`. */
  readonly models?: Readonly<Record<string, LmService>>
  /** The name of the config in error messages. */
  readonly source?: string
  /** The folder that is searched for `builtin:FILE.json` and `decoder:FOLDER`, before the current folder. */
  readonly baseDir?: string
}

export type LmNeeds = HttpClient.HttpClient | FileSystem.FileSystem | Path.Path

/**
 * Opens the model of a config, wrapped in middleware. From the inside to the outside: every attempt counts against the budget
 * and waits for the limits, failed attempts are retried, answers are cached, calls are logged and traced, and requests get a seed.
 */
export const open = Effect.fnUntraced(function* (
  config: LmConfig,
  options: LmOpenOptions = {},
): Effect.fn.Return<LmService, ConfigError | LmError, LmNeeds> {
  const { spent = new SpendingCounter() } = options
  const { model, budget, prices, thinkingBudget } = config
  if (budget.money !== null && priceOf(model, prices) === undefined) {
    const problem = `budget.money is ${budget.money}, but prices has no price for ${model}; add one`
    return yield* configError(options, "prices", problem)
  }
  const cache =
    config.cache === "off"
      ? undefined
      : yield* cached({
          mode: config.cache,
          directory: config.cacheDir,
          also: thinkingBudget === null ? {} : { thinkingBudget },
        })
  const answering = config.cache === "replay" ? uncalled : yield* provider(config, options)
  const middleware = [
    budgeted(budget, prices, spent),
    options.limiting ?? limited(config.limits),
    retrying(config),
    ...(cache === undefined ? [] : [cache]),
    logged,
    traced(tracedDestination(config)),
    seeded,
  ]
  const { complete } = middleware.reduce((inner, wrap) => wrap(inner), answering)
  return { complete, speaks: spokenBy(config, options) }
})

/** Provides the model of a config as `Lm`. */
export const layer = (config: LmConfig, options: LmOpenOptions = {}): Layer.Layer<Lm, ConfigError | LmError, LmNeeds> =>
  Layer.effect(Lm, open(config, options))

/** Provides `Lm`, whose calls go to Effect's own service `LanguageModel`. */
export const fromLanguageModel: Layer.Layer<Lm, never, LanguageModel.LanguageModel> = Layer.effect(
  Lm,
  Effect.map(LanguageModel.LanguageModel, toLm),
)

/**
 * Replaces the model if `cache: replay` is set. The cache answers or fails every call, so a call that arrives here is a bug.
 */
const uncalled: LmService = {
  complete: ({ model }) => Effect.die(new Error(`${model} was called, but only its cache may answer (cache: replay)`)),
}

type LmOpening = Effect.Effect<LmService, ConfigError | LmError, LmNeeds>

/** Maps the names of models to servers; the first pattern that matches the name is used. */
const servers: ReadonlyArray<{
  readonly name: RegExp
  readonly protocol: "openai" | "anthropic"
  /** The address of the server if the config sets no `base_url`. */
  readonly at: string
  /** The name of the provider at this address, for traces; that of the protocol if left out. */
  readonly provider?: string
}> = [
  { name: /^vllm:/, protocol: "openai", at: "http://127.0.0.1:8000/v1", provider: "vllm" },
  { name: /^toka:/, protocol: "openai", at: "http://127.0.0.1:10210/v1", provider: "tokasaurus" },
  { name: /gemini/, protocol: "openai", at: OpenAi.geminiUrl, provider: "gcp.gemini" },
  { name: /^(ft:)?(chat)?gpt-|^(ft:)?o\d/, protocol: "openai", at: OpenAi.openAiUrl },
  { name: /claude/, protocol: "anthropic", at: Anthropic.anthropicUrl },
]
const protocols = { openai: OpenAi.protocol, anthropic: Anthropic.protocol, toka: Toka.protocol }
const makers = { openai: OpenAi.make, anthropic: Anthropic.make, toka: Toka.make }

type LmAddress = Pick<LmConfig, "model" | "baseUrl" | "protocol">

/** Returns the protocol and the address for calls of a model; undefined if they cannot be determined by the model's name. */
const serverFor = ({ model, baseUrl, protocol: chosen }: LmAddress) => {
  const server = servers.find(({ name }) => name.test(model))
  if (server === undefined && baseUrl === null && chosen === null) return undefined
  // If the config sets only a base_url, use OpenAI's protocol, which most servers have.
  const protocol = chosen ?? server?.protocol ?? "openai"
  const usual = server?.protocol === protocol ? server : { at: protocols[protocol].at, provider: protocol }
  const isUsual = baseUrl === null || nameAtServer(model) !== model
  return { protocol, at: baseUrl ?? usual.at, provider: (isUsual ? usual.provider : undefined) ?? protocol }
}

/** The server to which the requests of a model are sent. */
export interface RequestDestination {
  readonly address: string
  /** The default environment variable for the server's key; null if there is none. */
  readonly usualVariable: string | null
}

/** Returns the server to which the requests of a model are sent; undefined for a model that needs no server. */
export const destinationOf = (config: LmAddress): RequestDestination | undefined => {
  const server = inProcess.test(config.model) ? undefined : serverFor(config)
  if (server === undefined) return undefined
  const url = URL.parse(server.at)
  return { address: server.at, usualVariable: url === null ? null : protocols[server.protocol].variableOf(url) }
}

/** Returns where the calls of a model go, for their spans. */
const tracedDestination = (config: LmAddress): CallDestination => {
  const server = inProcess.test(config.model) ? undefined : serverFor(config)
  const url = server === undefined ? null : URL.parse(server.at)
  return { provider: server?.provider ?? ownProvider, url, nameAtServer }
}

/** Returns the protocols in which the server of a model takes the bodies of other programs. */
export const spokenBy = (
  config: LmAddress,
  { responses = null }: Pick<LmOpenOptions, "responses"> = {},
): NonNullable<LmService["speaks"]> => {
  const server = inProcess.test(config.model) ? undefined : serverFor(config)
  if (server?.protocol === "anthropic") return ["messages"]
  if (server?.protocol !== "openai") return []
  const isOwn = URL.parse(server.at)?.origin === new URL(OpenAi.openAiUrl).origin
  return (responses ?? (isOwn ? "passed" : "converted")) === "passed" ? ["chat", "responses"] : ["chat"]
}

/** Matches the names of models that need no server. The groups are their kind and the rest of the name. */
const inProcess = /^(scripted|builtin|decoder):(.*)$/s

/** Removes the prefix that selects the provider (`vllm:` and so on) from the name of a model. */
const nameAtServer = (model: string): string => model.replace(/^(vllm|toka):/, "")

const provider = (config: LmConfig, options: LmOpenOptions): LmOpening => {
  const [, kind, name] = inProcess.exec(config.model) ?? []
  if (kind === "scripted") return scripted(name, config, options)
  if (kind === "builtin") return builtIn(name, config, options)
  if (kind === "decoder") return decoder(name, config, options)
  const server = serverFor(config)
  if (server === undefined) return Effect.fail(unknown(config.model, options))
  const { apiKey, timeoutS, maxAnswerMb, thinkingBudget } = config
  const address = { model: nameAtServer(config.model), baseUrl: server.at, apiKey }
  const serverOptions = { ...address, timeoutS, maxAnswerMb, thinkingBudget }
  return Effect.map(makers[server.protocol](serverOptions), ({ complete }): LmService => ({
    complete: (request) => complete({ ...request, model: nameAtServer(request.model) }),
  }))
}

const scripted = (name: string, { model }: LmConfig, options: LmOpenOptions): LmOpening => {
  const scripts = { ...Scripted.named, ...options.scripts }
  if (Object.hasOwn(scripts, name)) return Effect.succeed(Scripted.make(scripts[name]))
  const names = Object.keys(scripts).map((name) => `scripted:${name}`)
  return Effect.fail(unknown(model, options, names))
}

/** Maps FORM in `builtin:FORM:LIST`, e.g. `builtin:choice:left,right`, to the option of `Ngram.make` for LIST. */
const listOptions = { choice: "answers", words: "vocabulary" } as const

const builtIn = Effect.fnUntraced(function* (name: string, { model }: LmConfig, options: LmOpenOptions) {
  const { models = {} } = options
  if (Object.hasOwn(models, name)) return models[name]
  if (name === "ngram") return Ngram.make().lm
  const [, form, list] = /^(choice|words):(.*)$/s.exec(name) ?? []
  if (form === "choice" || form === "words") {
    const texts = list.split(",").map((text) => text.trim())
    return yield* Effect.try({
      try: () => Ngram.make({ [listOptions[form]]: texts }).lm,
      catch: (error) => configError(options, "model", `"${model}": ${messageOf(error)}`),
    })
  }
  if (name.endsWith(".json")) {
    const { path } = yield* locate(name, options.baseDir ?? ".")
    const text = yield* Effect.mapError(readText(path, mostBytes.text), (error) =>
      configError(options, "model", `cannot read ${name}: ${messageOf(error)}`),
    )
    return (yield* Ngram.read(text, name)).lm
  }
  return yield* unknown(model, options, [
    ...["ngram", ...Object.keys(models)].map((name) => `builtin:${name}`),
    "builtin:choice:YES,NO",
    "builtin:words:ONE,TWO",
    "builtin:FILE.json",
  ])
})

/** Opens the model of a trainer, or a model in Hugging Face's format, in a folder. It computes in this process. */
const decoder = Effect.fnUntraced(function* (folder: string, { model }: LmConfig, options: LmOpenOptions) {
  const refuse = (problem: string) => configError(options, "model", problem)
  if (folder === "") return yield* refuse(`"${model}": expected decoder:FOLDER, found no folder`)
  const { path, isThere, tried } = yield* locate(folder, options.baseDir ?? ".")
  if (!isThere) return yield* refuse(`"${model}": there is no folder ${tried.join(" or ")}`)
  const { open } = yield* Decoders
  return yield* Effect.mapError(open(path), ({ message }) => refuse(message))
})

const configError = ({ source = "lm_config" }: LmOpenOptions, key: string, problem: string): ConfigError =>
  ConfigError.at({ source }, key, problem)

const kinds = ["vllm", "toka", "scripted", "builtin", "decoder", "claude", "gemini", "gpt"]

/** Makes the error for an unknown model. It suggests the closest of `names` or, if that is empty, the closest prefix. */
const unknown = (model: string, options: LmOpenOptions, names: ReadonlyArray<string> = []): ConfigError => {
  const [, head, rest] = /^(\w+)([:-].+)$/s.exec(model) ?? []
  const kind = head === undefined || names.length > 0 ? undefined : closest(head, kinds)
  const near = kind === undefined ? closest(model, names) : `${kind}${rest}`
  const all =
    names.length > 0
      ? names.join(", ")
      : "gpt-…, o1 …, gemini-…, claude-…, vllm:NAME, toka:NAME, scripted:NAME, builtin:NAME, decoder:FOLDER, or any name with base_url"
  const hint = near === undefined ? `expected ${all}` : `did you mean "${near}"?`
  return configError(options, "model", `unknown model "${model}"; ${hint}`)
}
