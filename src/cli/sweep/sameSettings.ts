import { join } from "node:path"
import { Effect, type FileSystem } from "effect"
import { display, isPlain, toSnakeCase } from "../../config/Config.ts"
import { exists } from "../../config/files.ts"
import { asSaved } from "../../config/yaml.ts"
import { diff } from "../../run/find/diff.ts"
import * as Layout from "../../run/Layout.ts"
import { UsageError } from "../output/errors.ts"
import { readYaml } from "../userCode/yamlFile.ts"
import type { StartedRun, SweepFolder } from "./folder.ts"
import type { PlannedRun } from "./plan.ts"

/**
 * Matches the settings that don't change the results, because they only say how results are computed and when they are
 * saved.
 */
const irrelevant = /^(workers|validation\.workers|checkpoint|description)(\.|$)/

/**
 * Refuses to resume a sweep with other settings, since its runs would then differ in more than the swept settings. A run
 * that was finished with fewer steps than the plan has becomes unfinished.
 */
export const withSameSettings = Effect.fnUntraced(function* (
  folder: SweepFolder,
  planned: ReadonlyArray<PlannedRun>,
): Effect.fn.Return<SweepFolder, UsageError, FileSystem.FileSystem> {
  const runs = yield* Effect.forEach(folder.runs, (run, index) =>
    run === undefined || run.state === "empty" ? Effect.succeed(run) : checked(run, planned[index]),
  )
  return { ...folder, runs }
})

const checked = Effect.fnUntraced(function* (
  run: StartedRun,
  { label, effective }: PlannedRun,
): Effect.fn.Return<StartedRun, UsageError, FileSystem.FileSystem> {
  const file = join(run.directory, Layout.config)
  // A finished run whose config was deleted can't be checked.
  if (!(yield* exists(file))) return run
  const saved = yield* readYaml(file)
  const current = asSaved(toSnakeCase(effective))
  const [before, after] = [totalSteps(saved), totalSteps(current)]
  const isLonger = before !== undefined && after !== undefined && after > before
  const other = diff(saved, current).find(
    ({ key }) => !irrelevant.test(key) && !(key === "total_steps" && (isLonger || run.state === "unfinished")),
  )
  if (other === undefined) return run.state === "finished" && isLonger ? { ...run, state: "unfinished" } : run
  const message =
    `--resume: ${label} was ${run.state === "finished" ? "finished" : "started"} with ${other.key} = ` +
    `${display(other.left)}, and these settings have ${display(other.right)}: ${run.directory}; ` +
    "use the same settings, or start a new sweep without --resume"
  return yield* new UsageError({ message })
})

const totalSteps = (config: unknown): number | undefined =>
  isPlain(config) && typeof config.total_steps === "number" ? config.total_steps : undefined
