/**
 * Spreads slices over the ranks that are connected to this process, the master. Only the master has the state of the
 * training. A rank gets the rows of each update and the weights for each minibatch, and answers with the results of its
 * slices. The master computes the slices of a rank that is lost or late itself, so the results stay the same.
 *
 * @example
 * ```ts
 * const hub = yield* makeHub()
 * yield* Effect.forkScoped(hub.serve(1, channel))
 * yield* Effect.provideService(training, Ranks, hub.ranks)
 * ```
 */
import { Clock, Deferred, Duration, Effect, Record } from "effect"
import { WorkerError } from "../workers/WorkerError.ts"
import { utf8 } from "../../base/text/utf8.ts"
import type { BackendError, Program } from "../../tensor/backend/Backend.ts"
import { sizeOf } from "../../tensor/graph/Tensor.ts"
import { type Channel, kinds } from "./Channel.ts"
import { alone, computeHere, type RanksService, type Sharing } from "./Ranks.ts"
import type { SlicedSpec } from "./SlicedSpec.ts"
import { encodeSpec } from "./specMessage.ts"
import { bytesOf, fill, otherFeeds, rowFeeds } from "./wire.ts"

/** A connected rank that has compiled the program. */
interface Member {
  readonly rank: number
  readonly channel: Channel
  readonly lost: Deferred.Deferred<never, WorkerError>
}

interface Hub {
  readonly ranks: RanksService
  /** Lets a rank take part in the training until it is lost. */
  readonly serve: (rank: number, channel: Channel) => Effect.Effect<never, WorkerError>
}

/** A rank is late if it takes this many times as long as the master did for its own slices, and longer than the deadline. */
const patience = 20

interface HubState {
  /** The program that the ranks compile. */
  readonly program: Deferred.Deferred<ReadonlyArray<Uint8Array>>
  readonly members: Map<number, Member>
  /** The time after which an answer of a rank is late. */
  readonly deadlineMillis: number
}

/** A program whose slices are spread over the ranks. */
interface SharedProgram extends HubState {
  readonly here: Program
  readonly rows: ReturnType<typeof rowFeeds>
  readonly others: ReturnType<typeof otherFeeds>
  /** The arrays into which the program's state is read before it is sent to the ranks, by name. */
  readonly sent: Readonly<Record<string, Float32Array>>
  /** The ranks that have the rows of this update. */
  active: ReadonlyArray<Member>
}

/** Makes a hub without ranks. A rank that does not answer within `deadline` counts as lost. */
export const makeHub = Effect.fnUntraced(function* ({
  deadline = "10 seconds",
}: { readonly deadline?: Duration.Input } = {}): Effect.fn.Return<Hub> {
  const state: HubState = {
    program: yield* Deferred.make<ReadonlyArray<Uint8Array>>(),
    members: new Map(),
    deadlineMillis: Duration.toMillis(Duration.fromInputUnsafe(deadline)),
  }
  return {
    ranks: { open: (spec, here) => open(state, spec, here) },
    serve: (rank, channel) => serve(state, rank, channel),
  }
})

/** Removes a member, unless another one has already replaced it. */
const leave = ({ members }: HubState, member: Member): void => {
  if (members.get(member.rank) === member) members.delete(member.rank)
}

const serve = Effect.fnUntraced(function* (
  state: HubState,
  rank: number,
  channel: Channel,
): Effect.fn.Return<never, WorkerError> {
  yield* channel.send(kinds.program, yield* Deferred.await(state.program))
  const { kind, bytes } = yield* channel.receive
  if (kind !== kinds.ready) return yield* WorkerError.failed(utf8.decode(bytes))
  const lost = yield* Deferred.make<never, WorkerError>()
  const member = { rank, channel, lost }
  state.members.set(rank, member)
  yield* Effect.logInfo(`rank ${rank} computes slices`)
  return yield* Effect.ensuring(
    Effect.raceFirst(channel.closed, Deferred.await(lost)),
    Effect.sync(() => leave(state, member)),
  )
})

