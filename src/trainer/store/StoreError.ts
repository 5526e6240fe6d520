import { Schema } from "effect"

/** Reports a failed operation of a `Store`, or ranks that did not arrive before the deadline. */
export class StoreError extends Schema.TaggedError<StoreError>()("StoreError", {
  /** The operation that failed: `set`, `get`, `wait`, `add`, `barrier` … */
  operation: Schema.String,
  /** The key, or the name of the barrier. */
  key: Schema.String,
  /** The ranks that did not arrive before the deadline; empty for other failures. */
  missing: Schema.Array(Schema.Int),
  message: Schema.String,
}) {}
