import { mkdirSync, readdirSync, renameSync } from "node:fs"
import { Effect, Logger } from "effect"
import * as fc from "fast-check"
import { assert } from "vitest"
import { failing, startRanks, type World } from "../../test/trainer/ranks.ts"
import { type Action, makeModel } from "./runsModel.ts"

const id = fc.integer({ min: 0, max: 6 }).map((number) => `run_${number}`)
const config = fc.constantFrom("good" as const, "good" as const, "good" as const, "bad" as const)
const failsOn = fc.oneof({ weight: 6, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat(3) })
const index = fc.nat(3)

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ _tag: fc.constant("Configure" as const), id, config, failsOn }) },
  { weight: 3, arbitrary: fc.record({ _tag: fc.constant("Delete" as const), id }) },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("Remake" as const), id, config, failsOn }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Unconfigure" as const), id }) },
  {
    weight: 2,
    arbitrary: fc.record({ _tag: fc.constant("Checkpoint" as const), id, step: fc.nat(30), complete: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("EvictByFile" as const), id }) },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("Readmit" as const), id }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Evict" as const), index, rank: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("Train" as const), index, steps: fc.nat(3) }) },
)

/** One turn of the trainer: actions before the master looks, and between that and the change on all ranks. */
interface Turn {
  readonly before: ReadonlyArray<Action>
  readonly between: ReadonlyArray<Action>
}

export const turns = (most: number, least = 1): fc.Arbitrary<ReadonlyArray<Turn>> =>
  fc.array(
    fc.record({
      before: fc.array(action, { maxLength: 3, size: "max" }),
      between: fc.oneof(
        { weight: 3, arbitrary: fc.constant([]) },
        { weight: 1, arbitrary: fc.array(action, { maxLength: 2 }) },
      ),
    }),
    { minLength: least, maxLength: most, size: "max" },
  )

/** A new folder gets its content before its name, as a user would move it into place. */
const addFolder = (world: World, id: string, text: string): void => {
  world.files.write(`new/configs/orch.toml`, text)
  renameSync(world.files.at("new"), world.files.at(id))
}

const perform = Effect.fnUntraced(function* (world: World, action: Action) {
  const { files, master, ranks } = world
  const isThere = "id" in action && files.has(action.id)
  switch (action._tag) {
    case "Configure":
    case "Remake": {
      const text = action.config === "bad" ? "max_steps = 0" : `seed = ${action.failsOn ?? 1000}`
      if (action._tag === "Configure" && isThere) return files.add(action.id, text)
      files.remove(action.id)
      return addFolder(world, action.id, text)
    }
    case "Delete":
      return files.remove(action.id)
    case "Unconfigure":
      return files.remove(`${action.id}/configs/orch.toml`)
    case "Checkpoint": {
      const folder = `${action.id}/checkpoints/step_${action.step}`
      if (isThere && action.complete) return files.write(`${folder}/STABLE`, "")
      if (isThere) return void mkdirSync(files.at(folder), { recursive: true })
      return
    }
    case "EvictByFile":
      if (isThere) files.write(`${action.id}/control/evicted.txt`, "by the user")
      return
    case "Readmit":
      return files.remove(`${action.id}/control/evicted.txt`)
    case "Evict":
      return yield* (ranks[action.rank] ?? master).evict(action.index, "by a rank")
    case "Train": {
      const run = master.slot(action.index)
      if (run === undefined) return
      run.progress.step += action.steps
      run.readyToUpdate = true
    }
  }
})

/** Returns the state of the real ranks in the form of the model's `view`. All ranks must be in the same state. */
const viewOf = Effect.fnUntraced(function* ({ files, master, ranks, directory }: World) {
  const slotsOf = (runs: (typeof ranks)[number]) =>
    Array.from({ length: runs.maxRuns }, (_, index) => {
      const run = runs.slot(index)
      return run && { id: run.id, step: run.progress.step, ready: run.readyToUpdate }
    })
  for (const runs of ranks) {
    assert.deepStrictEqual(slotsOf(runs), slotsOf(master))
    assert.deepStrictEqual([...runs.usedIndices(), ...runs.unusedIndices()].toSorted(), [...Array(runs.maxRuns).keys()])
    for (const { id, index } of runs.slots()) {
      assert.strictEqual(runs.idToIndex(id), index)
      assert.strictEqual(runs.indexToId(index), id)
    }
  }
  const { waiting, invalid, evicted, unconfigured } = yield* master.status
  const folders = readdirSync(directory).toSorted()
  return {
    folders,
    slots: slotsOf(master),
    waiting: waiting.map(({ id }) => id),
    invalid: invalid.map(({ id }) => id),
    evicted: evicted.map(({ id }) => id),
    unconfigured: [...unconfigured],
    evictedFiles: folders.filter((id) => files.has(`${id}/control/evicted.txt`)),
  }
})

/** Checks real ranks against the model, turn by turn. */
export const followsModel = (ranks: number, maxConcurrentRuns: number, all: ReadonlyArray<Turn>): Promise<void> =>
  Effect.gen(function* () {
    const world = yield* startRanks(ranks, { maxConcurrentRuns })
    const model = makeModel(ranks, maxConcurrentRuns)
    const wrongSeed = (rank: number) =>
      failing<{ config: { seed: number } }>("as asked", ({ config }) => config.seed === rank)
    for (let rank = 0; rank < ranks; rank++) yield* world.register({ creation: wrongSeed(rank) }, rank)
    const perform1 = Effect.fnUntraced(function* (actions: ReadonlyArray<Action>) {
      for (const one of actions) {
        yield* perform(world, one)
        model.act(one._tag === "Evict" && one.rank >= ranks ? { ...one, rank: 0 } : one)
      }
    })
    const together = Effect.forEach(world.ranks, ({ syncRuns }) => syncRuns, { concurrency: "unbounded" })
    for (const { before, between } of all) {
      yield* perform1(before)
      yield* world.master.checkForChanges
      model.scan()
      yield* perform1(between)
      yield* together
      model.sync()
      assert.deepStrictEqual(yield* viewOf(world), model.view())
      for (const [rank, log] of world.logs.entries())
        assert.deepStrictEqual(log.splice(0), model.logs[rank].splice(0), `rank ${rank}`)
    }
  }).pipe(Effect.scoped, Effect.provide(Logger.layer([])), Effect.runPromise)
