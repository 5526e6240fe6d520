/**
 * Trains a language model for many runs at once, in one process: `fromConfig` takes what a file with `kind: multirun`
 * holds. Each run has its own tasks, agent, objective, optimiser and, with `trainer.lora`, its own adapter.
 *
 * @example
 * ```ts
 * const training = MultiRun.fromConfig({
 *   kind: "multirun",
 *   model: { type: "scratch", tokenizer: { alphabet: "abc" } },
 *   runs: { letters: { train_dataset: { type: "reverse_text", alphabet: 3 }, max_steps: 10 } },
 * })
 * ```
 */
import { Effect } from "effect"
import { checkAll, ConfigError } from "../base/config/Config.ts"
import type { RunResult } from "../run/RunResult.ts"
import type * as Run from "../run/Run.ts"
import { RunOptions } from "../run/RunOptions.ts"
import { openBaseModel } from "./baseModel.ts"
import { execute, type MultiRunNeeds } from "./execute.ts"
import type { TrainerError } from "./TrainerError.ts"
import { readConfig, sizeProblems } from "./config/readConfig.ts"

export { MultiRunConfig } from "./config/MultiRunConfig.ts"

/** The origin of a config. */
export interface Where {
  /** The folder that relative paths start from; by default the current folder. */
  readonly baseDir?: string
  /** Where each key was written, for error messages: maps `trainer.rows` to `conf.yaml:7`. */
  readonly lines?: ReadonlyMap<string, string>
}

/** Makes an Effect that trains all runs of a config, which is plain data such as a parsed YAML file. */
export const fromConfig = Effect.fnUntraced(function* (
  config: unknown,
  { baseDir = ".", lines = new Map() }: Where = {},
): Effect.fn.Return<RunResult, ConfigError | TrainerError | Run.RunError, MultiRunNeeds> {
  const options = yield* RunOptions
  const { settings, effective, from, warnings } = yield* readConfig({ config, baseDir, lines, options })
  const base = yield* Effect.mapError(openBaseModel(settings.model, { baseDir, seed: settings.seed }), ({ message }) =>
    ConfigError.at(from, "model", message),
  )
  yield* checkAll(
    sizeProblems(settings.trainer, base.decoder).map(([key, problem]) => ConfigError.at(from, key, problem)),
  )
  const { population, onPlanned } = options
  const prepared = { settings, base, effective, population: population ?? {}, from, baseDir, onPlanned, warnings }
  return yield* execute(prepared)
}, Effect.scoped)
