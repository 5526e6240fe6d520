import { Schema } from "effect"

/** A multi-run trainer cannot go on. The message is one line that names the part and the reason. */
export class MultiRunError extends Schema.TaggedError<MultiRunError>()("MultiRunError", { message: Schema.String }) {
  /** Makes the error of an error of one of the trainer's parts. */
  static from({ message }: { readonly message: string }): MultiRunError {
    return new MultiRunError({ message })
  }
}
