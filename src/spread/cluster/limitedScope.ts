/**
 * Makes a scope for something that may fail to stop. Effect Cluster, for one, can wait for itself for ever when it stops
 * while another machine asks it for something.
 *
 * @example
 * ```ts
 * const scope = yield* limitedScope("10 seconds", Console.error("the engine does not stop"))
 * const engine = yield* Layer.buildWithScope(model, scope)
 * ```
 */
import { type Duration, Effect, Fiber, Option, Scope } from "effect"

/**
 * Makes a scope that closes with the scope around it. Closing the outer scope waits for it no longer than `most`; after that,
 * `onLate` runs, and the scope continues to close in the background.
 */
export const limitedScope = (
  most: Duration.Input,
  onLate: Effect.Effect<void>,
): Effect.Effect<Scope.Scope, never, Scope.Scope> =>
  Effect.acquireRelease(Scope.make(), (scope, exit) =>
    Effect.gen(function* () {
      const closing = yield* Effect.forkDetach(Scope.close(scope, exit))
      // A finalizer cannot be interrupted, but another fiber's wait can.
      const waiting = yield* Effect.forkDetach(Effect.timeoutOption(Fiber.await(closing), most))
      if (Option.isNone(yield* Fiber.join(waiting))) yield* onLate
    }),
  )
