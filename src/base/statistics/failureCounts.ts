/** Declares the counts of failures, in a small file: commands print them before they load anything about episodes. */
import * as Schema from "effect/Schema"

/** The numbers of failures by their reason: the tag of the error and its message, on one line. */
export const FailureCounts = Schema.Array(Schema.Struct({ reason: Schema.String, count: Schema.Int }))
export type FailureCounts = typeof FailureCounts.Type
