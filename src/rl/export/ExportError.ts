/** Defines the error that the other files of this folder throw, and `refuse`, which throws it. */
import { Schema } from "effect"

/** The error of a policy or a run that cannot be written in a format; the message says why. */
export class ExportError extends Schema.TaggedError<ExportError>()("ExportError", { message: Schema.String }) {}

export const refuse = (message: string): never => {
  throw new ExportError({ message })
}
