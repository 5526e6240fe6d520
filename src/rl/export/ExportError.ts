/** Defines the error that the other files of this folder throw, and `refuse`, which throws it. */
import { Schema } from "effect"

/** Reports that a policy or a run cannot be written in a format, and why. */
export class ExportError extends Schema.TaggedError<ExportError>()("ExportError", { message: Schema.String }) {}

export const refuse = (message: string): never => {
  throw new ExportError({ message })
}
