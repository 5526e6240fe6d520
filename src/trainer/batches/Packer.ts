/**
 * Packs the samples of several runs into micro-batches, one for each rank. Each run has a queue of the samples of its steps.
 * The packer takes one unit of each run in turn (round robin) until the micro-batches are full, and continues with the next
 * run in the next pack. Every sample is packed exactly once. A pack holds samples of only one step of a run, and a step of a
 * run is done when all of its samples are packed.
 *
 * There are two ways of mixing runs:
 *
 * - `one-run`: a unit is a micro-batch with samples of one run. The micro-batches of a run are a function of the samples
 *   of its own step alone: neither other runs nor the time at which samples arrive changes them. So a run that is
 *   trained together with others computes the same bits as alone.
 * - `many-runs`: a unit is a sample, and a micro-batch holds samples of several runs. It wastes less when the runs are small.
 *   Other runs change the rounding of a run's sums; for reproducible bits, pack only when all runs have samples (`level`).
 *
 * Samples of a run whose prompts begin with the same tokens share these tokens in a window: see `sharedPrompts`. A unit of
 * `many-runs` is a sample, not a group, so that runs take turns by samples and a group of any size fits. The samples of a
 * group are adjacent in their step, so most of them are in one pack, where they can share their prompt.
 *
 * It is a plain object without Effects, so that it can be tested against a model; `DataLoader` feeds it.
 *
 * @example
 * ```ts
 * const packer = makePacker({ rows: 2, width: 512, block: 32, maxRuns: 4, ranks: 1, mixing: "one-run" })
 * packer.open(0, { id: "run_a", step: 0, rulesAt: () => ({ normalisation: { type: "token_mean" } }) })
 * packer.offer(0, { step: 0, samples })
 * const pack = packer.pack()
 * ```
 */
import { makeMicroBatch, type MicroBatch } from "./MicroBatch.ts"
import {
  available,
  budgetOf,
  type PackerOptions,
  chooseFitting,
  counting,
  type PackingRules,
  type Queue,
  type Unit,
  unitsOf,
  write,
} from "./packUnits.ts"
import type { TrainingSample } from "./TrainingSample.ts"
import { roundUp } from "./windows.ts"
import { TrainerError } from "../TrainerError.ts"

/** The samples of one step of a run. */
export interface StepBatch {
  readonly step: number
  readonly samples: ReadonlyArray<TrainingSample>
}

/** The samples of one run in a pack. */
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

/** The next pack, without taking its samples from the queues. */
export interface Upcoming {
  readonly microBatches: ReadonlyArray<MicroBatch>
  /** The runs that have samples in the pack, and their steps. */
  readonly shares: ReadonlyArray<Pick<Share, "index" | "step">>
}

/**
 * Whether it is time to pack:
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
  /** Returns how the samples of a step are packed, and how the losses of their tokens are averaged. */
  readonly rulesAt: (step: number) => PackingRules
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
   * Adds the samples of the step that `wanted` names. They must be valid (see `validate`). Throws a `TrainerError` if
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

/** The state of a packer. */
interface PackerState {
  readonly options: PackerOptions
  /** The arrays of the packs. */
  readonly microBatches: ReadonlyArray<MicroBatch>
  /** The arrays of the upcoming pack. They are made when `upcoming` is called first, because most packers never need them. */
  upcoming: ReadonlyArray<MicroBatch> | undefined
  /** The queues of the runs by index. */
  readonly queues: Array<Queue | undefined>
  /** The run that is served first in the next pack. */
  position: number
  /** The number of packs. */
  packs: number
}

/** Checks the options, and makes the state of a packer without runs. */
const makePackerState = (options: PackerOptions): PackerState => {
  const { rows, width, block, maxRuns, ranks } = options
  for (const [name, value] of Object.entries({ rows, width, block, ranks, maxRuns })) {
    if (Number.isSafeInteger(value) && value > 0) continue
    throw new TrainerError({ message: `${name}: expected a positive integer, found ${value}` })
  }
  if (roundUp(width, block) !== width) {
    throw new TrainerError({ message: `block: expected a divisor of the width ${width}, found ${block}` })
  }
  return {
    options,
    microBatches: makeMicroBatches(options),
    upcoming: undefined,
    queues: Array.from({ length: maxRuns }, () => undefined),
    position: 0,
    packs: 0,
  }
}

const makeMicroBatches = (options: PackerOptions) =>
  Array.from({ length: options.ranks }, () => makeMicroBatch(options))

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

/** Adds the samples of a step to the queue of a run. */
const offer = ({ options, queues }: PackerState, index: number, { step, samples }: StepBatch): void => {
  const queue = queues[index]
  if (queue === undefined) throw new TrainerError({ message: `run ${index}: expected an open queue, found none` })
  const refuse = (message: string) => new TrainerError({ message: `${queue.id}: step ${step}: ${message}` })
  const next = queue.step + queue.steps.length
  if (step !== next) throw refuse(`expected the samples of step ${next}`)
  if (samples.length === 0) throw refuse("expected at least one sample, found none")
  queue.steps.push({ number: step, units: unitsOf(options, samples, queue.rulesAt(step)) })
}

const levelOf = ({ options, queues }: PackerState): Level => {
  const rests = queues.flatMap((queue) => (queue === undefined ? [] : [available(queue)]))
  if (rests.every((rest) => rest.length === 0)) return "empty"
  if (rests.every((rest) => rest.length > 0)) return "full"
  const tokens = rests.flatMap((rest) => rest.map(counting(options))).reduce((sum, added) => sum + added, 0)
  return tokens >= budgetOf(options) ? "full" : "partial"
}

/** Takes the units of the next pack from their queues. */
const pack = (state: PackerState): Pack | undefined => {
  const { options, queues, microBatches } = state
  const { chosen, next } = chooseFitting(state)
  if (chosen.length === 0) return undefined
  write(options, chosen, microBatches)
  state.position = next
  const shares = queues.flatMap((queue, index) => {
    const units = chosen.filter(({ run }) => run === index)
    return queue === undefined || units.length === 0 ? [] : [consume(index, queue, units)]
  })
  return { number: state.packs++, microBatches, shares }
}

/** Returns the next pack without taking its units from their queues. */
const upcomingOf = (state: PackerState): Upcoming | undefined => {
  const { options, queues } = state
  const { chosen } = chooseFitting(state)
  if (chosen.length === 0) return undefined
  const microBatches = (state.upcoming ??= makeMicroBatches(options))
  write(options, chosen, microBatches)
  const shares = queues.flatMap((queue, index) =>
    queue !== undefined && chosen.some(({ run }) => run === index) ? [{ index, step: queue.steps[0].number }] : [],
  )
  return { microBatches, shares }
}

/** Makes a packer without runs. Throws a `TrainerError` if a size is not a positive integer, or `block` does not divide `width`. */
export const makePacker = (options: PackerOptions): Packer => {
  const state = makePackerState(options)
  const { queues } = state
  return {
    open: (index, { id, step, rulesAt }) => {
      queues[index] = { id, rulesAt, step, consumed: 0, steps: [] }
    },
    close: (index) => {
      queues[index] = undefined
    },
    wanted: (index) => {
      const queue = queues[index]
      return queue === undefined ? undefined : queue.step + queue.steps.length
    },
    queued: (index) => queues[index]?.steps.length ?? 0,
    offer: (index, batch) => offer(state, index, batch),
    level: () => levelOf(state),
    pack: () => pack(state),
    upcoming: () => upcomingOf(state),
  }
}
