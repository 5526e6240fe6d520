/**
 * Starts programs that step envs, as processes of this machine. A program gets requests on its standard input and writes
 * replies to its standard output. When its input closes, the process that started it has ended, in whatever way, and the
 * program ends, too.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { Effect, Option, Schema } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import { jsonText } from "../../base/text/jsonText.ts"
import { messageOf, oneLine } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { EnvError, invalid } from "../../base/EnvError.ts"
import { killGroup } from "./group-node.ts"
import { partsOfLimit, wasStopped } from "./timeLimit.ts"
import { environmentOf } from "../../base/trust/environment.ts"
import {
  type Connect,
  type Connection,
  headerSize,
  isStatus,
  mostReplyBytes,
  type Reply,
  status,
} from "./Connection.ts"

export interface Command {
  /** The program and its arguments. */
  readonly command: ReadonlyArray<string>
  /** The program's working directory. Default: the working directory of this process. */
  readonly cwd?: string | undefined
  /** The number of seconds after which a request without a reply fails. Default: 60. */
  readonly timeoutSeconds?: number | undefined
  /**
   * The names of the environment variables that the program gets, besides the common ones of `environment.ts`. Default: none.
   */
  readonly variables?: ReadonlyArray<string> | undefined
  /** How to install the program, which the error names if the program is missing. */
  readonly install?: string
}

/** The number of characters of a program's standard error that an error message may quote. */
const mostErrorText = 2000

const cannotStart = (
  id: string,
  { command: [program], install }: Command,
  error: { readonly code?: unknown; readonly message: string },
): EnvError => {
  const problem = error.code === "ENOENT" ? `${program} was not found` : error.message
  return invalid(id, `cannot start its program: ${problem}${install === undefined ? "" : `; ${install}`}`)
}

/** Returns the environment of a program. Throws an `EnvError` if a variable that the program needs is not set. */
const environmentFor = (id: string, { variables = [] }: Command): Readonly<Record<string, string>> => {
  const environment = environmentOf(variables, (name) => process.env[name])
  if ("env" in environment) return environment.env
  throw invalid(id, `variables: the environment variable ${environment.missing} is not set`)
}

/** The largest number of bytes in the body of a reply that says why a request failed. */
const mostFailureBytes = 2 ** 24

/** Returns the last line of what a program wrote to its standard error, as the end of a message. */
const quoted = (errorText: string): string => {
  const last = errorText.trimEnd().split("\n").at(-1) ?? ""
  return last === "" ? "" : `: ${oneLine(last)}`
}

/** The number of bytes of a wrong output that an error message may quote. */
const mostQuotedBytes = 80

/**
 * Describes an output that is not a reply, such as the text of a `print`. `tooLong` is defined if the output announces a body
 * that is longer than a reply may be.
 */
const strayOutput = (bytes: Uint8Array, tooLong?: { readonly length: number; readonly most: number }): string => {
  const [line] = utf8.decode(bytes.subarray(0, mostQuotedBytes)).split("\n")
  const quote = /^\P{Cc}+$/u.test(line) ? `: ${JSON.stringify(line)}` : ""
  const announced =
    tooLong === undefined ? "" : ` (a reply would have ${tooLong.length} bytes; expected ${tooLong.most} at most)`
  return `wrote something to its standard output that is no reply${announced}${quote}; only replies belong there, so print to standard error instead`
}

/**
 * The code of the keeper: a process that starts a program as the leader of a process group, and kills the whole group when
 * the program ends, or when the keeper itself is to end, for example at a time-out or Ctrl-C. The keeper writes to its file
 * descriptor 3 how the program ended.
 *
 * `spawnSync` alone could start such a group, too, but not end it in time: while it waits, this process does not notice
 * Ctrl-C, and it waits as long as any process of the group keeps the outputs open.
 */
const keeper = `
const [nodeOptions, program, ...args] = process.argv.slice(1)
if (nodeOptions !== "") process.env.NODE_OPTIONS = nodeOptions
const child = require("node:child_process").spawn(program, args, { stdio: "inherit", detached: true })
const end = () => { try { process.kill(-child.pid, "SIGKILL") } catch {} }
const report = (outcome) => { end(); try { require("node:fs").writeSync(3, JSON.stringify(outcome)) } finally { process.exit() } }
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, end)
child.on("error", ({ code, message }) => report({ status: null, signal: null, error: { code, message } }))
child.on("exit", (status, signal) => report({ status, signal }))`

