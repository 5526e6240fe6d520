import { Schema } from "effect"

/** A file of `torch.save` cannot be read, or is not safe to read. `offset` is null if the place is unknown. */
export class TorchError extends Schema.TaggedError<TorchError>()("TorchError", {
  message: Schema.String,
  /** The offset in the file, or in its `data.pkl` if the message begins with that name. */
  offset: Schema.NullOr(Schema.Int),
}) {}

export const refuse = (message: string, offset: number | null = null): never => {
  throw new TorchError({ message, offset })
}
