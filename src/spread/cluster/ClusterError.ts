import { Schema } from "effect"

/** Reports that this process can't be part of a cluster. The message is one line. */
export class ClusterError extends Schema.TaggedError<ClusterError>()("ClusterError", { message: Schema.String }) {}
