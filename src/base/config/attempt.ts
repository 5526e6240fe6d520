/** Turns exceptions into failures of an Effect, for code that throws. */
import { Effect } from "effect"

type ErrorClass = abstract new (...args: never) => Error

const isOneOf = <Classes extends ReadonlyArray<ErrorClass>>(
  error: unknown,
  classes: Classes,
): error is InstanceType<Classes[number]> => classes.some((one) => error instanceof one)

/** Runs `body` as an Effect, which fails with a thrown error of `classes`; any other thrown value becomes a defect. */
export const attempt = <A, const Classes extends ReadonlyArray<ErrorClass>>(
  body: () => A,
  ...classes: Classes
): Effect.Effect<A, InstanceType<Classes[number]>> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(body())
    } catch (error) {
      return isOneOf(error, classes) ? Effect.fail(error) : Effect.die(error)
    }
  })
