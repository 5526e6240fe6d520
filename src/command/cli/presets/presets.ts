/** Defines the subcommand `effect presets`, which lists tuned settings. It only reads. */
import { Effect } from "effect"
import * as Argument from "effect/cli/Argument"
import { toSnakeCase } from "../../../base/config/Config.ts"
import { table } from "../../../run/find/table.ts"
import type { Preset } from "../../../rl/presets/Presets.ts"
import { argument, subcommand, toggle } from "../flags.ts"
import { usageError, writeJson, writeOut } from "../output/output.ts"

export const presets = subcommand(
  "presets",
  {
    description:
      "List tuned settings by algorithm and env, with the project that published them and the packages that the env needs. " +
      "effect run --preset NAME trains with them, and effect init --preset NAME writes them into a file.",
    examples: {
      "effect presets": "List all presets",
      "effect presets ppo": "List the presets of PPO",
      "effect presets cheetah": "List the presets of an env",
      "effect presets sac mujoco": "List the presets of SAC whose envs need MuJoCo's package",
      "effect presets ppo/HalfCheetah-v5 --yaml": "Print the settings of a preset",
    },
  },
  {
    filter: argument(
      "filter",
      "Parts of the algorithm, the env, the source or what is needed; a preset must have all of them",
    ).pipe(Argument.variadic()),
    yaml: toggle("yaml", "Print the presets as configs in YAML"),
    json: toggle("json", "Print one line of JSON for each preset, with its settings"),
  },
  Effect.fnUntraced(function* ({ filter, yaml, json }) {
    if (yaml && json) return yield* usageError("--yaml and --json can't be combined; choose one")
    const presets = yield* Effect.promise(() => import("../../../rl/presets/Presets.ts"))
    const all = presets.all()
    const algorithms = new Set(all.map(({ algorithm }) => algorithm))
    const wanted = filter.map((word) => word.toLowerCase())
    const found = all.filter((preset) => wanted.every((word) => hasWord(preset, word, algorithms)))
    if (found.length === 0) {
      return yield* usageError(`no preset has ${filter.join(" and ")}; effect presets without words lists all`)
    }
    if (json) return yield* Effect.forEach(found, (preset) => writeJson(asJson(preset)), { discard: true })
    if (yaml) return yield* writeOut(found.map((preset) => preset.yaml).join("---\n"))
    yield* writeOut(
      table(
        ["preset", "steps", "source", "needs"],
        found.map(({ id, settings, source, needs }) => [
          id,
          settings.totalSteps.toLocaleString("en"),
          source,
          needs?.packages ?? "–",
        ]),
      ),
    )
  }),
)

/**
 * Tells whether a preset fits a word of the filter: an algorithm's whole name, a part of `algorithm/env` with its slash, or a
 * part of anything else. The name of an algorithm fits nothing else, since the source "Revisiting Rainbow" also has settings of
 * other algorithms.
 */
const hasWord = (
  { id, algorithm, env, source, needs }: Preset,
  word: string,
  algorithms: ReadonlySet<string>,
): boolean =>
  algorithms.has(word)
    ? word === algorithm
    : (word.includes("/") && id.toLowerCase().includes(word)) ||
      [env, source, needs?.packages ?? ""].some((text) => text.toLowerCase().includes(word))

const asJson = ({ id, algorithm, env, source, needs, settings }: Preset) => ({
  preset: id,
  algorithm,
  env,
  source,
  needs: needs ?? null,
  settings: toSnakeCase(settings),
})
