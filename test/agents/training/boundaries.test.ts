import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, FileSystem, Path } from "effect"
import * as MemorylessAgent from "../../../src/agents/agent/MemorylessAgent.ts"
import * as ReflexionAgent from "../../../src/agents/agent/ReflexionAgent.ts"
import { checkpointName } from "../../../src/run/Layout.ts"
import type { RunFiles } from "../../../src/run/store/RunStore.ts"
import { RunStoreError } from "../../../src/run/store/RunStoreError.ts"
import { tensorBoard } from "../../../src/run/record/tensorBoard.ts"
import { decode } from "../../../src/base/formats/tfevents.ts"
import { disk, temporaryDirectory } from "../../run/store/disk.ts"
import { below, folderOf, history, type Input, keep, lasting, type Place, runIn, tasks } from "./support.ts"

const input: Input = {
  agent: history,
  train: tasks(4),
  validation: tasks(2),
  seed: 3,
  runtime: { validationFreq: 2, runValidationAtStart: true, checkpointEveryEpisodes: 3 },
  output: { saveMemoryEvery: 1, saveRollouts: true },
}

/** Holds a run up where `stop` is waited for, until somebody has begun to stop it; gives what was there then, and after. */
const stopped = (place: (hold: Effect.Effect<void>) => Place, of: Input = input) =>
  Effect.gen(function* () {
    const reached = yield* Deferred.make<void>()
    const goOn = yield* Deferred.make<void>()
    const hold = Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(goOn))
    const run = runIn(place(hold), of)
    const fiber = yield* Effect.forkChild(Effect.exit(run.effect))
    yield* Effect.race(Deferred.await(reached), Fiber.await(fiber))
    const killed = new Map(run.files)
    const stopping = yield* Effect.forkChild(Fiber.interrupt(fiber))
    yield* Effect.yieldNow
    yield* Deferred.succeed(goOn, undefined)
    yield* Fiber.await(stopping)
    return { killed, interrupted: run.files, isFinished: isFinished(run.files) }
  })

const isFinished = (files: ReadonlyMap<string, Uint8Array>) => below(files, `${folderOf(files)}/`).has("return.json")

/** At its nth batch of events. */
const atBatch =
  (batch: number, place: Place = {}) =>
  (hold: Effect.Effect<void>): Place => {
    let emitted = 0
    const emit = () => Effect.suspend(() => (++emitted === batch ? hold : Effect.void))
    return { ...place, sinks: [tensorBoard, () => Effect.succeed({ emit, flush: Effect.void })] }
  }

/** Runs an agent's training to its end, and returns its digest and files. */
const played = Effect.fnUntraced(function* (of: Input, { sinks = [], ...place }: Place) {
  const { effect, files } = runIn({ ...place, sinks: [tensorBoard, ...sinks] }, of)
  const { digest } = yield* effect
  const own = below(files, `${folderOf(files)}/`)
  const { events } = decode(files.get(`${folderOf(files)}/logs.tfevents`) ?? new Uint8Array(0))
  return { digest, ...lasting(own), scalars: events.map(({ step, scalars }) => [step, scalars]) }
})

/** Stops a run wherever it tells of something, by both ways, and sees what becomes of it. */
const everywhere = Effect.fnUntraced(function* (of: Input, place: Place = {}) {
  const whole = yield* played(of, place)
  for (let batch = 1; ; batch++) {
    const { killed, interrupted, isFinished } = yield* stopped(atBatch(batch, place), of)
    if (isFinished) return batch
    for (const [how, files] of Object.entries({ killed, interrupted })) {
      const resumed = yield* played(of, { ...place, files, resume: folderOf(files) })
      assert.deepEqual(resumed, whole, `${how} at batch ${batch}`)
    }
  }
})

describe("a run that is stopped while it tells of something", () => {
  it.effect(
    "goes on as if it had not been, whatever that was",
    () =>
      Effect.gen(function* () {
        // More than there are episodes, validations and checkpoints.
        assert.isAbove(yield* everywhere(input), 20)
      }),
    { tags: "slow" },
  )

  it.effect(
    "goes on from where it had gone on from, too",
    () =>
      Effect.gen(function* () {
        const resumeFrom = yield* checkpointOf(
          { ...input, runtime: { ...input.runtime, checkpointEveryEpisodes: 1 } },
          1,
        )
        assert.isAbove(yield* everywhere({ ...input, runtime: { ...input.runtime, resumeFrom } }, { disk }), 15)
      }).pipe(Effect.scoped, Effect.provide(disk)),
    { tags: "slow" },
  )

  it.effect("keeps the memory that it was about to keep", () =>
    Effect.gen(function* () {
      const whole = yield* keep(input)
      for (let nth = 1; nth <= 4; nth++) {
        let asked = 0
        const { interrupted } = yield* stopped((hold) => ({
          broken: (run) =>
            withWrite(run, (file) => (file.startsWith("memories/") && ++asked === nth ? hold : Effect.void)),
        }))
        const resumed = yield* keep(input, { files: interrupted, resume: folderOf(interrupted) })
        assert.deepEqual(lasting(resumed.files), lasting(whole.files), `at the ${nth}. memory`)
      }
    }),
  )
})

