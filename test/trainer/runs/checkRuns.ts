/** Starts `Runs` on some ranks over a new folder, for the tests of what it does with the folders there. */
import { Effect, Logger } from "effect"
import { it } from "vitest"
import { startRanks, type World } from "../ranks.ts"

/** Defines a test whose ranks are all in this process. */
export const check = (
  title: string,
  body: (world: World) => Effect.Effect<void, unknown, never>,
  ranks = 1,
  maxConcurrentRuns = 2,
) =>
  it(title, () =>
    Effect.runPromise(
      Effect.flatMap(startRanks(ranks, { maxConcurrentRuns }), body).pipe(
        Effect.scoped,
        Effect.provide(Logger.layer([])),
      ),
    ),
  )

/** Lets other fibers work and files be read. */
export const live = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
