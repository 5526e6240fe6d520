/**
 * Makes requests for episodes. A request is plain data: a task and the seeds. Its episode gives one rollout, or one for
 * each agent that takes part. `RolloutEngine` plays requests.
 *
 * @example
 * ```ts
 * // Eight episodes of every task, to be compared with each other.
 * const requests = RolloutRequest.expand(RolloutRequest.forTasks(tasks, { seed: 1 }), 8)
 * ```
 *
 * A request's seeds depend on the given seed, the task's position and the number of the repetition, but not on the number of
 * requests: the first four of eight repetitions have the same seeds as four repetitions.
 */
import { Schema } from "effect"
import { naturalInt } from "../../../base/config/fields.ts"
import { stream, type Stream } from "../../../base/rng/Rng.ts"

export const RolloutRequest = Schema.Struct({
  /** The id of the rollout; it must be unique in a batch. */
  id: Schema.NonEmptyString,
  /** The position of the task in the set of tasks. */
  task: naturalInt,
  /** The seed of the env's randomness. */
  envSeed: Schema.Int,
  /** The seed of the model's sampling. */
  samplingSeed: Schema.Int,
  /** The group of requests whose rollouts are compared with each other. */
  groupId: Schema.NullOr(Schema.String),
  tags: Schema.Record(Schema.String, Schema.String),
})
export type RolloutRequest = typeof RolloutRequest.Type

/**
 * Draws a seed of 53 bits, as many as a number can hold exactly. Among a million seeds, two are equal with probability 1 in
 * 18,000.
 */
const seedOf = (random: Stream): number => (random.uint32() >>> 11) * 4_294_967_296 + random.uint32()

/** Makes an iterable that can be iterated several times: each time, it calls `items` for a new iterator. */
const again = <A>(items: () => Iterator<A>): Iterable<A> => ({ [Symbol.iterator]: items })

export interface ForTasks {
  /** The seed from which the seeds of all requests are derived. */
  readonly seed: number
  /** The prefix of the requests' ids, `task` by default. */
  readonly name?: string
  readonly tags?: Readonly<Record<string, string>>
}

/** Returns a request for each task of a set, in order. The requests are made lazily. */
export const forTasks = (
  { size }: { readonly size: number },
  { seed, name = "task", tags = {} }: ForTasks,
): Iterable<RolloutRequest> =>
  again(function* () {
    for (let task = 0; task < size; task++) {
      const random = stream(seed, "rollout", task)
      const id = `${name}-${task}`
      yield { id, task, envSeed: seedOf(random), samplingSeed: seedOf(random), groupId: null, tags }
    }
  })

export interface RepeatOptions {
  /** Whether the repetitions have different env seeds. By default all have the same env seed, so that only actions differ. */
  readonly varyEnv?: boolean
}

/** Repeats a request `n` times as one group, with different sampling seeds. */
export const repeat = (
  request: RolloutRequest,
  n: number,
  { varyEnv = false }: RepeatOptions = {},
): ReadonlyArray<RolloutRequest> => {
  if (!(Number.isSafeInteger(n) && n >= 0)) throw new RangeError(`repeat: expected a whole number, found ${n}`)
  const { id, envSeed, samplingSeed, groupId } = request
  return Array.from({ length: n }, (_, at) => ({
    ...request,
    id: `${id}#${at}`,
    envSeed: varyEnv ? seedOf(stream(envSeed, "repeat", at)) : envSeed,
    samplingSeed: seedOf(stream(samplingSeed, "repeat", at)),
    groupId: groupId ?? id,
  }))
}

/** Repeats each request `n` times, one group after another. Requests are made lazily. */
export const expand = (
  requests: Iterable<RolloutRequest>,
  n: number,
  options: RepeatOptions = {},
): Iterable<RolloutRequest> =>
  again(function* () {
    for (const request of requests) yield* repeat(request, n, options)
  })

/** Encodes a request for files. Equal requests have equal texts, whatever the order of their keys. */
export const textOf = ({ id, task, envSeed, samplingSeed, groupId, tags }: RolloutRequest): string => {
  const sorted = Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify({ id, task, envSeed, samplingSeed, groupId, tags: Object.fromEntries(sorted) })
}
