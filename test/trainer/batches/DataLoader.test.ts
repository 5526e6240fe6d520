import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Exit, Layer, Logger, type Scope } from "effect"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { DataLoader, type DataLoaderOptions, type Turn } from "../../../src/trainer/batches/DataLoader.ts"
import { countTurn } from "../../../src/trainer/batches/Turn.ts"
import type { MicroBatch } from "../../../src/trainer/batches/MicroBatch.ts"
import { writeRollouts } from "../../../src/trainer/batches/rolloutFiles.ts"
import type { TrainingSample } from "../../../src/trainer/batches/TrainingSample.ts"
import { openRunFolder } from "../../../src/trainer/runs/guardedFolder.ts"
import { Runs } from "../../../src/trainer/runs/Runs.ts"
import { Store } from "../../../src/trainer/store/Store.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { quickClock } from "../quickClock.ts"
import { filesIn, temporary } from "../ranks.ts"

const sizes = { rows: 2, width: 16, block: 4, vocabSize: 100 }

const sampleOf = (run: string, step: number, at: number): TrainingSample => {
  const random = stream(3, run, step, at)
  const length = 2 + random.integer(15)
  return {
    id: `${run}/${step}/${at}`,
    tokens: Int32Array.from({ length }, () => random.integer(100)),
    mask: Uint8Array.from({ length }, (_, token) => Math.min(token, 1)),
    logprobs: new Float32Array(length),
    advantages: Float32Array.from({ length }, () => random.uniform()),
    temperature: 1,
  }
}

const samplesOf = (run: string, step: number): ReadonlyArray<TrainingSample> =>
  Array.from({ length: 7 }, (_, at) => sampleOf(run, step, at))

/** Starts the data loaders of all ranks, over one output folder. */
const start = (directory: string, ranks: number, options: Partial<DataLoaderOptions> = {}) =>
  Effect.gen(function* () {
    const store = Store.memory()
    const loaders: Array<{ readonly loader: DataLoader["Service"]; readonly runs: Runs["Service"] }> = []
    for (let rank = 0; rank < ranks; rank++) {
      const runs = Runs.layer({ outputDirectory: directory, maxConcurrentRuns: 4, watch: false, rank, ranks })
      const loader = DataLoader.layer({
        ...sizes,
        ranks,
        mixing: "one-run",
        ...options,
      })
      const context = yield* Layer.build(
        loader.pipe(Layer.provideMerge(runs), Layer.provide([store, NodeServices.layer])),
      )
      loaders.push({ loader: Context.get(context, DataLoader), runs: Context.get(context, Runs) })
    }
    return loaders
  })

const handOver = (directory: string, id: string, step: number, samples = samplesOf(id, step)) =>
  Effect.gen(function* () {
    yield* writeRollouts(yield* openRunFolder({ id, directory: `${directory}/${id}` }), { step, samples })
  }).pipe(Effect.provide(NodeServices.layer))

type Loaders = ReadonlyArray<{ readonly loader: DataLoader["Service"]; readonly runs: Runs["Service"] }>

/** The next turn of all ranks together. */
const turnOf = (loaders: Loaders) => quickClock().on(counted(loaders))

/** The next turn of all ranks, which is then counted. */
const counted = (loaders: Loaders) =>
  Effect.forEach(
    loaders,
    ({ loader, runs }) => Effect.tap(loader.next, (turn) => Effect.sync(() => countTurn(runs.slot, turn))),
    {
      concurrency: "unbounded",
    },
  )

/** The next turn of all ranks, if it comes within so many milliseconds. */
const turnWithin = (loaders: Loaders, millis: number) => quickClock().within(counted(loaders), millis)

const check = <E>(title: string, body: (directory: string) => Effect.Effect<void, E, Scope.Scope>) =>
  it.effect(title, () => Effect.flatMap(temporary, body).pipe(Effect.provide(Logger.layer([]))))

/** Copies what a turn holds, since the next turn overwrites it. */
const copied = (turns: ReadonlyArray<Turn>): ReadonlyArray<MicroBatch> =>
  turns.map(({ microBatch }) => structuredClone(microBatch))

/** The micro-batches of one run in their order, without dummies. */
const ofRun = (microBatches: ReadonlyArray<MicroBatch>, index: number) =>
  microBatches.filter((one) => one.sequenceCount > 0 && one.loraNumTokens[index] > 0)

