import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, Effect, type FileSystem, Layer, type Scope } from "effect"
import { Runs, type RunsOptions } from "../../src/trainer/runs/Runs.ts"
import type { Hook, Hooks } from "../../src/trainer/runs/RunSlot.ts"
import { Store } from "../../src/trainer/store/Store.ts"

export const temporary = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "runs-"))),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true })),
)

/** The files of runs below an output folder, as an orchestrator and its user change them. */
export const filesIn = (directory: string) => {
  const at = (...parts: ReadonlyArray<string>): string => join(directory, ...parts)
  const write = (path: string, text: string): void => {
    mkdirSync(join(path, ".."), { recursive: true })
    writeFileSync(path, text)
  }
  return {
    at,
    write: (path: string, text: string) => write(at(path), text),
    add: (id: string, config = "") => write(at(id, "configs", "orch.toml"), config),
    remove: (path: string) => rmSync(at(path), { recursive: true, force: true }),
    move: (from: string, to: string) => renameSync(at(from), at(to)),
    has: (path: string) => existsSync(at(path)),
    text: (path: string) => (existsSync(at(path)) ? readFileSync(at(path), "utf8") : undefined),
  }
}

/** Returns hooks that add a line to a log at each moment. */
export const logging = (log: Array<string>, name = ""): Hooks => {
  const line =
    (moment: string) => (run: { readonly id: string; readonly generation?: number; readonly index?: number }) =>
      Effect.sync(
        () =>
          void log.push(
            [name, moment, run.id, run.index].filter((part) => part !== "" && part !== undefined).join(" "),
          ),
      )
  return {
    creation: line("creation"),
    postCreation: line("postCreation"),
    deletion: line("deletion"),
    discovered: line("discovered"),
    forgotten: line("forgotten"),
    invalid: line("invalid"),
  }
}

export const failing =
  <Run>(message: string, when: (run: Run) => boolean = () => true): Hook<Run> =>
  (run) =>
    when(run) ? Effect.fail({ message }) : Effect.void

export interface World {
  readonly directory: string
  readonly files: ReturnType<typeof filesIn>
  readonly ranks: ReadonlyArray<Runs["Service"]>
  readonly master: Runs["Service"]
  /** The log of each rank's hooks. */
  readonly logs: ReadonlyArray<Array<string>>
  /** Registers hooks on one rank, or on all. */
  readonly register: (hooks: Hooks, rank?: number) => Effect.Effect<void, never, Scope.Scope>
  /** Looks for changes on the master, and changes the runs on all ranks together. */
  readonly turn: Effect.Effect<void, unknown>
  /** Returns the ids at the indices, with `-` for a free one, as all ranks agree. */
  readonly ids: () => string
}

/** Starts ranks in this process, over a folder that is removed at the end. */
export const startRanks = Effect.fnUntraced(function* (
  count: number,
  options: Partial<RunsOptions> = {},
  platform: Layer.Layer<FileSystem.FileSystem> | undefined = undefined,
) {
  const directory = options.outputDirectory ?? (yield* temporary)
  const store = Store.memory()
  const services = platform === undefined ? NodeServices.layer : Layer.merge(NodeServices.layer, platform)
  const ranks: Array<Runs["Service"]> = []
  const logs: Array<Array<string>> = []
  for (let rank = 0; rank < count; rank++) {
    const layer = Runs.layer({
      outputDirectory: directory,
      maxConcurrentRuns: 2,
      watch: false,
      ...options,
      rank,
      ranks: count,
    })
    const context = yield* Layer.build(Layer.provide(layer, [store, services]))
    const runs = Context.get(context, Runs)
    const log: Array<string> = []
    yield* runs.register(logging(log))
    ranks.push(runs)
    logs.push(log)
  }
  const together = Effect.forEach(ranks, ({ syncRuns }) => syncRuns, { concurrency: "unbounded", discard: true })
  const idsOf = (runs: Runs["Service"]): string =>
    Array.from({ length: runs.maxRuns }, (_, index) => runs.indexToId(index) ?? "-").join(" ")
  const world: World = {
    directory,
    files: filesIn(directory),
    ranks,
    master: ranks[0],
    logs,
    register: (hooks, rank) =>
      Effect.forEach(rank === undefined ? ranks : [ranks[rank]], (runs) => runs.register(hooks), { discard: true }),
    turn: Effect.andThen(ranks[0].checkForChanges, together),
    ids: () => {
      const all = [...new Set(ranks.map(idsOf))]
      return all.join(" | ")
    },
  }
  return world
})
