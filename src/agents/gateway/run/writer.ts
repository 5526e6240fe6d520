/**
 * Writes what a gateway records: the journal, and the rollouts, scores and logs of sessions that have ended. One fiber writes all
 * entries that have arrived meanwhile at once, because each write to a run's folder first checks that the folder is still ours.
 */
import { Deferred, Effect, Queue } from "effect"
import { CurrentRun } from "../../../run/CurrentRun.ts"
import * as Layout from "../../../run/Layout.ts"
import type { RunEvent } from "../../../run/record/RunEvent.ts"
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
 * If a file cannot be written, `broken` fails.
 */
export const startWriting = Effect.fnUntraced(function* (
  records: SessionRecords,
  broken: Deferred.Deferred<never, RunStoreError>,
  onRestored: (entry: Journal.JournalEntry) => void,
) {
  const { files, recording } = yield* CurrentRun
  const addRollouts = yield* files.appending(Layout.trainRollouts)
  const finish = Effect.fnUntraced(function* (sessions: ReadonlyArray<EndedSession>) {
    if (sessions.length === 0) return
    // Other requests are answered between two sessions, because a session may be large.
    const made = Effect.fnUntraced(function* ({ session }: EndedSession) {
      yield* Effect.yieldNow
      return rolloutOf(session)
    })
    const rollouts = yield* Effect.forEach(sessions, made)
    yield* addRollouts(rollouts.map(line).join(""))
    yield* recording.emit(sessions.flatMap((ended, at) => eventsOf(ended, rollouts[at])))
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

  const append = yield* files.appending(Layout.gatewayJournal)
  const waiting = yield* Queue.unbounded<WaitingEntry>()
  const writeNext = Effect.gen(function* () {
    const first = yield* Queue.takeAll(waiting)
    yield* Effect.sleep(batchTime)
    const entries = [...first, ...(yield* Queue.clear(waiting))]
    yield* append(entries.map(({ text }) => text).join("")).pipe(
      Effect.andThen(Effect.suspend(() => finish(entries.flatMap(({ ended }) => ended ?? [])))),
      Effect.catch((error) => Deferred.fail(broken, error)),
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
