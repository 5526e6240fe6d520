/** Watches a cluster without being part of it, for the page of `effect ui --cluster`. */
import { Cause, type Context, Effect, Exit, Layer, Scope, Semaphore } from "effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { WorkerError } from "../workers/WorkerError.ts"
import { databaseLayer } from "./database-node.ts"
import { shownUrl } from "./databaseUrl.ts"
import { reasonOf } from "./reason.ts"
import { type Observed, type Overview, overview } from "./overview.ts"

/** The shortest time between two queries of the database, in milliseconds, however many pages are open. */
const freshFor = 900
/**
 * The pause after a query, as a multiple of the time that the query took. A query reads the whole queue, which may be long.
 */
const pauseAfter = 10
/** The time after which a database that doesn't answer counts as gone. */
const patience = "6 seconds"

/**
 * Opens a cluster for an observer, and returns the Effect that reads its state. The Effect never fails: if the database
 * doesn't answer, it returns the last overview and the problem. `observe` itself fails only if the address, the user or the
 * password is wrong.
 */
export const observe = Effect.fnUntraced(function* (
  url: string,
): Effect.fn.Return<Effect.Effect<Observed>, WorkerError, Scope.Scope> {
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
  // Fails only for a wrong user or password, which the user must repair. Other problems may pass by themselves.
  yield* Effect.catchIf(
    looked,
    (error) => !("reason" in error && error.reason._tag !== "ConnectionError"),
    () => Effect.void,
  ).pipe(Effect.mapError((error) => WorkerError.failed(`${database}: ${reasonOf(error)}`)))
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
