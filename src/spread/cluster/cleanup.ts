/**
 * Removes rows from the database of a cluster that nobody needs any longer:
 *
 * - `dropPayloads` removes the payload of a job, such as the weights of a policy, when the client has the answer.
 * - `removeAnswers` removes the answers of a client whose work has ended well. Until then, `--resume` may ask for them again.
 * - `prune` removes the old jobs of clients that failed and were never resumed.
 *
 * A worker that was frozen may send its answer at any later time. If the database still has an earlier answer of the job, the
 * late one is ignored. Otherwise the late answer stays until `prune` removes it. A client that asks for the same job again
 * may get it, because all answers of a job are equal.
 */
import { Effect } from "effect"
import * as Snowflake from "effect/cluster/Snowflake"
import * as SqlClient from "effect/sql/SqlClient"
import { failures } from "./failures.ts"
import { goneSeconds, hasTable, members } from "./members.ts"
import { answerName, JobWorkflow, queueName, queueTable } from "./work.ts"

/** A job in the form in which clients send it to the workers. */
export type SentJob = (typeof JobWorkflow)["payloadSchema"]["Type"]

/** The tables of Effect Cluster: a request to a workflow is a message, and each message has a reply when it was processed. */
const messages = "cluster_messages"
const replies = "cluster_replies"

const entityType = `Workflow/${JobWorkflow._tag}`
/** The ids of the messages of a job: the request to do it, and its answer. */
const requestOf = (id: string): string => `${entityType}/${id}/run/`
const answerOf = (id: string): string => `${entityType}/${id}/deferred/${answerName}`

/** Returns the ids of all rounds of a job. */
const idsOf = (sent: SentJob): Effect.Effect<ReadonlyArray<string>> =>
  Effect.forEach(Array.from({ length: sent.round + 1 }), (_, round) => JobWorkflow.executionId({ ...sent, round }))

/** Removes the payload of a job that is answered, and of its earlier rounds. The job itself stays in the overview. */
export const dropPayloads = Effect.fnUntraced(function* (sent: SentJob) {
  const sql = yield* SqlClient.SqlClient
  const { job, version, key } = sent
  for (const [round, id] of (yield* idsOf(sent)).entries()) {
    // The overview reads the kind of the job from the beginning of this text.
    const without = JSON.stringify({ job, version, key, round, payload: null })
    // Only a worker that already has the payload in its memory may still do the job (it lost the job, or does an earlier
    // round). No other worker begins the job.
    yield* sql`WITH queued AS (
        UPDATE ${sql(queueTable)} SET element = ${without}, acquired_at = NULL, acquired_by = NULL, updated_at = NOW(),
          state = CASE state WHEN 'pending' THEN 'completed' ELSE state END
        WHERE id = ${id} AND queue_name = ${queueName(version)})
      UPDATE ${sql(messages)} SET payload = ${without} WHERE message_id = ${requestOf(id)}`
  }
})

/** The largest number of jobs in one SQL statement. */
const mostNamed = 500

/**
 * Removes jobs with their answers. Their rows stay in the queue's table, for the overview, but under new ids: the queue
 * ignores a job whose id it already has, so another client that asks for the same job would wait for ever.
 */
export const removeAnswers = Effect.fnUntraced(function* (jobs: ReadonlyArray<SentJob>) {
  const sql = yield* SqlClient.SqlClient
  const ids = (yield* Effect.forEach(jobs, idsOf)).flat()
  for (let from = 0; from < ids.length; from += mostNamed) {
    const named = ids.slice(from, from + mostNamed)
    const sent = named.flatMap((id) => [requestOf(id), answerOf(id)])
    yield* sql`WITH renamed AS (
        UPDATE ${sql(queueTable)} SET id = id || ' ' || sequence WHERE ${sql.in("id", named)}),
      removed AS (DELETE FROM ${sql(messages)} WHERE ${sql.in("message_id", sent)} RETURNING id)
      DELETE FROM ${sql(replies)} WHERE request_id IN (SELECT id FROM removed)`
  }
})

/** Tells whether the database has no request to do the job with this id. */
export const isRemoved = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`SELECT 1 FROM ${sql(messages)} WHERE message_id = ${requestOf(id)}`
  return rows.length === 0
})

/** The number of days after which workers remove old jobs. */
export const keptDays = 30

/**
 * Removes jobs, their answers, and failures that have not changed for `days` days. An unanswered job stays while the cluster
 * has a process of its version, which may do the job or wait for it. Returns the number of removed jobs.
 */
export const prune = Effect.fnUntraced(function* ({
  days,
  version,
}: {
  readonly days: number
  /** The version of the code of this process. */
  readonly version: string
}) {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* Effect.all([messages, queueTable, failures, members].map(hasTable))
  if (!tables.every((isThere) => isThere)) return 0
  const age = days * 86_400
  const old = sql`NOW() - make_interval(secs => ${age})`
  // The id of a message begins with the time at which it was sent, in milliseconds.
  const oldId = sql`((EXTRACT(EPOCH FROM ${old}) * 1000)::bigint - ${Snowflake.constEpochMillis}::bigint) << 22`
  const living = sql`SELECT version FROM ${sql(members)} WHERE seen_at > NOW() - make_interval(secs => ${goneSeconds})`
  // A payload begins with the kind and the version of its job; the rest may be large.
  const versionIn = sql`substring(left(m.payload, 400) from '"version":"([^"]*)"')`
  // A reply begins with its kind; the answer in it may be large.
  const isSuspended = sql`left(r.payload, 100) LIKE ${'{"_tag":"Success","value":{"_tag":"Suspended"%'}`
  const [{ count }] = yield* sql<{ readonly count: number }>`
    WITH silent AS (
      SELECT entity_id FROM ${sql(messages)} WHERE entity_type = ${entityType}
      GROUP BY entity_id HAVING max(id) < ${oldId}),
    waiting AS (
      SELECT m.entity_id FROM ${sql(messages)} m LEFT JOIN ${sql(replies)} r ON r.request_id = m.id AND r.kind = 0
      WHERE m.entity_type = ${entityType} AND m.tag = 'run' AND m.entity_id IN (SELECT entity_id FROM silent)
        AND (r.id IS NULL OR ${isSuspended}) AND (${versionIn} = ${version} OR ${versionIn} IN (${living}))),
    ended AS (SELECT entity_id FROM silent EXCEPT SELECT entity_id FROM waiting),
    removed AS (
      DELETE FROM ${sql(messages)} WHERE entity_type = ${entityType} AND entity_id IN (SELECT entity_id FROM ended)
      RETURNING id),
    answers AS (DELETE FROM ${sql(replies)} WHERE request_id IN (SELECT id FROM removed)),
    queued AS (DELETE FROM ${sql(queueTable)} WHERE id IN (SELECT entity_id FROM ended))
    SELECT COUNT(*)::int AS count FROM ended`
  // After a client has ended and its answers are removed, the rows of its jobs no longer have a message.
  const request = sql`${`${entityType}/`} || q.id || '/run/'`
  yield* sql`DELETE FROM ${sql(queueTable)} q WHERE q.updated_at < ${old}
    AND NOT EXISTS (SELECT FROM ${sql(messages)} m WHERE m.message_id = ${request})`
  yield* sql`DELETE FROM ${sql(failures)} WHERE failed_at < ${old}`
  return count
})
