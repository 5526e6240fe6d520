import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Exit } from "effect"
import { Command } from "effect/cli"
import { vi } from "vitest"
import { evaluate } from "../../src/cli/evaluate.ts"
import { exporting } from "../../src/cli/export.ts"
import { replay } from "../../src/cli/replay.ts"
import { run } from "../../src/cli/run.ts"
import { ui } from "../../src/cli/ui.ts"

const commands = Command.make("effect").pipe(Command.withSubcommands([run, evaluate, replay, exporting, ui]))

export interface Outcome {
  readonly stdout: string
  readonly stderr: string
  /** Of a failure. */
  readonly message: string | undefined
}

/** The command in this process. */
export const effectHere = async (args: ReadonlyArray<string>): Promise<Outcome> => {
  const printed = { stdout: "", stderr: "" }
  const spies = (["stdout", "stderr"] as const).map((name) =>
    vi.spyOn(process[name], "write").mockImplementation((text) => {
      printed[name] += String(text)
      return true
    }),
  )
  try {
    const exit = await Effect.runPromiseExit(
      Command.runWith(commands, { version: "0" })(args).pipe(
        Effect.provide(NodeServices.layer),
        Effect.flip,
        Effect.map(({ message }) => message),
      ),
    )
    return { ...printed, message: Exit.isSuccess(exit) ? exit.value : undefined }
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
}
