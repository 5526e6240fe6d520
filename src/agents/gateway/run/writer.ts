/**
 * Writes what a gateway records: the journal, and the rollouts, scores and logs of sessions that have ended. One fiber writes all
 * entries that have arrived meanwhile at once, because each write to a run's folder first checks that the folder is still ours.
 */
import { Deferred, Effect, Queue } from "effect"
import { CurrentRun } from "../../../run/CurrentRun.ts"
import * as Layout from "../../../run/Layout.ts"
import type { RunEvent } from "../../../run/record/RunEvent.ts"
import type { Append } from "../../../run/store/FileTree.ts"
import type { RunStoreError } from "../../../run/store/RunStoreError.ts"
import type { Rollout } from "../../episode/Rollout.ts"
import { line } from "../../episode/rollouts/Rollouts.ts"
import * as Journal from "./journal.ts"
import { type RecordedSession, rolloutOf } from "./rollout.ts"
import type { SessionRecords } from "./SessionRecords.ts"

/** The number of entries that may wait; then calls wait until some are written. */
const mostWaiting = 1024

/** How long the first entry of a batch waits for others, so that a busy gateway does not check the folder for each call. */
const batchTime = "25 millis"

/** The number of characters that are written at once. All that waits may be longer than a string can be. */
const mostAtOnce = 2 ** 22

/** Makes the functions that collect texts and append them together, in pieces. A longer text is a piece of its own. */
const inPieces = (append: Append) => {
  let text = ""
  const flush = Effect.suspend(() => {
    const collected = text
    text = ""
    return collected === "" ? Effect.void : append(collected)
  })
  const add = Effect.fnUntraced(function* (next: string) {
    if (text.length + next.length > mostAtOnce) yield* flush
    text += next
  })
  return { add, flush }
}

/** An entry that waits to be written. */
interface WaitingEntry {
  readonly text: string
  /** The session that the entry ends. */
  readonly ended: EndedSession | undefined
  readonly written: Deferred.Deferred<void>
}

interface EndedSession {
  readonly session: RecordedSession
  /** The number of the session among those that have ended, from 1. */
  readonly number: number
}

/** Makes the events of a session for logs and scores. Only a session with a reward has a score. */
const eventsOf = ({ session, number }: EndedSession, rollout: Rollout): ReadonlyArray<RunEvent> => {
  const { ending, totalReward: score } = rollout
  const scored: RunEvent = {
    _tag: "StepScored",
    mode: "train",
    seenEpisodes: number - 1,
    episode: number,
    stepIndex: 1,
    score,
    episodeScore: score,
    envId: session.id,
    envType: "gateway",
  }
  const ended: RunEvent = {
    _tag: "EpisodeEnded",
    step: number,
    episode: number - 1,
    env: 0,
    return: score,
    length: session.calls.length,
    terminated: ending.terminated,
    truncated: ending.truncated,
    truncationReason: ending.truncated ? "env" : null,
  }
  return session.reward === null ? [ended] : [scored, ended]
}

/**
 * Restores the records from the journal of an earlier process, and starts to write. Returns the function that records an entry.
 * It waits until the entry is written, except for calls, whose answers are not delayed; they are written within milliseconds.
 * If a file cannot be written, or if a rollout cannot be made, `broken` fails.
 */
export const startWriting = Effect.fnUntraced(function* (
  records: SessionRecords,
  broken: Deferred.Deferred<never, RunStoreError>,
  onRestored: (entry: Journal.JournalEntry) => void,
) {
  const { files, recording } = yield* CurrentRun
  const rollouts = inPieces(yield* files.appending(Layout.trainRollouts))
  const finish = Effect.fnUntraced(function* (sessions: ReadonlyArray<EndedSession>) {
    if (sessions.length === 0) return
    const events: Array<RunEvent> = []
    for (const ended of sessions) {
      // Other requests are answered between two sessions, because a session may be large.
      yield* Effect.yieldNow
      const rollout = rolloutOf(ended.session)
      yield* rollouts.add(line(rollout))
      for (const event of eventsOf(ended, rollout)) events.push(event)
    }
    yield* rollouts.flush
    yield* recording.emit(events)
  })
  const add = (entry: Journal.JournalEntry) => {
    const { ended: session, start } = records.add(entry)
    return { start, ended: session === undefined ? undefined : { session, number: records.totals.sessions } }
  }

  yield* Journal.readEarlier(files, (entry) =>
    Effect.suspend(() => {
      onRestored(entry)
      const { ended } = add(entry)
      return ended === undefined ? Effect.void : finish([ended])
    }),
  )

  const journal = inPieces(yield* files.appending(Layout.gatewayJournal))
  const waiting = yield* Queue.unbounded<WaitingEntry>()
  const writeNext = Effect.gen(function* () {
    const first = yield* Queue.takeAll(waiting)
    yield* Effect.sleep(batchTime)
    const entries = [...first, ...(yield* Queue.clear(waiting))]
    yield* Effect.forEach(entries, ({ text }) => journal.add(text), { discard: true }).pipe(
      Effect.andThen(journal.flush),
      Effect.andThen(Effect.suspend(() => finish(entries.flatMap(({ ended }) => ended ?? [])))),
      // A defect, too, must end the gateway: otherwise, all that waits to be written would wait for ever.
      Effect.catchCause((cause) => Deferred.failCause(broken, cause)),
      Effect.uninterruptible,
    )
    for (const { written } of entries) yield* Deferred.succeed(written, undefined)
  })
  yield* Effect.forkScoped(Effect.forever(writeNext))

  return Effect.fnUntraced(function* (entry: Journal.JournalEntry) {
    const written = Deferred.makeUnsafe<void>()
    // The entry is added first, so that the entries of a session keep their order.
    const { ended, start } = add(entry)
    Queue.offerUnsafe(waiting, { text: Journal.lineOf(entry, start), ended, written })
    const mayAnswer = entry._tag !== "Rewarded" && entry._tag !== "Ended"
    if (!mayAnswer || Queue.sizeUnsafe(waiting) > mostWaiting) yield* Deferred.await(written)
  }, Effect.uninterruptible)
})
