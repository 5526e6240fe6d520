/** Waits between two scans of a folder with runs. */
import { type Duration, Effect, FileSystem, Queue, Stream } from "effect"

/**
 * Makes the Effect that waits for a change of a folder or for the poll interval. The interval is always needed: some file
 * systems report no changes, and a config that is written into an existing folder does not change the folder above it.
 */
export const makePause = Effect.fnUntraced(function* (directory: string, interval: Duration.Input, isWatched: boolean) {
  if (!isWatched) return Effect.sleep(interval)
  const fs = yield* FileSystem.FileSystem
  const signals = yield* Effect.acquireRelease(Queue.sliding<void>(1), Queue.shutdown)
  yield* fs.watch(directory).pipe(
    Stream.runForEach(() => Queue.offer(signals, undefined)),
    Effect.catchCause((cause) => Effect.logDebug(`cannot watch ${directory}; looking every interval instead`, cause)),
    Effect.forkScoped,
  )
  return Effect.timeoutOption(Queue.take(signals), interval).pipe(Effect.asVoid)
})
