/** Describes in a few words why something failed. */
import { Cause } from "effect"

/** Returns the reason of a failure in a few words: the message of its innermost cause. */
export const reasonOf = (error: unknown): string => {
  let inner = error
  for (let depth = 0; depth < 8; depth++) {
    if (Cause.isCause(inner)) inner = Cause.squash(inner)
    else if (inner instanceof Error && inner.cause !== undefined) inner = inner.cause
    else break
  }
  if (inner instanceof AggregateError && inner.errors.length > 0) return reasonOf(inner.errors[0])
  const message = inner instanceof Error ? inner.message || inner.name : messageIn(inner)
  return message.split("\n")[0]
}

const messageIn = (value: unknown): string =>
  typeof value === "object" && value !== null && "message" in value ? String(value.message) : String(value)
