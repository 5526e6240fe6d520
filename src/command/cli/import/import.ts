/**
 * Defines `effect import FILE…`, which saves an evaluation that another program played as a run: logs of Inspect, and trajectories
 * in Harbor's format ATIF.
 */
import { resolve } from "node:path"
import { Effect, Layer } from "effect"
import * as Argument from "effect/cli/Argument"
import { platform, recorder, runStore } from "../../../node.ts"
import { argument, isBucket, nameOf, resultsDirFlag, subcommand, text, toggle } from "../flags.ts"
import { usageError, writeJson, writeOut } from "../output/output.ts"

export const importing = subcommand(
  "import",
  {
    description:
      "Save an evaluation that another program played as a run, which effect eval, effect ui and effect export read: logs of " +
      "Inspect (.eval or .json), or trajectories in Harbor's format ATIF (.json). A folder is searched for such files; the " +
      "result.json of Harbor's trials has their tasks and rewards.",
    examples: {
      "effect import logs/2026-01-31_popularity.eval": "A log of Inspect",
      "effect import jobs/2026-01-31__12-00-00 --name terminus": "All trials of a job of Harbor",
      "effect import logs --name theirs": "All logs in a folder; effect eval theirs latest compares them with ours",
    },
  },
  {
    files: argument("file", "A log, a trajectory, or a folder with them").pipe(Argument.atLeast(1)),
    name: text("name", "name", "The name of the run (default: that of the first file)"),
    resultsDir: resultsDirFlag("The folder in which the run's folder is created"),
    quiet: toggle("quiet", "Print only the run's folder"),
    json: toggle("json", "Print the result as JSON"),
  },
  Effect.fnUntraced(function* ({ files, name, resultsDir, quiet, json }) {
    if (isBucket(resultsDir)) return yield* usageError("--results-dir: expected a folder on disk, not in a bucket")
    // The code of agents is loaded only when it is needed.
    const { episodesIn, filesIn } = yield* Effect.promise(() => import("./files.ts"))
    const { importRun } = yield* Effect.promise(() => import("../../../agents/interchange/importRun.ts"))
    const { text: textOf } = yield* Effect.promise(() => import("../../../agents/evaluate/report/Report.ts"))
    const found = yield* filesIn(files)
    const options = {
      name: nameOf({ name, file: resolve(files[0]) }),
      sources: found.map(({ path }) => resolve(path)),
      quiet: true,
    }
    const layers = Layer.mergeAll(platform, recorder(), runStore({ resultsDir, program: undefined }))
    const result = yield* importRun(episodesIn(found), options).pipe(
      Effect.scoped,
      Effect.provide(layers),
      Effect.mapError((error) => usageError(error.message)),
    )
    if (json) return yield* writeJson(result)
    yield* writeOut(quiet ? `${result.runDir}\n` : `${textOf(result.report, result)}\n${result.runDir}\n`)
  }),
)
