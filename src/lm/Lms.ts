/**
 * From a config to a model that can be asked: its name says whom, and around it is what the config asks for.
 *
 * @example
 * ```ts
 * const lm = yield* Lms.open(LmConfig.make({ model: "scripted:reader", cache: "record" }))
 * const { content } = yield* lm.complete(LmConfig.request(config, [{ role: "user", content: "Hello" }]))
 * ```
 */
import { Effect, type FileSystem, type Path, type Scope } from "effect"
import type { HttpClient } from "effect/http"
import { closest } from "../config/closest.ts"
import { ConfigError } from "../config/Config.ts"
import { budgeted, priceOf, Spent } from "./budgeted.ts"
import { cached } from "./cached.ts"
import { limited } from "./limited.ts"
import type { LmService } from "./Lm.ts"
import type { LmConfig } from "./LmConfig.ts"
import type { LmError } from "./LmError.ts"
import { logged } from "./logged.ts"
import { retrying } from "./retrying.ts"
import { seeded } from "./sampling.ts"
import * as Scripted from "./scripted.ts"

export interface OpenOptions {
  /** What the run has spent so far, over all of its models; from nothing on, unless given. */
  readonly spent?: Spent
  /** Models that are functions, as `scripted:NAME`, besides those that are built in. */
  readonly scripts?: Readonly<Record<string, Scripted.Script>>
  /** Who said it, for messages. */
  readonly source?: string
}

export type Needs = HttpClient.HttpClient | FileSystem.FileSystem | Path.Path | Scope.Scope

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

/** What stands behind a cache that is only replayed. */
const unasked: LmService = {
  complete: ({ model }) =>
    Effect.die(new Error(`${model} was asked, though its answers are to come from the cache alone`)),
}

const provider = Effect.fnUntraced(function* (
  config: LmConfig,
  how: OpenOptions,
): Effect.fn.Return<LmService, ConfigError | LmError, Needs> {
  const [, kind, name] = /^(scripted):(.*)$/.exec(config.model) ?? []
  if (kind === undefined) return yield* unknown(config, how, [])
  const scripts = { ...Scripted.named, ...how.scripts }
  if (Object.hasOwn(scripts, name)) return Scripted.make(scripts[name])
  return yield* unknown(
    config,
    how,
    Object.keys(scripts).map((name) => `scripted:${name}`),
  )
})

const configError = ({ source = "lm_config" }: OpenOptions, key: string, message: string): ConfigError =>
  new ConfigError({ source, key, message: `${source}: ${key}: ${message}` })

const unknown = (config: LmConfig, how: OpenOptions, known: ReadonlyArray<string>): ConfigError => {
  const near = closest(config.model, known)
  const hint = near === undefined ? `known are ${known.join(", ")}` : `did you mean "${near}"?`
  return configError(how, "model", `"${config.model}" is no model that is known; ${hint}`)
}

const checkPrices = ({ model, budget, prices }: LmConfig, how: OpenOptions): Effect.Effect<void, ConfigError> =>
  budget.money === null || priceOf(model, prices) !== undefined
    ? Effect.void
    : Effect.fail(configError(how, "prices", `budget.money is ${budget.money}, but there is no price for ${model}`))
