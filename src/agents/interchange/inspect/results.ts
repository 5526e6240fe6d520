/** Computes the results that a log of Inspect has in its header, as Inspect computes them: means and standard errors over tasks. */
import type { EpisodeRow } from "../../evaluate/rows.ts"

interface ResultOptions {
  readonly scorers: ReadonlyArray<string>
  readonly epochs: number
  readonly idOf: (row: EpisodeRow) => string
}

/** Returns the results of a log, and the scores of each task over its epochs. */
export const resultsOf = (rows: ReadonlyArray<EpisodeRow>, { scorers, epochs, idOf }: ResultOptions) => {
  const reducer = epochs > 1 ? { reducer: "mean" } : {}
  const byTask = [...Map.groupBy(rows, idOf)]
  const scored = scorers.map((scorer) => ({
    scorer,
    samples: byTask.flatMap(([id, group]) => {
      const values = group.flatMap(({ scores }) => scores[scorer] ?? [])
      return values.length === 0 ? [] : [{ value: meanOf(values), sample_id: id }]
    }),
  }))
  return {
    results: {
      total_samples: rows.length,
      completed_samples: rows.filter(({ error }) => error === null).length,
      scores: scored.map(({ scorer, samples }) => ({
        name: scorer,
        scorer,
        ...reducer,
        scored_samples: samples.length,
        unscored_samples: byTask.length - samples.length,
        params: {},
        metrics: metricsOf(samples.map(({ value }) => value)),
      })),
    },
    reductions: scored.map(({ scorer, samples }) => ({ scorer, ...reducer, samples })),
  }
}

const meanOf = (values: ReadonlyArray<number>): number => values.reduce((sum, value) => sum + value, 0) / values.length

const metricsOf = (values: ReadonlyArray<number>) => {
  if (values.length === 0) return {}
  const mean = meanOf(values)
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  const error = values.length === 1 ? 0 : Math.sqrt(squares / (values.length - 1) / values.length)
  const metric = (name: string, value: number) => ({ name, value, params: {} })
  return { mean: metric("mean", mean), stderr: metric("stderr", error) }
}
