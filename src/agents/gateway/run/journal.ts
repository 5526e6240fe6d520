/**
 * Writes and reads the journal of a gateway, `sessions.jsonl`: a line for each session that begins, for each call that ends, for
 * each reward, and for each session that ends. It is written at once, so that what was recorded survives the end of the
 * process. A resumed gateway writes the rollouts again from it.
 */
import { Effect, Schema, Stream } from "effect"
import { jsonLength } from "../../../base/text/jsonFacts.ts"
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

/** The beginning that the prompt of a call has in common with an earlier call of its session. */
const PromptStart = Schema.Struct({
  /** The index of the earlier call. */
  call: Schema.Int.check(notNegative),
  /** The number of messages in common. */
  messages: Schema.Int.check(Schema.isGreaterThan(0)),
  /** Whether the call has the same tools. */
  tools: Schema.Boolean,
})
export type PromptStart = typeof PromptStart.Type

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

const others = [
  SessionBegun,
  Schema.TaggedStruct("Rewarded", { id: SessionId, reward: Reward }),
  /** A request for embeddings, of which only the spending is recorded. */
  Schema.TaggedStruct("Embedded", { id: SessionId, spent: Spending, seconds: Schema.Finite.check(notNegative) }),
  Schema.TaggedStruct("Ended", {
    id: SessionId,
    how: Schema.Literals(["agent", "program", "idle"]),
    seconds: Schema.Finite.check(notNegative),
  }),
] as const

export type JournalEntry = (typeof others)[number]["Type"] | typeof CallEnded.Type

/** A line of the file. The prompts of a session mostly grow, so a call is written without the `start` of its prompt. */
export const JournalLine = Schema.Union([
  ...others,
  Schema.Struct({ ...CallEnded.fields, start: Schema.optionalKey(PromptStart) }),
])
type JournalLine = typeof JournalLine.Type

const decodeLine = valueOf(JournalLine)

/** The largest number of characters of a session's calls, each with its whole prompt. A rollout has far fewer. */
const mostCharacters = 2 ** 30

/** An open session, from whose calls, by their indices, later lines take the beginnings of their prompts. */
interface EarlierSession {
  readonly calls: Map<number, ModelCall>
  characters: number
}

const charactersOf = ({ messages, completion }: ModelCall): number =>
  messages.reduce((sum, message) => sum + jsonLength(message), jsonLength(completion))

/** Returns the entry of a line, with the whole prompt, or the reason why there is none. */
const entryOf = (line: JournalLine, earlier: Map<string, EarlierSession>): JournalEntry | string => {
  if (line._tag === "Ended") earlier.delete(line.id)
  if (line._tag !== "Call") return line
  const session = earlier.get(line.id) ?? { calls: new Map<number, ModelCall>(), characters: 0 }
  earlier.set(line.id, session)
  const { start, ...entry } = line
  const before = start === undefined ? undefined : session.calls.get(start.call)
  if (start !== undefined && (before === undefined || before.messages.length < start.messages))
    return `the call with the beginning of its prompt is not in the file; to resume, remove this call and the later ones of the session ${JSON.stringify(line.id)}, too`
  const call = entry.call === null || start === undefined ? entry.call : continued(entry.call, start, before)
  if (call === null) return { ...entry, call }
  session.calls.set(entry.index, call)
  session.characters += charactersOf(call)
  return session.characters > mostCharacters
    ? `expected at most ${mostCharacters} characters in all calls of the session ${JSON.stringify(line.id)}, each with its whole prompt`
    : { ...entry, call }
}

/** Returns a call with the beginning of its prompt. */
const continued = (call: ModelCall, { messages, tools }: PromptStart, before: ModelCall | undefined): ModelCall => ({
  ...call,
  messages: [...(before?.messages.slice(0, messages) ?? []), ...call.messages],
  ...(tools && before?.tools !== undefined ? { tools: before.tools } : {}),
})

const readEntry = Effect.fnUntraced(function* (path: string, line: JsonLine, earlier: Map<string, EarlierSession>) {
  const refused = (problem: string): FormatError =>
    new FormatError({ path, line: line.number, message: `${path}:${line.number}: ${problem}` })
  const bytes = unsealed(line.bytes)
  if (bytes === undefined)
    return yield* refused("the line was changed after it was written; remove it to resume without it")
  const entry = entryOf(yield* decodeLine(path, { ...line, bytes }), earlier)
  return typeof entry === "string" ? yield* refused(entry) : entry
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
  const earlier = new Map<string, EarlierSession>()
  yield* Stream.runForEach(lines(run.stream(gatewayJournal)), (line) => {
    if (!line.whole) return Effect.void
    end = line.end
    return Effect.flatMap(readEntry(path, line, earlier), use)
  })
  if (end < (yield* run.size(gatewayJournal))) yield* run.truncate(gatewayJournal, end)
})

/** Encodes an entry as a line with its line feed. A call is written without the `start` of its prompt. */
export const lineOf = (entry: JournalEntry, start?: PromptStart): string => {
  if (entry._tag !== "Call" || entry.call === null || start === undefined) return `${sealed(entry)}\n`
  const { tools, ...call } = { ...entry.call, messages: entry.call.messages.slice(start.messages) }
  const line: JournalLine = { ...entry, call: start.tools || tools === undefined ? call : { ...call, tools }, start }
  return `${sealed(line)}\n`
}
