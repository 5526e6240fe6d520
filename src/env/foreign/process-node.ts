/**
 * Starts programs that step envs, as processes of this machine. They get requests on their standard input and write replies
 * to their standard output. When the input closes, the process that started them has ended, in whatever way, and they end.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { Effect } from "effect"
import { oneLine } from "../../config/text.ts"
import { type EnvError, invalid } from "../EnvError.ts"
import type { Connect, Connection, Reply } from "./Connection.ts"
import { headerSize } from "./protocol.ts"

export interface Command {
  /** The program and its arguments. */
  readonly command: ReadonlyArray<string>
  /** The program's working directory. Default: that of this process. */
  readonly cwd?: string | undefined
  /** The number of seconds after which a request without a reply fails. Default: 60. */
  readonly timeoutSeconds?: number | undefined
  /** Says how to install the program, for the message of the error if it is missing. */
  readonly install?: string
}

/** The number of characters of a program's standard error that an error message may quote. */
const mostErrorText = 2000

const cannotStart = (id: string, { command: [program], install }: Command, error: Error): EnvError => {
  const isMissing = "code" in error && error.code === "ENOENT"
  const problem = isMissing ? `${program} was not found` : error.message
  return invalid(id, `cannot start its program: ${problem}${install === undefined ? "" : `; ${install}`}`)
}

/** Returns the last line of what a program wrote to its standard error, as the end of a message. */
const quoted = (errorText: string): string => {
  const last = errorText.trimEnd().split("\n").at(-1) ?? ""
  return last === "" ? "" : `: ${oneLine(last)}`
}

/**
 * Starts a program, sends it one request, and waits for the reply, which blocks this thread: the spaces of an env must be known
 * where a program makes it. Throws an `EnvError` if there is no reply.
 */
export const askOnce = (id: string, options: Command, request: Uint8Array): Reply => {
  const [program, ...args] = options.command
  const { stdout, stderr, error, status, signal } = spawnSync(program, args, {
    input: request,
    cwd: options.cwd,
    timeout: (options.timeoutSeconds ?? 60) * 1000,
    maxBuffer: 2 ** 28,
    windowsHide: true,
  })
  if (error !== undefined && "code" in error && error.code !== "ETIMEDOUT") throw cannotStart(id, options, error)
  if (stdout !== null && stdout.length >= headerSize) {
    const length = stdout.readUInt32LE(0)
    const body = stdout.subarray(headerSize, headerSize + length)
    if (body.length === length) return { status: stdout.readUInt32LE(4), body }
  }
  const reason =
    error === undefined ? `ended ${signal === null ? `with exit code ${status}` : `by ${signal}`}` : "did not answer"
  throw invalid(id, `its program (${options.command.join(" ")}) ${reason}${quoted(String(stderr ?? ""))}`)
}

/** Assembles replies from the pieces in which they arrive. */
class Replies {
  private pieces: Array<Buffer> = []
  private length = 0

  /** Adds a piece; returns the reply if it is complete. */
  add(piece: Buffer): Reply | undefined {
    this.pieces.push(piece)
    this.length += piece.length
    if (this.length < headerSize) return undefined
    // The header may be divided among pieces, but only if they are short.
    if (this.pieces[0].length < headerSize) this.pieces = [Buffer.concat(this.pieces)]
    const wanted = headerSize + this.pieces[0].readUInt32LE(0)
    if (this.length < wanted) return undefined
    const whole = this.pieces.length === 1 ? this.pieces[0] : Buffer.concat(this.pieces, this.length)
    this.pieces = []
    this.length = 0
    return { status: whole.readUInt32LE(4), body: whole.subarray(headerSize, wanted) }
  }
}

interface Started {
  readonly child: ChildProcess
  readonly connection: Connection
  readonly ended: Promise<void>
}

const start = (id: string, options: Command, described: string): Started => {
  const { timeoutSeconds = 60 } = options
  const [program, ...args] = options.command
  const child = spawn(program, args, {
    stdio: ["pipe", "pipe", "pipe"],
    cwd: options.cwd,
    // Ctrl-C in a terminal must reach only the run, which then ends the step and saves a checkpoint.
    detached: process.platform !== "win32",
    windowsHide: true,
  })
  const replies = new Replies()
  let errorText = ""
  let waiting: ((reply: Reply | EnvError) => void) | undefined
  /** The reason why no reply comes any more. */
  let lost: EnvError | undefined
  let timer: NodeJS.Timeout | undefined

  const settle = (reply: Reply | EnvError): void => {
    clearTimeout(timer)
    const done = waiting
    waiting = undefined
    done?.(reply)
  }
  const lose = (error: EnvError): void => {
    lost ??= error
    settle(lost)
  }
  const process_ = `the process of ${described}`

  child.stdout.on("data", (piece: Buffer) => {
    const reply = replies.add(piece)
    if (reply !== undefined) settle(reply)
  })
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errorText = (errorText + text).slice(-mostErrorText)))
  // A process that has ended reads no more; its end is reported below.
  child.stdin.on("error", () => {})
  const ended = new Promise<void>((resolve) => {
    child.once("error", (error) => {
      lose(cannotStart(id, options, error))
      resolve()
    })
    child.once("close", (code, signal) => {
      lose(
        invalid(
          id,
          `${process_} ended ${signal === null ? `with exit code ${code}` : `by ${signal}`}${quoted(errorText)}`,
        ),
      )
      resolve()
    })
  })
  return {
    child,
    ended,
    connection: {
      send: (request, done) => {
        if (lost !== undefined) return done(lost)
        waiting = done
        timer = setTimeout(() => {
          child.kill("SIGKILL")
          lose(invalid(id, `${process_} did not answer within ${timeoutSeconds} seconds, so it was ended`))
        }, timeoutSeconds * 1000)
        child.stdin.write(request)
      },
    },
  }
}

/** Returns the function that starts a process for each connection, and kills it when the scope closes. */
export const connectTo =
  (id: string, options: Command): Connect =>
  (described) =>
    Effect.acquireRelease(
      Effect.sync(() => start(id, options, described)),
      ({ child, ended }) =>
        Effect.promise(() => {
          child.kill("SIGKILL")
          return ended
        }),
    ).pipe(Effect.map(({ connection }) => connection))
