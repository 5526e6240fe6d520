/**
 * Opens data sets from configs: finds the kind of data set and decodes the config; then the kind reads a file or makes the
 * tasks.
 *
 * @example
 * ```ts
 * const { tasks, config } = yield* Datasets.open({ dataset_path: "train.jsonl", max_samples: 100 }, { baseDir: "experiments" })
 * const env = yield* tasks.at(0)
 * ```
 */
import { Context, Effect, Schema } from "effect"
import { choiceHint } from "../../base/text/closest.ts"
import {
  ConfigError,
  type DecodeOptions,
  display,
  isPlain,
  type Plain,
  snakeCase,
  toCamelCase,
  toSnakeCase,
} from "../../base/config/Config.ts"
import * as CodeTask from "./code/CodeTask.ts"
import { type DatasetKind, type DatasetContext, type DatasetOpening } from "./DatasetKind.ts"
import * as Arithmetic from "./games/Arithmetic.ts"
import * as CalendarTask from "./games/CalendarTask.ts"
import * as Codebook from "./games/Codebook.ts"
import * as KeyDoor from "./games/KeyDoor.ts"
import * as Maze from "./games/Maze.ts"
import * as ReverseText from "./games/ReverseText.ts"
import * as SortText from "./games/SortText.ts"
import * as TicTacToe from "./games/TicTacToe.ts"
import * as TwentyQuestions from "./games/TwentyQuestions.ts"
import * as WordGuess from "./games/WordGuess.ts"
import * as Finer from "./Finer.ts"
import * as Alfworld from "./foreign/Alfworld.ts"
import * as ForeignTask from "./foreign/ForeignTask.ts"
import * as Harbor from "./harbor/Harbor.ts"
import * as OmegaMath from "./OmegaMath.ts"
import * as OpenEnvTask from "./openenv/OpenEnvTask.ts"
import * as Qa from "./Qa.ts"
import { commitOf } from "./hub/dataset.ts"
import type { TaskSet } from "./TaskSet.ts"

/** The built-in kinds of data set. To build in another kind, add it to this list. */
export const builtIn: ReadonlyArray<DatasetKind> = [
  Qa.kind,
  Arithmetic.kind,
  CalendarTask.kind,
  OmegaMath.kind,
  Finer.kind,
  Codebook.kind,
  CodeTask.kind,
  KeyDoor.kind,
  Maze.kind,
  ReverseText.kind,
  SortText.kind,
  TicTacToe.kind,
  TwentyQuestions.kind,
  WordGuess.kind,
  ForeignTask.kind,
  Alfworld.kind,
  OpenEnvTask.kind,
  Harbor.kind,
]

/** The kinds that configs can name; provide a longer list to add your own. */
export const Kinds = Context.Reference<ReadonlyArray<DatasetKind>>("effect-rl/task/DatasetKinds", {
  defaultValue: () => builtIn,
})

/** The Schema of a data set's config of any built-in kind. The JSON Schema of config files is made from it. */
export const DatasetConfig = Schema.Union(builtIn.map(({ schema }) => schema))

/** An open data set. */
export interface Dataset {
  readonly type: string
  readonly tasks: TaskSet
  /** The config with all defaults, in the form of a config file. Opening it again opens the same data set. */
  readonly config: Plain
}

/** Other names of keys, each with the key that it means. */
const aliases = { questionField: "inputField", answerField: "targetField" } as const

/** Converts keys to camelCase, replaces aliases by their keys, and adds the kind if it is missing. */
const normalised = (input: unknown, from: DecodeOptions) =>
  Effect.suspend(() => {
    if (!isPlain(input)) {
      return Effect.fail(ConfigError.at(from, "", `expected a data set, found ${display(input)}`))
    }
    // The items are data, so their keys are not converted.
    const { items, ...rest } = input
    const camel = toCamelCase(rest)
    const config: Record<string, unknown> = isPlain(camel) ? { ...camel } : {}
    if (items !== undefined) config["items"] = items
    for (const [alias, name] of Object.entries(aliases)) {
      if (config[alias] === undefined) continue
      if (config[name] !== undefined && config[name] !== config[alias]) {
        const values = `${display(config[alias])} and ${display(config[name])}`
        const problem = `expected one of it and ${snakeCase(name)}, which are the same, found ${values}`
        return Effect.fail(ConfigError.at(from, alias, problem))
      }
      config[name] = config[alias]
      delete config[alias]
    }
    config["type"] ??= config["evalMode"] === undefined ? "qa" : "omega_math"
    return Effect.succeed(config)
  })

const kindOf = (type: unknown, from: DecodeOptions) =>
  Effect.flatMap(Kinds, (kinds) => {
    // If several kinds have the same name, the last one is used, so that users can replace a built-in kind.
    const kind = kinds.findLast((candidate) => candidate.type === type)
    if (kind !== undefined) return Effect.succeed(kind)
    if (type === "alfworld") {
      const problem = `"alfworld" needs a simulator that isn't included; a program of type "foreign" can play it`
      return Effect.fail(ConfigError.at(from, "type", problem))
    }
    const hint = choiceHint(
      type,
      kinds.map((one) => one.type),
    )
    return Effect.fail(ConfigError.at(from, "type", `unknown kind of data set ${display(type)}; ${hint}`))
  })

/** Converts the keys of a config to snake_case, as in a file. The items are data and stay the same. */
const inFile = (encoded: Plain): Plain => {
  const { items, ...rest } = encoded
  const snake = toSnakeCase(rest)
  return { ...(isPlain(snake) ? snake : {}), ...(items === undefined ? {} : { items }) }
}

const fromUnknown: DecodeOptions = { source: "data set" }

const decodeConfig = (input: unknown, from: DecodeOptions) =>
  Effect.gen(function* () {
    const config = yield* normalised(input, from)
    const kind = yield* kindOf(config["type"], from)
    return { kind, config, effective: inFile(yield* kind.decode(config, from)) }
  })

/** Decodes a config without opening the data set; returns it with all defaults and the keys of a config file. */
export const decode = (input: unknown, from: DecodeOptions = fromUnknown): Effect.Effect<Plain, ConfigError> =>
  Effect.map(decodeConfig(input, from), ({ effective }) => effective)

/** Opens the data set of a config, with keys in either spelling. Relative paths start at `baseDir`. */
export const open = (
  input: unknown,
  { from = fromUnknown, ...context }: Pick<DatasetContext, "baseDir"> & Partial<DatasetContext>,
): DatasetOpening<Dataset> =>
  Effect.gen(function* () {
    const { kind, config, effective } = yield* decodeConfig(input, from)
    const revision = yield* revisionOf(effective, from)
    const tasks = yield* kind.open({ ...config, ...(revision && { hfRevision: revision }) }, { from, ...context })
    return { type: kind.type, tasks, config: { ...effective, ...(revision && { hf_revision: revision }) } }
  })

/**
 * Returns the commit of a config's data set on the Hugging Face hub, with which it is opened again; undefined for other data
 * sets.
 */
const revisionOf = (effective: Plain, from: DecodeOptions) => {
  const { hf_dataset: id, hf_revision: revision, dataset_path: file = null, items = null } = effective
  const isOnHub = typeof id === "string" && "hf_revision" in effective && file === null && items === null
  return isOnHub ? commitOf(id, typeof revision === "string" ? revision : null, from) : Effect.undefined
}
