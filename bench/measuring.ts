/** Runs benchmarks and other programs in processes of their own, and reads what they measured. */
import { fork, spawn, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { atEnd } from "./atEnd.ts"
import type { Measurement } from "./Bench.ts"

/** Where and how a benchmark runs. */
export interface Place {
  /** The folder of the project; that of this file when left out. */
  readonly root?: string
  /** Additional environment variables. */
  readonly variables?: Readonly<Record<string, string>>
  /** The processors that the process may use, as `taskset` takes them: `0` or `0,1`. All when left out. */
  readonly pin?: string | undefined
}

const here = fileURLToPath(new URL("..", import.meta.url))

/** Runs a benchmark; `file` is the name of its file in `bench/benches`. */
export const measure = async (
  name: string,
  file: string,
  { root = here, variables = {}, pin }: Place = {},
): Promise<Measurement> => {
  const child = fork(join(root, "bench/one.ts"), [join(root, "bench/benches", file), name], {
    cwd: root,
    stdio: ["ignore", 2, 2, "ipc"],
    env: { ...process.env, ...variables },
    ...(pin === undefined ? {} : { execPath: "taskset", execArgv: ["-c", pin, process.execPath] }),
  })
  let measured: Measurement | undefined
  child.on("message", (message: Measurement) => (measured = message))
  const end = await endOf(child)
  if (measured === undefined) throw new Error(`${name} ended with ${end} before it sent a result`)
  return measured
}

/** A program that measures itself. */
export interface Command {
  readonly program: string
  readonly args: ReadonlyArray<string>
  /** Environment variables of its own; one that is undefined is not passed on to it. */
  readonly variables?: Readonly<Record<string, string | undefined>>
  /** Finds the value in what the program prints. */
  readonly value: RegExp
}

/** Makes an empty folder, which is deleted by `remove`, or when this process ends. */
export const temporaryFolder = (): { readonly folder: string; readonly remove: () => void } => {
  const folder = mkdtempSync(join(tmpdir(), "effect-rl-bench-"))
  return { folder, remove: atEnd(() => rmSync(folder, { recursive: true, force: true })) }
}

/** Runs a program in an empty folder, and returns the value that it prints. */
export const valueOf = async ({ program, args, variables, value }: Command, pin?: string): Promise<number> => {
  const [file, ...rest] = pin === undefined ? [program, ...args] : ["taskset", "-c", pin, program, ...args]
  const { folder: cwd, remove } = temporaryFolder()
  try {
    const child = spawn(file, rest, { cwd, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...variables } })
    let [printed, errors] = ["", ""]
    child.stdout.on("data", (bytes: Buffer) => (printed += bytes.toString()))
    child.stderr.on("data", (bytes: Buffer) => (errors += bytes.toString()))
    const end = await endOf(child)
    const [, found] = value.exec(printed) ?? []
    if (end === 0 && found !== undefined) return Number(found)
    throw new Error(`${program} ended with ${end}: ${lastLine(errors) ?? "it printed no value"}`)
  } finally {
    remove()
  }
}

/**
 * Waits until a process has ended and its output is read; returns its exit code, or the name of the signal. The process is
 * ended with this one.
 */
const endOf = (child: ReturnType<typeof spawn>): Promise<number | string | null> => {
  const end = atEnd(() => child.kill())
  return new Promise<number | string | null>((resolve, reject) => {
    child.on("error", reject)
    child.on("close", (code, signal) => resolve(signal ?? code))
  }).finally(end)
}

const lastLine = (text: string): string | undefined => text.trim().split("\n").at(-1) || undefined

/** Runs a program; returns undefined if it ends without an error, and otherwise a sentence that says why not. */
export const failureOf = (program: string, ...args: ReadonlyArray<string>): string | undefined => {
  const { error, status, stderr } = spawnSync(program, args, { encoding: "utf8" })
  if (error !== undefined) return `${program} cannot be started: ${error.message}`
  return status === 0 ? undefined : `${program} ended with ${status}: ${lastLine(stderr) ?? "it printed nothing"}`
}
