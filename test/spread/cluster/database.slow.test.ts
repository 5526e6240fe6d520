import { assert, describe, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { connect } from "../../../src/spread/cluster/database-node.ts"
import { hasPostgres, startPostgres } from "./postgres.ts"

if (!hasPostgres) console.warn("database.slow.test.ts: postgresql is not installed here, so it is NOT tested")

describe.skipIf(!hasPostgres)("the connections to a cluster's database", () => {
  it.live("close although something never gives one back", () =>
    Effect.gen(function* () {
      const postgres = yield* Effect.acquireRelease(
        Effect.promise(() => startPostgres()),
        (started) => Effect.promise(() => started.remove()),
      )
      let isHeld = false
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { context } = yield* connect({ url: postgres.url, say: () => Effect.void })
          const hold = Effect.tap(Context.get(context, SqlClient.SqlClient).reserve, () =>
            Effect.sync(() => void (isHeld = true)),
          )
          yield* Effect.forkDetach(Effect.scoped(Effect.andThen(hold, Effect.never)))
          yield* Effect.repeat(Effect.sleep("10 millis"), { until: () => isHeld })
        }),
      )
      assert.isTrue(isHeld)
    }).pipe(Effect.scoped),
  )
})
