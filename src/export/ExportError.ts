import { Schema } from "effect"

/** A policy cannot be written in a format; the message says why. */
export class ExportError extends Schema.TaggedError<ExportError>()("ExportError", { message: Schema.String }) {}

export const refuse = (message: string): never => {
  throw new ExportError({ message })
}
