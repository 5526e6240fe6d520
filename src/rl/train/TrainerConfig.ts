/** Declares the block `trainer` of a training's config, and translates it into the usual settings, for `plan.ts`. */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import type { Algorithm } from "../learner/Algorithm.ts"
import { ConfigError, decode, isPlain, keysOf, type Plain } from "../../base/config/Config.ts"
import { bounded, fraction, withDefault } from "../../base/config/fields.ts"
import * as Layout from "../../run/Layout.ts"

/**
 * The settings of a training in one flat block, by the names that other libraries use. Each key of `trainer` is another
 * name for a setting:
 *
 * | key of `trainer` | setting |
 * | --- | --- |
 * | `total_steps` | `total_steps` |
 * | `validate_freq`, `num_val_episodes`, `max_val_steps` | `validation.every_steps`, `.episodes`, `.max_steps` |
 * | `save_freq`, `render_freq`, `log_scalars` | `checkpoint.every_steps`, `render.every_steps`, `log_scalars` |
 * | `log_dir`, `model_dir` | `log_dir`, `checkpoint.dir` |
 * | `train_mode`, `returns`, `nsteps`, `gamma`, `lambda_`, `update_target_freq` | the setting of the algorithm with that name |
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, algorithm: A2c.make(), trainer: { totalSteps: 500_000, validateFreq: 50_000 } })
 * ```
 */
export interface TrainerOptions {
  /**
   * When an update happens: `nstep` after `nsteps` steps of each env, `onestep` after every step. If left out, the
   * algorithm's own setting applies.
   */
  readonly trainMode?: "nstep" | "onestep"
  /**
   * The kind of returns, for advantages and value targets: λ-returns; `NSTEP` sets λ to 1. If left out, the algorithm's
   * own setting applies.
   */
  readonly returns?: "NSTEP" | "GAE" | "LAMBDA"
  /** The number of env steps of the training, over all envs. @default 50000000 */
  readonly totalSteps?: number
  /**
   * The number of env steps that each env takes between two updates. If left out, the algorithm's own setting applies.
   */
  readonly nsteps?: number
  /** The discount factor of future rewards. If left out, the algorithm's own setting applies. */
  readonly gamma?: number
  /**
   * The λ of the returns: 0 gives one-step targets, 1 gives full returns. If left out, the algorithm's own setting
   * applies.
   */
  readonly lambda?: number
  /** The number of env steps, over all envs, between two validations; 0 never validates. @default 1000000 */
  readonly validateFreq?: number
  /** The number of episodes of each validation. @default 50 */
  readonly numValEpisodes?: number
  /** The number of steps after which a validation episode is cut off. @default 10000 */
  readonly maxValSteps?: number
  /** The number of env steps, over all envs, between two checkpoints; 0 saves at the end only. @default 0 */
  readonly saveFreq?: number
  /** Whether scalars are written for TensorBoard. @default true */
  readonly logScalars?: boolean
  /** The folder of the logs, inside the run's folder. @default "." */
  readonly logDir?: string
  /** The folder of the checkpoints, inside the run's folder. @default "checkpoints" */
  readonly modelDir?: string
  /**
   * The number of env steps, over all envs, between two updates of the target network; 0 never updates it. If left out,
   * the algorithm's own setting applies.
   */
  readonly updateTargetFreq?: number
  /**
   * The number of env steps, over all envs, between two renderings, a multiple of `validateFreq`; 0 never renders.
   * @default 0
   */
  readonly renderFreq?: number
}

export const TrainerConfig = Schema.Struct({
  trainMode: withDefault(Schema.Literals(["nstep", "onestep"]), "nstep"),
  returns: withDefault(Schema.Literals(["NSTEP", "GAE", "LAMBDA"]), "NSTEP"),
  totalSteps: withDefault(bounded("count"), 50_000_000),
  nsteps: withDefault(bounded("rolloutSteps"), 5),
  gamma: withDefault(fraction, 0.99),
  lambda: withDefault(fraction, 0.95),
  validateFreq: withDefault(bounded("countOrNone"), 1_000_000),
  numValEpisodes: withDefault(bounded("episodes"), 50),
  maxValSteps: withDefault(bounded("count"), 10_000),
  saveFreq: withDefault(bounded("countOrNone"), 0),
  logScalars: withDefault(Schema.Boolean, true),
  logDir: withDefault(Schema.NonEmptyString, "."),
  modelDir: withDefault(Schema.NonEmptyString, Layout.checkpoints),
  updateTargetFreq: withDefault(bounded("countOrNone"), 0),
  renderFreq: withDefault(bounded("countOrNone"), 0),
})
export type TrainerConfig = typeof TrainerConfig.Type

/**
 * The keys of `trainer` that are settings of the algorithm. If such a key is left out, the algorithm's own setting
 * applies, not the default in `TrainerConfig`, which other libraries use.
 */
export const ofAlgorithm = ["trainMode", "returns", "nsteps", "gamma", "lambda", "updateTargetFreq"] as const

const plainAt = (tree: Plain, key: string): Plain => {
  const section = tree[key]
  return isPlain(section) ? section : {}
}

/**
 * Replaces the `trainer` block of a config by the settings that its keys stand for; returns the new config and the
 * places where settings were written. A setting outside of the block takes precedence. Fails for a key that is no
 * setting of `chosen`, the config's algorithm.
 */
export const expand = Effect.fnUntraced(function* (
  config: Plain,
  options: { readonly source: string; readonly sources: ReadonlyMap<string, string> },
  chosen: Algorithm | undefined,
) {
  const { trainer: block, ...rest } = config
  if (block === undefined) return { value: config, sources: options.sources }
  const trainer = yield* decode(TrainerConfig, block, { ...options, prefix: ["trainer"] })
  const writtenKeys = isPlain(block) ? ofAlgorithm.filter((key) => key in block) : []
  const unsupported = chosen === undefined ? [] : writtenKeys.filter((key) => !keysOf(chosen.schema).includes(key))
  // The value 0 means that there is no target network, so an algorithm without one can ignore it.
  const refused = unsupported.find((key) => !(key === "updateTargetFreq" && trainer[key] === 0))
  if (chosen !== undefined && refused !== undefined) {
    const problem = `the algorithm "${chosen.name}" has no such setting; leave it out`
    return yield* ConfigError.at({ ...options, prefix: ["trainer"] }, refused, problem)
  }
  const algorithm = Object.fromEntries(
    writtenKeys.filter((key) => !unsupported.includes(key)).map((key) => [key, trainer[key]]),
  )
  // Errors in these settings must name the place in the `trainer` block.
  const sources = new Map(options.sources)
  for (const key of Object.keys(algorithm)) {
    const source = options.sources.get(`trainer.${key}`) ?? options.sources.get("trainer")
    if (source !== undefined && !sources.has(`algorithm.${key}`)) sources.set(`algorithm.${key}`, source)
  }
  const value = {
    totalSteps: trainer.totalSteps,
    logScalars: trainer.logScalars,
    logDir: trainer.logDir,
    ...rest,
    validation: {
      everySteps: trainer.validateFreq,
      episodes: trainer.numValEpisodes,
      maxSteps: trainer.maxValSteps,
      ...plainAt(rest, "validation"),
    },
    checkpoint: { everySteps: trainer.saveFreq, dir: trainer.modelDir, ...plainAt(rest, "checkpoint") },
    render: { everySteps: trainer.renderFreq, ...plainAt(rest, "render") },
    algorithm: { ...algorithm, ...plainAt(rest, "algorithm") },
  }
  return { value, sources }
})
