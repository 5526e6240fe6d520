/** Turns the rollouts of a step into the samples that the trainer learns from. */
import { Effect, Result } from "effect"
import type { Rollout } from "../../agents/episode/Rollout.ts"
import * as Samples from "../../agents/episode/samples/samples.ts"
import { advantageEstimatorOf, type TokenObjective } from "../../rl/losses/Losses.ts"
import { groupAdvantages } from "../../rl/returns/Returns.ts"
import { fromSample, refuseTooLong, type SamplePlace, type TrainingSample } from "../batches/TrainingSample.ts"
import type { TrainerError } from "../TrainerError.ts"
import { filtered, type FilterName } from "./sampleFilters.ts"

export interface Scored {
  readonly samples: ReadonlyArray<TrainingSample>
  /** The rollouts from which the samples were made. */
  readonly rollouts: ReadonlyArray<Rollout>
  /** The advantage of each rollout; undefined if the objective does not compare rollouts. */
  readonly advantages: ArrayLike<number> | undefined
  /** The position of each rollout's group among the groups. */
  readonly groupOf: ReadonlyArray<number>
  /** The number of groups whose rollouts all have the same reward, so that all advantages are 0. */
  readonly evenGroups: number
  readonly groups: number
}

/** A rollout that gives no samples, with the reason. */
interface Unusable {
  readonly rollout: Rollout
  readonly error: Samples.SampleError | TrainerError
}

/** A rollout with its samples, which have no advantages yet. */
export interface Usable {
  readonly rollout: Rollout
  readonly samples: ReadonlyArray<TrainingSample>
  /** The index of the rollout's task. */
  readonly task?: number
  /** The filters that left out samples of the rollout, once for each of these samples. */
  readonly refused: ReadonlyArray<FilterName>
  /** If filters left out all samples: one of them, from which nothing is learned because its mask is 0. */
  readonly spare?: TrainingSample
}

interface ScoringOptions {
  readonly objective: TokenObjective
  /**
   * Chooses how groups are handled whose rewards are all equal: `keep` trains on them with advantages of 0, `drop` leaves them out.
   */
  readonly evenGroups: "keep" | "drop"
  /** Whether advantages below 0 become 0. */
  readonly positiveOnly?: boolean
}

interface SamplingOptions extends SamplePlace, Pick<ScoringOptions, "objective"> {
  /** The filters that a sample has to pass; none by default. */
  readonly filters?: ReadonlyArray<FilterName>
  /** The temperature at which the model sampled. */
  readonly temperature: number
  /** The largest number of tokens of a sample. */
  readonly width: number
  /** Whether a sample needs the experts that the model chose, because they are replayed. By default it does not. */
  readonly needsExperts?: boolean
}

/**
 * Tells whether the model wrote anything in a rollout. A player whose game ends before its first move writes nothing. Its
 * rollout is not compared with others, because its reward teaches nothing.
 */
export const isPlayed = ({ steps }: Rollout): boolean => steps.some(({ _tag }) => _tag === "AgentStep")

/** Returns the name of a rollout's group: the rollouts of one task and, in games of several players, of one player. */
const groupOf = ({ id, meta: { groupId, player } }: Rollout): string => JSON.stringify([groupId ?? id, player])

/** Makes the samples of each rollout, without those that fail a filter, and separates the rollouts that give none. */
export const usableOf = Effect.fnUntraced(function* (
  rollouts: ReadonlyArray<Rollout>,
  { objective, temperature, width, filters = [], needsExperts = false, ...place }: SamplingOptions,
) {
  const isCompared = advantageEstimatorOf(objective.type) !== null
  // If the chat template writes a tool call in other tokens than the model did, the rollout is split into several samples.
  const options = { requireLogprobs: isCompared, onBreak: "split" } as const
  const logprobs = isCompared ? ("required" as const) : ("unused" as const)
  const usable: Array<Usable> = []
  const unusable: Array<Unusable> = []
  for (const rollout of rollouts) {
    const made = yield* Effect.gen(function* () {
      const all = yield* Samples.of([rollout], options)
      const { kept, refused } = filtered(all, filters)
      const chosen = kept.length === 0 ? all.slice(0, 1) : kept
      const converting = { ...place, temperature, logprobs, needsExperts }
      const samples = yield* Effect.forEach(chosen, (sample) => fromSample(sample, converting))
      yield* Effect.forEach(samples, (sample) => refuseTooLong(sample, width, place), { discard: true })
      return kept.length === 0 ? withSpare(rollout, samples[0], refused) : { rollout, samples, refused }
    }).pipe(Effect.result)
    if (Result.isSuccess(made)) usable.push(made.success)
    else unusable.push({ rollout, error: made.failure })
  }
  return { usable, unusable }
})

/** Keeps a sample from which nothing is learned, of a rollout whose samples were all left out. */
const withSpare = (rollout: Rollout, sample: TrainingSample, refused: ReadonlyArray<FilterName>): Usable => {
  const { length } = sample.tokens
  const spare = { ...sample, mask: new Uint8Array(length), advantages: new Float32Array(length) }
  return { rollout, samples: [], refused, spare }
}

/**
 * Sets the advantages of the samples. Every token that the model wrote has the advantage of its rollout: the rollout's reward
 * compared with the rewards of its group. A step is never without samples: if all groups would be dropped, the first one is
 * kept, and if filters left out everything, there is one sample from which nothing is learned.
 */
export const samplesOf = (
  usable: ReadonlyArray<Usable>,
  { objective, evenGroups, positiveOnly = false }: ScoringOptions,
): Scored => {
  const rollouts = usable.map(({ rollout }) => rollout)
  const names = [...new Set(rollouts.map(groupOf))]
  const groups = rollouts.map((rollout) => names.indexOf(groupOf(rollout)))
  const estimator = advantageEstimatorOf(objective.type)
  const rewards = Float64Array.from(rollouts, ({ totalReward }) => totalReward)
  const scored =
    estimator === null
      ? undefined
      : groupAdvantages({ rewards, groups, zeroDeviation: evenGroups, positiveOnly, ...estimator })
  const isKept = (at: number): boolean =>
    scored === undefined || scored.kept[at] === 1 || (scored.droppedGroups === scored.groups && groups[at] === 0)
  const trained = usable.flatMap((one, at) =>
    isKept(at)
      ? one.samples.map((sample) => {
          const advantage = scored?.advantages[at] ?? 1
          const compared = scored === undefined ? {} : { group: groups[at] }
          return { ...sample, advantages: Float32Array.from(sample.mask, (mask) => mask * advantage), ...compared }
        })
      : [],
  )
  const samples = trained.length > 0 ? trained : usable.flatMap(({ spare }) => spare ?? []).slice(0, 1)
  const evenGroupCount = scored?.zeroDeviationGroups ?? 0
  return {
    samples,
    rollouts,
    advantages: scored?.advantages,
    groupOf: groups,
    evenGroups: evenGroupCount,
    groups: names.length,
  }
}
