/** Records the jobs that failed in a table of the cluster's database, for people: no program depends on it. */
import { Effect } from "effect"
import * as SqlClient from "effect/sql/SqlClient"

/** The table of failures. */
export const failures = "effect_rl_failures"

/** The number of characters after which a failure's message is cut. */
const longestMessage = 1000

/** Creates the table of failures. */
export const prepareFailures = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE IF NOT EXISTS ${sql(failures)} (
    sequence BIGSERIAL PRIMARY KEY, key TEXT NOT NULL, message TEXT NOT NULL, worker TEXT NOT NULL,
    failed_at TIMESTAMPTZ NOT NULL DEFAULT NOW())`
})

/** Records that a job failed, for the overview. */
export const recordFailure = Effect.fnUntraced(function* (failure: {
  readonly key: string
  readonly message: string
  readonly worker: string
}) {
  const sql = yield* SqlClient.SqlClient
  const { key, message, worker } = failure
  yield* sql`INSERT INTO ${sql(failures)} (key, message, worker)
    VALUES (${key}, ${message.slice(0, longestMessage)}, ${worker})`
})
