import { Effect, Stream } from "effect"
import type { Hooks, RunSlot } from "../../src/multirun/RunSlot.ts"
import type { Runs } from "../../src/multirun/Runs.ts"
import { parse } from "../../src/multirun/OrchestratorConfig.ts"

/** A `Runs` of one rank in which a test adds and removes runs. */
export const fakeRuns = (maxRuns = 8) => {
  const slots = new Map<number, RunSlot>()
  const hooks: Array<Hooks> = []
  const evicted: Array<{ readonly id: string; readonly reason: string }> = []
  let generations = 0
  const sorted = () => [...slots.values()].sort((a, b) => a.index - b.index)
  const remove = (index: number) =>
    Effect.gen(function* () {
      const run = slots.get(index)
      if (run === undefined) return
      slots.delete(index)
      for (const { deletion } of hooks) yield* deletion?.(run) ?? Effect.void
    })
  const add = Effect.fnUntraced(function* (index: number, directory: string, step = 0) {
    const run: RunSlot = {
      index,
      id: directory.slice(directory.lastIndexOf("/") + 1),
      generation: ++generations,
      directory,
      config: yield* parse("", "orch.toml"),
      progress: { step, totalTokens: 0, totalSamples: 0 },
      readyToUpdate: false,
    }
    slots.set(index, run)
    for (const { creation } of hooks) yield* creation?.(run) ?? Effect.void
    for (const { postCreation } of hooks) yield* postCreation?.(run) ?? Effect.void
    return run
  })
  /** The evictions that were asked for and take effect at the next `syncRuns`. */
  const asked: Array<number> = []
  const runs: Runs["Service"] = {
    rank: 0,
    isMaster: true,
    maxRuns,
    register: (more) => Effect.sync(() => void hooks.push(more)),
    checkForChanges: Effect.void,
    syncRuns: Effect.suspend(() => Effect.forEach(asked.splice(0), remove, { discard: true })).pipe(Effect.orDie),
    awaitRun: Effect.void,
    pause: Effect.void,
    evict: (index, reason) =>
      Effect.sync(() => {
        evicted.push({ id: slots.get(index)?.id ?? "", reason })
        asked.push(index)
      }),
    status: Effect.succeed({ waiting: [], invalid: [], evicted, unconfigured: [] }),
    changes: Stream.empty,
    slots: sorted,
    slot: (index) => slots.get(index),
    idToIndex: (id) => sorted().find((run) => run.id === id)?.index,
    indexToId: (index) => slots.get(index)?.id,
    usedIndices: () => sorted().map(({ index }) => index),
    unusedIndices: () => Array.from({ length: maxRuns }, (_, index) => index).filter((index) => !slots.has(index)),
    readyToUpdateIndices: () => sorted().flatMap(({ index, readyToUpdate }) => (readyToUpdate ? [index] : [])),
    progress: (index) => slots.get(index)?.progress,
    config: (index) => slots.get(index)?.config,
  }
  return { runs, add, remove, evicted }
}