describe("an agent without memory", () => {
  const memoryless: Input = {
    agent: MemorylessAgent.make({ model: "scripted:reader" }),
    train: tasks(2),
    validation: tasks(2),
    seed: 3,
    runtime: { validationFreq: 2, checkpointEveryEpisodes: 2 },
  }

  it.effect("is finished only when its last checkpoint has the score of the last validation", () =>
    Effect.gen(function* () {
      let finished = 0
      for (let batch = 1; batch <= 12; batch++) {
        const { interrupted, isFinished } = yield* stopped(atBatch(batch), memoryless)
        if (!isFinished) continue
        finished++
        const runtime = below(interrupted, `${folderOf(interrupted)}/`).get("checkpoints/ep_000002/runtime.json")
        assert.isNumber(JSON.parse(runtime ?? "")["val_score"], `at batch ${batch}`)
      }
      assert.isAbove(finished, 0)
      assert.isBelow(finished, 12)
    }),
  )
})

describe("a run in a new folder", () => {
  it.effect("has a checkpoint and a memory of its own, also where there is nothing left to play", () =>
    Effect.gen(function* () {
      const resumeFrom = yield* checkpointOf(input, 4)
      for (const more of [{}, { checkpointOnStart: true, checkpointEveryEpisodes: 0 }]) {
        const { files } = yield* keep({ ...input, runtime: { ...input.runtime, ...more, resumeFrom } }, { disk })
        assert.isTrue(files.has("checkpoints/ep_000004/memory_4.jsonl"))
        assert.strictEqual(files.get("memories/memory_4.jsonl"), files.get("checkpoints/ep_000004/memory_4.jsonl"))
      }
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )

  it.effect("names the damaged file of the checkpoint that it would begin with", () =>
    Effect.gen(function* () {
      const resumeFrom = yield* checkpointOf(input, 4)
      const damaged = `${resumeFrom}/memory_4.jsonl`
      yield* (yield* FileSystem.FileSystem).writeFileString(damaged, "{}\n")
      const again = { ...input, runtime: { ...input.runtime, resumeFrom } }
      const error = yield* Effect.flip(runIn({ disk }, again).effect)
      assert.isTrue(error.message.startsWith(`${damaged}: expected `), error.message)
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )

  it.effect("isn't made where what it would go on from is another's", () =>
    Effect.gen(function* () {
      const resumeFrom = yield* checkpointOf(input, 4)
      let opened = 0
      const broken = (run: RunFiles) => {
        opened++
        return run
      }
      const other = { ...input, seed: 4, runtime: { ...input.runtime, resumeFrom } }
      const error = yield* Effect.flip(runIn({ disk, broken }, other).effect)
      assert.include(error.message, "saved with seed = 3")
      assert.strictEqual(opened, 0)
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )
})

describe("the checkpoint of another run", () => {
  it.effect("is read also if the original runtime wrote it, which names the class of its agent", () =>
    Effect.gen(function* () {
      const whole = yield* keep(input)
      const resumeFrom = yield* checkpointOf(input, 3)
      const fs = yield* FileSystem.FileSystem
      const { timestamp, episode_index, train_steps_total } = JSON.parse(
        yield* fs.readFileString(`${resumeFrom}/runtime.json`),
      )
      const theirs = {
        timestamp,
        episode_index,
        train_steps_total,
        agent_type: "HistoryAgent",
        memory_snapshot_path: "/somewhere/else/ep_000003/memory_3.jsonl",
        val_score: null,
      }
      yield* fs.writeFileString(`${resumeFrom}/runtime.json`, JSON.stringify(theirs))
      yield* fs.remove(`${resumeFrom}/manifest.json`)
      const again = { ...input, runtime: { ...input.runtime, resumeFrom } }
      const { files, result } = yield* keep(again, { disk })
      assert.strictEqual(result.trainEpisodes, 4)
      assert.strictEqual(files.get("memories/memory_4.jsonl"), whole.files.get("memories/memory_4.jsonl"))
      yield* fs.writeFileString(
        `${resumeFrom}/runtime.json`,
        JSON.stringify({ ...theirs, agent_type: "ReflexionAgent" }),
      )
      const other = yield* Effect.flip(runIn({ disk }, again).effect)
      assert.include(other.message, "expected a checkpoint of the agent history_agent, found one of ReflexionAgent")
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )

  it.effect("gives its memory to another model and another agent, which begins with the first task", () =>
    Effect.gen(function* () {
      const memory = yield* checkpointOf(input, 3)
      const before = yield* (yield* FileSystem.FileSystem).readFileString(`${memory}/memory_3.jsonl`)
      const agent = ReflexionAgent.make({ model: "scripted:reader", systemPrompt: "Another one." })
      const other: Input = { ...input, agent, agentConfig: { other: true }, start: { memory } }
      const { files, result } = yield* keep(other, { disk })
      assert.strictEqual(result.trainEpisodes, 4)
      assert.isTrue(files.get("memories/memory_1.jsonl")?.startsWith(before))
      assert.include(files.get("config.yaml"), `memory: ${memory}`)
      const entries = before.trim().split("\n").length
      assert.include(files.get("run.log"), `the memory begins with ${entries} entries of ${memory}`)
      const without = { ...other, agent: MemorylessAgent.make({ model: "scripted:reader" }) }
      const error = yield* Effect.flip(runIn({ disk }, without).effect)
      assert.include(error.message, "start.memory: the agent memoryless_agent has no memory")
      const both = { ...other, runtime: { ...input.runtime, resumeFrom: memory } }
      assert.include((yield* Effect.flip(runIn({ disk }, both).effect)).message, "use one of the two settings")
      const nowhere = { ...other, start: { memory: `${memory}/none` } }
      assert.include(
        (yield* Effect.flip(runIn({ disk }, nowhere).effect)).message,
        "start.memory: expected a checkpoint",
      )
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )
})

/** The folder of a checkpoint that a run leaves, on disk. */
const checkpointOf = Effect.fnUntraced(function* (of: Input, episode: number) {
  const fs = yield* FileSystem.FileSystem
  const { join } = yield* Path.Path
  const name = `ep_${String(episode).padStart(6, "0")}`
  const folder = join(yield* temporaryDirectory, name)
  const { effect, files } = runIn({}, of)
  yield* effect
  yield* fs.makeDirectory(folder)
  for (const [file, text] of below(files, `${folderOf(files)}/checkpoints/${name}/`)) {
    yield* fs.writeFileString(join(folder, file), text)
  }
  return folder
})

/** Something that is done before a file is written. */
const withWrite = (run: RunFiles, before: (file: string) => Effect.Effect<void>): RunFiles => ({
  ...run,
  placed: (places) => withWrite(run.placed(places), before),
  write: (file, contents, how) => Effect.andThen(before(file), run.write(file, contents, how)),
})

describe("a disk that fails once", () => {
  /** Half of the nth piece of such a file is written, and the others are. */
  const torn = (run: RunFiles, is: (file: string) => boolean, nth: { left: number }): RunFiles => ({
    ...run,
    placed: (places) => torn(run.placed(places), is, nth),
    append: (file, contents) => {
      if (!is(file) || --nth.left !== 0) return run.append(file, contents)
      const half = contents.slice(0, contents.length >> 1)
      const error = new RunStoreError({ path: file, operation: "append to", message: `${file}: no space left` })
      return Effect.andThen(run.append(file, half), Effect.fail(error))
    },
  })

  it.effect.each([
    ["rollouts/train/", 1],
    ["rollouts/train/", 3],
    ["rollouts/val/", 2],
    ["scores/val/", 4],
  ] as const)("while it writes %s for time %i ends the run, which goes on from what was sure", ([folder, time]) =>
    Effect.gen(function* () {
      const whole = yield* keep(input)
      const nth = { left: time }
      const first = runIn({ broken: (run) => torn(run, (file) => file.startsWith(folder), nth) }, input)
      const error = yield* Effect.flip(first.effect)
      assert.include(error.message, "no space left")
      const resumed = yield* keep(input, { files: first.files, resume: folderOf(first.files) })
      assert.deepEqual(lasting(resumed.files), lasting(whole.files))
    }),
  )
})

describe("a checkpoint that takes long to write", () => {
  it.effect("does not keep the next one from being saved if the run is interrupted meanwhile", () =>
    Effect.gen(function* () {
      const isFree = yield* Deferred.make<void>()
      const name = (episode: number) => `checkpoints/${checkpointName("ep", episode)}`
      const slow = (run: RunFiles): RunFiles => ({
        ...run,
        placed: (places) => slow(run.placed(places)),
        writeDirectory: (path, files, last) =>
          Effect.andThen(
            path === name(1) ? Deferred.await(isFree) : Effect.void,
            run.writeDirectory(path, files, last),
          ),
      })
      const run = runIn(
        { broken: slow },
        {
          agent: MemorylessAgent.make({ model: "scripted:reader" }),
          train: tasks(2),
          seed: 3,
          runtime: { checkpointEveryEpisodes: 1 },
        },
      )
      const fiber = yield* Effect.forkChild(Effect.exit(run.effect))
      const ended = () => run.events.filter(({ _tag }) => _tag === "EpisodeEnded").length
      for (let turn = 0; turn < 10_000 && ended() < 2; turn++) yield* Effect.yieldNow
      for (let turn = 0; turn < 100; turn++) yield* Effect.yieldNow
      const stopping = yield* Effect.forkChild(Fiber.interrupt(fiber))
      for (let turn = 0; turn < 100; turn++) yield* Effect.yieldNow
      yield* Deferred.succeed(isFree, undefined)
      yield* Fiber.await(stopping)
      const own = below(run.files, `${folderOf(run.files)}/`)
      for (const episode of [1, 2]) assert.isTrue(own.has(`${name(episode)}/manifest.json`), name(episode))
    }),
  )
})
