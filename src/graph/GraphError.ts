import { Schema } from "effect"

/**
 * A graph that cannot be built or compiled: the op, the shapes it was given, and the line of user code that asked.
 * Building a graph is plain synchronous code, so this is thrown there, and is the typed error of `Backend.compile`.
 */
export class GraphError extends Schema.TaggedError<GraphError>()("GraphError", {
  op: Schema.String,
  message: Schema.String,
  shapes: Schema.Array(Schema.Array(Schema.Number)),
  where: Schema.String,
}) {}
