import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beginInProcess, type Running } from "./inProcess.ts"
import { fromSources, launcher, root } from "./launcher.ts"

export { root }

export interface Outcome {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Started {
  readonly child: ChildProcess
  readonly ended: Promise<Outcome>
}

export interface StartOptions {
  /** The process leads a group, with all that it starts, that can be killed at once. */
  readonly detached?: boolean
  readonly env?: NodeJS.ProcessEnv
  /** The process runs the sources also by `--mode all`: to be compared with this process, which runs them. */
  readonly fromSources?: boolean
}

/** Starts the real command in a process of its own: for what only a process shows, such as signals and kills. */
export const start = (args: ReadonlyArray<string>, cwd = root, options: StartOptions = {}): Started => {
  const { bin, env } = (options.fromSources ? fromSources : launcher)(options.env)
  const { detached = false } = options
  const child = spawn(process.execPath, [bin, ...args], { cwd, detached, env, stdio: ["ignore", "pipe", "pipe"] })
  let stdout = ""
  let stderr = ""
  child.stdout.on("data", (chunk) => (stdout += String(chunk)))
  child.stderr.on("data", (chunk) => (stderr += String(chunk)))
  const ended = new Promise<Outcome>((resolve) => {
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
  return { child, ended }
}

/** Runs the command in this process, in the given folder. Calls wait for each other: a process has one working directory. */
export const effect = (args: ReadonlyArray<string>, cwd = root): Promise<Outcome> => begin(args, cwd).ended

/** Starts the command as `effect` does, and returns what is needed to interrupt it, as Ctrl-C would. */
export const begin = (args: ReadonlyArray<string>, cwd = root): Running => beginInProcess(args, cwd)

/** Waits for what no event tells of: a file that is written, a line in it. */
export const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** Tells whether a run has begun to learn: it has a log, and scores. */
export const isTraining = (run: string): boolean =>
  existsSync(join(run, "run.log")) && sizeOf(join(run, "scores/train/scores.jsonl")) > 0

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

/** A folder inside the checkout, so that programs in it can import `effect-rl`; gone after the test. */
export const withFolder = async <A>(body: (folder: string) => Promise<A>): Promise<A> => {
  const folder = mkdtempSync(join(root, ".tmp-"))
  try {
    return await body(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export const write = (folder: string, name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

/** Parses the line that `--json` printed. */
export const resultOf = ({
  stdout,
}: Outcome): { readonly digest: string; readonly runDir: string; readonly [key: string]: unknown } =>
  JSON.parse(stdout.trim().split("\n").at(-1) ?? "null")

/** A training of a second or less, as a program. */
export const program = (settings: string, imports = "CartPole, Ppo, Train"): string =>
  `import { ${imports} } from "effect-rl"\nexport default Train.run({ env: CartPole.env, numEnvs: 4, algorithm: Ppo.make({ nsteps: 32 }), totalSteps: 2048, ${settings} })\n`