/** The report of the keeper: how the program ended, or why it could not be started. */
const Outcome = jsonText(
  Schema.Struct({
    status: Schema.NullOr(Schema.Int),
    signal: Schema.NullOr(Schema.String),
    error: Schema.optionalKey(Schema.Struct({ code: Schema.String, message: Schema.String })),
  }),
)

/** Runs a program to its end, and kills the processes that it has started. On Windows, these are not killed. */
const runOnce = (id: string, started: Command, input: Uint8Array) => {
  const {
    command: [program, ...args],
    cwd,
    timeoutSeconds = 60,
  } = started
  const options = { input, cwd, timeout: timeoutSeconds * 1000, maxBuffer: mostReplyBytes, windowsHide: true }
  const environment = environmentFor(id, started)
  if (process.platform === "win32") return spawnSync(program, args, { ...options, env: environment })
  // The program gets `NODE_OPTIONS`, but the keeper doesn't: an option such as a debugger's would make the keeper write to
  // its standard error.
  const { NODE_OPTIONS: nodeOptions = "", ...env } = environment
  const kept = spawnSync(process.execPath, ["-e", keeper, "--", nodeOptions, program, ...args], {
    ...options,
    env,
    stdio: ["pipe", "pipe", "pipe", "pipe"],
  })
  const outcome = Schema.decodeUnknownOption(Outcome)(String(kept.output?.[3] ?? ""))
  return { ...kept, ...Option.getOrUndefined(outcome) }
}

/**
 * Starts a program, sends it one request, and waits for the reply. It blocks this thread, because an env's spaces must be
 * known when the program makes the env. Throws an `EnvError` if there is no reply.
 */
export const askOnce = (id: string, options: Command, request: Uint8Array): Reply => {
  const { stdout, stderr, error, status, signal } = runOnce(id, options, request)
  if (error !== undefined && "code" in error && error.code !== "ETIMEDOUT") throw cannotStart(id, options, error)
  if (stdout !== null && stdout.length >= headerSize) {
    const length = stdout.readUInt32LE(0)
    const body = stdout.subarray(headerSize, headerSize + length)
    const replied = stdout.readUInt32LE(4)
    if (body.length === length && isStatus(replied)) return { status: replied, body }
  }
  const named = `its program (${options.command.join(" ")})`
  // A program that failed wrote the reason to its standard error.
  if (stdout !== null && stdout.length > 0 && (status === 0 || error !== undefined))
    throw invalid(id, `${named} ${strayOutput(stdout)}`)
  const reason =
    error === undefined ? `ended ${signal === null ? `with exit code ${status}` : `by ${signal}`}` : "did not answer"
  throw invalid(id, `${named} ${reason}${quoted(String(stderr ?? ""))}`)
}

/** Assembles replies from the pieces in which they arrive. */
interface Assembly {
  /**
   * Adds a piece of the output. Returns the reply if it is complete, and in `stray` a description of any output that is not a
   * reply. The body of a successful reply has at most `most` bytes.
   */
  readonly add: (piece: Buffer, most: number) => { readonly reply?: Reply; readonly stray?: string }
}

/** Assembles the messages of `protocol.ts`, which begin with their lengths. */
const messages = (): Assembly => new Messages()

/** Assembles replies of one line each. */
export const lines = (): Assembly => new Lines()

class Lines implements Assembly {
  private pieces: Array<Buffer> = []
  private length = 0

  add(piece: Buffer, most: number): { readonly reply?: Reply; readonly stray?: string } {
    this.pieces.push(piece)
    this.length += piece.length
    const end = piece.indexOf(10)
    if (end < 0) {
      const tooLong = { length: this.length, most }
      return this.length > most ? { stray: strayOutput(this.pieces[0], tooLong) } : {}
    }
    const whole = Buffer.concat(this.pieces, this.length)
    const at = this.length - piece.length + end
    this.pieces = []
    this.length = 0
    const reply = { status: status.done, body: whole.subarray(0, at) }
    return at + 1 === whole.length ? { reply } : { reply, stray: strayOutput(whole.subarray(at + 1)) }
  }
}

class Messages implements Assembly {
  private pieces: Array<Buffer> = []
  private length = 0

