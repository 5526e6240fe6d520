/**
 * Packs the samples of several runs into micro-batches, one for each rank. Each run has a queue of the samples of its
 * steps. The packer goes round the runs from a position that it keeps, and takes one unit of a run after another, until
 * the micro-batches are full. Every sample is packed exactly once. A pack holds samples of only one step of a run, and a
 * step of a run is done when all of its samples are packed.
 *
 * There are two ways of mixing runs:
 *
 * - `one-run`: a unit is a micro-batch with samples of one run. The micro-batches of a run are a function of the samples
 *   of its own step alone: neither other runs nor the time at which samples arrive changes them. So a run that is
 *   trained together with others computes the same bits as alone.
 * - `many-runs`: a unit is a sample, and a micro-batch holds samples of several runs. It wastes less when the runs are
 *   small. Its sums are the same but for rounding; for the same bits, pack only when all runs have samples (`level`).
 *
 * Samples of a run that begin with the same tokens share these in a window, as far as they do not learn from them: see
 * `sharedPrompts`. A unit of `many-runs` is a sample, not a group, so that runs take turns by samples and a group of any
 * size fits. The samples of a group follow each other in their step, so most of them are in one pack, where they share.
 *
 * It is a plain object without Effects, so that it can be tested against a model; `DataLoader` feeds it.
 *
 * @example
 * ```ts
 * const packer = makePacker({ rows: 2, width: 512, block: 32, maxRuns: 4, ranks: 1, mixing: "one-run" })
 * packer.open(0, { id: "run_a", step: 0, normalisationAt: () => ({ type: "token_mean" }) })
 * packer.offer(0, { step: 0, samples })
 * const pack = packer.pack()
 * ```
 */
import { Schema } from "effect"
import { countedTokens, type Normalisation, totalsOf, weightOfTokens } from "../../rl/losses/tokenWeights.ts"
import { fill, makeMicroBatch, type MicroBatch, type MicroBatchShape, type PlacedSample } from "./MicroBatch.ts"
import { promptLengthOf, sharedPrompts } from "./sharedPrompts.ts"
import type { TrainingSample } from "./TrainingSample.ts"
import { type Item, type Placement, placeInWindows, roundUp } from "./windows.ts"

/** The ways of mixing runs in a micro-batch. */
export const Mixing = Schema.Literals(["one-run", "many-runs"])
export type Mixing = typeof Mixing.Type

export interface PackerOptions extends MicroBatchShape {
  /** The number of ranks, each of which gets one micro-batch of a pack. */
  readonly ranks: number
  readonly mixing: Mixing
  /** The token that fills padding, 0 by default. */
  readonly padId?: number
}

/** The samples of one step of a run. */
export interface StepBatch {
  readonly step: number
  readonly samples: ReadonlyArray<TrainingSample>
}

/** A packer cannot do what was asked. The message is one line. */
export class PackerError extends Schema.TaggedError<PackerError>()("PackerError", { message: Schema.String }) {}

/** The samples of one run that a pack holds. */
export interface Share {
  readonly index: number
  readonly id: string
  readonly step: number
  /** The ids of the samples, in the order in which they were taken. */
  readonly samples: ReadonlyArray<string>
  /** The number of tokens of these samples. A token that several of them share counts for each. */
  readonly tokens: number
  /** Whether these are the last samples of the step. */
  readonly done: boolean
}

/** One micro-batch for each rank. Its arrays are valid until the next pack, which overwrites them. */
export interface Pack {
  /** The number of the pack, from 0. */
  readonly number: number
  readonly microBatches: ReadonlyArray<MicroBatch>
  /** The runs that have samples in this pack, by index. */
  readonly shares: ReadonlyArray<Share>
}

/** A pack that is not taken. */
export interface Upcoming {
  readonly microBatches: ReadonlyArray<MicroBatch>
  /** The runs that have samples in it, and their steps. */
  readonly shares: ReadonlyArray<Pick<Share, "index" | "step">>
}

