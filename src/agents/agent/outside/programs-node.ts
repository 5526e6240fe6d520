/** Runs the programs of agents as processes of this machine, each as the leader of a process group of its own. */
import { type ChildProcess, spawn } from "node:child_process"
import { Effect, Exit, Layer } from "effect"
import { joined } from "../../../base/text/bytes.ts"
import { messageOf, oneLine } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { environmentOf } from "../../../base/trust/environment.ts"
import { killGroup } from "../../../spread/programs/group-node.ts"
import { AgentError } from "../AgentError.ts"
import { type AgentProgram, AgentPrograms } from "./AgentPrograms.ts"

/** The number of bytes that a program may write to its standard output. */
const mostOutput = 2 ** 26

/** The number of bytes at the end of a program's standard error that a message may quote. */
const mostErrorText = 2000

/** The milliseconds after a program's end for which its outputs are read, in case that another process holds them open. */
const closesAfterMillis = 1000

/** A started program, or the reason for which it cannot start. Some failures to start are only known later. */
type Started = { readonly child: ChildProcess } | { readonly problem: string }

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

/** Starts a program as the leader of a process group. Returns what is wrong if its command, folder or size is impossible. */
const start = ({ command, cwd }: AgentProgram, env: Readonly<Record<string, string>>): Started => {
  const [name, ...args] = command
  try {
    const detached = process.platform !== "win32"
    return { child: spawn(name, args, { cwd: cwd ?? undefined, env, detached, windowsHide: true }) }
  } catch (error) {
    return { problem: messageOf(error) }
  }
}

const run = (program: AgentProgram): Effect.Effect<string, AgentError> =>
  Effect.callback((resume) => {
    const { agent, command, variables, environment, input } = program
    const [name] = command
    const refuse = (problem: string, more: { readonly userStack?: string } = {}) =>
      resume(Exit.fail(new AgentError({ agent, message: `${agent}: its program (${name}) ${problem}`, ...more })))
    const chosen = environmentOf(variables, (variable) => process.env[variable])
    if ("missing" in chosen) {
      refuse(`cannot start: variables: the environment variable ${chosen.missing} is not set`)
      return Effect.void
    }
    const started = start(program, { ...chosen.env, ...environment })
    if (!("child" in started)) {
      refuse(`cannot start: ${started.problem}`)
      return Effect.void
    }
    const { child } = started
    child.on("error", ({ message }) => refuse(`cannot start: ${oneLine(message)}`))
    const { stdin, stdout, stderr } = child
    // If there are too many open files or pipes, Node makes a child without streams, and emits the error later.
    if (!stdin || !stdout || !stderr) return Effect.void
    const output = collected(mostOutput, () => {
      killGroup(child)
      refuse(`wrote more than ${mostOutput} bytes; an answer is shorter`)
    })
    let errorText = ""
    stdout.on("data", output.add)
    stderr.setEncoding("utf8").on("data", (piece: string) => {
      errorText = `${errorText}${piece}`.slice(-mostErrorText)
    })
    // A program may end without reading its task, which breaks the pipe.
    stdin.on("error", () => {})
    stdin.end(input)
    const close = () => [stdout, stderr].forEach((stream) => stream.destroy())
    let closing: NodeJS.Timeout | undefined
    // Processes that the program has left behind may hold its outputs open, so kill them as soon as it has ended. Those that
    // have left its process group stay alive, so close the outputs, too, after what is in them has been read.
    child.on("exit", () => {
      killGroup(child)
      closing = setTimeout(() => setImmediate(close), closesAfterMillis)
    })
    child.on("close", (code, signal) => {
      clearTimeout(closing)
      if (code === 0) return resume(Exit.succeed(output.text()))
      const last = errorText.trimEnd().split("\n").at(-1) ?? ""
      const how = signal === null ? `with exit code ${code}` : `by ${signal}`
      return refuse(`ended ${how}${last === "" ? "" : `: ${oneLine(last)}`}`, { userStack: errorText })
    })
    return Effect.sync(() => killGroup(child))
  })

/** Provides the service that runs the programs of agents. */
export const layer: Layer.Layer<never> = Layer.succeed(AgentPrograms, { run })
