/** Watches a cluster without being part of it, for the page of `effect ui --cluster`. */
import { Cause, type Context, Effect, Exit, Layer, Scope, Semaphore } from "effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { ClusterError } from "./ClusterError.ts"
import { databaseLayer } from "./database-node.ts"
import { shownUrl } from "./databaseUrl.ts"
import { reasonOf } from "./reason.ts"
import { type Observed, type Overview, overview } from "./overview.ts"

/** The database is asked at most so often, in milliseconds, however many pages are open. */
const freshFor = 900
/** The pause after a look, as a multiple of the time that it took: it reads the whole queue, which may be long. */
const pauseAfter = 10
/** The time after which a database that doesn't answer counts as gone. */
const patience = "6 seconds"

/**
 * Opens a cluster to look at, and returns the Effect that looks: it never fails, and says if the database doesn't answer. If
 * the database doesn't answer at first, `observe` succeeds nevertheless; it fails if the address, the user or the password
 * is wrong.
 *
 * @example
 * ```ts
 * const look = yield* observe("postgres://rl@db.example/rl")
 * const { overview, problem } = yield* look
 * ```
 */
export const observe = Effect.fnUntraced(function* (
  url: string,
): Effect.fn.Return<Effect.Effect<Observed>, ClusterError, Scope.Scope> {
  const layer = yield* databaseLayer(url, 1)
  const database = shownUrl(url)
  const scope = yield* Effect.scope
  let connected: Context.Context<SqlClient.SqlClient> | undefined
  const connection = Effect.gen(function* () {
    if (connected !== undefined) return connected
    const attempt = yield* Scope.fork(scope)
    const context = yield* Layer.buildWithScope(layer, attempt).pipe(
      Effect.onExit((exit) => (Exit.isFailure(exit) ? Scope.close(attempt, exit) : Effect.void)),
    )
    return (connected = context)
  })
  const read = Effect.flatMap(connection, (context) => Effect.provideContext(overview, context))

  let last: { readonly overview: Overview; readonly at: number } | undefined
  const looked = Effect.timeout(read, patience).pipe(
    Effect.map((overview): string | null => {
      last = { overview, at: performance.now() }
      return null
    }),
  )
  // A wrong password is the user's mistake; everything else may pass.
  yield* Effect.catchIf(
    looked,
    (error) => !("reason" in error && error.reason._tag !== "ConnectionError"),
    () => Effect.void,
  ).pipe(Effect.mapError((error) => new ClusterError({ message: `${database}: ${reasonOf(error)}` })))
  const turn = Semaphore.makeUnsafe(1)
  let problem: string | null = null
  let freshUntil = 0
  const look = Effect.gen(function* () {
    const begun = performance.now()
    if (begun < freshUntil) return
    problem = yield* Effect.catchCause(looked, (cause) => Effect.succeed(reasonOf(Cause.squash(cause))))
    const now = performance.now()
    freshUntil = now + Math.max(freshFor, problem === null ? pauseAfter * (now - begun) : 0)
  })
  return Effect.map(turn.withPermit(look), (): Observed => ({
    database,
    problem,
    overview: last?.overview ?? null,
    age: last === undefined ? 0 : (performance.now() - last.at) / 1000,
  }))
})
