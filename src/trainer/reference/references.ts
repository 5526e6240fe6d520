/**
 * Computes log-probabilities of the reference model in advance, and finds them by the tokens of their micro-batch. If the
 * trainer then packs another micro-batch than it had announced, the results that it does not need are dropped.
 *
 * @example
 * ```ts
 * const references = makeReferences(thread)
 * yield* references.prepare(nextMicroBatch) // the thread begins to compute
 * const logProbabilities = yield* references.of(nextMicroBatch)
 * ```
 */
import { Effect } from "effect"
import type { WorkerError } from "../../spread/workers/WorkerError.ts"
import { arrayNames, type MicroBatch } from "../batches/MicroBatch.ts"
import type { ReferenceThread } from "./ReferenceThreads.ts"

export interface References {
  /**
   * Lets the thread begin to compute the log-probabilities of a micro-batch, unless that was done before. Does not wait for
   * them.
   */
  readonly prepare: (microBatch: MicroBatch) => Effect.Effect<void>
  /**
   * Waits for the log-probabilities of a micro-batch. Undefined if the thread was lost: then this thread has to compute them.
   */
  readonly of: (microBatch: MicroBatch) => Effect.Effect<Float32Array | undefined>
}

/** The largest number of micro-batches that are kept in advance. */
const mostPrepared = 4

interface Prepared {
  /** A copy of the micro-batch, because the next micro-batch overwrites the arrays. */
  readonly microBatch: MicroBatch
  readonly answer: Effect.Effect<Float32Array, WorkerError>
}

const hasEqualTokens = (a: MicroBatch, b: MicroBatch): boolean =>
  arrayNames.every((name) => {
    const [numbers, others] = [a[name], b[name]]
    for (let at = 0; at < numbers.length; at++) if (numbers[at] !== others[at]) return false
    return numbers.length === others.length
  })

const copyOf = (microBatch: MicroBatch): MicroBatch => structuredClone(microBatch)

/** Makes the store of a thread's results. */
export const makeReferences = (thread: ReferenceThread): References => {
  let prepared: ReadonlyArray<Prepared> = []
  let isLost = false
  const find = (microBatch: MicroBatch) => prepared.find((one) => hasEqualTokens(one.microBatch, microBatch))
  const prepare = Effect.fnUntraced(function* (microBatch: MicroBatch) {
    if (isLost || find(microBatch) !== undefined) return
    const copy = copyOf(microBatch)
    const answer = yield* thread.compute(copy)
    prepared = [...prepared, { microBatch: copy, answer }].slice(-mostPrepared)
  })
  return {
    prepare,
    of: Effect.fnUntraced(function* (microBatch) {
      yield* prepare(microBatch)
      const found = find(microBatch)
      if (found === undefined) return undefined
      prepared = prepared.filter((one) => one !== found)
      return yield* Effect.catch(found.answer, ({ message }) => {
        isLost = true
        prepared = []
        return Effect.as(Effect.logWarning(`${message}; the trainer's thread computes its part`), undefined)
      })
    }),
  }
}
