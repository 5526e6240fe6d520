/**
 * Defines the settings of an evaluation. `read` decodes them from a config; it leaves the sections of the data set, the
 * agents and the scorers undecoded for `Evaluations.ts`, which calls it. `namesOf` chooses the agents' names for tables.
 * These are pure functions.
 */
import { Effect, Schema } from "effect"
import { AgentConfig } from "../agent/Agents.ts"
import { choiceHint } from "../../base/text/closest.ts"
import {
  camelCase,
  ConfigError,
  type DecodeOptions,
  decode,
  display,
  isPlain,
  overridden,
  type Override,
} from "../../base/config/Config.ts"
import { atOnce, bounded, fraction, real, runName, withDefault } from "../../base/config/fields.ts"
import { DatasetConfig } from "../task/Datasets.ts"
import { shownKey } from "../../base/config/secretFields.ts"
import { LogLevel } from "../../run/record/logLevel.ts"
import { kindField } from "../../run/RunSpec.ts"

const optional = <S extends Schema.Codec<unknown, unknown>>(schema: S) => withDefault(Schema.NullOr(schema), null)

export const OutputSettings = Schema.Struct({
  /** The folder in which the run's folder `YYYYMMDD_HHMMSS` is created; null uses the results folder of the command. */
  resultsDir: optional(Schema.NonEmptyString),
  /**
   * The level of messages in `run.log` and the terminal. `ERROR` shows failures and the start of the run, `WARN` adds
   * warnings, `INFO` adds results, notes and the end, `DEBUG` adds episodes.
   */
  logLevel: withDefault(LogLevel, "INFO"),
})

/** The settings of an evaluation, apart from its data set and its agents. */
export const EvaluationSettings = Schema.Struct({
  /** The kind of run: an evaluation of agents. */
  kind: kindField("evaluation"),
  /** The name of the run, which is shown in lists and is a part of its folder's name. */
  name: withDefault(runName, "evaluation"),
  /** A description of the evaluation in one line; null makes one from its agents, tasks and seed. */
  description: optional(Schema.String),
  /** The seed of all random numbers: of the envs, the model's sampling, and the resampling for intervals and tests. */
  seed: withDefault(bounded("seed"), 0),
  /** The number of episodes of each task. */
  repeats: withDefault(bounded("repeats"), 1),
  /** The number of episodes that are played at the same time; null is the number of CPU cores. */
  workers: optional(atOnce),
  /** The number of steps after which an episode is cut off; null leaves the limit to the envs. */
  maxStepsPerEpisode: optional(bounded("count")),
  /** The scorers of each episode, by name or with settings. The first one is also used for pass@k and for `by`. */
  scorers: withDefault(Schema.Array(Schema.Unknown).check(Schema.isMinLength(1)), ["score"]),
  /** The values of k for pass@k, the chance that at least one of k episodes passes; null uses `repeats` as k. */
  passAt: optional(Schema.Array(bounded("passes"))),
  /** The smallest score of the first scorer with which an episode passes. */
  passThreshold: withDefault(real, 1),
  /** Keys of the tasks' metadata. For each value of such a key, the report has the mean of the first scorer. */
  by: withDefault(Schema.Array(Schema.String), []),
  /** The confidence level of all intervals. */
  confidence: withDefault(fraction.check(Schema.isGreaterThan(0), Schema.isLessThan(1)), 0.95),
  /** The folder of a finished evaluation of the same tasks to compare with; null compares with none. */
  compareTo: optional(Schema.NonEmptyString),
  /** Whether progress and tables are shown in the terminal. */
  verbose: withDefault(Schema.Boolean, true),
  /** The folder for the files that an evaluation writes, and the level of its messages. */
  output: withDefault(OutputSettings, {}),
})
export type EvaluationSettings = typeof EvaluationSettings.Type

/** The Schema of a config. The sections of the data set and the agents are decoded later, by their types. */
const Whole = Schema.Struct({
  ...EvaluationSettings.fields,
  /** The data set whose tasks are played. */
  dataset: Schema.optionalKey(Schema.Unknown),
  /** The agent that plays. */
  agent: Schema.optionalKey(Schema.Unknown),
  /**
   * Several agents instead of `agent`: a list, or a record with their names as keys. Each agent is compared with the first.
   */
  agents: Schema.optionalKey(Schema.Unknown),
})

/**
 * The Schema of a config with the settings of all built-in types. Error messages use it to find where a misplaced key
 * belongs.
 */
const whole = Schema.Struct({ ...EvaluationSettings.fields, dataset: DatasetConfig, agent: AgentConfig })

/** The config of one agent, not decoded yet, with the name that the config gives to the agent. */
export interface AgentSection {
  readonly name: string | undefined
  /** The keys that lead to this agent in the config, e.g. `["agents", "plain"]`. */
  readonly prefix: ReadonlyArray<string>
  readonly config: unknown
}

/**
 * Converts the section `agents` to a record. The keys of a list become the agents' positions. The keys of a record are the
 * agents' names: each is copied into its agent as `name`, because a later step converts the keys to camelCase.
 */
