/** The entry of the `effect` command: runs it with the process's arguments, signals and exit code. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { command } from "./command.ts"
import { exitCodeOf } from "./output/errors.ts"
import { endWithSweep } from "../sweep/part.ts"
import { UserProcess } from "./userCode/userCode.ts"
import { importing, strayErrors } from "./userCode/userProcess.ts"

/** Most commands run no code of the user, and need not load what watches it. */
const watch = Effect.flatMap(
  Effect.promise(() => import("./userCode/watch.ts")),
  (module) => module.watch,
)

// The first Ctrl-C makes the run save itself; a later one ends the process at once. A terminal may send several signals
// for one Ctrl-C, so those of the first half second count as one.
let interruptedAt: number | undefined
process.on("SIGINT", () => {
  const now = performance.now()
  interruptedAt ??= now
  if (now - interruptedAt > 500) process.exit(130)
})
// If a sweep started this process, the process ends with the sweep.
endWithSweep(() => interruptedAt !== undefined)

command(process.argv.slice(2), strayErrors).pipe(
  Effect.provideService(UserProcess, { importing, watch }),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    teardown: (exit, onExit) => {
      // `runToEnd` sets the exit code 0 if the run was finished before the signal came.
      const code = process.exitCode === 0 ? 0 : exitCodeOf(exit)
      onExit(code)
      // A timer or a connection that the user's code left open would keep the process alive.
      process.stdout.write("", () => process.stderr.write("", () => process.exit(code)))
    },
  }),
)
