/**
 * Many at a time, told one after another: items are worked on by as many workers as asked, and each result is told when
 * all before it have been. So what is told never depends on what was done first.
 *
 * Items are taken only when they are begun, and results are kept only until they are told: behind a slow one, at most
 * `ahead` items are begun before the workers wait for it. A million items take no more memory than a thousand.
 *
 * @example
 * ```ts
 * yield* inOrder(requests, { concurrency: 100, work: (request) => ask(request), tell: (answer) => Console.log(answer) })
 * ```
 */
import { Effect } from "effect"

export interface InOrder<Item, Result, E, R, E2, R2> {
  readonly concurrency: number
  /** How many items that aren't told may be begun beside those that are worked on; 1024 unless given. */
  readonly ahead?: number
  readonly work: (item: Item, index: number) => Effect.Effect<Result, E, R>
  /** Never called before it is done with what came before. */
  readonly tell: (result: Result, index: number) => Effect.Effect<void, E2, R2>
}

/** The first failure stops all: what wasn't told by then never is. */
export const inOrder = <Item, Result, E = never, R = never, E2 = never, R2 = never>(
  items: Iterable<Item>,
  { concurrency, ahead = 1024, work, tell }: InOrder<Item, Result, E, R, E2, R2>,
): Effect.Effect<void, E | E2, R | R2> =>
  Effect.suspend(() => {
    if (!(Number.isSafeInteger(concurrency) && concurrency >= 1)) {
      throw new RangeError(`concurrency: expected a whole number of at least 1, found ${concurrency}`)
    }
    const left = items[Symbol.iterator]()
    const most = concurrency + ahead
    /** Workers that wait for something to be told. */
    const idle: Array<() => void> = []
    const waiting = new Map<number, { readonly result: Result }>()
    let begun = 0
    let told = 0
    const tellAll = Effect.gen(function* () {
      for (let next = waiting.get(told); next !== undefined; next = waiting.get(told)) {
        waiting.delete(told)
        yield* tell(next.result, told)
        told++
        idle.pop()?.()
      }
    })
    const toldOne = Effect.callback<void>((resume) => void idle.push(() => resume(Effect.void)))
    const worker = Effect.gen(function* () {
      while (true) {
        while (begun - told >= most) yield* toldOne
        const next = left.next()
        if (next.done === true) return
        const index = begun++
        waiting.set(index, { result: yield* work(next.value, index) })
        // While one is told, it is `told`: nobody else's is.
        if (index === told) yield* tellAll
      }
    })
    // Workers for items that may not be there: a worker that finds none is done.
    return Effect.forEach(workers(items, concurrency), () => worker, { concurrency: "unbounded", discard: true })
  })

const workers = (items: Iterable<unknown>, concurrency: number): ReadonlyArray<undefined> =>
  Array.from({ length: Array.isArray(items) ? Math.min(items.length, concurrency) : concurrency }, () => undefined)