/**
 * Says whether it is time to pack:
 *
 * - `full`: the micro-batches can be filled, or all open runs have samples, so waiting cannot add any
 * - `partial`: there are samples, but some run has none yet
 * - `empty`: there are none
 */
export type Level = "full" | "partial" | "empty"

export interface OpenedRun {
  readonly id: string
  /** The next step to pack. */
  readonly step: number
  /** How the losses of the run's tokens are averaged, over all samples of a step. */
  readonly normalisationAt: (step: number) => Normalisation
}

export interface Packer {
  /** Opens the queue of a run. An earlier queue at this index is dropped. */
  readonly open: (index: number, run: OpenedRun) => void
  /** Drops the queue of a run with all its samples. */
  readonly close: (index: number) => void
  /** Returns the first step whose samples the queue of a run lacks; undefined if there is no queue. */
  readonly wanted: (index: number) => number | undefined
  /** Returns the number of steps in the queue of a run whose samples are not yet all packed. */
  readonly queued: (index: number) => number
  /**
   * Adds the samples of the step that `wanted` names. They must be valid (see `validate`). Throws a `PackerError` if
   * the step is another one.
   */
  readonly offer: (index: number, batch: StepBatch) => void
  readonly level: () => Level
  /** Packs the next samples; undefined if there are none. */
  readonly pack: () => Pack | undefined
  /**
   * Returns what `pack` would return now, without taking it; undefined if there are no samples. If others arrive, `pack` may
   * return something else. The arrays are valid until the next call.
   */
  readonly upcoming: () => Upcoming | undefined
}

/** Samples with their factors in the loss, and their places if their micro-batch is already determined. */
interface Unit {
  readonly samples: ReadonlyArray<Omit<PlacedSample, "run">>
  /** The number of tokens of the samples. A token that several of them share counts for each. */
  readonly tokens: number
}

interface Step {
  readonly number: number
  /** The units in the order in which they are packed. */
  readonly units: ReadonlyArray<Unit>
}

interface Queue extends Pick<OpenedRun, "id" | "normalisationAt"> {
  /** The step that is packed next, and how many of its units are packed. */
  step: number
  consumed: number
  readonly steps: Array<Step>
}

/** A unit that is taken from the queue of a run. */
interface Taken extends Unit {
  readonly run: number
}

/** Returns what the placement of a run's sample depends on. */
const itemOf = (run: number, sample: TrainingSample): Item => ({
  run,
  tokens: sample.tokens,
  prompt: promptLengthOf(sample),
})

/** Groups items into lists, one for each window. */
const byWindow = ({ windows, placements }: ReturnType<typeof placeInWindows>) => {
  const lists = Array.from({ length: windows }, (): Array<Placement> => [])
  for (const placement of placements) lists[placement.window].push(placement)
  return lists
}

