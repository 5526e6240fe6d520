import { Schema } from "effect"

/** A policy that cannot be written in the format asked for: why not. */
export class ExportError extends Schema.TaggedError<ExportError>()("ExportError", { message: Schema.String }) {}

export const complain = (message: string): never => {
  throw new ExportError({ message })
}
