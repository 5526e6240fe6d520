import { cpSync, existsSync, readdirSync, rmSync, statSync } from "node:fs"
import { Effect, Logger } from "effect"
import { assert, describe, it } from "vitest"
import { diskError } from "../run/store/brokenDisk.ts"
import { type BadDisk, makeBadDisk } from "./badDisk.ts"
import { failing, startRanks, type World } from "./ranks.ts"

const onDisk = (body: (world: World, disk: BadDisk) => Effect.Effect<void, unknown>, ranks = 1) =>
  Effect.suspend(() => {
    const { disk, layer } = makeBadDisk()
    return Effect.flatMap(startRanks(ranks, {}, layer), (world) => body(world, disk))
  }).pipe(Effect.scoped, Effect.provide(Logger.layer([])), Effect.runPromise)

const problem = "configs/config_validation_error.txt"

/** Copies a folder until the copy has another time of birth: the clock of a file system may stand still for milliseconds. */
const copyLater = (from: string, to: string): void => {
  const birth = (folder: string): number => statSync(folder).birthtime.getTime()
  do {
    rmSync(to, { recursive: true, force: true })
    cpSync(from, to, { recursive: true })
  } while (birth(to) === birth(from))
}

describe("a full disk", () => {
  it("keeps no run from being trained or evicted, and the reasons are written once there is room", () =>
    onDisk(({ files, turn, ids, master }, disk) =>
      Effect.gen(function* () {
        files.add("run_a")
        files.add("run_b", "broken")
        files.add("run_c")
        disk.before = (operation) => (operation === "writeFileString" ? diskError("ENOSPC") : undefined)
        yield* turn
        assert.strictEqual(ids(), "run_a run_c")
        yield* master.evict(0, "not a number")
        yield* turn
        yield* turn
        assert.strictEqual(ids(), "- run_c")
        assert.isFalse(files.has("run_a/control/evicted.txt"))
        assert.deepStrictEqual((yield* master.status).evicted, [{ id: "run_a", reason: "not a number" }])
        assert.isFalse(files.has(`run_b/${problem}`))
        assert.deepStrictEqual(readdirSync(files.at("run_a/control")), [])
        disk.before = () => undefined
        yield* turn
        assert.strictEqual(files.text("run_a/control/evicted.txt"), "not a number\n")
        assert.match(files.text(`run_b/${problem}`) ?? "", /orch\.toml:1: expected TOML/)
        assert.strictEqual(ids(), "- run_c")
        files.remove("run_a/control/evicted.txt")
        yield* turn
        assert.strictEqual(ids(), "run_a run_c")
      }),
    ))

  it("leaves no half-written file behind", () =>
    onDisk(({ files, turn, ids }, disk) =>
      Effect.gen(function* () {
        files.add("run_a")
        files.add("run_b", "broken")
        disk.before = (operation) => (operation === "rename" ? diskError("ENOSPC") : undefined)
        yield* turn
        assert.strictEqual(ids(), "run_a -")
        assert.deepStrictEqual(readdirSync(files.at("run_a/control")), [])
        assert.deepStrictEqual(readdirSync(files.at("run_b/configs")), ["orch.toml"])
      }),
    ))

  it("does not hide that a folder was made again", () =>
    onDisk(({ files, turn, master }, disk) =>
      Effect.gen(function* () {
        files.add("run_a", "seed = 1")
        disk.before = (operation) => (operation === "writeFileString" ? diskError("ENOSPC") : undefined)
        yield* turn
        const { generation } = master.slot(0) ?? {}
        yield* turn
        assert.strictEqual(master.slot(0)?.generation, generation)
        // The new folder is made before the old one goes, so that it cannot get the same inode.
        files.write("new/configs/orch.toml", "seed = 2")
        files.remove("run_a")
        files.move("new", "run_a")
        yield* turn
        assert.strictEqual(master.config(0)?.seed, 2)
      }),
    ))
})

describe("a folder that was made again", () => {
  it("is told by its token where the file system has no numbers for folders", () =>
    onDisk(({ files, turn, master }, disk) =>
      Effect.gen(function* () {
        disk.hasNumbers = false
        files.add("run_a", "seed = 1")
        files.add("run_b", "seed = 2")
        yield* turn
        files.remove("run_a")
        files.add("run_a", "seed = 3")
        yield* turn
        assert.deepStrictEqual(
          master.slots().map(({ config }) => config.seed),
          [3, 2],
        )
        // A copy of another run has that run's token.
        files.remove("run_a")
        cpSync(files.at("run_b"), files.at("run_a"), { recursive: true })
        yield* turn
        assert.deepStrictEqual(
          master.slots().map(({ config }) => config.seed),
          [2, 2],
        )
        assert.strictEqual(master.idToIndex("run_a"), 0)
      }),
    ))

  it("is told by its numbers if it is a copy of itself", () =>
    onDisk(({ files, turn, master }) =>
      Effect.gen(function* () {
        files.add("run_a")
        yield* turn
        const { generation } = master.slot(0) ?? {}
        copyLater(files.at("run_a"), files.at("copy"))
        files.remove("run_a")
        files.move("copy", "run_a")
        yield* turn
        assert.notStrictEqual(master.slot(0)?.generation, generation)
        assert.strictEqual(master.indexToId(0), "run_a")
      }),
    ))
})

