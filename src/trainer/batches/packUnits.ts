/**
 * Divides the samples of steps into units, chooses the units of the next pack, and writes them into micro-batches. These
 * functions do not change the queues; `Packer.ts` does.
 */
import { Schema } from "effect"
import { countedTokens, type Normalisation, totalsOf, weightOfTokens } from "../../rl/losses/tokenWeights.ts"
import { fill, type MicroBatch, type MicroBatchShape, type PlacedSample } from "./MicroBatch.ts"
import { promptLengthOf, sharedPrompts } from "./sharedPrompts.ts"
import type { TrainingSample } from "./TrainingSample.ts"
import { type Item, type Placement, placeInWindows } from "./windows.ts"
import { TrainerError } from "../TrainerError.ts"

/** The ways of mixing runs in a micro-batch. */
export const Mixing = Schema.Literals(["one-run", "many-runs"])
export type Mixing = typeof Mixing.Type

/** The sizes of a pack, and the way of mixing runs. */
export interface PackerOptions extends MicroBatchShape {
  /** The number of ranks, each of which gets one micro-batch of a pack. */
  readonly ranks: number
  readonly mixing: Mixing
  /** Whether samples share the first tokens of their prompts in a window. @default true */
  readonly sharePrompts?: boolean
  /** The token that fills padding, 0 by default. */
  readonly padId?: number
}

/** The rules by which the samples of a step are packed, which the step's objective decides. */
export interface PackingRules {
  readonly normalisation: Normalisation
  /**
   * Whether the samples are pairs, such as the chosen and the rejected answer of DPO: the samples 2k and 2k + 1 of the step are
   * packed into one micro-batch, where they have the numbers 2j and 2j + 1. By default they are not.
   */
  readonly arePairs?: boolean
}

/** Samples with their factors in the loss. In `one-run`, their places in the windows are already determined. */
export interface Unit {
  readonly samples: ReadonlyArray<Omit<PlacedSample, "run">>
  /** The number of tokens of the samples. A token that several of them share counts for each. */
  readonly tokens: number
}

interface Step {
  readonly number: number
  /** The units in the order in which they are packed. */
  readonly units: ReadonlyArray<Unit>
}

/** The samples of a run that are not packed yet, as units. */
export interface Queue {
  readonly id: string
  readonly rulesAt: (step: number) => PackingRules
  /** The step that is packed next, and the number of its units that are already packed. */
  step: number
  consumed: number
  readonly steps: Array<Step>
}

/** A unit that was chosen from the queue of a run. */
interface Taken extends Unit {
  readonly run: number
}

/** Describes a sample for the placement in windows. */
const itemOf = (
  run: number,
  sample: TrainingSample,
  { sharePrompts = true, replayed }: Pick<PackerOptions, "sharePrompts" | "replayed">,
): Item => ({
  run,
  tokens: sample.tokens,
  prompt: sharePrompts ? promptLengthOf(sample) : 0,
  experts: replayed === undefined ? undefined : sample.routedExperts,
})

/** Groups items into lists, one list for each window. */
const byWindow = ({ windows, placements }: ReturnType<typeof placeInWindows>) => {
  const lists = Array.from({ length: windows }, (): Array<Placement> => [])
  for (const placement of placements) lists[placement.window].push(placement)
  return lists
}

/** The number of tokens that a pack can hold. */
export const budgetOf = ({ rows, width, ranks }: PackerOptions): number => rows * width * ranks

/**
 * Computes the factors of the samples in the loss. They depend only on the samples of the step, not on their division into
 * micro-batches, so the losses of the micro-batches add up to the loss of the step.
 */
const weighed = (samples: ReadonlyArray<TrainingSample>, normalisation: Normalisation) => {
  // Negative numbers are of no other group.
  const groups = samples.map(({ group }, at) => group ?? -1 - at)
  const totals = totalsOf(
    samples.map(({ mask }) => mask),
    groups,
  )
  return samples.map((sample, at) => {
    const weight = weightOfTokens({ tokens: countedTokens(sample.mask), group: groups[at], totals, normalisation })
    // In `many-runs`, window, shared and start are determined when the sample is packed.
    return { sample, weight, window: 0, shared: 0, start: 0 }
  })
}

/** Divides the samples of a step into the units in which they are packed. */
export const unitsOf = (
  options: PackerOptions,
  samples: ReadonlyArray<TrainingSample>,
  { normalisation, arePairs = false }: PackingRules,
): ReadonlyArray<Unit> => {
  const { mixing, rows } = options
  const all = weighed(samples, normalisation)
  if (arePairs) return unitsOfPairs(options, all)
  if (mixing === "many-runs") return all.map((one) => ({ samples: [one], tokens: one.sample.tokens.length }))
  const windows = byWindow(
    placeInWindows(
      samples.map((sample) => itemOf(0, sample, options)),
      options,
    ),
  )
  return Array.from({ length: Math.ceil(windows.length / rows) }, (_, unit) => {
    const placed = windows
      .slice(unit * rows, (unit + 1) * rows)
      .flatMap((list, window) => list.map(({ item, shared, start }) => ({ ...all[item], window, shared, start })))
    return { samples: placed, tokens: placed.reduce((sum, { sample }) => sum + sample.tokens.length, 0) }
  })
}

