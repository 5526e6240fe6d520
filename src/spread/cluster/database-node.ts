/** Connects to the database of a cluster, and turns its errors into one line for the user. */
import * as PgClient from "@effect/sql-pg/PgClient"
import { Config, Context, Effect, Layer, Redacted, Schedule } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { WorkerError } from "../workers/WorkerError.ts"
import { parseUrl, shownUrl } from "./databaseUrl.ts"
import { limitedScope } from "./limitedScope.ts"
import { reasonOf } from "./reason.ts"

export interface ClusterOptions {
  /**
   * The address of the database: `postgres://user:password@host:port/database`. If it has no password, the environment
   * variable `PGPASSWORD` is read.
   */
  readonly url: string
  /** Reports one line about the cluster to the user, for example that Postgres does not answer or that there is no worker. */
  readonly say: (line: string) => Effect.Effect<void>
}

/** The environment variable with the password, for an address without one. Other programs of Postgres read it, too. */
const passwordVariable = "PGPASSWORD"
/** The number of seconds for which a starting process waits for a database that doesn't answer. */
const patienceSeconds = 60
/** The time limit for closing the connections. */
const closingTime = "5 seconds"
/** The largest message from the database, in bytes. It is large because the answer of a job holds whole episodes. */
const largestMessage = 256 << 20

/** Returns the Layer of the database with this address, at most `connections` at once. */
export const databaseLayer = Effect.fnUntraced(function* (url: string, connections: number) {
  const { hasPassword } = yield* parseUrl(url)
  const password = yield* Effect.orElseSucceed(Config.Redacted(passwordVariable), () => undefined)
  const options = {
    url: Redacted.make(url),
    ...(hasPassword || password === undefined ? {} : { password }),
    maxMessageSize: largestMessage,
    connectTimeout: "5 seconds",
  } as const
  return PgClient.layer({ ...options, maxConnections: connections, applicationName: "effect-rl" })
})

/**
 * Connects to the database, and waits for it if it doesn't answer. Fails if the database refuses the user or the password.
 */
export const connect = Effect.fnUntraced(function* ({ url, say }: ClusterOptions) {
  const database = yield* databaseLayer(url, 8)
  const shown = shownUrl(url)
  let isSaid = false
  // Connections that are still in use are not waited for: the process is about to end.
  const scope = yield* limitedScope(closingTime, Effect.void)
  const context = yield* Layer.buildWithScope(database, scope).pipe(
    Effect.tap((context) => Context.get(context, SqlClient.SqlClient)`SELECT 1`),
    Effect.tapError((error) => {
      if (error.reason._tag !== "ConnectionError" || isSaid) return Effect.void
      isSaid = true
      return say(`${shown} does not answer (${reasonOf(error)}); trying for ${patienceSeconds} s`)
    }),
    Effect.retry({
      while: ({ reason }) => reason._tag === "ConnectionError",
      schedule: Schedule.spaced("1 second").pipe(Schedule.upTo({ duration: `${patienceSeconds} seconds` })),
    }),
    Effect.mapError((error) => WorkerError.failed(`${shown}: ${reasonOf(error)}`)),
  )
  return { context, shown }
})

/** Tells whether the database answers now. */
export const answers = (context: Context.Context<SqlClient.SqlClient>): Effect.Effect<boolean> =>
  Effect.isSuccess(Effect.timeout(Context.get(context, SqlClient.SqlClient)`SELECT 1`, "5 seconds"))

/** Returns a copy of the database's error as the one line that users see; `undefined` for other errors. */
export const sqlProblem = <A, E, R>(shown: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, WorkerError, R> =>
  Effect.mapError(effect, (error) =>
    error instanceof WorkerError && error.reason === "failed"
      ? error
      : WorkerError.failed(`${shown}: ${reasonOf(error)}`),
  )