describe("a failing disk", () => {
  it("makes a config invalid that cannot be read, by the name of the file", () =>
    onDisk(({ files, turn, ids }, disk) =>
      Effect.gen(function* () {
        files.add("run_a")
        files.add("run_b")
        disk.before = (operation, path) =>
          operation === "readFile" && path.endsWith("run_a/configs/orch.toml") ? diskError("EIO") : undefined
        yield* turn
        assert.strictEqual(ids(), "run_b -")
        assert.strictEqual(
          files.text(`run_a/${problem}`),
          `${files.at("run_a/configs/orch.toml")}: the device failed to read or write\n`,
        )
        disk.before = () => undefined
        yield* turn
        assert.strictEqual(ids(), "run_b run_a")
      }),
    ))

  it("deletes no trained run whose folder or token cannot be read for a while", () =>
    onDisk(({ files, turn, ids, master }, disk) =>
      Effect.gen(function* () {
        files.add("run_a")
        yield* turn
        const { generation } = master.slot(0) ?? {}
        for (const failingOperation of ["stat", "readFile"]) {
          disk.before = (operation, path) =>
            operation === failingOperation && path.includes("run_a") ? diskError("EIO") : undefined
          yield* turn
          assert.strictEqual(master.slot(0)?.generation, generation)
        }
        disk.before = () => undefined
        files.remove("run_a")
        yield* turn
        assert.strictEqual(ids(), "- -")
      }),
    ))

  it("resumes no run from step 0 because its checkpoints cannot be read", () =>
    onDisk(({ files, turn, ids, master }, disk) =>
      Effect.gen(function* () {
        files.add("run_a")
        files.write("run_a/checkpoints/step_3/STABLE", "")
        disk.before = (operation, path) =>
          operation === "readDirectory" && path.endsWith("checkpoints") ? diskError("EIO") : undefined
        yield* turn
        assert.strictEqual(ids(), "- -")
        assert.match(
          files.text(`run_a/${problem}`) ?? "",
          /run_a\/checkpoints: cannot read the checkpoints: the device failed/,
        )
        disk.before = () => undefined
        yield* turn
        assert.strictEqual(master.progress(0)?.step, 3)
      }),
    ))
})

describe("a folder of configs that vanishes while its config is read", () => {
  it("is not made again for the message", () =>
    onDisk(({ files, turn, master }, disk) =>
      Effect.gen(function* () {
        files.add("run_a", "broken")
        disk.before = (operation, path) => {
          if (operation === "writeFileString" && path.includes("run_a")) files.remove("run_a/configs")
          return undefined
        }
        yield* turn
        assert.deepStrictEqual(readdirSync(files.at("run_a")), [])
        yield* turn
        assert.deepStrictEqual((yield* master.status).unconfigured, ["run_a"])
      }),
    ))
})

/** The lives of a run during which its folder may vanish at any moment. */
const lives: Readonly<Record<string, (world: World) => Effect.Effect<void, unknown>>> = {
  "is found and trained": ({ files, turn }) =>
    Effect.gen(function* () {
      files.add("run_a", "seed = 1")
      files.write("run_a/checkpoints/step_3/STABLE", "")
      yield* turn
      yield* turn
    }),
  "has a bad config": ({ files, turn }) =>
    Effect.gen(function* () {
      files.add("run_a", "broken")
      yield* turn
      yield* turn
    }),
  "is evicted": ({ files, turn, master }) =>
    Effect.gen(function* () {
      files.add("run_a", "seed = 1")
      yield* turn
      const old = master.slots().find(({ config }) => config.seed === 1)
      yield* master.evict(old?.index ?? 9, "as asked")
      yield* turn
      yield* turn
    }),
  "cannot be created": ({ files, turn, register }) =>
    Effect.scoped(
      Effect.gen(function* () {
        yield* register(
          {
            creation: failing<{ id: string; config: { seed: number } }>(
              "no",
              ({ id, config }) => id === "run_a" && config.seed === 1,
            ),
          },
          1,
        )
        files.add("run_a", "seed = 1")
        yield* turn
        yield* turn
      }),
    ),
}

/** A bad run, whose folder is written to, stays quick. */
const quick = "has a bad config"

describe("a folder that vanishes before any of the trainer's operations on it", () => {
  for (const [name, life] of Object.entries(lives)) {
    for (const isMadeAgain of [false, true]) {
      const after = isMadeAgain ? "the folder made again is a new run" : "is not made again"
      const tags = isMadeAgain && name === quick ? [] : "slow"
      it(`while its run ${name}: ${after}, and the other run goes on`, { tags }, async () => {
        let moments = 0
        for (let moment = 1; moment === moments + 1; moment++) {
          await onDisk(
            (world, disk) =>
              Effect.gen(function* () {
                const { files, turn, master, ranks } = world
                files.add("run_b", "seed = 7")
                let count = 0
                disk.before = (_, path) => {
                  if (!path.includes("run_a")) return undefined
                  if (++count !== moment) return undefined
                  moments = moment
                  files.remove("run_a")
                  if (isMadeAgain) files.add("run_a", "seed = 2")
                  return undefined
                }
                yield* life(world)
                const wasReached = count >= moment
                disk.before = () => undefined
                yield* turn
                yield* turn
                const place = `at operation ${moment}`
                for (const runs of ranks) assert.strictEqual(runs.config(runs.idToIndex("run_b") ?? 9)?.seed, 7, place)
                if (!wasReached) return
                for (const runs of ranks) {
                  const seed = runs.config(runs.idToIndex("run_a") ?? 9)?.seed
                  assert.strictEqual(seed, isMadeAgain ? 2 : undefined, place)
                }
                assert.strictEqual(existsSync(files.at("run_a")), isMadeAgain, place)
                if (isMadeAgain) {
                  assert.strictEqual(master.progress(master.idToIndex("run_a") ?? 9)?.step, 0, place)
                  assert.isFalse(files.has("run_a/control/evicted.txt"), place)
                  assert.isFalse(files.has(`run_a/${problem}`), place)
                }
              }),
            2,
          )
        }
        assert.isAbove(moments, 10)
      })
    }
  }
})
