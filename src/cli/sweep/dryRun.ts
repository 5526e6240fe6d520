import { join } from "node:path"
import { Effect } from "effect"
import { toPath } from "../../run/identifier.ts"
import type { Given } from "../flags.ts"
import { settingOf } from "./command.ts"
import type { SweepFolder } from "./folder.ts"
import { columns } from "./metrics.ts"
import { writeOut } from "../output/output.ts"
import type { PlannedRun } from "./plan.ts"

/** Where each run would be, and what it would be told; a new one's time is not known yet. */
export const dryRun = (
  given: Given,
  runs: ReadonlyArray<PlannedRun>,
  commit: string,
  earlier: SweepFolder | undefined,
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const rows = runs.map(({ identity, choices }, index) => {
      const found = earlier?.found[index]
      const path = toPath({ ...identity, commit, time: earlier?.time ?? "{TIME}" })
      return {
        path: found?.directory ?? join(earlier?.resultsDir ?? given.resultsDir, path),
        ...identity,
        overrides: choices.map(settingOf),
        does:
          found === undefined || found.state === "empty" ? "starts" : found.state === "begun" ? "goes on" : "nothing",
      }
    })
    if (given.json) return yield* writeOut(`${JSON.stringify({ runs: rows })}\n`)
    const lines = columns(
      rows.map(({ path, overrides, seed, does }) => [
        ...(earlier === undefined ? [] : [does === "nothing" ? "is finished" : does]),
        path,
        [...overrides, `seed=${seed}`].join(" "),
      ]),
    )
    yield* writeOut(`${lines.join("\n")}\n${runs.length} ${runs.length === 1 ? "run" : "runs"}\n`)
  })
