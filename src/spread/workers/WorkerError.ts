/** Declares the two errors by which a worker (the process of a rank, the thread of an engine) ends too early. */
import { Schema } from "effect"

/** A worker ended or does not answer, and could not give a reason. Another attempt may succeed. */
export class WorkerLost extends Schema.TaggedError<WorkerLost>()("WorkerLost", { message: Schema.String }) {}

/** A worker gave a reason why it cannot work. Another attempt would fail, too. */
export class WorkerFailed extends Schema.TaggedError<WorkerFailed>()("WorkerFailed", { message: Schema.String }) {}
