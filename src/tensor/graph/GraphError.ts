import * as Schema from "effect/Schema"

/**
 * Reports that a graph cannot be built or compiled. It names the op, the shapes of its inputs, and the line of user
 * code that made the op. Functions that build graphs throw it; `Backend.compile` fails with it.
 */
export class GraphError extends Schema.TaggedError<GraphError>()("GraphError", {
  op: Schema.String,
  message: Schema.String,
  shapes: Schema.Array(Schema.Array(Schema.Number)),
  where: Schema.String,
}) {}

/** Makes the error for a problem of a whole program, for which no line of user code can be named. */
export const programError = (
  name: string,
  message: string,
  { op = "program", shapes = [] }: Partial<Pick<GraphError, "op" | "shapes">> = {},
): GraphError => new GraphError({ op, message: `${name}: ${message}`, shapes, where: "" })
