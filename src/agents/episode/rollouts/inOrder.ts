/**
 * Works on many items at a time, and emits their results in the order of the items. Batches of rollouts and evaluations use
 * it to play their episodes.
 *
 * An item is taken from the iterable when work on it begins. Its result is kept until the results of all earlier items are
 * emitted. While one item is slow, work begins on fewer than `concurrency + ahead` later items, so memory is limited even for
 * a million items. (Effect's `Stream.mapEffect` emits in order, too, but begins no further items while it waits for a slow
 * one.)
 *
 * @example
 * ```ts
 * yield* inOrder(requests, { concurrency: 100, work: (request) => ask(request), emit: (answer) => Console.log(answer) })
 * ```
 */
import { Effect } from "effect"

interface InOrderOptions<Item, Result, E, R, E2, R2> {
  readonly concurrency: number
  /**
   * The number of items, in addition to `concurrency`, that may be started before an earlier item is emitted; 1024 by
   * default.
   */
  readonly ahead?: number
  readonly work: (item: Item, index: number) => Effect.Effect<Result, E, R>
  /** Receives the results one at a time: it is called again only after the last call has ended. */
  readonly emit: (result: Result, index: number) => Effect.Effect<void, E2, R2>
}

/** Calls `work` for each item, and `emit` for each result in order. The first failure stops both. */
export const inOrder = <Item, Result, E = never, R = never, E2 = never, R2 = never>(
  items: Iterable<Item>,
  { concurrency, ahead = 1024, work, emit }: InOrderOptions<Item, Result, E, R, E2, R2>,
): Effect.Effect<void, E | E2, R | R2> =>
  Effect.suspend(() => {
    if (!(Number.isSafeInteger(concurrency) && concurrency >= 1)) {
      throw new RangeError(`concurrency: expected a whole number of at least 1, found ${concurrency}`)
    }
    const rest = items[Symbol.iterator]()
    const mostUnemitted = concurrency + ahead
    /** A callback for each worker that waits until a result is emitted; calling it resumes the worker. */
    const idle: Array<() => void> = []
    const finished = new Map<number, { readonly result: Result }>()
    let begun = 0
    let emitted = 0
    const emitFinished = Effect.gen(function* () {
      for (let next = finished.get(emitted); next !== undefined; next = finished.get(emitted)) {
        finished.delete(emitted)
        yield* emit(next.result, emitted)
        emitted++
        idle.pop()?.()
      }
    })
    const oneEmitted = Effect.callback<void>((resume) => void idle.push(() => resume(Effect.void)))
    const worker = Effect.gen(function* () {
      while (true) {
        while (begun - emitted >= mostUnemitted) yield* oneEmitted
        const next = rest.next()
        if (next.done === true) return
        const index = begun++
        finished.set(index, { result: yield* work(next.value, index) })
        // Only one worker emits at a time: meanwhile, item `emitted` is finished, so no other worker has that index.
        if (index === emitted) yield* emitFinished
      }
    })
    // There may be more workers than items. A worker without an item ends at once.
    const length = Array.isArray(items) ? Math.min(items.length, concurrency) : concurrency
    const workers = Array.from({ length }, () => worker)
    return Effect.all(workers, { concurrency: "unbounded", discard: true })
  })
