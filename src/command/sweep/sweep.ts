/**
 * Runs a sweep: trains one file with every combination of the swept settings and every seed. Each run has its own process,
 * and all runs are saved in one folder. If a run fails, the others continue, and the failure is reported at the end.
 */
import { availableParallelism } from "node:os"
import { basename, dirname, join } from "node:path"
import { Cause, Effect, Exit, type FileSystem, Option } from "effect"
import { toSnakeCase } from "../../base/config/Config.ts"
import { prettyJson } from "../../base/text/text.ts"
import { table } from "../../run/find/table.ts"
import { toPath } from "../../run/identifier.ts"
import * as Layout from "../../run/Layout.ts"
import { onDisk } from "../../run/store/FileTree.ts"
import { gitCommit } from "../../run/store/git-node.ts"
import { indexRun } from "../../run/store/indexFile.ts"
import { holdLock } from "../../run/store/lock.ts"
import { owner } from "../../run/store/owner-node.ts"
import { coloredState } from "../cli/output/colors.ts"
import { Output, usageError, writeError, writeJson, writeOut } from "../cli/output/output.ts"
import type { RunFlags } from "../cli/run/flags.ts"
import { failureLine, makeBoard } from "./board.ts"
import { dispatcherLayer } from "../cli/worker/cluster.ts"
import { finishedEarlier } from "./child.ts"
import { resumeCommand, settingOf } from "./command.ts"
import { earlierFolder, newFolder, type SweepFolder, withSameSettings } from "./folder.ts"
import { removeAttempts } from "./job.ts"
import { type EndedRun, lineOf, type SweepMetrics, scoreText, summarise, tableOf } from "./metrics.ts"
import { SweepPlace } from "./place.ts"
import { type PlannedRun, planSweep } from "./plan.ts"
import { withFindRun } from "../cli/run/finding.ts"
import { makeTrainRun } from "./trainRun.ts"
import { CommandError } from "../CommandError.ts"

export const sweep = Effect.fnUntraced(function* (input: RunFlags) {
  if (Option.isSome(input.seeds) && Option.isSome(input.seed)) {
    return yield* usageError("--seeds and --seed exclude each other; use one of them")
  }
  const runs = yield* withFindRun(input)(planSweep(input))
  const commit = yield* gitCommit
  const earlier = Option.isSome(input.resume)
    ? yield* withSameSettings(yield* earlierFolder(input.resume.value, input.resultsDir, runs), runs)
    : undefined
  if (input.dryRun) return yield* dryRun(input, runs, commit, earlier)
  const folder = earlier ?? (yield* newFolder(input.resultsDir, runs))
  yield* Effect.scoped(inFolder(input, runs, folder, commit)).pipe(Effect.provide(dispatcherLayer(input.cluster)))
})

/** Implements `--dry-run`: prints each run's folder and settings. The path of a new sweep has `{TIME}` instead of a time. */
const dryRun = Effect.fnUntraced(function* (
  input: RunFlags,
  planned: ReadonlyArray<PlannedRun>,
  commit: string,
  earlier: SweepFolder | undefined,
) {
  const rows = planned.map(({ identity, choices }, index) => {
    const run = earlier?.runs[index]
    const path = toPath({ ...identity, commit, time: earlier?.time ?? "{TIME}" })
    return {
      path: run?.directory ?? join(earlier?.resultsDir ?? input.resultsDir, path),
      ...identity,
      overrides: choices.map(settingOf),
      does: run === undefined || run.state === "empty" ? "starts" : run.state === "unfinished" ? "resumes" : "nothing",
    }
  })
  if (input.json) return yield* writeJson({ runs: rows })
  const cells = rows.map(({ path, overrides, seed, does }) => [
    ...(earlier === undefined ? [] : [does === "nothing" ? "is finished" : does]),
    path,
    [...overrides, `seed=${seed}`].join(" "),
  ])
  yield* writeOut(`${table([], cells)}${planned.length} ${planned.length === 1 ? "run" : "runs"}\n`)
})

