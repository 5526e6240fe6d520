/** Starts the `effect` command with the process's arguments, signals and exit code. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { command } from "./command.ts"
import { exitCodeOf } from "./output/errors.ts"
import { endWithSweep } from "../sweep/part.ts"
import { UserProcess } from "./userCode/userCode.ts"
import { importing, strayErrors } from "./userCode/userProcess.ts"

/** Most commands run no code of the user, so they need not load the module that watches this code. */
const watch = Effect.flatMap(
  Effect.promise(() => import("./userCode/watch.ts")),
  (module) => module.watch,
)

// After the first Ctrl-C the run saves itself; a later Ctrl-C ends the process at once. A terminal may send several signals
// for one Ctrl-C, so all signals within the first half second count as one.
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
      // `runToEnd` has set the exit code 0 if the run was already finished when the signal came.
      const code = process.exitCode === 0 ? 0 : exitCodeOf(exit)
      onExit(code)
      // A timer or a connection that the user's code left open would keep the process alive.
      process.stdout.write("", () => process.stderr.write("", () => process.exit(code)))
    },
  }),
)
