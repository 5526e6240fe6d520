/** Keeps the sessions of clients on disk, with their sampling sessions. */
import { Effect, Schema } from "effect"
import { parsedJson, prettyJson } from "../../base/text/text.ts"
import type { FileTree } from "../../run/store/FileTree.ts"
import type { Session, TinkerState } from "./TinkerState.ts"

const SavedSession = Schema.Struct({
  id: Schema.String,
  owner: Schema.String,
  samplers: Schema.Record(Schema.String, Schema.NullOr(Schema.String)),
})

const folder = "sessions"
const fileOf = (id: string): string => `${folder}/${id}.json`

/** The number of sampling sessions that a session keeps. */
const keptSamplers = 256

/** Saves a session before it is acknowledged. */
export const saveSession = (files: FileTree, { id, owner, samplers }: Session) =>
  Effect.suspend(() => {
    for (const [oldest] of samplers) {
      if (samplers.size <= keptSamplers) break
      samplers.delete(oldest)
    }
    return files.write(fileOf(id), prettyJson({ id, owner, samplers: Object.fromEntries(samplers) }))
  })

const numberOf = (id: string): number => Number(/^session-(\d+)$/.exec(id)?.[1] ?? 0)

/** Reads all sessions, the oldest first, and the number of sessions that were ever created. */
export const readSessions = Effect.fnUntraced(function* (files: FileTree) {
  const sessions: Array<Session> = []
  for (const name of yield* files.list(folder)) {
    const text = yield* files.readText(`${folder}/${name}`)
    const saved = yield* Effect.orElseSucceed(
      Schema.decodeUnknownEffect(SavedSession)(parsedJson(text)),
      () => undefined,
    )
    if (saved !== undefined) sessions.push({ ...saved, samplers: new Map(Object.entries(saved.samplers)) })
  }
  sessions.sort((a, b) => numberOf(a.id) - numberOf(b.id))
  return { sessions, count: sessions.reduce((most, { id }) => Math.max(most, numberOf(id)), 0) }
})

/**
 * Creates a session. Of too many, the oldest one without a model is forgotten, of the API key that has the most of them: so no key
 * takes the sessions of another.
 */
export const createSession = Effect.fnUntraced(function* (state: TinkerState, owner: string) {
  const { sessions, files, limits, records } = state
  const session: Session = { id: `session-${++state.sessionCount}`, owner, samplers: new Map() }
  yield* saveSession(files, session)
  sessions.set(session.id, session)
  const used = new Set([...records.values()].map((record) => record.session))
  const unused = [...sessions.values()].filter(({ id }) => !used.has(id))
  const counts = new Map<string, number>()
  for (const one of unused) counts.set(one.owner, (counts.get(one.owner) ?? 0) + 1)
  const [most] = [...counts].reduce((one, other) => (other[1] > one[1] ? other : one))
  const oldest = unused.find((one) => one.owner === most)?.id
  if (sessions.size > limits.sessions && oldest !== undefined) {
    sessions.delete(oldest)
    yield* files.remove(fileOf(oldest))
  }
  return session
})
