/**
 * Describes a cluster for people, from its database: its processes, its queue by kind of job, the jobs that were taken more
 * than once, and the last failures. `effect worker --list` prints it, and the page of `effect ui --cluster` shows it.
 * Reading it changes nothing.
 */
import { Effect, Schema } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { failures } from "./failures.ts"
import { hasTable, list, MemberState } from "./members.ts"
import { leaseSeconds, queueTable } from "./work.ts"

/** The jobs of one kind, by their state. A job that failed and was tried again by a later client counts twice. */
const KindCounts = Schema.Struct({
  kind: Schema.String,
  waiting: Schema.Int,
  underWay: Schema.Int,
  done: Schema.Int,
  failed: Schema.Int,
})

/** A job that workers took more than once, because its first worker was lost. */
const Repeated = Schema.Struct({
  key: Schema.String,
  times: Schema.Int,
  state: Schema.Literals(["waiting", "underWay", "ended"]),
})

/** A job that failed, with its reason and the name of the worker. */
const Failure = Schema.Struct({
  key: Schema.String,
  message: Schema.String,
  worker: Schema.String,
  /** The seconds since the job failed. */
  age: Schema.Finite,
})

export const Overview = Schema.Struct({
  /** The living processes: workers first. */
  members: Schema.Array(MemberState),
  kinds: Schema.Array(KindCounts),
  /** The jobs that were taken most often. */
  repeated: Schema.Array(Repeated),
  /** The last failures, the newest first. */
  failures: Schema.Array(Failure),
})
export type Overview = typeof Overview.Type

/**
 * The state of a cluster as an observer sees it. While the database doesn't answer, `overview` is the last one that was read.
 */
export interface Observed {
  /** The address of the database, without its password. */
  readonly database: string
  /** Why the database does not answer; null if it answers. */
  readonly problem: string | null
  /** The last overview; null if there was none yet. */
  readonly overview: Overview | null
  /** The seconds since the overview was read. */
  readonly age: number
}

/** The largest number of repeated jobs, and of failures, that an overview lists. */
const mostListed = 20

const decodeKinds = Schema.decodeUnknownEffect(Schema.Array(KindCounts))
const decodeRepeated = Schema.decodeUnknownEffect(Schema.Array(Repeated))
const decodeFailures = Schema.decodeUnknownEffect(Schema.Array(Failure))

/** Reads the overview from the database. */
export const overview = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [hasQueue, hasFailures] = yield* Effect.all([hasTable(queueTable), hasTable(failures)])
  const members = yield* list
  const failed = hasFailures
    ? yield* sql<{ readonly kind: string; readonly failed: number }>`
        SELECT split_part(key, ' ', 1) AS kind, COUNT(*)::int AS failed FROM ${sql(failures)} GROUP BY 1`
    : []
  // The queue's elements begin with the kind of the job. Only this beginning is read, because the payload may be large.
  const isHeld = sql`acquired_at >= NOW() - make_interval(secs => ${leaseSeconds})`
  const counts = hasQueue
    ? yield* sql<{
        readonly kind: string
        readonly waiting: number
        readonly underWay: number
        readonly ended: number
      }>`
        SELECT substring(left(element, 200) from '^{"job":"([^"]*)"') AS kind,
          COUNT(*) FILTER (WHERE state = 'pending' AND (${isHeld}) IS NOT TRUE)::int AS waiting,
          COUNT(*) FILTER (WHERE state = 'pending' AND ${isHeld})::int AS "underWay",
          COUNT(*) FILTER (WHERE state <> 'pending')::int AS ended
        FROM ${sql(queueTable)} GROUP BY 1 ORDER BY 1`
    : []
  const failedBy = new Map(failed.map((one) => [one.kind, one.failed]))
  const kinds = counts.map(({ kind, waiting, underWay, ended }) => {
    const failedOfKind = Math.min(ended, failedBy.get(kind) ?? 0)
    return { kind, waiting, underWay, done: ended - failedOfKind, failed: failedOfKind }
  })
  const repeated = hasQueue
    ? yield* sql`
        SELECT element::json->>'key' AS key, attempts AS times,
          CASE WHEN state <> 'pending' THEN 'ended' WHEN ${isHeld} THEN 'underWay' ELSE 'waiting' END AS state
        FROM ${sql(queueTable)} WHERE attempts > 1 ORDER BY attempts DESC, sequence DESC LIMIT ${mostListed}`
    : []
  const lastFailures = hasFailures
    ? yield* sql`
        SELECT key, message, worker, EXTRACT(EPOCH FROM NOW() - failed_at)::float8 AS age
        FROM ${sql(failures)} ORDER BY sequence DESC LIMIT ${mostListed}`
    : []
  return {
    members,
    kinds: yield* decodeKinds(kinds),
    repeated: yield* decodeRepeated(repeated),
    failures: yield* decodeFailures(lastFailures),
  } satisfies Overview
})