/** Trains all runs that are not finished, several at a time, and holds the lock of the sweep's folder during that time. */
const inFolder = Effect.fnUntraced(function* (
  input: RunFlags,
  runs: ReadonlyArray<PlannedRun>,
  folder: SweepFolder,
  commit: string,
) {
  const { resultsDir, time } = folder
  const directory = join(resultsDir, time)
  const place = yield* SweepPlace
  const command = resumeCommand(input, directory, resultsDir === place.shown(resultsDir) ? undefined : resultsDir)
  // Two sweeps in one folder would start the same runs twice.
  yield* holdLock(join(directory, Layout.sweepLock), owner)
  yield* place.lock(time)
  const { stderr } = yield* Output
  const isTerminal = process.stderr.isTTY === true
  const board = makeBoard({
    labels: runs.map(({ label }) => label),
    write: (text) => void (input.quiet || stderr(text)),
    isTerminal,
    paint: (state) => coloredState(state, process.stderr),
    columns: process.stderr.columns || 100,
    rows: process.stderr.rows || 24,
  })

  const isSpread = Option.isSome(input.cluster)
  const most = isSpread ? runs.length : Math.max(1, availableParallelism())
  const concurrency = Math.min(
    runs.length,
    Option.getOrElse(input.jobs, () => most),
  )
  const trainRun = yield* makeTrainRun({ input, resultsDir, time, commit, command, concurrency })
  const train = (run: PlannedRun, index: number) => {
    board.update(index, { _tag: "Running" })
    return trainRun(run, folder.runs[index], (progress) => board.update(index, { _tag: "Running", ...progress }))
  }

  /** Trains one run, unless it was finished before the sweep was resumed. A failure is returned as a value. */
  const runOne = (run: PlannedRun, index: number): Effect.Effect<EndedRun, never, FileSystem.FileSystem> => {
    const started = folder.runs[index]
    const isFinished = started?.state === "finished"
    return Effect.match(isFinished ? finishedEarlier(started.directory) : train(run, index), {
      onSuccess: (finished) => {
        const { result } = finished
        const about = `after ${result.steps} steps in ${result.wallSeconds.toFixed(1)} s  ${result.runDir}`
        const ending = isFinished ? " (earlier)" : ""
        board.update(index, { _tag: "Done", score: scoreText(result), about: `${about}${ending}` })
        return { run, directory: result.runDir, outcome: finished }
      },
      onFailure: ({ message: problem }) => {
        const isStarted = started !== undefined && started.state !== "empty"
        const directory = isStarted ? started.directory : join(resultsDir, toPath({ ...run.identity, time, commit }))
        board.update(index, { _tag: "Failed", problem, directory })
        return { run, directory, outcome: { problem } }
      },
    })
  }

  const ended = yield* Effect.forEach(runs, runOne, { concurrency }).pipe(
    Effect.ensuring(board.close),
    Effect.onExit((exit) =>
      Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
        ? writeError(`\ninterrupted; resume with: ${command}\n`)
        : Effect.void,
    ),
  )
  if (isSpread) yield* removeAttempts(resultsDir, time)
  yield* conclude(input, runs, ended)
  // A table cuts its lines. Without a table, the board has already printed each failure.
  yield* refuseFailures(runs, ended, { reported: !isTerminal && !input.quiet })
})

/** Saves and prints the metrics of each configuration (a combination of swept settings). */
const conclude = Effect.fnUntraced(function* (
  input: RunFlags,
  runs: ReadonlyArray<PlannedRun>,
  ended: ReadonlyArray<EndedRun>,
) {
  const isSweep = runs[0].choices.length > 0
  const summaries = [...Map.groupBy(ended, ({ run }) => run.configuration).values()].map((group) => ({
    choices: group[0].run.choices,
    finished: group.flatMap(({ outcome, directory }) => ("result" in outcome ? [directory] : [])),
    metrics: summarise(group),
  }))
  for (const { finished, metrics } of summaries) {
    for (const [first] of Map.groupBy(finished, dirname).values()) yield* writeSeedsSummary(first, metrics)
  }

  if (input.json) {
    const all = summaries.map(({ choices, metrics }) => ({
      population: Object.fromEntries(choices.map(({ path, value }) => [path, value])),
      ...metrics,
    }))
    yield* writeJson(isSweep ? { configurations: all } : summaries[0].metrics)
  } else if (!input.quiet) {
    const rows = summaries.map(({ choices, metrics }) => ({ values: choices.map(({ shown }) => shown), metrics }))
    const variables = runs[0].choices.map(({ path }) => path)
    yield* writeOut(isSweep ? tableOf(variables, rows) : `${lineOf(summaries[0].metrics)}\n`)
  }
})

/** Fails if any run failed. Prints the reasons, unless they have already been reported. */
const refuseFailures = Effect.fnUntraced(function* (
  runs: ReadonlyArray<PlannedRun>,
  ended: ReadonlyArray<EndedRun>,
  { reported }: { readonly reported: boolean },
) {
  const failures = ended.flatMap(({ run, directory, outcome }) =>
    "problem" in outcome ? [failureLine(run.label, { problem: outcome.problem, directory })] : [],
  )
  if (failures.length === 0) return
  if (!reported) yield* writeError(failures.join(""))
  const what = runs[0].choices.length > 0 ? "runs" : "seeds"
  return yield* CommandError.failed(`${failures.length} of ${ended.length} ${what} failed`)
})

/**
 * Writes the metrics of all seeds to a file in one run's folder, and a link next to the runs (`indexFile.ts` explains why).
 */
const writeSeedsSummary = Effect.fnUntraced(function* (run: string, metrics: SweepMetrics) {
  const folder = yield* onDisk(dirname(run))
  const file = `${basename(run)}/${Layout.seedsSummary}`
  yield* folder.write(file, prettyJson(toSnakeCase(metrics)))
  yield* folder.link(Layout.metrics, file)
  yield* Effect.ignore(indexRun(run))
})
