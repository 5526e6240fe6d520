import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { command, exitCodeOf } from "./command.ts"
import { endWithSweep } from "./sweep/part.ts"
import { UserProcess } from "./userCode/userCode.ts"
import { importing, strayErrors, watch } from "./userCode/userProcess.ts"

// The first Ctrl-C lets the run save itself; another, not of the same burst, doesn't wait for that.
let interruptedAt: number | undefined
process.on("SIGINT", () => {
  const now = performance.now()
  interruptedAt ??= now
  if (now - interruptedAt > 500) process.exit(130)
})
endWithSweep(() => interruptedAt !== undefined)

command(process.argv.slice(2), strayErrors).pipe(
  Effect.provideService(UserProcess, { importing, watch }),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    // A run that was finished before the signal came has set its own.
    teardown: (exit, onExit) => {
      const code = process.exitCode === 0 ? 0 : exitCodeOf(exit)
      onExit(code)
      // The user's code may have left a timer or a connection, which would keep a process that is done.
      process.stdout.write("", () => process.stderr.write("", () => process.exit(code)))
    },
  }),
)
