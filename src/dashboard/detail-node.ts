import { type EvaluationReport, evaluationReport } from "./evaluationReport.ts"
import type { Validation } from "./curve.ts"
import type { Results } from "./results-node.ts"
import { fields, finite, parsed, type RunSummary } from "./RunSummary.ts"
import { type SystemCurves, systemCurves } from "./systemCurves.ts"
import * as Layout from "../run/Layout.ts"

/** A run's page. */
export interface RunDetail {
  readonly summary: RunSummary
  readonly config: string | null
  readonly metrics: unknown
  readonly validations: ReadonlyArray<ValidationLine>
  /** Of an evaluation that is finished. */
  readonly report: EvaluationReport | null
  /** What it cost its machine; null where no file says. */
  readonly system: SystemCurves | null
  /** The last lines of `run.log`. */
  readonly log: ReadonlyArray<string>
  /** With their sizes. */
  readonly files: ReadonlyArray<{ readonly path: string; readonly size: number }>
  /** In an export: how many files of checkpoints it doesn't have. */
  readonly leftOut?: number
}

export interface ValidationLine {
  readonly step: number
  readonly mean: number
  readonly std: number | null
  readonly episodes: number
  readonly length: number | null
  readonly terminated: number | null
}

const logLines = 200
const mostFiles = 5000

export const detailOf = async ({ files, curves }: Results, summary: RunSummary): Promise<RunDetail> => {
  const { path } = summary
  const [config, metrics, returns, system, log] = await Promise.all([
    files.text(`${path}/${Layout.config}`),
    files.text(`${path}/${Layout.metrics}`),
    files.text(`${path}/${Layout.returns}`),
    files.text(`${path}/${Layout.system}`),
    files.text(`${path}/${Layout.log}`, -64 * 1024),
  ])
  // What was said in every episode is in the scores and the rollouts, too.
  const { episodes, ...figures } = fields(parsed(metrics))
  const isTalk = figures.train_episodes !== undefined
  return {
    summary,
    config: config ?? (await files.text(`${path}/${Layout.configJson}`)) ?? null,
    metrics: Array.isArray(episodes) ? figures : (parsed(metrics) ?? null),
    // A run that goes on has no `return.json` yet, and that of a runtime counts in episodes.
    validations: returns === undefined || isTalk ? fromScores(await curves.validations(path)) : fromReturns(returns),
    report: summary.kind === "evaluation" ? evaluationReport(parsed(metrics)) : null,
    system: system === undefined ? null : systemCurves(system),
    log: (log ?? "").trimEnd().split("\n").slice(-logLines),
    files: await filesOf(files, path),
  }
}

const fromReturns = (returns: string): ReadonlyArray<ValidationLine> => {
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

const fromScores = (validations: ReadonlyArray<Validation>): ReadonlyArray<ValidationLine> =>
  validations.map(({ step, returns, lengths, terminated }) => {
    const mean = meanOf(returns)
    return {
      step,
      mean,
      std: Math.sqrt(meanOf(returns.map((value) => (value - mean) ** 2))),
      episodes: returns.length,
      length: lengths.length === 0 ? null : meanOf(lengths),
      terminated: terminated.length === 0 ? null : meanOf(terminated.map(Number)),
    }
  })

const meanOf = (values: ReadonlyArray<number>): number => values.reduce((sum, value) => sum + value, 0) / values.length

/** Files below a run's folder, by paths relative to it; of very many those that lie deepest are left out. */
const filesOf = async (files: Results["files"], run: string): Promise<RunDetail["files"]> => {
  const found: Array<{ readonly path: string; readonly size: number }> = []
  const folders = [""]
  for (let folder = folders.shift(); folder !== undefined && found.length < mostFiles; folder = folders.shift()) {
    const below = (name: string): string => (folder === "" ? name : `${folder}/${name}`)
    const listed = await files.list(`${run}/${folder}`)
    for (const name of listed.files.slice(0, mostFiles - found.length)) {
      found.push({ path: below(name), size: (await files.size(`${run}/${below(name)}`)) ?? 0 })
    }
    folders.push(...listed.folders.map(below))
  }
  return found
}
