import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { display, isPlain, toSnakeCase } from "../../config/Config.ts"
import { asSaved } from "../../config/yaml.ts"
import { diff } from "../../run/find/diff.ts"
import { readYaml } from "../userCode/loadTraining.ts"
import { UsageError } from "../UsageError.ts"
import type { FoundRun, SweepFolder } from "./folder.ts"
import type { PlannedRun } from "./plan.ts"
import * as Layout from "../../run/Layout.ts"

/** What makes no difference to what comes out: how it is computed, and when it is saved. */
const indifferent = /^(workers|validation\.workers|checkpoint|description)(\.|$)/

/**
 * What there is of a sweep, if it was made with the settings that are given now: else the sweep would be of two minds,
 * and nobody would see it. A run that was finished with fewer steps than are asked for now has more to do.
 */
export const withSameSettings = Effect.fnUntraced(function* (
  folder: SweepFolder,
  runs: ReadonlyArray<PlannedRun>,
): Effect.fn.Return<SweepFolder, UsageError> {
  const found = yield* Effect.forEach(folder.found, (one, index) =>
    one === undefined || one.state === "empty" ? Effect.succeed(one) : asPlanned(one, runs[index]),
  )
  return { ...folder, found }
})

const asPlanned = Effect.fnUntraced(function* (
  found: FoundRun,
  { label, effective }: PlannedRun,
): Effect.fn.Return<FoundRun, UsageError> {
  const file = join(found.directory, Layout.config)
  // A finished one that has lost it can only be believed.
  if (!existsSync(file)) return found
  const then = yield* readYaml(file)
  const now = asSaved(toSnakeCase(effective))
  const [before, after] = [stepsOf(then), stepsOf(now)]
  const isLonger = before !== undefined && after !== undefined && after > before
  const other = diff(then, now).find(
    ({ key }) => !indifferent.test(key) && !(key === "total_steps" && (isLonger || found.state === "begun")),
  )
  if (other === undefined) return found.state === "finished" && isLonger ? { ...found, state: "begun" } : found
  const state = found.state === "finished" ? "finished" : "begun"
  const message =
    `--resume: ${label} was ${state} with ${other.key} = ${display(other.left)}, and is asked for with ` +
    `${display(other.right)}: ${found.directory}; give the same settings, or start a new sweep without --resume`
  return yield* new UsageError({ message })
})

const stepsOf = (config: unknown): number | undefined =>
  isPlain(config) && typeof config.total_steps === "number" ? config.total_steps : undefined