  add(piece: Buffer, most: number): { readonly reply?: Reply; readonly stray?: string } {
    this.pieces.push(piece)
    this.length += piece.length
    if (this.length < headerSize) return {}
    // The header may arrive in several pieces, which are then short enough to join.
    if (this.pieces[0].length < headerSize) this.pieces = [Buffer.concat(this.pieces)]
    const [length, outcome] = [this.pieces[0].readUInt32LE(0), this.pieces[0].readUInt32LE(4)]
    if (!isStatus(outcome)) return { stray: strayOutput(this.pieces[0]) }
    const allowed = outcome === status.done ? most : mostFailureBytes
    if (length > allowed) return { stray: strayOutput(this.pieces[0], { length, most: allowed }) }
    const wanted = headerSize + length
    if (this.length < wanted) return {}
    const whole = this.pieces.length === 1 ? this.pieces[0] : Buffer.concat(this.pieces, this.length)
    this.pieces = []
    this.length = 0
    const reply = { status: outcome, body: whole.subarray(headerSize, wanted) }
    return whole.length === wanted ? { reply } : { reply, stray: strayOutput(whole.subarray(wanted)) }
  }
}

interface Started {
  readonly connection: Connection
  /** Kills the process, and waits until it has ended. */
  readonly end: () => Promise<void>
}

// oxlint-disable-next-line max-lines-per-function -- the callbacks of one process share its few variables; split, they would pass them all
const start = (id: string, options: Command, replies: Assembly, described: string): Started => {
  const { timeoutSeconds = 60 } = options
  const [program, ...args] = options.command
  // If the limit of open files is reached, Node makes a child without streams, and emits the error later.
  const child: ChildProcess = spawn(program, args, {
    stdio: ["pipe", "pipe", "pipe"],
    cwd: options.cwd,
    env: environmentFor(id, options),
    // Ctrl-C in a terminal must reach only the run, which then ends the step and saves a checkpoint.
    detached: process.platform !== "win32",
    windowsHide: true,
  })
  let errorText = ""
  let waiting: ((reply: Reply | EnvError) => void) | undefined
  /** The largest number of bytes that the body of the expected reply may have. */
  let most = Infinity
  /** The reason why no further reply will come. */
  let lost: EnvError | undefined
  let timer: NodeJS.Timeout | undefined

  const part = (timeoutSeconds * 1000) / partsOfLimit
  /** Calls `late` when `left` parts of the time limit have passed without a reply. */
  const wait = (left: number, late: () => void): void => {
    const began = performance.now()
    timer = setTimeout(() => {
      if (wasStopped(part, performance.now() - began)) wait(left, late)
      else if (left > 1) wait(left - 1, late)
      else late()
    }, part)
  }
  const process_ = `the process of ${described}`
  const settle = (reply: Reply | EnvError): void => {
    clearTimeout(timer)
    const done = waiting
    waiting = undefined
    try {
      done?.(reply)
    } catch (error) {
      // This is called by an event of the process, where nobody else would learn of the exception.
      done?.(invalid(id, `${process_} sent a reply that cannot be used: ${messageOf(error)}`))
    }
  }
  const lose = (error: EnvError): void => {
    lost ??= error
    settle(lost)
  }
  const giveUp = (): void => {
    killGroup(child)
    lose(invalid(id, `${process_} did not answer within ${timeoutSeconds} seconds, so it was ended`))
  }

  child.stdout?.on("data", (piece: Buffer) => {
    if (lost !== undefined) return
    const { reply, stray } = waiting === undefined ? { stray: strayOutput(piece) } : replies.add(piece, most)
    if (reply !== undefined) settle(reply)
    if (stray === undefined) return
    killGroup(child)
    lose(invalid(id, `${process_} ${stray}`))
  })
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (errorText = (errorText + text).slice(-mostErrorText)))
  // Writing to a process that has ended fails; its end is reported below.
  child.stdin?.on("error", () => {})
  let hasEnded = false
  const ended = new Promise<void>((resolve) => {
    child.once("error", (error) => {
      lose(cannotStart(id, options, error))
      resolve()
    })
    child.once("close", (code, signal) => {
      hasEnded = true
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
    end: () => {
      // The id of an ended process may already belong to another process.
      if (!hasEnded) killGroup(child)
      // A process that has left the group may keep the outputs open, and "close" would wait for that.
      child.stdout?.destroy()
      child.stderr?.destroy()
      return ended
    },
    connection: {
      send: (request, mostBytes, done) => {
        if (lost !== undefined) return done(lost)
        most = mostBytes
        waiting = done
        wait(partsOfLimit, giveUp)
        child.stdin?.write(request)
      },
    },
  }
}

/**
 * Returns the function that starts a process for each connection. When the scope closes, it kills the process and those that
 * it has started. `assembly` joins the pieces of the process's output to replies.
 */
export const connectTo =
  (id: string, options: Command, assembly: () => Assembly = messages): Connect =>
  (described) =>
    Effect.acquireRelease(
      attempt(() => start(id, options, assembly(), described), EnvError),
      ({ end }) => Effect.promise(end),
    ).pipe(Effect.map(({ connection }) => connection))
