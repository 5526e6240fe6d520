import { Effect } from "effect"
import { newestFirst, type RunEntry } from "./RunEntry.ts"
import { RunsError } from "./RunsError.ts"

/** The run that is meant by `latest`, or by a part of its path that no other run has in its own. */
export const pick = (wanted: string, entries: ReadonlyArray<RunEntry>, folder: string) => {
  const fail = (message: string): Effect.Effect<RunEntry, RunsError> => Effect.fail(new RunsError({ message }))
  const runs = newestFirst(entries)
  if (runs.length === 0) return fail(`${wanted}: there are no runs in ${folder}`)
  if (wanted === "latest") return Effect.succeed(runs[0])
  const part = wanted.replace(/\/+$/, "")
  const meant = runs.filter(({ path }) => path.includes(part))
  if (meant.length === 1) return Effect.succeed(meant[0])
  if (meant.length === 0) return fail(`${wanted}: no run in ${folder} has this in its path`)
  const some = meant.slice(0, 3).map(({ path }) => path)
  const more = meant.length > some.length ? ` and ${meant.length - some.length} more` : ""
  return fail(
    `${wanted}: ${meant.length} runs have this in their paths: ${some.join(", ")}${more}; write more of one of them`,
  )
}
