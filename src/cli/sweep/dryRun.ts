import { join } from "node:path"
import { Effect } from "effect"
import { table } from "../../run/find/table.ts"
import { toPath } from "../../run/identifier.ts"
import { writeJson, writeOut } from "../output/output.ts"
import type { RunFlags } from "../run/flags.ts"
import { settingOf } from "./command.ts"
import type { SweepFolder } from "./folder.ts"
import type { PlannedRun } from "./plan.ts"

/** Prints the folder and the settings of each run. The path of a new sweep contains `{TIME}` instead of a time. */
export const dryRun = Effect.fnUntraced(function* (
  given: RunFlags,
  planned: ReadonlyArray<PlannedRun>,
  commit: string,
  earlier: SweepFolder | undefined,
) {
  const rows = planned.map(({ identity, choices }, index) => {
    const run = earlier?.runs[index]
    const path = toPath({ ...identity, commit, time: earlier?.time ?? "{TIME}" })
    return {
      path: run?.directory ?? join(earlier?.resultsDir ?? given.resultsDir, path),
      ...identity,
      overrides: choices.map(settingOf),
      does: run === undefined || run.state === "empty" ? "starts" : run.state === "unfinished" ? "resumes" : "nothing",
    }
  })
  if (given.json) return yield* writeJson({ runs: rows })
  const cells = rows.map(({ path, overrides, seed, does }) => [
    ...(earlier === undefined ? [] : [does === "nothing" ? "is finished" : does]),
    path,
    [...overrides, `seed=${seed}`].join(" "),
  ])
  yield* writeOut(`${table([], cells)}${planned.length} ${planned.length === 1 ? "run" : "runs"}\n`)
})