describe("a data loader", () => {
  for (const ranks of [1, 3]) {
    check(`hands out all samples of all runs once, and counts them, on ${ranks} ranks`, (directory) =>
      Effect.gen(function* () {
        const files = filesIn(directory)
        for (const id of ["run_a", "run_b"]) files.add(id)
        for (const id of ["run_a", "run_b"]) for (const step of [0, 1]) yield* handOver(directory, id, step)
        const loaders = yield* start(directory, ranks)
        const trained: Array<string> = []
        const ready: Array<string> = []
        for (let turn = 0; trained.length < 28; turn++) {
          const turns = yield* turnOf(loaders)
          for (const { number, shares } of turns) {
            assert.strictEqual(number, turn)
            assert.deepEqual(shares, turns[0].shares)
          }
          // The samples that the shares name are those in the arrays.
          const inArrays = turns.reduce((sum, { microBatch }) => sum + microBatch.sequenceCount, 0)
          const named = turns[0].shares.flatMap(({ samples }) => samples)
          assert.strictEqual(inArrays, named.length)
          trained.push(...named)
          const viewOf = (runs: Runs["Service"]) => runs.slots().map(({ id, progress }) => ({ id, progress }))
          for (const { runs } of loaders) assert.deepEqual(viewOf(runs), viewOf(loaders[0].runs))
          for (const { index, id, done } of turns[0].shares)
            if (done) ready.push(`${id} ${loaders[0].runs.progress(index)?.step}`)
        }
        const all = ["run_a", "run_b"].flatMap((id) => [0, 1].flatMap((step) => samplesOf(id, step)))
        assert.deepEqual(trained.toSorted(), all.map(({ id }) => id).toSorted())
        assert.deepEqual(ready.toSorted(), ["run_a 1", "run_a 2", "run_b 1", "run_b 2"])
        for (const [index, id] of ["run_a", "run_b"].entries()) {
          const tokens = all.filter((one) => one.id.startsWith(id)).reduce((sum, one) => sum + one.tokens.length, 0)
          const expected = { step: 2, totalTokens: tokens, totalSamples: 14 }
          for (const { runs } of loaders) assert.deepEqual(runs.progress(index), expected)
        }
      }),
    )
  }

  check("gives a run the same micro-batches whether or not another one comes late", (directory) =>
    Effect.gen(function* () {
      const microBatchesOf = (folder: string, isLate: boolean) =>
        Effect.gen(function* () {
          const files = filesIn(folder)
          for (const id of ["run_a", "run_b"]) files.add(id)
          if (!isLate) yield* handOver(folder, "run_b", 0)
          const loaders = yield* start(folder, 1)
          const all: Array<MicroBatch> = []
          for (const step of [0, 1]) {
            yield* handOver(folder, "run_a", step)
            while (loaders[0].runs.progress(0)?.step !== step + 1) all.push(...copied(yield* turnOf(loaders)))
            if (step === 0 && isLate) yield* handOver(folder, "run_b", 0)
          }
          return ofRun(all, 0)
        })
      const early = yield* microBatchesOf(`${directory}/early`, false)
      assert.isAtLeast(early.length, 3)
      assert.deepEqual(yield* microBatchesOf(`${directory}/late`, true), early)
    }),
  )

  check("looks for samples at once if it is woken, without any time that passes", (directory) =>
    Effect.gen(function* () {
      filesIn(directory).add("run_a")
      const [{ loader, runs }] = yield* start(directory, 1, { pollInterval: "1 hour", syncInterval: "1 day" })
      const next = yield* Effect.forkChild(loader.next)
      // Once the loader lacks samples, it has looked for them in vain.
      while (loader.waiting().length === 0) yield* Effect.promise(() => new Promise((resume) => setImmediate(resume)))
      yield* handOver(directory, "run_a", 0)
      yield* loader.wake(runs.slots()[0])
      const { shares } = yield* Fiber.join(next)
      assert.deepEqual(
        shares.map(({ id, step }) => [id, step]),
        [["run_a", 0]],
      )
    }),
  )

  check("looks only at runs that it is woken for, until it is time to look at all", (directory) =>
    Effect.gen(function* () {
      const files = filesIn(directory)
      for (const id of ["run_a", "run_b"]) files.add(id)
      const settings = { pollInterval: "1 minute", syncInterval: "1 second", timeout: 0 } as const
      const loaders = yield* start(directory, 1, settings)
      const [{ loader, runs }] = loaders
      const clock = quickClock()
      const idsWithin = (millis: number) =>
        Effect.map(clock.within(counted(loaders), millis), (turns) => turns?.[0].shares.map(({ id }) => id))
      assert.isUndefined(yield* idsWithin(5000))
      for (const id of ["run_a", "run_b"]) yield* handOver(directory, id, 0)
      yield* loader.wake(runs.slots()[1])
      while (runs.progress(1)?.step === 0) assert.deepEqual(yield* idsWithin(5000), ["run_b"])
      assert.isUndefined(yield* idsWithin(5000))
      assert.deepEqual(yield* idsWithin(60_000), ["run_a"])
    }),
  )

  check("packs after the timeout if a run has no samples; without a timeout it waits for all", (directory) =>
    Effect.gen(function* () {
      const files = filesIn(directory)
      for (const id of ["run_a", "run_b"]) files.add(id)
      const small = samplesOf("run_a", 0).slice(0, 1)
      yield* handOver(directory, "run_a", 0, small)
      const waiting = yield* start(directory, 1, { timeout: null, mixing: "many-runs" })
      assert.isUndefined(yield* turnWithin(waiting, 5000))
      assert.deepEqual(waiting[0].loader.waiting(), [{ id: "run_b", step: 0 }])
      const impatient = yield* start(directory, 1, { timeout: "200 millis", mixing: "many-runs" })
      assert.isUndefined(yield* turnWithin(impatient, 150))
      const [turn] = yield* turnOf(impatient)
      assert.deepEqual(
        turn.shares.map(({ id, done }) => [id, done]),
        [["run_a", true]],
      )
      yield* handOver(directory, "run_b", 0)
      const [both] = yield* turnOf(waiting)
      assert.deepEqual(
        both.shares.map(({ id }) => id),
        ["run_a", "run_b"],
      )
    }),
  )

  const bad: Readonly<Record<string, readonly [(directory: string) => Effect.Effect<void, unknown>, RegExp]>> = {
    "with a token that the model does not have": [
      (directory) =>
        handOver(
          directory,
          "run_bad",
          0,
          [{ ...samplesOf("run_bad", 0)[0], tokens: new Int32Array(9).fill(100) }].map((sample) => ({
            ...sample,
            mask: new Uint8Array(9),
            logprobs: new Float32Array(9),
            advantages: new Float32Array(9),
          })),
        ),
      /^run_bad: step 0: sample run_bad\/0\/0: tokens\[0\]: expected a token id from 0 to 99, found 100$/,
    ],
    "that are longer than a window": [
      (directory) =>
        handOver(directory, "run_bad", 0, [
          {
            id: "long",
            tokens: new Int32Array(17),
            mask: new Uint8Array(17),
            logprobs: new Float32Array(17),
            advantages: new Float32Array(17),
            temperature: 1,
          },
        ]),
      /^run_bad: step 0: sample long: tokens: expected at most 16 tokens, found 17$/,
    ],
    "whose file is damaged": [
      (directory) =>
        Effect.andThen(
          handOver(directory, "run_bad", 0),
          Effect.sync(() => filesIn(directory).write("run_bad/rollouts/step_0/samples.safetensors", "half")),
        ),
      /run_bad\/rollouts\/step_0: samples.safetensors: the content differs from the digest in batch.json$/,
    ],
    "of which a step is lost": [
      (directory) => handOver(directory, "run_bad", 1),
      /run_bad\/rollouts\/step_0: expected this step's samples, found those of step 1 only$/,
    ],
  }
  for (const [title, [spoil, reason]] of Object.entries(bad)) {
    check(`evicts a run with samples ${title}, and trains the others`, (directory) =>
      Effect.gen(function* () {
        const files = filesIn(directory)
        for (const id of ["run_a", "run_bad"]) files.add(id)
        yield* handOver(directory, "run_a", 0)
        yield* spoil(directory)
        const loaders = yield* start(directory, 2)
        const trained: Array<string> = []
        while (trained.length < 7) {
          const [{ shares }] = yield* turnOf(loaders)
          trained.push(...shares.flatMap(({ samples }) => samples))
        }
        assert.deepEqual(
          trained.toSorted(),
          samplesOf("run_a", 0)
            .map(({ id }) => id)
            .toSorted(),
        )
        yield* handOver(directory, "run_a", 1)
        yield* turnOf(loaders)
        assert.match(files.text("run_bad/control/evicted.txt")?.trim() ?? "", reason)
        for (const { runs } of loaders)
          assert.deepEqual(
            runs.slots().map(({ id }) => id),
            ["run_a"],
          )
      }),
    )
  }

  for (const mixing of ["one-run", "many-runs"] as const) {
    check(`begins the step of a run's checkpoint again after a restart (${mixing})`, (directory) =>
      Effect.gen(function* () {
        const files = filesIn(directory)
        const steps = { run_a: [0, 1], run_b: [0, 1], run_c: [0, 1] }
        for (const [id, all] of Object.entries(steps)) {
          files.add(id, "max_steps = 2")
          for (const step of all) yield* handOver(directory, id, step)
        }
        const train = (expected: Readonly<Record<string, ReadonlyArray<number>>>) =>
          Effect.scoped(
            Effect.gen(function* () {
              const loaders = yield* start(directory, 1, { mixing, timeout: null })
              const all = Object.entries(expected).flatMap(([id, steps]) =>
                steps.flatMap((step) => samplesOf(id, step)),
              )
              const trained: Array<string> = []
              while (trained.length < all.length) {
                const [{ shares }] = yield* turnOf(loaders)
                trained.push(...shares.flatMap(({ samples }) => samples))
              }
              assert.deepEqual(trained.toSorted(), all.map(({ id }) => id).toSorted())
            }),
          )
        yield* train(steps)
        // The trainer was killed when these were the newest checkpoints.
        files.write("run_a/checkpoints/step_1/STABLE", "")
        files.write("run_b/checkpoints/step_2/STABLE", "")
        files.write("run_b/control/finished", "2\n")
        yield* train({ run_a: [1], run_c: [0, 1] })
      }),
    )
  }

  check("trains a run that was deleted and made again from its beginning", (directory) =>
    Effect.gen(function* () {
      const files = filesIn(directory)
      files.add("run_a")
      for (const step of [0, 1]) yield* handOver(directory, "run_a", step)
      const loaders = yield* start(directory, 1)
      const [{ runs }] = loaders
      while (runs.progress(0)?.step !== 1) yield* turnOf(loaders)
      files.remove("run_a")
      files.add("run_a")
      yield* handOver(directory, "run_a", 0, samplesOf("run_new", 0))
      const names: Array<string> = []
      const before = runs.slot(0)
      while (runs.slot(0) === before || runs.progress(0)?.step !== 1) {
        const [{ shares }] = yield* turnOf(loaders)
        if (runs.slot(0) !== before) names.push(...shares.flatMap(({ samples }) => samples))
      }
      assert.deepEqual(
        names.toSorted(),
        samplesOf("run_new", 0)
          .map(({ id }) => id)
          .toSorted(),
      )
    }),
  )

  check("packs no samples of a run that was deleted", (directory) =>
    Effect.gen(function* () {
      const files = filesIn(directory)
      for (const id of ["run_a", "run_b"]) files.add(id)
      for (const id of ["run_a", "run_b"]) for (const step of [0, 1]) yield* handOver(directory, id, step)
      const loaders = yield* start(directory, 1)
      yield* turnOf(loaders)
      files.remove("run_a")
      const names: Array<string> = []
      while (loaders[0].runs.progress(1)?.step !== 2) {
        const [{ shares }] = yield* turnOf(loaders)
        names.push(...shares.map(({ id }) => id))
      }
      assert.deepEqual([...new Set(names)], ["run_b"])
    }),
  )

  check("ends a run at its last step, and then waits for no samples of it", (directory) =>
    Effect.gen(function* () {
      const files = filesIn(directory)
      files.add("run_a", "max_steps = 1")
      files.add("run_b")
      for (const id of ["run_a", "run_b"]) yield* handOver(directory, id, 0)
      yield* handOver(directory, "run_a", 1)
      const loaders = yield* start(directory, 1, { timeout: null })
      const [{ loader, runs }] = loaders
      while (runs.progress(0)?.step !== 1 || runs.progress(1)?.step !== 1) yield* turnOf(loaders)
      assert.deepEqual(loader.waiting(), [{ id: "run_b", step: 1 }])
      yield* handOver(directory, "run_b", 1)
      const [{ shares }] = yield* turnOf(loaders)
      assert.deepEqual(
        shares.map(({ id, step }) => [id, step]),
        [["run_b", 1]],
      )
    }),
  )

  check("fails if no samples come for too long, and says what it waits for", (directory) =>
    Effect.gen(function* () {
      filesIn(directory).add("run_a")
      const loaders = yield* start(directory, 1, { patience: "500 millis" })
      const exit = yield* Effect.exit(turnOf(loaders))
      assert.isTrue(Exit.isFailure(exit))
      assert.include(
        String(exit),
        "no run got samples for 500ms: waiting for run_a/rollouts/step_0; look at their orchestrators",
      )
    }),
  )

  /** Returns the messages with which all ranks fail; a rank that waits for its deadline would never return. */
  const failuresOf = (loaders: Loaders) =>
    quickClock().on(
      Effect.forEach(loaders, ({ loader }) => Effect.map(Effect.flip(loader.next), ({ message }) => message), {
        concurrency: "unbounded",
      }),
    )

  check("ends all ranks at once if no samples come for too long", (directory) =>
    Effect.gen(function* () {
      filesIn(directory).add("run_a")
      const [first, ...others] = yield* failuresOf(yield* start(directory, 3, { patience: "500 millis" }))
      assert.match(first, /^no run got samples for 500ms/)
      assert.deepEqual(others, [first, first])
    }),
  )

  check("ends all ranks at once if the master cannot look for runs", (directory) =>
    Effect.gen(function* () {
      const files = filesIn(directory)
      files.add("run_a")
      yield* handOver(directory, "run_a", 0)
      const loaders = yield* start(directory, 3)
      yield* turnOf(loaders)
      files.remove(".")
      const [first, ...others] = yield* failuresOf(loaders)
      assert.match(first, /cannot look for runs: no such file or directory$/)
      assert.deepEqual(others, [first, first])
    }),
  )
})
