import { join } from "node:path"
import { Effect, Option } from "effect"
import type { Override } from "../../config/Config.ts"
import { messageOf, shortened } from "../../config/text.ts"
import type { Given } from "../flags.ts"
import { yamlOverrides } from "../userCode/loadTraining.ts"
import { settingValue } from "./settingValue.ts"
import { UsageError } from "../UsageError.ts"
import * as Layout from "../../run/Layout.ts"

/** What a sweep sets in one of its runs. */
export interface Swept {
  readonly naming: ReadonlyArray<Override>
  readonly others: ReadonlyArray<Override>
}

/**
 * Later ones win: the resumed run's own config, --config, the flags, --set; what a sweep sets
 * beside them, but for the names of env and algorithm, which leave all that was said of another one behind.
 */
export const overridesOf = Effect.fnUntraced(function* (
  given: Given,
  resume: string | undefined,
  swept: Swept = { naming: [], others: [] },
): Effect.fn.Return<ReadonlyArray<Override>, UsageError> {
  const files = [resume === undefined ? undefined : join(resume, Layout.config), Option.getOrUndefined(given.config)]
  const fromFiles: Array<Override> = []
  for (const file of files) if (file !== undefined) fromFiles.push(...(yield* yamlOverrides(file)))
  const flag = (path: string, source: string, value: Option.Option<unknown>): ReadonlyArray<Override> =>
    Option.isNone(value) ? [] : [{ path, source, value: value.value }]
  return [
    ...fromFiles,
    ...flag("seed", "--seed", given.seed),
    ...flag("totalSteps", "--total-steps", given.totalSteps),
    ...flag("name", "--name", given.name),
    ...swept.naming,
    ...(yield* Effect.forEach(given.set, setting)),
    ...swept.others,
  ]
})

/** `key.path=value`, the value as YAML has it; numbers may have underscores between digits. */
export const setting = (text: string): Effect.Effect<Override, UsageError> => {
  const at = text.indexOf("=")
  const shown = shortened(text)
  if (at < 1) return Effect.fail(new UsageError({ message: `--set ${shown}: expected key.path=value` }))
  return Effect.try({
    try: () => ({ path: text.slice(0, at), value: settingValue(text.slice(at + 1)), source: "--set" }),
    catch: (error) => new UsageError({ message: `--set ${shown}: the value is not valid YAML: ${messageOf(error)}` }),
  })
}
