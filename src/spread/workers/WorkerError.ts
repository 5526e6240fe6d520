/** Declares the error of work in another process, thread or machine: the worker was lost, or reports why it cannot work. */
import * as Schema from "effect/Schema"

/**
 * Reports that a worker (the process of a rank, the thread of an engine, a machine of a cluster) did not do its work. The
 * message is one line. If the worker was lost, another attempt may succeed, and a run makes one when it resumes; otherwise
 * the user has to remove the cause that the message names.
 */
export class WorkerError extends Schema.TaggedError<WorkerError>()("WorkerError", {
  reason: Schema.Literals([
    /** The worker has ended or does not answer, and could not report a reason. Another attempt may succeed. */
    "lost",
    /** The worker, or this process as a member of a cluster, has reported why it cannot work. Another attempt would fail, too. */
    "failed",
    /** The `Dispatcher` could not get a job done, for a reason that is not the job's own. */
    "dispatch",
  ]),
  /** The name of the job, if the `Dispatcher` could not get a job done. */
  job: Schema.optionalKey(Schema.String),
  message: Schema.String,
}) {
  static lost(message: string): WorkerError {
    return new WorkerError({ reason: "lost", message })
  }

  static failed(message: string): WorkerError {
    return new WorkerError({ reason: "failed", message })
  }

  static dispatch(job: string, message: string): WorkerError {
    return new WorkerError({ reason: "dispatch", job, message })
  }
}

/** Tells whether an error reports a lost worker, so that another attempt may succeed. */
export const isLost = (error: unknown): boolean => error instanceof WorkerError && error.reason === "lost"

/** Returns the error of a rank whose job failed. If the `Dispatcher` could not get the job done, the rank has failed. */
export const failedDispatch = (rank: number, error: WorkerError): WorkerError =>
  error.reason === "dispatch" ? WorkerError.failed(`rank ${rank}: ${error.message}`) : error