/** Makes a packer without runs. Throws a `PackerError` if `block` does not divide `width`. */
export const makePacker = (options: PackerOptions): Packer => {
  const { rows, width, block, maxRuns, ranks, mixing, padId = 0 } = options
  for (const [name, value] of Object.entries({ rows, width, block, ranks, maxRuns })) {
    if (Number.isSafeInteger(value) && value > 0) continue
    throw new PackerError({ message: `${name}: expected a positive integer, found ${value}` })
  }
  if (roundUp(width, block) !== width) {
    throw new PackerError({ message: `block: expected a divisor of the width ${width}, found ${block}` })
  }
  const makeAll = () => Array.from({ length: ranks }, () => makeMicroBatch(options))
  const microBatches = makeAll()
  /** The arrays of the upcoming pack, which most packers need not have. */
  let upcoming: ReadonlyArray<MicroBatch> | undefined
  /** The number of tokens, and in `many-runs` of windows, that a pack can hold. */
  const budget = rows * width * ranks
  const mostWindows = rows * ranks
  const queues: Array<Queue | undefined> = Array.from({ length: maxRuns }, () => undefined)
  let position = 0
  let packs = 0

  /**
   * Computes the factors of the samples in the loss. They depend only on the samples of the step, not on how these are
   * divided into micro-batches, so the losses of the micro-batches add up to that of the step.
   */
  const weighed = (samples: ReadonlyArray<TrainingSample>, normalisation: Normalisation) => {
    const totals = totalsOf(samples.map(({ mask }) => mask))
    return samples.map((sample) => {
      const weight = weightOfTokens({ tokens: countedTokens(sample.mask), totals, normalisation })
      return { sample, weight, row: 0, shared: 0, start: 0 }
    })
  }

  /** Divides the samples of a step into the units in which they are packed. */
  const unitsOf = (samples: ReadonlyArray<TrainingSample>, normalisation: Normalisation): ReadonlyArray<Unit> => {
    const all = weighed(samples, normalisation)
    if (mixing === "many-runs") return all.map((one) => ({ samples: [one], tokens: one.sample.tokens.length }))
    const windows = byWindow(
      placeInWindows(
        samples.map((sample) => itemOf(0, sample)),
        options,
      ),
    )
    return Array.from({ length: Math.ceil(windows.length / rows) }, (_, unit) => {
      const placed = windows
        .slice(unit * rows, (unit + 1) * rows)
        .flatMap((window, row) => window.map(({ item, shared, start }) => ({ ...all[item], row, shared, start })))
      return { samples: placed, tokens: placed.reduce((sum, { sample }) => sum + sample.tokens.length, 0) }
    })
  }

  /** Returns the units of a queue's current step that are not packed. */
  const available = (queue: Queue | undefined): ReadonlyArray<Unit> =>
    queue === undefined || queue.steps.length === 0 ? [] : queue.steps[0].units.slice(queue.consumed)

  /**
   * Returns a function that counts the tokens which each further unit of a run adds to a pack. Samples are counted as if all
   * of the run stood in one window; in several, they share less, so `fitting` may find that fewer fit.
   */
  const counting = (): ((unit: Unit) => number) => {
    // A micro-batch of one run fills a rank, however few tokens it has.
    if (mixing === "one-run") return () => rows * width
    const together = sharedPrompts<Item>()
    return ({ samples: [{ sample }] }) => together.add(itemOf(0, sample))
  }

  /**
   * Chooses units round robin from `position`, without taking them, until the micro-batches cannot hold the next. Also
   * returns the run that comes next.
   */
  const choose = () => {
    const rests = queues.map(available)
    const taken = rests.map(() => 0)
    const added = rests.map(counting)
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

  const placed = (chosen: ReadonlyArray<Taken>) =>
    placeInWindows(
      chosen.map(({ run, samples: [{ sample }] }) => itemOf(run, sample)),
      options,
    )

  /** Returns how many of the chosen samples fit in the windows of a pack, and is at least 1. */
  const fitting = (chosen: ReadonlyArray<Taken>): number => {
    const fits = (count: number) => placed(chosen.slice(0, count)).windows <= mostWindows
    if (fits(chosen.length)) return chosen.length
    // Bisect: `low` samples fit, `high` samples do not.
    let low = 1
    let high = chosen.length
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if (fits(middle)) low = middle
      else high = middle
    }
    return low
  }

  /** Chooses the units of the next pack, without taking them, and the run that is served after it. */
  const chooseFitting = () => {
    const { chosen, next } = choose()
    if (chosen.length === 0 || mixing === "one-run") return { chosen, next }
    const count = fitting(chosen)
    // The run whose unit did not fit is served first in the next pack.
    return { chosen: chosen.slice(0, count), next: count < chosen.length ? chosen[count].run : next }
  }

  /** Fills micro-batches with the chosen units, one rank after another. */
  const write = (chosen: ReadonlyArray<Taken>, microBatches: ReadonlyArray<MicroBatch>): void => {
    const perRank =
      mixing === "one-run"
        ? chosen.map(({ run, samples }) => samples.map((sample) => ({ ...sample, run })))
        : inRanks(chosen)
    // Padding before the first sample is none of another run's business: it belongs to a run of this pack.
    let adapter = chosen[0].run
    for (const [rank, microBatch] of microBatches.entries()) {
      adapter = fill(microBatch, perRank[rank] ?? [], { adapterBefore: adapter, padId })
    }
  }

  const inRanks = (chosen: ReadonlyArray<Taken>): ReadonlyArray<ReadonlyArray<PlacedSample>> => {
    const windows = byWindow(placed(chosen))
    return Array.from({ length: ranks }, (_, rank) =>
      windows.slice(rank * rows, (rank + 1) * rows).flatMap((window, row) =>
        window.map(({ item, shared, start }) => {
          const { run, samples } = chosen[item]
          return { ...samples[0], run, row, shared, start }
        }),
      ),
    )
  }

  /** Removes a run's units from its queue, and returns what they were. */
  const consume = (index: number, queue: Queue, units: ReadonlyArray<Unit>): Share => {
    const { number, units: all } = queue.steps[0]
    queue.consumed += units.length
    const done = queue.consumed === all.length
    if (done) {
      queue.steps.shift()
      queue.step = number + 1
      queue.consumed = 0
    }
    return {
      index,
      id: queue.id,
      step: number,
      samples: units.flatMap(({ samples }) => samples.map(({ sample }) => sample.id)),
      tokens: units.reduce((sum, { tokens }) => sum + tokens, 0),
      done,
    }
  }

  return {
    open: (index, { id, step, normalisationAt }) => {
      queues[index] = { id, normalisationAt, step, consumed: 0, steps: [] }
    },
    close: (index) => {
      queues[index] = undefined
    },
    wanted: (index) => {
      const queue = queues[index]
      return queue === undefined ? undefined : queue.step + queue.steps.length
    },
    queued: (index) => queues[index]?.steps.length ?? 0,
    offer: (index, { step, samples }) => {
      const queue = queues[index]
      if (queue === undefined) throw new PackerError({ message: `run ${index}: expected an open queue, found none` })
      const refuse = (message: string) => new PackerError({ message: `${queue.id}: step ${step}: ${message}` })
      const next = queue.step + queue.steps.length
      if (step !== next) throw refuse(`expected the samples of step ${next}`)
      if (samples.length === 0) throw refuse("expected at least one sample, found none")
      queue.steps.push({ number: step, units: unitsOf(samples, queue.normalisationAt(step)) })
    },
    level: () => {
      const rests = queues.flatMap((queue) => (queue === undefined ? [] : [available(queue)]))
      if (rests.every((rest) => rest.length === 0)) return "empty"
      if (rests.every((rest) => rest.length > 0)) return "full"
      const tokens = rests.flatMap((rest) => rest.map(counting())).reduce((sum, added) => sum + added, 0)
      return tokens >= budget ? "full" : "partial"
    },
    pack: () => {
      const { chosen, next } = chooseFitting()
      if (chosen.length === 0) return undefined
      write(chosen, microBatches)
      position = next
      const shares = queues.flatMap((queue, index) => {
        const units = chosen.filter(({ run }) => run === index)
        return queue === undefined || units.length === 0 ? [] : [consume(index, queue, units)]
      })
      return { number: packs++, microBatches, shares }
    },
    upcoming: () => {
      const { chosen } = chooseFitting()
      if (chosen.length === 0) return undefined
      upcoming ??= makeAll()
      write(chosen, upcoming)
      const shares = queues.flatMap((queue, index) =>
        queue !== undefined && chosen.some(({ run }) => run === index) ? [{ index, step: queue.steps[0].number }] : [],
      )
      return { microBatches: upcoming, shares }
    },
  }
}
