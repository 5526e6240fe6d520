/**
 * Keeps the list of a cluster's processes, in a table of its database: the workers, and the clients that wait for them. Each
 * process renews its row every second and writes what it is doing; a process whose row is old counts as gone. All processes
 * must have the same version of the code, because otherwise the results of one run would come from different programs.
 */
import { Effect, Schema } from "effect"
import { WorkerError } from "../workers/WorkerError.ts"
import { jsonText } from "../../base/text/jsonText.ts"
import * as SqlClient from "effect/sql/SqlClient"
import { prepareFailures } from "./failures.ts"

/** A process of a cluster. */
export const Member = Schema.Struct({
  id: Schema.String,
  role: Schema.Literals(["worker", "client"]),
  /** The name of the process for people: `process 4711 on host`. */
  name: Schema.String,
  version: Schema.String,
  /** The host and port at which the other workers reach it; empty for a client. */
  address: Schema.String,
  /** The number of jobs that it does at once; 0 for a client. */
  slots: Schema.Int,
})
export type Member = typeof Member.Type

/** A job, by its key, that a worker is doing or a client waits for, and the number of seconds since it began. */
const JobUnderWay = Schema.Struct({ key: Schema.String, seconds: Schema.Finite })
type JobUnderWay = typeof JobUnderWay.Type

/** A process of a cluster, with what it was doing when its row was last renewed. */
export const MemberState = Schema.Struct({
  ...Member.fields,
  /** The jobs that the process is doing, or waits for; the oldest first. */
  jobs: jsonText(Schema.Array(JobUnderWay)),
  /** The number of all jobs that the process is doing, or waits for. */
  busy: Schema.Int,
  /** The number of jobs that the process has done since it joined. */
  finished: Schema.Int,
  /** The seconds since the process joined. */
  joined: Schema.Finite,
  /** The seconds since the row was renewed. */
  age: Schema.Finite,
})
export type MemberState = typeof MemberState.Type

/** The jobs that a process works on now, with how many it has finished. */
export type Doing = Pick<MemberState, "jobs" | "busy" | "finished">

/** The largest number of jobs in a row. */
const mostListed = 100

/** Describes the jobs in a map from their keys to the time, by `performance.now`, at which each began. */
export const doing = (jobs: ReadonlyMap<string, number>, finished: number): Doing => ({
  jobs: [...jobs].slice(0, mostListed).map(([key, since]) => ({ key, seconds: (performance.now() - since) / 1000 })),
  busy: jobs.size,
  finished,
})

/** The number of seconds without a renewal after which a process counts as gone. */
export const goneSeconds = 15

/** The table of members. */
export const members = "effect_rl_members"

/**
 * Adds this process to the cluster. Fails if a living process of the cluster has another version of the code. The lock on the
 * table is held until the transaction ends, so that two processes that join at once see each other.
 */
export const join = Effect.fnUntraced(function* ({ id, role, name, address, version, slots }: Member) {
  const sql = yield* SqlClient.SqlClient
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`SELECT pg_advisory_xact_lock(hashtext(${members}))`
      yield* sql`CREATE TABLE IF NOT EXISTS ${sql(members)} (
        id TEXT PRIMARY KEY, role TEXT NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL, slots INT NOT NULL,
        jobs TEXT NOT NULL, finished INT NOT NULL, seen_at TIMESTAMPTZ NOT NULL)`
      yield* sql`ALTER TABLE ${sql(members)} ADD COLUMN IF NOT EXISTS address TEXT NOT NULL DEFAULT '',
        ADD COLUMN IF NOT EXISTS busy INT NOT NULL DEFAULT 0,
        ADD COLUMN IF NOT EXISTS joined_at TIMESTAMPTZ NOT NULL DEFAULT NOW()`
      yield* prepareFailures
      yield* sql`DELETE FROM ${sql(members)} WHERE seen_at < NOW() - make_interval(secs => ${goneSeconds})`
      const others = yield* sql<{ readonly version: string; readonly name: string }>`
        SELECT version, name FROM ${sql(members)} WHERE version <> ${version} ORDER BY name LIMIT 1`
      if (others.length > 0) {
        const [other] = others
        return yield* WorkerError.failed(
          `this process has version ${version} of the code, and ${other.name} in the cluster has version ${other.version}; install the same version on all machines`,
        )
      }
      yield* sql`INSERT INTO ${sql(members)} (id, role, name, address, version, slots, jobs, finished, seen_at)
        VALUES (${id}, ${role}, ${name}, ${address}, ${version}, ${slots}, '[]', 0, NOW())
        ON CONFLICT (id) DO UPDATE SET seen_at = NOW()`
    }),
  )
})

/** Renews the row of this process. If the process was frozen for long, its row was removed, and the process joins again. */
export const renew = Effect.fnUntraced(function* (member: Member, { jobs, busy, finished }: Doing) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`UPDATE ${sql(members)} SET seen_at = NOW(), jobs = ${JSON.stringify(jobs)}, busy = ${busy},
    finished = ${finished} WHERE id = ${member.id} RETURNING id`
  if (rows.length === 0) yield* join(member)
})

/** Removes this process from the cluster. */
export const leave = Effect.fnUntraced(function* ({ id }: Member) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DELETE FROM ${sql(members)} WHERE id = ${id}`
})

/** Tells whether the database has a table of this name. */
export const hasTable = Effect.fnUntraced(function* (name: string) {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* sql<{ readonly name: string | null }>`SELECT to_regclass(${name})::text AS name`
  return tables[0]?.name !== null
})

const decodeStates = Schema.decodeUnknownEffect(Schema.Array(MemberState))

/** Lists the living processes of the cluster: workers first. */
export const list = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // The table is made when the first process joins.
  if (!(yield* hasTable(members))) return []
  const rows = yield* sql`
    SELECT id, role, name, address, version, slots, jobs, busy, finished,
      EXTRACT(EPOCH FROM NOW() - joined_at)::float8 AS joined, EXTRACT(EPOCH FROM NOW() - seen_at)::float8 AS age
    FROM ${sql(members)} WHERE seen_at >= NOW() - make_interval(secs => ${goneSeconds}) ORDER BY role DESC, name`
  return yield* decodeStates(rows)
})
