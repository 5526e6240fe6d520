/** Finds the one run that a user means by a part of its path. The commands call it through `findRun.ts`. */
import { Effect } from "effect"
import { derivedName } from "../identifier.ts"
import type { RunLabels } from "../manage/labels.ts"
import { newestFirst, type RunEntry } from "./RunEntry.ts"
import { RunStoreError } from "../store/RunStoreError.ts"

/** The kind of runs that a command can work with, for example trainings with a checkpoint. */
export interface UsableRuns {
  /** The name of this kind in messages, e.g. `a training`. */
  readonly noun: string
  readonly isUsable: (entry: RunEntry) => Effect.Effect<boolean>
}

interface PickOptions {
  /** The results folder, for messages. */
  readonly folder: string
  readonly usable?: UsableRuns
  /** Reads the labels of a run. Without it, no run has labels. */
  readonly labelsOf?: (entry: RunEntry) => Effect.Effect<RunLabels>
  /** Accepts no part of a name: only whole folder names at the end of a path, such as `CartPole-v1_ppo/0003`. */
  readonly wholeNames?: boolean
}

/**
 * Returns the newest usable run that is not archived for `latest`, otherwise the only usable run whose path contains `wanted`,
 * or whose title is `wanted` if no path contains it. With `wholeNames`, the path must end with `wanted`. Fails if there is none,
 * or more than one.
 */
export const pick = Effect.fnUntraced(function* (
  wanted: string,
  entries: ReadonlyArray<RunEntry>,
  { folder, usable, labelsOf = () => Effect.succeed({}), wholeNames = false }: PickOptions,
): Effect.fn.Return<RunEntry, RunStoreError> {
  const fail = (problem: string): Effect.Effect<never, RunStoreError> =>
    Effect.fail(new RunStoreError({ path: folder, operation: "find", message: problem }))
  const runs = newestFirst(entries)
  if (runs.length === 0) return yield* fail(`there are no runs in ${folder}`)
  const isUsable = usable === undefined ? () => Effect.succeed(true) : usable.isUsable
  const noun = usable?.noun ?? "a run"

  if (wanted === "latest") {
    let archived = 0
    for (const run of runs) {
      if (!(yield* isUsable(run))) continue
      if ((yield* labelsOf(run)).archived !== true) return run
      archived++
    }
    return yield* fail(
      archived === 0
        ? `none of the runs in ${folder} is ${noun}`
        : `all runs in ${folder} that could be meant are archived; name one by its path`,
    )
  }

  // Accept a path as it is shown in a narrow table: an ellipsis and the end of the path.
  const part = wanted.replace(/^…\/?/, "").replace(/\/+$/, "")
  const has = (path: string, end: string): boolean => (wholeNames ? `/${path}`.endsWith(`/${end}`) : path.includes(end))
  const exact = runs.filter(({ path }) => has(path, part))
  const similar = exact.length > 0 ? exact : runs.filter(({ path }) => has(derivedName(path), derivedName(part)))
  const titled = Effect.filter(runs, (run) => Effect.map(labelsOf(run), ({ title }) => title === wanted))
  const matching = similar.length > 0 ? similar : yield* titled
  if (matching.length === 0) {
    const problem = wholeNames ? "has a path that ends with these folder names" : "has this in its path"
    return yield* fail(`no run in ${folder} ${problem}; \`effect runs\` lists them`)
  }
  const candidates = yield* Effect.filter(matching, isUsable)
  if (candidates.length === 1) return candidates[0]
  if (candidates.length === 0) {
    return yield* fail(
      matching.length === 1
        ? `${matching[0].path} is not ${noun}`
        : `none of the ${matching.length} runs with this in their paths is ${noun}`,
    )
  }
  const some = candidates.slice(0, 3).map(({ path }) => path)
  const more = candidates.length > some.length ? ` and ${candidates.length - some.length} more` : ""
  return yield* fail(
    `${candidates.length} runs have this in their paths: ${some.join(", ")}${more}; write more of one of these paths`,
  )
})
