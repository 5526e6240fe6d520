/**
 * Defines filters of single samples, which choose the turns to train on. (`RolloutFilters` chooses whole episodes.) `select`
 * also counts what each filter leaves out.
 *
 * @example
 * ```ts
 * const { samples: kept, counts } = SampleFilters.select(yield* Samples.of(rollouts), {
 *   complete: SampleFilters.complete,
 *   parsed: SampleFilters.parsed,
 * })
 * counts // { kept: 60, complete: 3, parsed: 1 }: three samples were cut off, and one more could not be parsed
 * ```
 */
import { Record as Records } from "effect"
import type { Sample } from "./Sample.ts"

/** Returns true for the samples to keep. */
export type SampleFilter = (sample: Sample) => boolean

/** Keeps every sample. */
export const everything: SampleFilter = () => true

/** Keeps samples that neither the episode's limit nor `maxSeqLen` has cut off. */
export const notTruncated: SampleFilter = ({ truncated }) => !truncated

/** Keeps samples whose completions all ended before the model's limit of tokens. */
export const complete: SampleFilter = ({ incomplete }) => !incomplete

/** Keeps samples whose last completion was parsed as an action. */
export const parsed: SampleFilter = ({ parseFailed }) => !parseFailed

/** Keeps the turns that ended with a step of the env. */
export const envTurns: SampleFilter = ({ hasEnvStep }) => hasEnvStep

/** Keeps the turns that ended without a step of the env: failed parses, turns cut off by a limit, and reflections. */
export const agentTurns: SampleFilter = ({ hasEnvStep }) => !hasEnvStep

/** Keeps samples with a positive credit, so that only successful actions are trained on. */
export const positive: SampleFilter = ({ credit }) => credit > 0

/** Makes a filter that keeps samples which pass all of the filters. */
export const all =
  (...filters: ReadonlyArray<SampleFilter>): SampleFilter =>
  (sample) =>
    filters.every((filter) => filter(sample))

/** Makes a filter that keeps samples which pass at least one of the filters. */
export const any =
  (...filters: ReadonlyArray<SampleFilter>): SampleFilter =>
  (sample) =>
    filters.some((filter) => filter(sample))

/** Makes a filter that keeps samples which do not pass the filter. */
export const not =
  (filter: SampleFilter): SampleFilter =>
  (sample) =>
    !filter(sample)

/** The selected samples, with the number of kept samples, and the number that each filter left out. */
export interface Selection<Name extends string> {
  readonly samples: ReadonlyArray<Sample>
  readonly counts: Readonly<Record<Name | "kept", number>>
}

/** Keeps the samples that pass all named filters. A sample that fails several of them is counted for the first. */
export const select = <Name extends string>(
  samples: ReadonlyArray<Sample>,
  filters: Readonly<Record<Name, SampleFilter>>,
): Selection<Name> => {
  const named = Object.entries<SampleFilter>(filters)
  const refusedBy = samples.map((sample) => named.find(([, filter]) => !filter(sample))?.[0])
  const kept = samples.filter((_, at) => refusedBy[at] === undefined)
  const counted = (name: string) => refusedBy.filter((one) => one === name).length
  const counts = { ...mapped(filters, counted), kept: kept.length }
  return { samples: kept, counts }
}

const mapped = <Name extends string>(
  filters: Readonly<Record<Name, SampleFilter>>,
  valueOf: (name: string) => number,
): Readonly<Record<Name, number>> => Records.map(filters, (_, name) => valueOf(name))
