/** Runs the programs of agents as processes of this machine, each as the leader of a process group of its own. */
import { type ChildProcess, spawn } from "node:child_process"
import { Effect, Exit, Layer } from "effect"
import { joined } from "../../../base/config/bytes.ts"
import { oneLine } from "../../../base/config/text.ts"
import { utf8 } from "../../../base/config/utf8.ts"
import { environmentOf } from "../../../base/trust/environment.ts"
import { AgentError } from "../AgentError.ts"
import { type AgentProgram, AgentPrograms } from "./AgentPrograms.ts"

/** The number of bytes that a program may write to its standard output. */
const mostOutput = 2 ** 26

/** The number of bytes at the end of a program's standard error that a message may quote. */
const mostErrorText = 2000

/** Kills a program and all that it has started. */
const killGroup = ({ pid }: ChildProcess): void => {
  if (pid === undefined) return
  try {
    process.kill(process.platform === "win32" ? pid : -pid, "SIGKILL")
  } catch {
    // The processes have ended already.
  }
}

/** Collects what a program writes. Once it is more than `most` bytes, `overflow` is called and the rest is dropped. */
const collected = (most: number, overflow: () => void) => {
  const pieces: Array<Uint8Array> = []
  let length = 0
  return {
    add: (piece: Uint8Array): void => {
      length += piece.length
      if (length > most) overflow()
      else pieces.push(piece)
    },
    text: () => utf8.decode(joined(pieces)),
  }
}

const run = (program: AgentProgram): Effect.Effect<string, AgentError> =>
  Effect.callback((resume) => {
    const { agent, command, cwd, variables, environment, input } = program
    const [name, ...args] = command
    const refuse = (problem: string, more: { readonly userStack?: string } = {}) =>
      resume(Exit.fail(new AgentError({ agent, message: `${agent}: its program (${name}) ${problem}`, ...more })))
    const chosen = environmentOf(variables, (variable) => process.env[variable])
    if ("missing" in chosen) {
      refuse(`cannot start: variables: the environment variable ${chosen.missing} is not set`)
      return Effect.void
    }
    const child = spawn(name, args, {
      cwd: cwd ?? undefined,
      env: { ...chosen.env, ...environment },
      detached: process.platform !== "win32",
      windowsHide: true,
    })
    const output = collected(mostOutput, () => {
      killGroup(child)
      refuse(`wrote more than ${mostOutput} bytes; an answer is shorter`)
    })
    let errorText = ""
    child.stdout.on("data", output.add)
    child.stderr.setEncoding("utf8").on("data", (piece: string) => {
      errorText = `${errorText}${piece}`.slice(-mostErrorText)
    })
    // A program may end without reading its task, which breaks the pipe.
    child.stdin.on("error", () => {})
    child.stdin.end(input)
    child.on("error", ({ message }) => refuse(`cannot start: ${oneLine(message)}`))
    // Processes that the program has left behind may hold its outputs open, so kill them as soon as it has ended.
    child.on("exit", () => killGroup(child))
    child.on("close", (code, signal) => {
      if (code === 0) return resume(Exit.succeed(output.text()))
      const last = errorText.trimEnd().split("\n").at(-1) ?? ""
      const how = signal === null ? `with exit code ${code}` : `by ${signal}`
      return refuse(`ended ${how}${last === "" ? "" : `: ${oneLine(last)}`}`, { userStack: errorText })
    })
    return Effect.sync(() => killGroup(child))
  })

/** Provides the service that runs the programs of agents. */
export const layer: Layer.Layer<never> = Layer.succeed(AgentPrograms, { run })
