/**
 * Reads the studies of `effect tune` in a results folder for the page: their trials, and the importance of each parameter. A
 * study's runs are ordinary runs with the variable `trial`, four levels below the study's folder.
 */
import { Effect } from "effect"
import * as Layout from "../../run/Layout.ts"
import type { Confined } from "../../run/read/confined-node.ts"
import { type Importance, importances } from "../tune/importance.ts"
import { parseStudy, parseTrials } from "../tune/StudyFile.ts"
import type { SearchSpace } from "../tune/Space.ts"
import { type MetricDirection, ranked, type Trial } from "../tune/Trial.ts"
import { studyOf } from "./grouping.ts"
import type { RunSummary } from "./RunSummary.ts"

/** The data of a study that the page shows. */
interface StudyDetail {
  readonly path: string
  readonly name: string
  readonly file: string
  readonly metric: string
  readonly direction: MetricDirection
  /** The number of trials that the study will have when it has ended. */
  readonly total: number
  readonly sampler: string
  readonly pruner: string
  readonly space: SearchSpace
  readonly trials: ReadonlyArray<
    Pick<Trial, "trial" | "state" | "value" | "reason" | "params"> & {
      /** The paths of the trial's runs. */
      readonly runs: ReadonlyArray<string>
      readonly steps: number
    }
  >
  /** The numbers of the trials from the best to the worst. */
  readonly ranking: ReadonlyArray<number>
  readonly importance: ReadonlyArray<Importance>
}

/** Returns the address of a study's data. The path is empty if the results folder is the study's folder. */
export const dataAddress = (path: string): string => `data/study${path === "" ? "" : `/${path}`}/study.json`

/** Reads the study in a folder; undefined if there is no study, or if its settings can't be read. */
export const readStudyIn = Effect.fnUntraced(function* (
  files: Pick<Confined, "text">,
  path: string,
): Effect.fn.Return<StudyDetail | undefined> {
  const at = (name: string): string => (path === "" ? name : `${path}/${name}`)
  const text = yield* files.text(at(Layout.study.settings))
  if (text === undefined) return undefined
  const read = yield* Effect.option(parseStudy(text, at(Layout.study.settings)))
  if (read._tag === "None") return undefined
  const { file, study } = read.value
  const { metric, direction, trials: total } = study.settings
  const trials = parseTrials((yield* files.text(at(Layout.study.trials))) ?? "")
  return {
    path,
    name: file.name,
    file: file.file,
    metric,
    direction,
    total,
    sampler: study.settings.sampler.name,
    pruner: study.settings.pruner.name,
    space: study.space,
    trials: trials.map(({ trial, state, value, reason, params, runs }) => ({
      trial,
      state,
      value,
      reason,
      params,
      runs: runs.map((run) => at(run.path)),
      steps: runs.reduce((sum, run) => sum + run.steps, 0),
    })),
    ranking: ranked(trials, direction).map(({ trial }) => trial),
    importance: importances(study.space, trials, direction),
  }
})

/** Returns the folders of the studies to which these runs belong. */
export const studiesOf = (runs: ReadonlyArray<RunSummary>): ReadonlySet<string> =>
  new Set(runs.flatMap((run) => studyOf(run) ?? []))
