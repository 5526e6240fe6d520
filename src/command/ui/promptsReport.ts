/**
 * Reads the candidates of a run that learns prompts from its `candidates.json`, for the run's page: the tree, the front and the
 * scores with intervals.
 */
import { Effect, Option, Schema } from "effect"
import { CandidatesFile } from "../../agents/prompts/Prompts.ts"
import { interval } from "../../base/statistics/intervals.ts"
import * as Layout from "../../run/Layout.ts"
import type { Confined } from "../../run/read/confined-node.ts"
import { parsed } from "./json.ts"

/** The page shows at most so many candidates. */
const mostCandidates = 500

/**
 * From so many tasks on, an interval is the normal one. Resampling the scores of hundreds of candidates would keep the server
 * from answering, and the page reads the file again at each change.
 */
const normalFrom = 30
/** For fewer tasks, so many resamples are enough for a chart. */
const resamples = 200

const decode = Schema.decodeUnknownOption(CandidatesFile)

/** Tells whether each candidate was made from earlier ones, so that they form a tree, and has scores on the same tasks. */
const isTree = ({ candidates, best }: typeof CandidatesFile.Type): boolean =>
  best < candidates.length &&
  candidates.every(
    ({ parents, scores }, index) =>
      (index === 0 ? parents.length === 0 : parents.length > 0) &&
      parents.every((parent) => parent >= 0 && parent < index) &&
      scores.length > 0 &&
      scores.length === candidates[0].scores.length,
  )

/** Returns the candidates in the text of a `candidates.json`; null if there are none, or if the file is damaged. */
export const promptsReport = (text: string | undefined) => {
  const file = text === undefined ? undefined : Option.getOrUndefined(decode(parsed(text)))
  if (file === undefined || !isTree(file)) return null
  const { best, candidates, iterations, metricCalls } = file
  // A file may have more candidates than a call may have arguments, so `Math.max(...)` would fail.
  const highest = candidates[0].scores.map((first, task) =>
    candidates.reduce((most, { scores }) => Math.max(most, scores[task]), first),
  )
  const shown = candidates.slice(0, mostCandidates).map(({ texts, parents, scores, foundAfter }) => ({
    texts,
    parents,
    foundAfter,
    ...interval(scores, { normalFrom, resamples }),
    tasks: scores.length,
    /** The number of tasks on which no candidate is better. */
    inFront: scores.filter((score, task) => score === highest[task]).length,
  }))
  const left = candidates.length - shown.length
  return { best, metricCalls, iterations: iterations.length, left, candidates: shown }
}

/** The largest number of runs whose candidates stay in memory. */
const mostKept = 16

type PromptsReport = ReturnType<typeof promptsReport>

/** Makes a function that reads the candidates of the run with the given path. It computes them again only if the file has changed. */
export const makePromptsReports = (files: Pick<Confined, "stamp" | "text">) => {
  const kept = new Map<string, { readonly stamp: string; readonly report: PromptsReport }>()
  return Effect.fnUntraced(function* (run: string): Effect.fn.Return<PromptsReport> {
    const file = `${run}/${Layout.prompts.candidates}`
    // The stamp is read before the text: if the file changes in between, the next call sees another stamp.
    const stamp = yield* files.stamp(file)
    const before = kept.get(run)
    const isSame = before?.stamp === stamp
    const report = isSame ? before.report : promptsReport(yield* files.text(file))
    kept.delete(run)
    kept.set(run, { stamp, report })
    for (const oldest of kept.keys()) if (kept.size > mostKept) kept.delete(oldest)
    return report
  })
}
