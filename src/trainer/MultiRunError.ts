import { Schema } from "effect"

/** Reports that a multi-run trainer cannot continue. The message is one line that names the part and the reason. */
export class MultiRunError extends Schema.TaggedError<MultiRunError>()("MultiRunError", { message: Schema.String }) {
  /** Turns the error of a part of the trainer into a `MultiRunError` with the same message. */
  static from({ message }: { readonly message: string }): MultiRunError {
    return new MultiRunError({ message })
  }
}
