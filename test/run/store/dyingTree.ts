import { Deferred, Effect } from "effect"
import type { RunFiles } from "../../../src/run/store/RunStore.ts"

export interface Death {
  /** The number of the last operation, counted from 1; reading counts too. */
  readonly at: number
  /** Whether it is still done, or not even begun. */
  readonly done: boolean
}

/** A run's files as a process sees them that is killed: the operation at which it dies never returns. */
export const dyingTree = (run: RunFiles, { at, done }: Death) => {
  const dead = Deferred.makeUnsafe<"killed">()
  let operations = 0
  const mortal =
    <Args extends ReadonlyArray<unknown>, A, E>(operation: (...args: Args) => Effect.Effect<A, E>) =>
    (...args: Args): Effect.Effect<A, E> =>
      Effect.suspend(() => {
        operations++
        if (operations < at) return operation(...args)
        const last = done && operations === at ? Effect.ignore(operation(...args)) : Effect.void
        return last.pipe(Effect.andThen(Deferred.succeed(dead, "killed")), Effect.andThen(Effect.never))
      })
  const files: RunFiles = {
    ...run,
    read: mortal(run.read),
    readText: mortal(run.readText),
    write: mortal(run.write),
    append: mortal(run.append),
    truncate: mortal(run.truncate),
    sync: mortal(run.sync),
    exists: mortal(run.exists),
    size: mortal(run.size),
    list: mortal(run.list),
    remove: mortal(run.remove),
    writeDirectory: mortal(run.writeDirectory),
    link: mortal(run.link),
    target: mortal(run.target),
    repair: mortal(run.repair),
  }
  /** "killed", or what the effect gives if it gets through. */
  const live = <A, E>(effect: Effect.Effect<A, E>) => Effect.raceFirst(effect, Deferred.await(dead))
  return { files, live }
}
