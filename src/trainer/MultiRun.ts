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
import { Effect, type Scope } from "effect"
import { withOwnKinds } from "../agents/agent/Agents.ts"
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
  /** Warnings about the config, which the trainer logs when it begins. */
  readonly warnings?: ReadonlyArray<string>
}

/**
 * Makes an Effect that trains all runs of a config, which is plain data such as a parsed YAML file. In code, the `type` of a
 * run's agent may be a kind of agent, such as one that `FunctionAgent.make` returns.
 */
export const fromConfig = (
  config: unknown,
  where: Where = {},
): Effect.Effect<RunResult, ConfigError | TrainerError | Run.RunError, Exclude<MultiRunNeeds, Scope.Scope>> =>
  Effect.scoped(withOwnKinds(config, (named) => fromNamed(named, where)))

const fromNamed = Effect.fnUntraced(function* (
  config: unknown,
  { baseDir = ".", lines = new Map(), warnings: given = [] }: Where,
): Effect.fn.Return<RunResult, ConfigError | TrainerError | Run.RunError, MultiRunNeeds> {
  const options = yield* RunOptions
  const { settings, effective, from, ...read } = yield* readConfig({ config, baseDir, lines, options })
  const warnings = [...given, ...read.warnings]
  const { model, seed, trainer } = settings
  const opening = openBaseModel(model, { baseDir, seed, onlyLanguage: trainer.type === "tinker" })
  const base = yield* Effect.mapError(opening, ({ message }) => ConfigError.at(from, "model", message))
  yield* checkAll(
    sizeProblems(settings.trainer, base.decoder).map(([key, problem]) => ConfigError.at(from, key, problem)),
  )
  const { population, onPlanned } = options
  const prepared = { settings, base, effective, population: population ?? {}, from, baseDir, onPlanned, warnings }
  return yield* execute(prepared)
})
