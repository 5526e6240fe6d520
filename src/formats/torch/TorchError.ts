import { Schema } from "effect"

/** A file of `torch.save` that cannot be read, or must not be: what is wrong, and at which byte where that is known. */
export class TorchError extends Schema.TaggedError<TorchError>()("TorchError", {
  message: Schema.String,
  /** In the file, or in its `data.pkl` where the message begins with that name. */
  offset: Schema.NullOr(Schema.Int),
}) {}

export const refuse = (message: string, offset: number | null = null): never => {
  throw new TorchError({ message, offset })
}
