/**
 * Makes the tasks of ALFWorld: text adventures in a household, with a simulator in Python. The program
 * `effect_rl_alfworld.py` connects to the simulator.
 *
 * @example
 * ```yaml
 * train_dataset: { type: alfworld, base_config_path: base_config.yaml, split: train, num_episodes: 100 }
 * ```
 */
import { Effect, Schema } from "effect"
import { ConfigError } from "../../../base/config/Config.ts"
import { bounded, positiveBelow, withDefault } from "../../../base/config/fields.ts"
import { locate } from "../../../base/config/places.ts"
import { type DatasetKind, make as makeKind, orderFields, orderOf } from "../DatasetKind.ts"
import { ordered } from "../TaskSet.ts"
import { openTasks } from "./ForeignTask.ts"

const Config = Schema.Struct({
  type: withDefault(Schema.Literal("alfworld"), "alfworld"),
  /** ALFWorld's own config file. */
  baseConfigPath: Schema.NonEmptyString,
  /** The games that are played: those for training, or those for evaluation in seen or unseen rooms. */
  split: withDefault(
    Schema.Literals(["train", "eval_in_distribution", "eval_out_of_distribution"]),
    "eval_out_of_distribution",
  ),
  /** The number of games, in the order of their names; null plays all. */
  numEpisodes: withDefault(Schema.NullOr(bounded("tasks")), 1),
  /** A JSON file with examples, two of which are shown before the first observation; null shows none. */
  promptsPath: withDefault(Schema.NullOr(Schema.NonEmptyString), null),
  /** The number of steps after which a game is truncated; null leaves that to the simulator. */
  maxSteps: withDefault(Schema.NullOr(bounded("count")), 50),
  /** Whether observations end with the list of the possible actions. */
  showActions: withDefault(Schema.Boolean, false),
  /** The Python interpreter in which ALFWorld is installed. */
  python: withDefault(Schema.NonEmptyString, "python3"),
  /** The number of processes, which is also the number of games that are played at the same time. */
  processes: withDefault(bounded("programs"), 4),
  /** The number of seconds after which a request without a reply fails; the first one loads the simulator. */
  timeoutSeconds: withDefault(positiveBelow("seconds"), 300),
  /** The names of the environment variables that Python gets, besides `PATH`, `HOME` and others without secrets. */
  variables: withDefault(Schema.Array(Schema.NonEmptyString), []),
  ...orderFields,
})
export const kind: DatasetKind = makeKind({
  type: "alfworld",
  schema: Config,
  open: (config, { from, baseDir }) =>
    Effect.gen(function* () {
      const placed = Effect.fnUntraced(function* (key: "baseConfigPath" | "promptsPath") {
        const file = config[key]
        if (file === null) return null
        const { path, isThere, tried } = yield* locate(file, baseDir)
        if (isThere) return path
        return yield* ConfigError.at(from, key, `there is no file ${tried.join(" or ")}`)
      })
      const { python, split, maxSteps, processes, timeoutSeconds, variables, showActions, numEpisodes } = config
      const program = {
        id: "alfworld",
        command: [python, "-u"],
        script: "effect_rl_alfworld.py",
        options: {
          baseConfigPath: yield* placed("baseConfigPath"),
          promptsPath: yield* placed("promptsPath"),
          split,
          maxSteps,
        },
        processes,
        timeoutSeconds,
        variables,
      }
      // Paths are left out of the identity, because folders may differ between machines.
      const identity = { split, maxSteps, prompts: config.promptsPath !== null }
      const keys = { program: "python", count: "numEpisodes" }
      const tasks = yield* openTasks(program, { showActions, count: numEpisodes, identity }, from, keys)
      return ordered(tasks, orderOf(config))
    }),
})
