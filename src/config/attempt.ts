import { Effect } from "effect"

type ErrorClass = abstract new (...args: never) => Error

const isOneOf = <Classes extends ReadonlyArray<ErrorClass>>(
  error: unknown,
  classes: Classes,
): error is InstanceType<Classes[number]> => classes.some((one) => error instanceof one)

/** Runs `body` as an Effect: a thrown error of a named class is a failure, any other thrown value a defect. */
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
