/** Reads configs that have the settings of a run, an agent and data sets: of trainings of agents, and of runs that learn prompts. */
import { Effect, type Schema } from "effect"
import { checkAll, decode, overridden } from "../../base/config/Config.ts"
import { RunOptions } from "../../run/RunOptions.ts"
import * as Agents from "../agent/Agents.ts"
import { withStartTexts } from "../agent/internal/namedTexts.ts"
import { shownKey } from "../../base/config/secretFields.ts"
import * as Datasets from "../task/Datasets.ts"

/** The origin of a config. */
export interface ConfigPlace {
  /** The folder from which relative paths of data sets and prompts start; by default the current one. */
  readonly baseDir?: string
  /** Where each key was written, for error messages: maps `agent.historyK` to `conf.yaml:7`. */
  readonly lines?: ReadonlyMap<string, string>
}

interface SectionsOptions<A> extends ConfigPlace {
  /** The name of the config in messages. */
  readonly source: string
  /** The Schema of the config, in which the agent and the data sets are still any data. */
  readonly schema: Schema.Codec<A, unknown>
  /** The Schema with the settings of all built-in types: messages use it to find where a misplaced key belongs. */
  readonly whole: Schema.Top
  /** The keys of the data sets, and those that the config must have. */
  readonly datasets: ReadonlyArray<string>
  readonly required?: ReadonlyArray<string>
}

/**
 * Reads a config with the overrides of the launcher, and checks the sections of the agent and the data sets, so that one error
 * lists all problems.
 */
export const readSections = Effect.fnUntraced(function* <A>(
  config: unknown,
  { baseDir = ".", lines = new Map(), source, schema, whole, datasets, required = [] }: SectionsOptions<A>,
) {
  const options = yield* RunOptions
  // Saved configs have a placeholder instead of an API key. An override with this placeholder is ignored.
  const overrides = options.overrides.filter((override) => !String(override.value).includes(shownKey))
  const { value: written, from } = yield* overridden(config, { lines, overrides, source, whole })
  const value = yield* withStartTexts(written, { ...from, baseDir })
  const agentFrom = { ...from, prefix: ["agent"], baseDir }
  const reading = decode(schema, { name: options.name, ...value }, from)
  yield* checkAll([
    reading,
    ...datasets
      .filter((key) => required.includes(key) || (value[key] ?? null) !== null)
      .map((key) => Datasets.decode(value[key] ?? {}, { ...from, prefix: [key] })),
    Agents.decode(value.agent ?? {}, agentFrom),
  ])
  return { sections: yield* reading, from, agentFrom, baseDir }
})
