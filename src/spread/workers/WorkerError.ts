/** Declares how a worker (the process of a rank, the thread of an engine) ends before its work: it is lost, or says why. */
import { Schema } from "effect"

/** A worker has ended, or does not answer, for no reason that it could tell. Another attempt may succeed. */
export class WorkerLost extends Schema.TaggedError<WorkerLost>()("WorkerLost", { message: Schema.String }) {}

/** A worker has told why it cannot work. Another attempt would fail, too. */
export class WorkerFailed extends Schema.TaggedError<WorkerFailed>()("WorkerFailed", { message: Schema.String }) {}
