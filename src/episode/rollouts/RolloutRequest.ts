/**
 * What is to be played: one request is one episode, by its task and its seeds, as plain data. Its rollouts are one, or
 * one for each agent that acts.
 *
 * @example
 * ```ts
 * // Eight tries of every task, to be compared with each other.
 * const requests = RolloutRequest.expand(RolloutRequest.forTasks(tasks, { seed: 1 }), 8)
 * ```
 *
 * Seeds come from seeds and places, so nobody's depend on how many there are: the first four of eight are the same as
 * four.
 */
import { Schema } from "effect"
import { naturalInt } from "../../config/fields.ts"
import { stream, type Stream } from "../../rng/Rng.ts"

export const RolloutRequest = Schema.Struct({
  /** The rollout's, too. No two in a batch are the same. */
  id: Schema.NonEmptyString,
  /** Its place in the set of tasks. */
  task: naturalInt,
  /** Of the env's chance. */
  envSeed: Schema.Int,
  /** Of the model's sampling. */
  samplingSeed: Schema.Int,
  /** Requests whose rollouts are to be compared with each other. */
  groupId: Schema.NullOr(Schema.String),
  tags: Schema.Record(Schema.String, Schema.String),
})
export type RolloutRequest = typeof RolloutRequest.Type

/** 53 bits: among a million seeds, two are the same with a chance of 1 in 18,000. */
const seedOf = (random: Stream): number => (random.uint32() >>> 11) * 4_294_967_296 + random.uint32()

const again = <A>(items: () => Iterator<A>): Iterable<A> => ({ [Symbol.iterator]: items })

export interface ForTasks {
  readonly seed: number
  /** What ids begin with; `task` unless given. */
  readonly name?: string
  readonly tags?: Readonly<Record<string, string>>
}

/** One request for each task of a set, in its order, made when it is asked for. */
export const forTasks = (
  { size }: { readonly size: number },
  { seed, name = "task", tags = {} }: ForTasks,
): Iterable<RolloutRequest> =>
  again(function* () {
    for (let task = 0; task < size; task++) {
      const random = stream(seed, "rollout", task)
      yield {
        id: `${name}-${task}`,
        task,
        envSeed: seedOf(random),
        samplingSeed: seedOf(random),
        groupId: null,
        tags,
      }
    }
  })

export interface RepeatOptions {
  /** Unless true, the env's chance is the same in all, so that only what was done makes them different. */
  readonly varyEnv?: boolean
}

/** The same again `n` times, each with chances of its own, as one group. */
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

/** Each `n` times, one group after another, made when they are asked for. */
export const expand = (
  requests: Iterable<RolloutRequest>,
  n: number,
  options: RepeatOptions = {},
): Iterable<RolloutRequest> =>
  again(function* () {
    for (const request of requests) yield* repeat(request, n, options)
  })

/** As it stands in files: the same request is the same text, however its keys were ordered. */
export const textOf = ({ id, task, envSeed, samplingSeed, groupId, tags }: RolloutRequest): string => {
  const sorted = Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify({ id, task, envSeed, samplingSeed, groupId, tags: Object.fromEntries(sorted) })
}
