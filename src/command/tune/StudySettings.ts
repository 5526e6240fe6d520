/**
 * Defines the settings of a study, which the user writes in a YAML file, and reads its search space:
 *
 * ```yaml
 * trials: 60
 * parameters:
 *   algorithm.learning_rate: { log_uniform: [1e-5, 1e-2] }
 *   algorithm.epochs: { int: [1, 10] }
 *   num_envs: { choice: [4, 8, 16] }
 * ```
 *
 * It reads no files; `effect tune` calls it.
 */
import { Effect, Schema } from "effect"
import {
  camelCase,
  checkAll,
  ConfigError,
  decode,
  display,
  isPlain,
  type ConfigOrigin,
  type Plain,
  snakeCase,
  toCamelCase,
} from "../../base/config/Config.ts"
import { bounded, fraction, intBetween, nonNegative, positive, real, withDefault } from "../../base/config/fields.ts"
import { type Condition, isSame, type Parameter, type SearchSpace } from "./Space.ts"
import { MetricDirection } from "./Trial.ts"

export const SamplerSettings = Schema.Struct({
  /** `tpe` suggests settings that are similar to those of the good trials; `random` draws every trial independently. */
  name: withDefault(Schema.Literals(["tpe", "random"]), "tpe"),
  /** The number of trials with results that `tpe` needs; until then, suggestions are random. */
  startup: withDefault(bounded("trials"), 10),
  /** The number of candidates from which `tpe` chooses the best. */
  candidates: withDefault(bounded("candidates"), 24),
  /** The share of the trials with results that count as good; at most 25 trials do. */
  gamma: withDefault(fraction, 0.1),
  /** The weight of the prior, which distributes suggestions over the whole range; a trial has the weight 1. */
  priorWeight: withDefault(nonNegative.check(Schema.isGreaterThan(0)), 1),
  /** Whether the parameters are modelled together, instead of independently. */
  multivariate: withDefault(Schema.Boolean, false),
})

export const PrunerSettings = Schema.Struct({
  /** `asha` stops trials early by asynchronous successive halving; `none` trains all trials to their end. */
  name: withDefault(Schema.Literals(["none", "asha"]), "none"),
  /**
   * The number of env steps after which a trial can be stopped for the first time. Null means the length of the training,
   * divided by `reduction` twice.
   */
  minSteps: withDefault(Schema.NullOr(bounded("count")), null),
  /**
   * At each decision, one trial out of this number continues, and the next decision is after this many times as many steps.
   */
  reduction: withDefault(intBetween(2, 100), 3),
  /** The number of earlier trials that must have reached a step before a trial can be stopped there. */
  warmup: withDefault(bounded("trials"), 5),
})

/** The settings of one parameter. It has exactly one of the ranges. */
export const ParameterSettings = Schema.Struct({
  /** The smallest and the largest value of a number. */
  uniform: Schema.optionalKey(Schema.Array(real)),
  /**
   * The smallest and the largest value of a number whose logarithm is distributed evenly: for settings whose order of
   * magnitude is unknown, such as learning rates.
   */
  logUniform: Schema.optionalKey(Schema.Array(real)),
  /** The smallest and the largest value of a whole number. */
  int: Schema.optionalKey(Schema.Array(real)),
  /** The smallest and the largest value of a whole number whose logarithm is distributed evenly. */
  logInt: Schema.optionalKey(Schema.Array(real)),
  /** The values from which one is chosen; they have no order. */
  choice: Schema.optionalKey(Schema.Array(Schema.Unknown)),
  /** The distance between two values of `uniform` or `int`, counted from the smallest one. */
  step: Schema.optionalKey(positive),
  /** The parameter is set only if an earlier `choice` has this value, or one of these values. */
  when: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
})
type ParameterSettings = typeof ParameterSettings.Type

