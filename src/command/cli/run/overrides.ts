/** Collects the settings that `effect run` overrides, from its flags and from the files that they name. */
import { join } from "node:path"
import { Effect, Option } from "effect"
import type { Override } from "../../../base/config/Config.ts"
import { withoutUnderscores } from "../../../base/config/numbers.ts"
import { messageOf, shortened } from "../../../base/text/text.ts"
import { parseYaml } from "../../../base/config/yaml.ts"
import * as Layout from "../../../run/Layout.ts"
import { usageError } from "../output/output.ts"
import { yamlOverrides } from "../userCode/yamlFile.ts"
import type { RunFlags } from "./flags.ts"
import { type CommandError } from "../../CommandError.ts"

/**
 * Returns the settings that override those of the file, in the order in which they apply: the config of the resumed run,
 * `--config`, the flags, `--set`, and the settings that a sweep chose (`choices`). A later setting wins. If `choices` names
 * an env or an algorithm, that setting comes before `--set`, because such a name drops all settings of the former env or
 * algorithm.
 */
export const overridesOf = Effect.fnUntraced(function* (
  input: Pick<RunFlags, "config" | "seed" | "totalSteps" | "name" | "set"> & Partial<Pick<RunFlags, "ranks">>,
  resume: string | undefined,
  choices: ReadonlyArray<Omit<Override, "source"> & { readonly source?: string }> = [],
) {
  const swept = choices.map(({ path, value, source = "--population" }) => ({ path, value, source }))
  const ofRun = resume === undefined ? [] : yield* yamlOverrides(join(resume, Layout.config))
  const ofFile = yield* Effect.forEach(Option.toArray(input.config), yamlOverrides)
  const flag = (path: string, source: string, value: Option.Option<unknown>): ReadonlyArray<Override> =>
    Option.isNone(value) ? [] : [{ path, source, value: value.value }]
  return [
    // An evaluation is resumed only with the settings with which it began, so its file has them already.
    ...(ofRun.some(({ path, value }) => path === "kind" && value === "evaluation") ? [] : ofRun),
    ...ofFile.flat(),
    ...flag("seed", "--seed", input.seed),
    ...flag("totalSteps", "--total-steps", input.totalSteps),
    ...flag("name", "--name", input.name),
    ...swept.filter(isNaming),
    ...(yield* Effect.forEach(input.set, parseSetting)).map((one) => fromRanks(input, one)),
    ...swept.filter((one) => !isNaming(one)),
  ]
})

/** Names the flag `--ranks` as the source of its setting, which `effect run` has added to the settings of `--set`. */
const fromRanks = ({ ranks = Option.none() }: Partial<Pick<RunFlags, "ranks">>, setting: Override): Override =>
  Option.isSome(ranks) && /^(trainer\.)?ranks$/.test(setting.path) ? { ...setting, source: "--ranks" } : setting

/**
 * Tells whether a setting chooses an env or an algorithm by name. Such a setting must come first, because it drops the
 * other settings of the env or algorithm.
 */
export const isNaming = ({ path }: { readonly path: string }): boolean =>
  ["env", "env.name", "algorithm", "algorithm.name"].includes(path)

/** Parses `key.path=value` of `--set`, where the value is YAML; fails with a usage error if it has another form. */
export const parseSetting = (text: string): Effect.Effect<Override, CommandError> => {
  const at = text.indexOf("=")
  const shown = shortened(text)
  if (at < 1) return Effect.fail(usageError(`--set ${shown}: expected key.path=value`))
  return Effect.try({
    try: () => ({ path: text.slice(0, at), value: settingValue(text.slice(at + 1)), source: "--set" }),
    catch: (error) => usageError(`--set ${shown}: the value is not valid YAML: ${messageOf(error)}`),
  })
}

/**
 * Parses a value on the command line as YAML; numbers may have underscores between their digits. Throws an Error with a
 * one-line message if it isn't YAML.
 */
export const settingValue = (text: string): unknown => {
  const plain = withoutUnderscores(text)
  if (/^nan$/i.test(plain)) return NaN
  // YAML writes infinity as `.inf`.
  if (/^[-+]?inf(inity)?$/i.test(plain)) return plain.startsWith("-") ? -Infinity : Infinity
  const document = parseYaml(plain)
  if ("problem" in document) throw new Error(document.problem)
  return document.value
}
