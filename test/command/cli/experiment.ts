import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { stringify } from "yaml"
import { LmRequest } from "../../../src/agents/lm/Chat.ts"
import { reader } from "../../../src/agents/lm/providers/reader.ts"
import { type Body, type Fault, faults, type Options, overloaded, serve, type Server } from "../../agents/lm/server.ts"

/** An experiment of agents that talk, as people write it, and the server that it asks. */

type Plain = Readonly<Record<string, unknown>>

export interface Wanted {
  readonly tasks?: number
  readonly heldOut?: number
  readonly lm?: Plain
  readonly agent?: Plain
  readonly runtime?: Plain
  readonly output?: Plain
  /** Anything else, or in the place of what is there. */
  readonly more?: Plain
}

/** Words of a code, which an agent that remembers gets right: the file that the README's is like, but smaller. */
export const experiment = ({ tasks = 40, heldOut = 8, lm, agent, runtime, output, more }: Wanted = {}): string =>
  stringify({
    train_dataset: { type: "codebook", num_tasks: tasks, words: 8, seed: 1 },
    validation_dataset: { type: "codebook", num_tasks: heldOut, words: 8, seed: 2 },
    agent: {
      type: "reflexion_agent",
      lm_config: { model: "scripted:reader", log_calls: true, starting_delay: 0.001, max_delay: 0.004, ...lm },
      ...agent,
    },
    runtime: {
      max_steps_per_episode: 50,
      scores_path: "scores.jsonl",
      validation_freq: 20,
      validation_num_workers: 100,
      run_validation_at_start: true,
      checkpoint_every_episodes: 5,
      checkpoint_strategy: "last_n",
      checkpoint_keep_last: 5,
      ...runtime,
    },
    output: { results_dir: "outputs/my_experiment", ...output },
    ...more,
  })

/** Answers a request to a server as `scripted:reader` does. */
export const readerOf = ({ model, messages }: Body): string =>
  reader({
    ...LmRequest.defaults,
    model,
    messages: messages.flatMap(({ role, content }) =>
      (role === "system" || role === "user" || role === "assistant") && typeof content === "string"
        ? [{ role, content }]
        : [],
    ),
  })

const impatient: Fault = { kind: "status", status: 429, headers: { "retry-after": "0.001" } }
const kinds: ReadonlyArray<Fault> = [
  impatient,
  overloaded,
  { kind: "garbled" },
  { kind: "dropped" },
  { kind: "reset" },
  { kind: "body", body: "{" },
]

/** A share of all tries goes wrong, each in its own way. */
export const someFaults = (seed: number, share: number) => faults({ seed, share, kinds })

export const withServer = <A>(options: Options, body: (server: Server) => Promise<A>): Promise<A> =>
  Effect.runPromise(
    Effect.scoped(Effect.flatMap(serve({ say: readerOf, ...options }), (server) => Effect.promise(() => body(server)))),
  )

/** Gives the `lm_config` of a server. */
export const at = ({ url }: Server): Plain => ({ model: "vllm:reader", base_url: `${url}/v1`, max_retries: 8 })

/** Every file and link below a folder, by its path there. */
export const filesIn = (folder: string): ReadonlyArray<string> =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => !entry.isDirectory())
        .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
        // It follows links.
        .filter((path) => !path.includes("/latest/"))
        .sort()
    : []

/** The folders of runs that lie where their file says, oldest first. */
export const runsBelow = (folder: string): ReadonlyArray<string> =>
  existsSync(folder)
    ? readdirSync(folder)
        .sort()
        .map((name) => join(folder, name))
        .filter((run) => existsSync(join(run, "config.yaml")))
    : []

/** These keys hold times, places, costs, or sizes of lines with times in them, so they differ between equal runs. */
const beside = new Set([
  "timestamp",
  "timestamp_end",
  "step_start",
  "step_end",
  "started_at_millis",
  "ended_at_millis",
  "duration_ms",
  "latency_ms",
  "wall_seconds",
  "trainer_seconds",
  "seconds",
  "steps_per_second",
  "run_dir",
  "spent",
  "cache",
  "appended",
])

export const timeless = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(timeless)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, one]) => (beside.has(key) ? [] : [[key, timeless(one)]])),
  )
}

export const linesOf = (file: string): ReadonlyArray<Plain> =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))

export const jsonOf = (file: string) => JSON.parse(readFileSync(file, "utf8"))

/** Files that tell of the process, and not of what it did. */
const ofTheProcess = new Set([
  "run.lease",
  "run.log",
  "system.jsonl",
  "logs.tfevents",
  "git.json",
  "git.diff",
  "config.yaml",
  "config.json",
])

/** All that a run has come to, but for the clock: every file by its path, as far as two runs of the same must be equal. */
export const comparable = (run: string): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    filesIn(run)
      .filter((path) => !ofTheProcess.has(path) && !/(^|\/)(latest|manifest\.json)$/.test(path))
      .map((path) => {
        const file = join(run, path)
        if (path.endsWith(".jsonl")) return [path, linesOf(file).map(timeless)]
        return [path, path.endsWith(".json") ? timeless(jsonOf(file)) : readFileSync(file, "utf8")]
      }),
  )
