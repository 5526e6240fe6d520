/** Opens the models and data sets that a config of agents names. Evaluations and trainings of agents share it. */
import { Effect, Path } from "effect"
import { ConfigError, type DecodeOptions, type Plain, snakeCase, sourceOf } from "../config/Config.ts"
import { unplacedModel } from "../config/places.ts"
import { Spent } from "../lm/middleware/budgeted.ts"
import type { LmConfig } from "../lm/LmConfig.ts"
import * as Lms from "../lm/Lms.ts"
import * as Datasets from "../task/Datasets.ts"

/** Returns functions that open a model and a data set of a config, and the count of their calls and costs. */
export const openParts = Effect.fnUntraced(function* (from: DecodeOptions, baseDir: string) {
  const paths = yield* Path.Path
  const needs = yield* Effect.context<Lms.Needs>()
  /** The cost of the calls of all models together. */
  const spent = new Spent()
  /** Opens the model that the section at `prefix` describes. */
  const openLm = (lmConfig: LmConfig, prefix: ReadonlyArray<string>) =>
    Lms.open(
      { ...lmConfig, cacheDir: paths.resolve(baseDir, lmConfig.cacheDir) },
      { spent, baseDir, source: `${sourceOf(from, [...prefix, "model"].join("."))}: ${sectionName(prefix)}` },
    )
  /** Opens the data set at a key, and the model that it calls for feedback, if there is one. */
  const openDataset = (config: unknown, key: string) =>
    Datasets.open(config, {
      baseDir,
      from: { ...from, prefix: [key] },
      openLm: (lmConfig) => {
        const prefix = [key, "feedbackLmConfig"]
        return openLm(lmConfig, prefix).pipe(
          Effect.provideContext(needs),
          Effect.catchTag("LmError", ({ message }) =>
            Effect.fail(ConfigError.at({ source: from.source }, sectionName(prefix), message)),
          ),
        )
      },
    })
  return { spent, openLm, openDataset }
})

const sectionName = (prefix: ReadonlyArray<string>): string => prefix.map(snakeCase).join(".")

/** Returns the agent's settings that must be the same when a run is resumed: not retries, limits and budgets. */
export const agentIdentity = ({ verbose: _verbose, lmConfig: _all, ...agent }: Plain, lmConfig: LmConfig): Plain => {
  const { model, temperature, maxOutputTokens, stopSequences, thinkingBudget } = lmConfig
  return {
    ...agent,
    lmConfig: { model: unplacedModel(model), temperature, maxOutputTokens, stopSequences, thinkingBudget },
  }
}
