/** Leaves out single samples of a step, by the filters in the config of a run. */
import type { Sample } from "../../agents/episode/samples/Sample.ts"
import * as SampleFilters from "../../agents/episode/samples/SampleFilters.ts"
import type { BatchConfig } from "../config/OrchestratorConfig.ts"

export type FilterName = BatchConfig["filters"][number]

const filters: Readonly<Record<FilterName, SampleFilters.SampleFilter>> = {
  complete: SampleFilters.complete,
  not_truncated: SampleFilters.notTruncated,
  parsed: SampleFilters.parsed,
  env_turns: SampleFilters.envTurns,
}

/** Returns the samples that pass all filters, and the name of the first filter that each of the others fails. */
export const filtered = (samples: ReadonlyArray<Sample>, names: ReadonlyArray<FilterName>) => {
  const refusedBy = samples.map((sample) => names.find((name) => !filters[name](sample)))
  return {
    kept: samples.filter((_, at) => refusedBy[at] === undefined),
    refused: refusedBy.filter((name) => name !== undefined),
  }
}

/** Returns the metrics of the filters: the number of samples that each of them left out. */
export const filterMetrics = (
  names: ReadonlyArray<FilterName>,
  refused: ReadonlyArray<FilterName>,
): Readonly<Record<string, number>> =>
  Object.fromEntries(names.map((name) => [`sampling/filtered_${name}`, refused.filter((one) => one === name).length]))
