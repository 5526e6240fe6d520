/**
 * Works as a rank: compiles the program that the master sends, and computes slices of its minibatches. A rank keeps only the
 * rows of the current update, so it can join and leave at any time.
 */
import { Effect, type Scope } from "effect"
import { WorkerError, isLost } from "../workers/WorkerError.ts"
import { messageOf } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import type { Backend, BackendUnavailable } from "../../tensor/backend/Backend.ts"
import { type Channel, kinds } from "./Channel.ts"
import { computeHere } from "./Ranks.ts"
import { decodeSpec } from "./specMessage.ts"
import { bytesOf, fill, otherFeeds, resultCount, rowFeeds } from "./wire.ts"

/** Provides the backend that computes on a device, such as `wasm`. */
export type BackendOf = (device: string) => Effect.Effect<Backend["Service"], BackendUnavailable, Scope.Scope>

/** Serves the master until the connection is closed. If the rank cannot work, sends the reason to the master and fails. */
export const serveSlices = (channel: Channel, backendOf: BackendOf): Effect.Effect<never, WorkerError> =>
  serve(channel, backendOf).pipe(
    Effect.catchDefect((defect) => Effect.fail(WorkerError.failed(messageOf(defect)))),
    Effect.tapError((error) =>
      isLost(error) ? Effect.void : channel.send(kinds.failure, [utf8.encode(error.message)]),
    ),
    Effect.scoped,
  )

const serve = Effect.fnUntraced(function* (
  channel: Channel,
  backendOf: BackendOf,
): Effect.fn.Return<never, WorkerError, Scope.Scope> {
  const failed = Effect.mapError(({ message }: { readonly message: string }) => WorkerError.failed(message))
  const first = yield* channel.receive
  const deviceLength = first.bytes[0]
  const device = utf8.decode(first.bytes.subarray(1, 1 + deviceLength))
  const spec = decodeSpec(first.bytes.slice(1 + deviceLength))
  const backend = yield* failed(backendOf(device))
  const program = yield* failed(backend.compile(spec))
  if (program.device !== device)
    return yield* WorkerError.failed(`expected to compute on ${device}, found ${program.device} here`)
  yield* channel.send(kinds.ready)

  const rows = rowFeeds(spec, program)
  const others = otherFeeds(spec, program)
  const states = Object.entries(spec.state).map(([name, { tensor }]) => {
    return [name, new Float32Array(tensor.shape.reduce((size, length) => size * length, 1))] as const
  })
  const { batch } = spec.minibatches
  const results = resultCount(program)
  const sharedBytes = [...others, ...states.map(([, data]) => data)].reduce((sum, data) => sum + data.byteLength, 0)

  for (;;) {
    const { kind, bytes } = yield* channel.receive
    if (kind === kinds.rows) {
      fill(bytes, rows)
      continue
    }
    const count = (bytes.length - sharedBytes) / (batch * Int32Array.BYTES_PER_ELEMENT)
    const slices = Array.from({ length: count }, () => new Int32Array(batch))
    fill(bytes, [...states.map(([, data]) => data), ...others, ...slices])
    for (const [name, data] of states) yield* failed(program.write(name, data))
    const computed: Array<Uint8Array> = []
    for (const slice of slices) {
      const into = new Float32Array(results)
      yield* failed(computeHere(program, slice, into))
      computed.push(bytesOf(into))
    }
    yield* channel.send(kinds.results, computed)
  }
})
