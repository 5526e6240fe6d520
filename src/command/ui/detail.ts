/** Collects the data of a run's page by reading the run's files. `server-node.ts` and `exportSite.ts` use it. */
import { Effect } from "effect"
import { evaluationReport } from "./evaluationReport.ts"
import type { ScoredValidation } from "./curves/scoreCurves.ts"
import { checkpointsIn } from "./play/checkpoints.ts"
import { promptsComparisons } from "../promptsComparisons.ts"
import type { ResultsFolder } from "./results-node.ts"
import { fields, finite, parsed } from "./json.ts"
import type { RunSummary } from "./RunSummary.ts"
import { systemCurves } from "./curves/systemCurves.ts"
import { treeOf } from "../../run/read/FileSource.ts"
import * as Layout from "../../run/Layout.ts"
import { deviationOf, meanOf } from "../../base/statistics/resampling.ts"

/** The page shows at most `logLines` of the last lines of the log, and at most `mostFiles` files. */
const logLines = 200
const mostFiles = 5000

export interface RunDetail extends Effect.Success<ReturnType<typeof detailOf>> {
  /** The number of checkpoint files that were left out of an export. */
  readonly leftOut?: number
}

export const detailOf = Effect.fnUntraced(function* (
  { files, index, curves, prompts }: ResultsFolder,
  summary: RunSummary,
) {
  const { path } = summary
  const run = index.read(path)
  const metrics = yield* run.metrics
  const candidates = (yield* run.kind) === "prompts" ? yield* prompts(path) : null
  const returns = yield* files.text(`${path}/${Layout.returns}`)
  const system = yield* files.text(`${path}/${Layout.system}`)
  // Leave out the list `episodes` of metrics.json, because the transcripts show the episodes.
  const { episodes, ...figures } = fields(metrics)
  const isAgent = figures.train_episodes !== undefined
  const listed = yield* treeOf(files, path, {
    most: mostFiles,
    // The runs of a multi-run trainer are left out, because each of them lists its own files.
    isLeftOut: (folder) => index.has(`${path}/${folder}`),
  })
  const sized = listed.map((file) => ({ path: file.path, size: file.bytes }))
  return {
    summary,
    note: (yield* run.labels).note ?? null,
    config: (yield* run.configText) ?? (yield* files.text(`${path}/${Layout.configJson}`)) ?? null,
    metrics: Array.isArray(episodes) ? figures : (metrics ?? null),
    // Use the score files if there is no return.json yet, or if its steps are episodes, as it is for language-model agents.
    validations: returns === undefined || isAgent ? fromScores(yield* curves.validations(path)) : fromReturns(returns),
    /** The report of a finished evaluation. */
    report: summary.kind === "evaluation" ? evaluationReport(metrics) : null,
    /** The candidates of a run that learns prompts; null for other runs. */
    prompts: candidates === null ? null : { ...candidates, comparisons: promptsComparisons(metrics) },
    system: system === undefined ? null : systemCurves(system),
    /** The last lines of `run.log`. */
    log: (yield* run.log(64 * 1024)).slice(-logLines),
    /** The run's files, at most `mostFiles`, with their sizes in bytes. */
    files: sized,
    /** The checkpoints whose policies can be played in the page. */
    checkpoints: checkpointsIn(sized),
  }
})

/** Reads the validations in the text of a `return.json`. */
const fromReturns = (returns: string) => {
  const records = parsed(returns)
  if (!Array.isArray(records)) return []
  return records.flatMap((value: unknown) => {
    const record = fields(value)
    const mean = finite(record.returns_mean)
    if (mean === null) return []
    return {
      step: finite(record.step) ?? 0,
      mean,
      std: finite(record.returns_std),
      episodes: Array.isArray(record.returns) ? record.returns.length : 0,
      length: finite(record.episode_length_mean),
      terminated: finite(record.share_terminated),
    }
  })
}

/** Summarises the validations that were read from score files. */
const fromScores = (validations: ReadonlyArray<ScoredValidation>) =>
  validations.map(({ step, returns, lengths, terminated }) => ({
    step,
    mean: meanOf(returns),
    std: deviationOf(returns),
    episodes: returns.length,
    length: lengths.length === 0 ? null : meanOf(lengths),
    terminated: terminated.length === 0 ? null : meanOf(terminated.map(Number)),
  }))
