/** Opens the models and data sets of a config, for evaluations and trainings of agents. Reads files and API keys. */
import { Effect, Path } from "effect"
import {
  ConfigError,
  convertPath,
  type DecodeOptions,
  isPlain,
  type Plain,
  snakeCase,
  sourceOf,
} from "../../base/config/Config.ts"
import { unplacedModel } from "../../base/config/places.ts"
import { permitAddress } from "../lm/addressTrust.ts"
import { SpendingCounter } from "../lm/middleware/budgeted.ts"
import type { LmService } from "../lm/Lm.ts"
import type { LmConfig } from "../lm/LmConfig.ts"
import * as Lms from "../lm/Lms.ts"
import * as Datasets from "../task/Datasets.ts"

/** Returns `openLm` and `openDataset`, and `spent`, the counter of the calls, tokens and cost of the opened models. */
export const openParts = Effect.fnUntraced(function* (from: DecodeOptions, baseDir: string) {
  const paths = yield* Path.Path
  const needs = yield* Effect.context<Lms.LmNeeds>()
  /** Counts the calls, tokens and cost of all models together. */
  const spent = new SpendingCounter()
  /**
   * Opens the model with this config; null opens one that nobody asks. `prefix` has the keys of its section, for error
   * messages. `more` has options that few models need.
   */
  const openLm = (
    lmConfig: LmConfig | null,
    prefix: ReadonlyArray<string>,
    more: Pick<Lms.LmOpenOptions, "limiting" | "responses"> = {},
  ) => {
    if (lmConfig === null) return Effect.succeed(unasked)
    return Effect.andThen(
      permitAddress(lmConfig, Lms.destinationOf(lmConfig), { ...from, prefix }),
      Lms.open(
        { ...lmConfig, cacheDir: paths.resolve(baseDir, lmConfig.cacheDir) },
        {
          ...more,
          spent,
          baseDir,
          source: `${sourceOf(from, [...prefix, "model"].join("."))}: ${sectionName(prefix)}`,
        },
      ),
    )
  }
  /**
   * Opens the data set that the section `key`, below the prefix of `from`, describes, and the model for feedback, if it needs
   * one.
   */
  const openDataset = (config: unknown, key: string) => {
    const section = [...(from.prefix ?? []), key]
    return Datasets.open(config, {
      baseDir,
      from: { ...from, prefix: section },
      openLm: (lmConfig) => {
        const prefix = [...section, "feedbackLmConfig"]
        return openLm(lmConfig, prefix).pipe(
          Effect.provideContext(needs),
          Effect.catchTag("LmError", ({ message }) =>
            Effect.fail(ConfigError.at({ source: from.source }, sectionName(prefix), message)),
          ),
        )
      },
    })
  }
  return { spent, openLm, openDataset }
})

/** Stands for the model of an agent that has none. Such an agent fails before it would call it. */
const unasked: LmService = {
  complete: ({ model }) => Effect.die(new Error(`${model} was called by an agent without a model`)),
}

const sectionName = (prefix: ReadonlyArray<string>): string => convertPath(prefix, snakeCase).join(".")

/** An agent's settings that decide no answer: how long it may take, how often it is asked again, and how much at once. */
const operational: ReadonlySet<string> = new Set(["verbose", "timeoutS", "maxRetries", "concurrency", "maxAnswerMb"])

/** Returns an agent's settings that must be the same when a run is resumed. Retries, limits and budgets may change. */
export const agentIdentity = ({ lmConfig: _all, ...config }: Plain, lmConfig: LmConfig | null): Plain => {
  const agent = Object.fromEntries(Object.entries(config).filter(([key]) => !operational.has(key)))
  if (lmConfig === null) return { ...agent, lmConfig }
  const { model, temperature, maxOutputTokens, stopSequences, thinkingBudget } = lmConfig
  return {
    ...agent,
    lmConfig: { model: unplacedModel(model), temperature, maxOutputTokens, stopSequences, thinkingBudget },
  }
}

/**
 * Returns the settings of a scorer that must not change on a resume. Of a judge's model, these are its name and temperature;
 * labels only change the report.
 */
export const scorerIdentity = ({
  lmConfig,
  label: _1,
  labelThreshold: _2,
  judgeThreshold: _3,
  ...plain
}: Plain): Plain => {
  if (!isPlain(lmConfig)) return plain
  const { model, temperature } = lmConfig
  // A saved config has the whole path of a model in a file, which its own config may have named by a relative one.
  return { ...plain, model: typeof model === "string" ? unplacedModel(model) : model, temperature }
}
