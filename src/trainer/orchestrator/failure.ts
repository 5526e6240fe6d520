/** Turns the cause of an orchestrator's failure into an error and a message. */
import { Cause, Option } from "effect"
import { messageOf } from "../../base/text/text.ts"

/** Returns the error of a failure. A defect becomes an error that has only a message. */
export const errorOf = (cause: Cause.Cause<{ readonly message: string }>): { readonly message: string } =>
  Option.getOrElse(Cause.findErrorOption(cause), () => ({ message: reasonOf(cause) }))

/** Returns the message of an error, or of a defect. */
export const reasonOf = (cause: Cause.Cause<{ readonly message: string }>): string =>
  Option.match(Cause.findErrorOption(cause), {
    onSome: ({ message }) => message,
    onNone: () => messageOf(Cause.squash(cause)),
  })
