/** The error of files in formats of others: safetensors, `torch.save`, HDF5, gzip, and folders of weights. */
import { Schema } from "effect"

/** Reports that a file cannot be read or written. The message is one line, and names the file's tensor, node or path. */
export class FormatError extends Schema.TaggedError<FormatError>()("FormatError", {
  message: Schema.String,
  /** The path of the file, with which the message begins then. */
  path: Schema.optionalKey(Schema.String),
  /** The offset in a file of `torch.save`, or in its `data.pkl` if the message begins with that name. */
  offset: Schema.optionalKey(Schema.Int),
}) {}
