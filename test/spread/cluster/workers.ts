import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { type Outcome, start, type Started, type StartOptions, until } from "../../command/cli/effect.ts"

/** A worker process, and the lines that it has printed. */
export interface Worker extends Started {
  readonly lines: () => ReadonlyArray<string>
  /** Waits until a line of the worker matches. */
  readonly says: (pattern: RegExp) => Promise<void>
}

/** Starts `effect worker`. */
export const startWorker = (
  url: string,
  cwd: string,
  more: ReadonlyArray<string> = [],
  options: StartOptions = {},
): Worker => watched(start(["worker", "--join", url, ...more], cwd, options))

const running = new Set<Started>()

/** Kills the processes that a failed test left. */
export const killAll = async (): Promise<void> => {
  for (const { child, ended } of running) {
    child.kill("SIGKILL")
    await ended
  }
}

/** Reads the lines of a process while it runs. */
export const watched = (started: Started): Worker => {
  let text = ""
  let isOver = false
  started.child.stderr?.on("data", (chunk) => (text += String(chunk)))
  running.add(started)
  void started.ended.then(() => {
    isOver = true
    running.delete(started)
  })
  const says = async (pattern: RegExp): Promise<void> => {
    await until(() => pattern.test(text) || isOver)
    if (!pattern.test(text)) throw new Error(`the process ended without ${pattern}: ${text}`)
  }
  return { ...started, lines: () => text.split("\n"), says }
}

/** Ends a worker as Ctrl-C does. */
export const interrupted = async (worker: Worker): Promise<Outcome> => {
  worker.child.kill("SIGINT")
  return worker.ended
}

/**
 * A training's settings that keep only its last checkpoint. A run whose worker is interrupted or killed can save one more
 * checkpoint. If several were kept, that one could remain in the place of another.
 */
export const lastCheckpointOnly = 'checkpoint: { strategy: { _tag: "LastN", keep: 1 } }'

/** The files of a run that measure time, or that have digests of such files, or that name the machine or a folder. */
const ofThisMachine =
  /^(run\.(log|lease)|logs\.tfevents|system\.jsonl|git\.(json|diff)|sweep\.txt|checkpoints\/.*(runtime|manifest|latest)\.json)$/

const timed =
  /"(duration_ms|retries|attempts|timestamp\w*|step_start|step_end|run_dir|wall_seconds|steps_per_second|\w*_seconds|runDir|wallSeconds|stepsPerSecond)": ?("[^"]*"|[^,}\n]*)/g

/**
 * Returns the content of each file of a run, by its path, without times, the names of folders, and how often a model was asked
 * again because its server could not be reached.
 */
export const contentOf = (run: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readdirSync(run, { recursive: true, encoding: "utf8" })
      .filter((path) => statSync(join(run, path)).isFile() && !ofThisMachine.test(path))
      .sort()
      .map((path) => {
        const bytes = readFileSync(join(run, path))
        // A row ends with calls, retries, two numbers of tokens, cost, duration and error.
        const ending = /,\d+,(\d+,\d+,[\d.]*),[\d.]+,([^,\n]*)$/gm
        if (path === "table.csv") return [path, bytes.toString("utf8").replaceAll(ending, ",,$1,,$2")]
        return [
          path,
          /\.(json|jsonl|yaml|txt)$/.test(path)
            ? bytes.toString("utf8").replaceAll(timed, "")
            : bytes.toString("base64"),
        ]
      }),
  )