export const StudySettings = Schema.Struct({
  /**
   * The metric by which trials are compared. `validation` is the mean return of the last validation (without validations, of
   * the last 100 training episodes). `best_validation` and `mean_validation` are the best and the mean of all validations. A
   * word with a slash, such as `losses/entropy`, is the last value of that metric in TensorBoard. Any other word is a number
   * in metrics.json, such as `mean_score`.
   */
  metric: withDefault(Schema.NonEmptyString, "validation"),
  /** Whether a larger or a smaller metric is better. */
  direction: withDefault(MetricDirection, "maximize"),
  /** The number of trials. */
  trials: withDefault(bounded("trials"), 20),
  /** The seed of the suggestions. The runs have the training's own seed. */
  seed: withDefault(bounded("seed"), 1),
  /**
   * The number of runs of each trial. Their seeds are the training's own seed and the next ones; the metric is the mean over
   * the runs.
   */
  seeds: withDefault(bounded("runs"), 1),
  /**
   * The largest number of trials that run at a time. A trial is suggested from the results of all trials except the
   * `parallel` − 1 before it. So the result of a study depends on this number, but not on the number of trials that really
   * run at a time.
   */
  parallel: withDefault(bounded("jobs"), 4),
  /** The settings that decide how trials are suggested. */
  sampler: withDefault(SamplerSettings, {}),
  /** The settings that decide how bad trials are stopped early. It compares the mean returns of validations. */
  pruner: withDefault(PrunerSettings, {}),
  /** The settings that vary, by their paths in the training's config, and the range of each. */
  parameters: Schema.Record(Schema.String, Schema.Unknown),
})
export type StudySettings = typeof StudySettings.Type

/** A study whose settings are all checked. */
export interface Study {
  readonly settings: StudySettings
  readonly space: SearchSpace
}

/** Checks the content of a study's file. `origin` is where the file and its keys were written, for error messages. */
export const readStudy = Effect.fnUntraced(function* (
  value: unknown,
  origin: ConfigOrigin,
): Effect.fn.Return<Study, ConfigError> {
  const tree = toCamelCase(value)
  const settings = yield* decode(StudySettings, isPlain(tree) ? tree : {}, { ...origin, whole: StudySettings })
  const space = yield* readSpace(settings.parameters, origin)
  if (settings.pruner.name === "asha" && settings.metric !== "validation")
    return yield* ConfigError.at(
      origin,
      "pruner.name",
      `asha compares validations; expected the metric validation, found ${settings.metric}`,
    )
  if (settings.pruner.name === "asha" && settings.direction === "minimize")
    return yield* ConfigError.at(origin, "pruner.name", "asha only works with direction: maximize")
  return { settings, space }
})

/** The kinds of ranges; a parameter has exactly one. */
const ranges = ["uniform", "logUniform", "int", "logInt", "choice"] as const
const names = ranges.map(snakeCase).join(", ")

/** Returns the parameters with their paths. A section, such as `algorithm:`, may contain several parameters. */
const parametersIn = (
  tree: Plain,
  path: ReadonlyArray<string>,
): ReadonlyArray<{ readonly path: ReadonlyArray<string>; readonly written: unknown }> =>
  Object.entries(tree).flatMap(([key, written]) => {
    const here = [...path, ...key.split(".")]
    const isSection = isPlain(written) && Object.values(written).length > 0 && Object.values(written).every(isPlain)
    return isSection && !ranges.some((range) => Object.hasOwn(written, range))
      ? parametersIn(written, here)
      : [{ path: here, written }]
  })

const readSpace = Effect.fnUntraced(function* (parameters: Plain, origin: ConfigOrigin) {
  const written = parametersIn(parameters, [])
  if (written.length === 0)
    return yield* ConfigError.at(origin, "parameters", "expected at least one parameter, found none")
  const checks = written.map((one) => readParameter(one.path, one.written, origin))
  yield* checkAll(checks)
  const space = yield* Effect.all(checks)
  for (const [index, { path, when }] of space.entries()) {
    const wrong = (problem: string) => ConfigError.at(origin, `parameters.${path}`, problem)
    if (space.findIndex((other) => other.path === path) < index) return yield* wrong("this parameter is listed twice")
    for (const condition of when) {
      const problem = conditionProblem(condition, space.slice(0, index))
      if (problem !== undefined) return yield* wrong(`when: ${problem}`)
    }
  }
  return space
})

