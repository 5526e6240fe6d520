/**
 * Keeps what the jobs of a worker need open between jobs: the data set and the models of an evaluation, the compiled policy
 * of a training. The first job that needs one of these opens it; it is closed a minute after its last job.
 */
import { Effect, RcMap, type Scope } from "effect"
import { WorkerError } from "../workers/WorkerError.ts"
import { display, type Plain } from "../../base/config/Config.ts"
import { firstDifference } from "../../base/config/difference.ts"

/** The time for which a data set, a model or a policy is kept open after its last job. */
const keepOpen = "1 minute"

/**
 * Makes a function that opens what a description (a text) names, or returns it if it is already open. The opened thing stays
 * open at least until the scope of the job closes. Fails if the settings on this machine differ from those of the client,
 * which `identity` holds.
 */
export const keptOpen = Effect.fnUntraced(function* <A extends { readonly identity: Plain }, R>(
  open: (description: string) => Effect.Effect<A, { readonly message: string }, R>,
) {
  const opened = yield* RcMap.make({ lookup: open, idleTimeToLive: keepOpen })
  return Effect.fnUntraced(function* (
    job: string,
    description: string,
    identity: Plain,
  ): Effect.fn.Return<A, WorkerError, Scope.Scope> {
    const problem = (message: string): WorkerError =>
      WorkerError.dispatch(job, `on a worker of the cluster: ${message}`)
    const one = yield* RcMap.get(opened, description).pipe(
      // The map would keep the failure; but a file that is missing now may exist when the next job needs it.
      Effect.tapError(() => RcMap.invalidate(opened, description)),
      Effect.mapError(({ message }) => problem(message)),
    )
    const difference = firstDifference(one.identity, identity)
    if (difference === undefined) return one
    const { key, now, then } = difference
    return yield* problem(`${key}: expected ${display(then)} as where the run was started, found ${display(now)}`)
  })
})
