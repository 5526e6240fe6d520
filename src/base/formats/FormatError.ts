/** Defines the error of wrong content: in files, pictures, chat templates and texts. */
import * as Schema from "effect/Schema"

/**
 * Reports that content is not what its format expects, or too large, or that a file of a format cannot be read or written.
 * The message is one line, and names the place: a path, a line, a tensor, a node. Correct the content there, or write the
 * file again.
 */
export class FormatError extends Schema.TaggedError<FormatError>()("FormatError", {
  message: Schema.String,
  /** The path of the file, if it is known. Then the message begins with it. */
  path: Schema.optionalKey(Schema.String),
  /** The number of the line, from 1, if the problem is with one line of a text. */
  line: Schema.optionalKey(Schema.Int),
  /** The offset in a file of `torch.save`, or in its `data.pkl` if the message begins with that name. */
  offset: Schema.optionalKey(Schema.Int),
}) {}
