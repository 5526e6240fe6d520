/**
 * Writes and reads the journal of a gateway, `sessions.jsonl`: a line for each session that begins, for each call that ends, for
 * each reward, and for each session that ends. It is written at once, so that what was recorded survives the end of the
 * process. A resumed gateway writes the rollouts again from it.
 */
import { Effect, Schema, Stream } from "effect"
import { FormatError } from "../../../base/formats/FormatError.ts"
import { type JsonLine, lines, valueOf } from "../../../base/formats/jsonLines.ts"
import { sealed, unsealed } from "../../../base/formats/sealedLine.ts"
import { gatewayJournal } from "../../../run/Layout.ts"
import type { RunFiles } from "../../../run/store/RunFiles.ts"
import { ModelCall } from "../../agent/Agent.ts"
import { isReward } from "../../task/Feedback.ts"
import { Spending } from "../../lm/middleware/budgeted.ts"

/** The id of a session: a text without control characters that may be the name of a file. */
export const SessionId = Schema.String.check(Schema.isPattern(/^[^\p{C}/\\]{1,128}$/u))

const notNegative = Schema.isGreaterThanOrEqualTo(0)

const Reward = Schema.Finite.check(Schema.makeFilter(isReward, { expected: "a reward" }))

/** Facts about a session that are known when it begins. */
export const SessionBegun = Schema.TaggedStruct("Begun", {
  id: SessionId,
  agent: Schema.String,
  groupId: Schema.NullOr(Schema.String),
  tags: Schema.Record(Schema.String, Schema.String),
  samplingSeed: Schema.Int,
})
export type SessionBegun = typeof SessionBegun.Type

const CallEnded = Schema.TaggedStruct("Call", {
  id: SessionId,
  /** The number of calls of the session that began before this one. */
  index: Schema.Int.check(notNegative),
  /** The call; null if it failed. */
  call: Schema.NullOr(ModelCall),
  /** Why the call failed; null if it did not. */
  problem: Schema.NullOr(Schema.String),
  latencyMillis: Schema.Finite.check(notNegative),
  /** What all calls have spent when this one had ended. */
  spent: Spending,
  /** The seconds that the run had taken when the call had ended. */
  seconds: Schema.Finite.check(notNegative),
})

export const JournalEntry = Schema.Union([
  SessionBegun,
  CallEnded,
  Schema.TaggedStruct("Rewarded", { id: SessionId, reward: Reward }),
  /** A request for embeddings, of which only the spending is recorded. */
  Schema.TaggedStruct("Embedded", { id: SessionId, spent: Spending, seconds: Schema.Finite.check(notNegative) }),
  Schema.TaggedStruct("Ended", {
    id: SessionId,
    how: Schema.Literals(["agent", "program", "idle"]),
    seconds: Schema.Finite.check(notNegative),
  }),
])
export type JournalEntry = typeof JournalEntry.Type

const entryOf = valueOf(JournalEntry)

const readEntry = Effect.fnUntraced(function* (path: string, line: JsonLine) {
  const bytes = unsealed(line.bytes)
  if (bytes !== undefined) return yield* entryOf(path, { ...line, bytes })
  const message = `${path}:${line.number}: the line was changed after it was written; remove it to resume without it`
  return yield* new FormatError({ path, line: line.number, message })
})

/**
 * Reads the journal of an earlier process, and passes each entry to `use`. Removes an incomplete last line from the file. Does
 * nothing if there is no journal.
 */
export const readEarlier = Effect.fnUntraced(function* <E, R>(
  run: RunFiles,
  use: (entry: JournalEntry) => Effect.Effect<void, E, R>,
) {
  if (!(yield* run.exists(gatewayJournal))) return
  const path = `${run.directory}/${gatewayJournal}`
  let end = 0
  yield* Stream.runForEach(lines(run.stream(gatewayJournal)), (line) => {
    if (!line.whole) return Effect.void
    end = line.end
    return Effect.flatMap(readEntry(path, line), use)
  })
  if (end < (yield* run.size(gatewayJournal))) yield* run.truncate(gatewayJournal, end)
})

/** Encodes an entry as a line with its line feed. */
export const lineOf = (entry: JournalEntry): string => `${sealed(entry)}\n`
