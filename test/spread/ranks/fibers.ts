import { Context, Deferred, Effect, Layer, type Scope } from "effect"
import { WorkerError } from "../../../src/spread/workers/WorkerError.ts"
import { Backend } from "../../../src/tensor/backend/Backend.ts"
import { backend } from "../../../src/tensor/backend/named-node.ts"
import { backendNames } from "../../../src/tensor/backend/names.ts"
import { type Channel, type Inbox, kinds, makeInbox, type Message } from "../../../src/spread/ranks/Channel.ts"
import { joined } from "../../../src/base/text/bytes.ts"
import { makeHub } from "../../../src/spread/ranks/hub.ts"
import type { RanksService } from "../../../src/spread/ranks/Ranks.ts"
import { type BackendOf, serveSlices } from "../../../src/spread/ranks/serveSlices.ts"

export const backendOf: BackendOf = (device) =>
  Effect.map(Layer.build(backend(backendNames.find((name) => name === device) ?? "wasm")), Context.get(Backend))

/** Makes both ends of a connection in memory, and a function that cuts it. */
const channelPair = Effect.gen(function* () {
  const [a, b] = [yield* makeInbox, yield* makeInbox]
  const end = ({ receive, closed }: Inbox, other: Inbox): Channel => ({
    receive,
    closed,
    send: (kind, parts = []) => Effect.sync(() => other.put({ kind, bytes: joined(parts) })),
  })
  const cut = (reason: string): void => {
    for (const inbox of [a, b]) inbox.close(WorkerError.lost(reason))
  }
  return { master: end(a, b), rank: end(b, a), cut }
})

/** A rank of a test: the test may cut its connection, or hold back its answers. */
export interface TestRank {
  readonly rank: number
  readonly cut: (reason: string) => void
}

/**
 * Makes a hub with ranks that are fibers of this process. A training that opens it waits until all are ready. `onResults`
 * runs before the master gets the results of a rank, and may return other bytes that the master gets instead.
 */
export const hubWithFibers = (
  count: number,
  onResults: (rank: TestRank) => Effect.Effect<Uint8Array | void> = () => Effect.void,
): Effect.Effect<RanksService, never, Scope.Scope> =>
  Effect.gen(function* () {
    const hub = yield* makeHub()
    const allReady = yield* Effect.forEach(
      Array.from({ length: count }, (_, at) => at + 1),
      (rank) =>
        Effect.gen(function* () {
          const { master, rank: other, cut } = yield* channelPair
          const ready = yield* Deferred.make<void>()
          const received = Effect.fnUntraced(function* (message: Message) {
            if (message.kind === kinds.ready) yield* Deferred.succeed(ready, undefined)
            if (message.kind !== kinds.results) return message
            return { ...message, bytes: (yield* onResults({ rank, cut })) ?? message.bytes }
          })
          const watched: Channel = { ...master, receive: Effect.flatMap(master.receive, received) }
          yield* Effect.forkScoped(serveSlices(other, backendOf))
          yield* Effect.forkScoped(hub.serve(rank, watched))
          return Deferred.await(ready)
        }),
    )
    const { open } = hub.ranks
    return {
      open: (spec, program) =>
        open(spec, program).pipe(
          Effect.tap(Effect.all(allReady)),
          // The hub adds a rank right after its message.
          Effect.tap(Effect.yieldNow),
        ),
    }
  })