/** Divides pairs into units of as many pairs as fit into the windows of a micro-batch. */
const unitsOfPairs = (options: PackerOptions, all: ReadonlyArray<Omit<PlacedSample, "run">>): ReadonlyArray<Unit> => {
  const { mixing, rows } = options
  if (mixing !== "one-run")
    throw new TrainerError({ message: 'pairs: expected trainer.mixing: one-run, found "many-runs"' })
  if (all.length % 2 !== 0)
    throw new TrainerError({ message: `pairs: expected an even number of samples, found ${all.length}` })
  const units: Array<Unit> = []
  for (let from = 0; from < all.length;) {
    const place = (count: number) =>
      placeInWindows(
        all.slice(from, from + count).map(({ sample }) => itemOf(0, sample, options)),
        options,
      )
    const count = 2 * largestFitting((all.length - from) / 2, (pairs) => place(2 * pairs).windows <= rows)
    const { windows, placements } = place(count)
    if (windows > rows)
      throw new TrainerError({
        message: `pairs: the answers of a pair need ${windows} windows of ${options.width} tokens, but a micro-batch has ${rows}; set trainer.rows to at least ${windows}`,
      })
    const samples = placements.map(({ item, ...at }) => ({ ...all[from + item], ...at, sequence: item }))
    units.push({ samples, tokens: samples.reduce((sum, { sample }) => sum + sample.tokens.length, 0) })
    from += count
  }
  return units
}

/** Returns the largest number from 1 to `most` that fits, by bisection; 1 if none does. */
const largestFitting = (most: number, fits: (count: number) => boolean): number => {
  if (fits(most)) return most
  // Bisect: `low` fits, or is 1; `high` does not fit.
  let low = 1
  let high = most
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (fits(middle)) low = middle
    else high = middle
  }
  return low
}

/** Returns the units of a queue's current step that are not packed. */
export const available = (queue: Queue | undefined): ReadonlyArray<Unit> =>
  queue === undefined || queue.steps.length === 0 ? [] : queue.steps[0].units.slice(queue.consumed)

/**
 * Returns a function that estimates how many tokens the next unit of a run adds to a pack. It counts as if all samples of the
 * run were in one window. In several windows they share less, so `fitting` may find that fewer of them fit.
 */
export const counting = (options: PackerOptions): ((unit: Unit) => number) => {
  const { mixing, rows, width } = options
  // In `one-run`, a unit is a whole micro-batch and fills a rank, however few tokens it has.
  if (mixing === "one-run") return () => rows * width
  const together = sharedPrompts<Item>()
  return ({ samples: [{ sample }] }) => together.add(itemOf(0, sample, options))
}

/** The part of a packer's state on which the choice of the next units depends. */
interface Choosing {
  readonly options: PackerOptions
  /** The queues of the runs by index. */
  readonly queues: ReadonlyArray<Queue | undefined>
  /** The run that is served first. */
  readonly position: number
}

/**
 * Chooses units round robin from `position` until the micro-batches cannot hold the next unit. Does not change the queues.
 * Also returns the run that comes next.
 */
const choose = ({ options, queues, position }: Choosing) => {
  const { maxRuns } = options
  const budget = budgetOf(options)
  const rests = queues.map(available)
  const taken = rests.map(() => 0)
  const added = rests.map(() => counting(options))
  const chosen: Array<Taken> = []
  let tokens = 0
  let at = position
  for (let idle = 0; idle < maxRuns; at = (at + 1) % maxRuns) {
    const rest = rests[at]
    if (taken[at] === rest.length) {
      idle++
      continue
    }
    const unit = rest[taken[at]]
    tokens += added[at](unit)
    if (tokens > budget) break
    idle = 0
    taken[at]++
    chosen.push({ run: at, ...unit })
  }
  return { chosen, next: at }
}

/** Places the chosen samples in windows. */
const placed = (options: PackerOptions, chosen: ReadonlyArray<Taken>) =>
  placeInWindows(
    chosen.map(({ run, samples: [{ sample }] }) => itemOf(run, sample, options)),
    options,
  )

/** Returns how many of the chosen samples fit into the windows of a pack: at least 1. */
const fitting = (options: PackerOptions, chosen: ReadonlyArray<Taken>): number => {
  const mostWindows = options.rows * options.ranks
  return largestFitting(chosen.length, (count) => placed(options, chosen.slice(0, count)).windows <= mostWindows)
}

/** Chooses the units of the next pack without changing the queues, and the run that the following pack serves first. */
export const chooseFitting = (state: Choosing) => {
  const { options } = state
  const { chosen, next } = choose(state)
  if (chosen.length === 0 || options.mixing === "one-run") return { chosen, next }
  const count = fitting(options, chosen)
  // The run whose unit did not fit is served first in the next pack.
  return { chosen: chosen.slice(0, count), next: count < chosen.length ? chosen[count].run : next }
}

/** Fills micro-batches with the chosen units, one rank after another. */
export const write = (
  options: PackerOptions,
  chosen: ReadonlyArray<Taken>,
  microBatches: ReadonlyArray<MicroBatch>,
): void => {
  const { mixing, padId = 0 } = options
  const perRank =
    mixing === "one-run"
      ? chosen.map(({ run, samples }) => samples.map((sample) => ({ ...sample, run })))
      : inRanks(options, chosen)
  // Padding before the first sample gets the adapter of a run in this pack, not of a run that may have left.
  let adapter = chosen[0].run
  for (const [rank, microBatch] of microBatches.entries()) {
    adapter = fill(microBatch, perRank[rank] ?? [], { adapterBefore: adapter, padId })
  }
}

/** Divides the chosen samples among the ranks: each rank gets `rows` windows. */
const inRanks = (options: PackerOptions, chosen: ReadonlyArray<Taken>): ReadonlyArray<ReadonlyArray<PlacedSample>> => {
  const { ranks, rows } = options
  const windows = byWindow(placed(options, chosen))
  return Array.from({ length: ranks }, (_, rank) =>
    windows.slice(rank * rows, (rank + 1) * rows).flatMap((list, window) =>
      list.map(({ item, shared, start }) => {
        const { run, samples } = chosen[item]
        return { ...samples[0], run, window, shared, start }
      }),
    ),
  )
}