/** Describes why a condition can never hold; undefined if it can. */
const conditionProblem = ({ path, values }: Condition, before: SearchSpace): string | undefined => {
  const other = before.find((parameter) => parameter.path === path)
  if (other?._tag !== "Choice") return `expected a choice that is listed before, found ${path}`
  const unknown = values.find((value) => !other.values.some((one) => isSame(one, value)))
  if (unknown === undefined && values.length > 0) return undefined
  return `${path} is one of ${display(other.values)}, found ${display(unknown)}`
}

const readParameter = Effect.fnUntraced(function* (
  path: ReadonlyArray<string>,
  written: unknown,
  origin: ConfigOrigin,
): Effect.fn.Return<Parameter, ConfigError> {
  const place: ConfigOrigin = { ...origin, prefix: ["parameters", ...path] }
  const wrong = (problem: string) => ConfigError.at(place, "", problem)
  if (!isPlain(written)) {
    return yield* wrong(`expected a range, such as { uniform: [0, 1] } (or ${names}), found ${display(written)}`)
  }
  const settings = yield* decode(ParameterSettings, written, place)
  const own = ranges.filter((range) => settings[range] !== undefined)
  if (own.length !== 1) {
    const found = own.length === 0 ? "none of them" : own.map(snakeCase).join(" and ")
    return yield* wrong(`expected one of ${names}, found ${found}`)
  }
  const problem = rangeProblem(own[0], settings)
  return problem === undefined
    ? parameterOf(path.map(snakeCase).join("."), own[0], settings)
    : yield* ConfigError.at(place, own[0], problem)
})

/** Describes what is wrong with the range of a parameter; undefined if it is usable. */
const rangeProblem = (kind: (typeof ranges)[number], settings: ParameterSettings): string | undefined => {
  const { choice, step } = settings
  if (kind === "choice") {
    if (choice === undefined || choice.length < 2) return `expected at least two values, found ${choice?.length ?? 0}`
    const twice = choice.find((value, index) => choice.slice(0, index).some((other) => isSame(other, value)))
    if (twice !== undefined) return `${display(twice)} is listed twice`
    return step === undefined ? undefined : "a choice has no step"
  }
  const range = settings[kind] ?? []
  const [low, high] = range
  if (range.length !== 2 || !(low < high))
    return `expected a list of the smallest and the largest value, found ${display(range)}`
  const isInt = kind === "int" || kind === "logInt"
  const isLog = kind === "logUniform" || kind === "logInt"
  if (isInt && !range.every((bound) => Number.isSafeInteger(bound)))
    return `expected whole numbers, found ${display(range)}`
  if (isLog && low <= 0) return `expected numbers above 0, which have logarithms, found ${display(range)}`
  if (step === undefined) return undefined
  if (isLog) return "a logarithmic range has no step"
  if (isInt && !Number.isSafeInteger(step)) return `expected a step that is a whole number, found ${step}`
  return step <= high - low ? undefined : `expected a step of at most ${high - low}, found ${step}`
}

const parameterOf = (path: string, kind: (typeof ranges)[number], settings: ParameterSettings): Parameter => {
  const { choice = [], step, when = {} } = settings
  const conditions = Object.entries(when).map(([key, value]) => ({
    path: key.split(".").map(camelCase).map(snakeCase).join("."),
    values: Array.isArray(value) ? value : [value],
  }))
  if (kind === "choice") return { _tag: "Choice", path, values: choice, when: conditions }
  const [low = 0, high = 0] = settings[kind] ?? []
  const isInt = kind === "int" || kind === "logInt"
  return {
    _tag: "Number",
    path,
    low,
    high,
    isLog: kind === "logUniform" || kind === "logInt",
    step: step ?? (isInt ? 1 : null),
    when: conditions,
  }
}