const open = Effect.fnUntraced(function* (state: HubState, spec: SlicedSpec, here: Program): Effect.fn.Return<Sharing> {
  const device = utf8.encode(here.device)
  const isFirst = yield* Deferred.succeed(state.program, [Uint8Array.of(device.length), device, encodeSpec(spec)])
  // Only the first program is spread: the ranks have compiled it.
  if (!isFirst) return yield* alone.open(spec, here)
  const shared: SharedProgram = {
    ...state,
    here,
    rows: rowFeeds(spec, here),
    others: otherFeeds(spec, here),
    sent: Record.map(spec.state, ({ tensor }) => new Float32Array(sizeOf(tensor.shape))),
    active: [],
  }
  return { begin: begin(shared), compute: (slices, into) => compute(shared, slices, into) }
})

/**
 * Sends a request to a rank, and returns its answer. A rank that is lost or late is removed; then the result is undefined.
 */
const asked = <A>(shared: SharedProgram, member: Member, exchange: Effect.Effect<A, WorkerError>, millis: number) => {
  const late = WorkerError.lost(`it did not answer within ${Duration.format(Duration.millis(millis))}`)
  return exchange.pipe(
    Effect.timeoutOrElse({ duration: millis, orElse: () => Effect.fail(late) }),
    Effect.catch((error) => {
      shared.active = shared.active.filter((other) => other !== member)
      // The next update must not use this rank: its late answer would be mistaken for the next one.
      leave(shared, member)
      return Effect.as(Deferred.fail(member.lost, error), undefined)
    }),
  )
}

/** Sends the rows of an update to all ranks. */
const begin = (shared: SharedProgram) =>
  Effect.suspend(() => {
    shared.active = [...shared.members.values()].sort((a, b) => a.rank - b.rank)
    const parts = shared.rows.map(bytesOf)
    return Effect.forEach(
      shared.active,
      (member) => asked(shared, member, member.channel.send(kinds.rows, parts), shared.deadlineMillis),
      { concurrency: "unbounded", discard: true },
    )
  })

/** Computes slices here and on the ranks. If a rank is lost, its slices are computed here, too. */
const compute = Effect.fnUntraced(function* (
  shared: SharedProgram,
  slices: ReadonlyArray<Int32Array>,
  into: ReadonlyArray<Float32Array>,
): Effect.fn.Return<void, BackendError> {
  const { active: ranks, here, sent, others, deadlineMillis } = shared
  const owners = ranks.length + 1
  /** Lists the slices of the master (`place` 0) or of the rank at another place. */
  const share = (place: number) => slices.flatMap((_, slice) => (slice % owners === place ? [slice] : []))
  const computeAll = Effect.fnUntraced(function* (own: ReadonlyArray<number>) {
    for (const slice of own) yield* computeHere(here, slices[slice], into[slice])
  })
  if (ranks.length === 0) return yield* computeAll(share(0))

  const theirs = ranks.map((member, at) => ({ member, own: share(at + 1) }))
  const states = yield* Effect.forEach(Object.entries(sent), ([name, into]) => here.read(name, into))
  const common = [...states, ...others].map(bytesOf)
  const send = ({ member, own }: (typeof theirs)[number]) => {
    const parts = [...common, ...own.map((slice) => bytesOf(slices[slice]))]
    return asked(shared, member, member.channel.send(kinds.compute, parts), deadlineMillis)
  }
  yield* Effect.forEach(theirs, send, { concurrency: "unbounded", discard: true })
  const begun = yield* Clock.currentTimeMillis
  yield* computeAll(share(0))
  const millis = Math.max(deadlineMillis, patience * ((yield* Clock.currentTimeMillis) - begun))
  const answers = yield* Effect.forEach(
    theirs,
    ({ member, own }) => {
      const wanted = own.reduce((sum, slice) => sum + into[slice].byteLength, 0)
      return shared.active.includes(member) ? asked(shared, member, answerOf(member, wanted), millis) : Effect.undefined
    },
    { concurrency: "unbounded" },
  )
  for (const [at, { own }] of theirs.entries()) {
    const results = answers[at]
    if (results === undefined) yield* computeAll(own)
    else
      fill(
        results,
        own.map((slice) => into[slice]),
      )
  }
})

/** Waits for the results of a rank's slices, which have `wanted` bytes. */
const answerOf = Effect.fnUntraced(function* ({ channel }: Member, wanted: number) {
  const { kind, bytes } = yield* channel.receive
  if (kind !== kinds.results) return yield* WorkerError.lost(`it failed: ${utf8.decode(bytes)}`)
  if (bytes.length !== wanted)
    return yield* WorkerError.lost(`it sent results of ${bytes.length} bytes; expected ${wanted}`)
  return bytes
})