const keyed = (agents: unknown): unknown => {
  if (Array.isArray(agents)) return Object.fromEntries(agents.map((agent, index) => [String(index), agent]))
  if (!isPlain(agents)) return agents
  return Object.fromEntries(
    Object.entries(agents).map(([name, agent]) => [camelCase(name), isPlain(agent) ? { name, ...agent } : agent]),
  )
}

export interface ReadOptions {
  /** The name of the config in error messages, e.g. the path of its file. */
  readonly source?: string
  /** The name of the run, if the config has none. */
  readonly name?: string
  readonly overrides?: ReadonlyArray<Override>
  /** Where each key was written, for error messages: maps `agent.historyK` to `tasks.yaml:7`. */
  readonly lines?: ReadonlyMap<string, string>
}

/**
 * Decodes an evaluation's settings from its config (an unknown key is an error) and checks them against each other.
 * Returns them, the undecoded sections of the data set and of each agent, and `from`: where each key was written, for
 * error messages.
 */
export const read = Effect.fnUntraced(function* (
  config: unknown,
  { source = "evaluation", name, overrides = [], lines = new Map() }: ReadOptions,
) {
  const written = isPlain(config) && "agents" in config ? { ...config, agents: keyed(config.agents) } : config
  // Saved configs have a placeholder instead of an API key. An override with this placeholder is ignored.
  const usableOverrides = overrides.filter((override) => !String(override.value).includes(shownKey))
  const { value, from } = yield* overridden(written, { lines, overrides: usableOverrides, source, whole })
  const { dataset, agent, agents, ...settings } = yield* decode(
    Whole,
    name === undefined ? value : { name, ...value },
    from,
  )
  const refuse = (key: string, problem: string) => ConfigError.at(from, key, problem)
  if (dataset === undefined || dataset === null) {
    return yield* refuse("dataset", "expected the data set to evaluate on, found nothing")
  }
  const tooMany = settings.passAt?.find((k) => k > settings.repeats)
  if (tooMany !== undefined) {
    return yield* refuse("pass_at", `expected ${settings.repeats} at most, the repeats; found ${tooMany}`)
  }
  if ((agent === undefined) === (agents === undefined)) {
    const found = agent === undefined ? "neither" : "both"
    return yield* refuse("agent", `expected either agent, or agents as a list or by their names; found ${found}`)
  }
  if (agents === undefined) return { settings, dataset, agents: [yield* split(agent, ["agent"], from)], from }
  if (!isPlain(agents) || Object.keys(agents).length === 0) {
    return yield* refuse("agents", `expected a list of agents, or agents by their names, found ${display(agents)}`)
  }
  const inFile = isPlain(written) && isPlain(written.agents) ? written.agents : {}
  const misspelt = Object.entries(agents).find(
    ([key, agent]) => !Object.hasOwn(inFile, key) && isPlain(agent) && agent.lmConfig === undefined,
  )?.[0]
  if (misspelt !== undefined && Object.keys(inFile).length > 0) {
    const names = Object.entries(inFile).map(([key, agent]) => (isPlain(agent) ? String(agent.name ?? key) : key))
    return yield* refuse(`agents.${misspelt}`, `unknown agent; ${choiceHint(misspelt, names)}`)
  }
  const several = yield* Effect.forEach(Object.entries(agents), ([key, agent]) => split(agent, ["agents", key], from))
  return { settings, dataset, agents: several, from }
})

/** Separates the name of an agent (undefined if it has none) from the rest of its config. */
const split = Effect.fnUntraced(function* (section: unknown, prefix: ReadonlyArray<string>, from: DecodeOptions) {
  if (!isPlain(section)) return { name: undefined, prefix, config: section }
  const { name, ...config } = section
  if (name === undefined || (typeof name === "string" && name !== "")) return { name, prefix, config }
  const key = [...prefix, "name"].join(".")
  return yield* ConfigError.at(from, key, `expected the agent's name in tables, found ${display(name)}`)
})

/**
 * Returns the name of each agent for tables: its name in the config, otherwise its type. If several agents have the same
 * type, the model is appended. If names are still equal, the second one gets a 2, the third a 3, and so on.
 */
export const namesOf = (
  agents: ReadonlyArray<{ readonly name: string | undefined; readonly type: string; readonly model: string | null }>,
): ReadonlyArray<string> => {
  const distinct = (names: ReadonlyArray<string>, at: number): boolean =>
    names.filter((one) => one === names[at]).length === 1
  const types = agents.map(({ name, type }) => name ?? type)
  const models = agents.map(({ name, type, model }) => name ?? `${type} ${model ?? ""}`.trim())
  const numbered = models.map((one, at) => {
    const before = models.slice(0, at).filter((other) => other === one).length
    return before === 0 ? one : `${one} ${before + 1}`
  })
  return agents.map((_, at) => (distinct(types, at) ? types[at] : distinct(models, at) ? models[at] : numbered[at]))
}
