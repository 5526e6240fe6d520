import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Layer } from "effect"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import type { NewCheckpoint } from "../../../src/run/Checkpoint.ts"
import { Checkpoints } from "../../../src/run/Checkpoints.ts"
import { checkpointName } from "../../../src/run/Layout.ts"
import type { RunEvent } from "../../../src/run/record/RunEvent.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { RunStoreError } from "../../../src/run/store/RunStoreError.ts"
import * as Callback from "../../../src/rl/train/Callback.ts"
import * as Train from "../../../src/rl/train/Train.ts"

const input = {
  env: CartPole.env,
  numEnvs: 2,
  totalSteps: 96,
  recordEvery: 32,
  algorithm: Ppo.make({ hidden: [8], nsteps: 16, minibatches: 2, epochs: 1 }),
  checkpoint: { everySteps: 32, strategy: { _tag: "LastN", keep: 0 } as const },
}

/** Trains in memory. Each checkpoint is written after `before` it, and `events` get what is recorded. */
const training = (
  before: (checkpoint: NewCheckpoint) => Effect.Effect<void, RunStoreError>,
  {
    callbacks = [],
    events = [],
    more = {},
  }: {
    readonly callbacks?: ReadonlyArray<Callback.Callback>
    readonly events?: Array<RunEvent>
    readonly more?: Partial<Parameters<typeof Train.run>[0]>
  } = {},
) => {
  const store = RunStore.memory()
  const slow = Layer.succeed(Checkpoints, (run) => {
    const checkpoints = Checkpoints.defaultValue()(run)
    const save = (checkpoint: NewCheckpoint) => Effect.andThen(before(checkpoint), checkpoints.save(checkpoint))
    return { ...checkpoints, save }
  })
  const recorder = Recorder.layer(() =>
    Effect.succeed({ emit: (batch) => Effect.sync(() => void events.push(...batch)), flush: Effect.void }),
  )
  const run = Train.run({ ...input, callbacks, ...more }).pipe(
    Effect.provide(Layer.mergeAll(Wasm.layer, store.layer, recorder, slow)),
  )
  const saved = () => [
    ...new Set([...store.files.keys()].flatMap((path) => /checkpoints\/(step_\d+)\//.exec(path)?.[1] ?? [])),
  ]
  return { run, saved, files: store.files }
}

/** Lets other fibers run until a condition holds, and fails a test in which that never happens. */
const until = Effect.fnUntraced(function* (holds: () => boolean) {
  for (let turn = 0; turn < 20_000 && !holds(); turn++) yield* Effect.yieldNow
  assert.isTrue(holds())
})

const after = (boundary: "afterRollout" | "afterCheckpoint", run: (seen: Callback.Seen) => Effect.Effect<void>) =>
  Callback.make({ name: "after", [boundary]: run })

const names = [32, 64, 96].map((step) => checkpointName("step", step))
const ends = (events: ReadonlyArray<RunEvent>) =>
  events.flatMap((event) => (event._tag === "RunEnded" ? [event.reason] : []))

describe("a training whose checkpoints take long to write", () => {
  it.effect("goes on meanwhile, and saves the state of the moment", () =>
    Effect.gen(function* () {
      let isTrained = false
      // The first checkpoint is written only after the training has gone on.
      const { run, files } = training(({ name }) => (name === names[0] ? until(() => isTrained) : Effect.void), {
        callbacks: [after("afterRollout", ({ step }) => Effect.sync(() => void (isTrained ||= step === 64)))],
      })
      const whole = yield* run

      const early = new Map([...files].filter(([path]) => !/step_0+(64|96)\//.test(path)))
      const rest = RunStore.memory({ files: early, resume: whole.runDir })
      const resumed = yield* Train.run(input).pipe(
        Effect.provide(Layer.mergeAll(Wasm.layer, rest.layer, Recorder.layerSilent)),
      )
      assert.strictEqual(resumed.digest, whole.digest)
      // It trained again from there.
      for (const name of names) assert.isTrue([...rest.files.keys()].some((path) => path.includes(`/${name}/`)))
    }),
  )

  it.effect("waits with the next checkpoint until the one before is written", () =>
    Effect.gen(function* () {
      let writing = 0
      const { run, saved } = training(() =>
        Effect.gen(function* () {
          assert.strictEqual(++writing, 1)
          for (let turn = 0; turn < 50; turn++) yield* Effect.yieldNow
          writing--
        }),
      )
      yield* run
      assert.deepStrictEqual(saved(), names)
    }),
  )

  it.effect("waits for a checkpoint that callbacks see", () =>
    Effect.gen(function* () {
      const seen: Array<number> = []
      const { run, saved } = training(() => Effect.yieldNow, {
        callbacks: [after("afterCheckpoint", () => Effect.sync(() => void seen.push(saved().length)))],
      })
      yield* run
      assert.deepStrictEqual(seen, [1, 2, 3])
    }),
  )

  it.effect("writes it to its end when it is interrupted, and then one of where it is", () =>
    Effect.gen(function* () {
      const events: Array<RunEvent> = []
      let isAhead = false
      let isFree = false
      const { run, saved } = training(() => until(() => isFree), {
        callbacks: [after("afterRollout", ({ step }) => Effect.sync(() => void (isAhead ||= step === 64)))],
        events,
      })
      const fiber = yield* Effect.forkChild(run)
      yield* until(() => isAhead)
      const interruption = yield* Effect.forkChild(Fiber.interrupt(fiber))
      for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
      assert.deepStrictEqual(saved(), [])
      isFree = true
      yield* Fiber.join(interruption)
      assert.deepStrictEqual(saved(), names.slice(0, 2))
      assert.deepStrictEqual(ends(events), ["interrupted"])
    }),
  )
})

describe("a checkpoint that cannot be written", () => {
  for (const [which, name] of [
    ["in the middle", names[1]],
    ["at the end", names[2]],
  ] as const) {
    it.effect(`${which} fails the training, and is recorded`, () =>
      Effect.gen(function* () {
        const events: Array<RunEvent> = []
        const full = new RunStoreError({ path: name, operation: "write", message: "the disk is full" })
        const { run, saved } = training((one) => (one.name === name ? Effect.fail(full) : Effect.void), { events })
        const exit = yield* Effect.exit(run)
        assert.isTrue(Exit.isFailure(exit))
        if (Exit.isFailure(exit)) assert.include(Cause.pretty(exit.cause), "the disk is full")
        assert.deepStrictEqual(ends(events), ["failed"])
        assert.deepStrictEqual(saved(), names.slice(0, names.indexOf(name)))
      }),
    )
  }

  it.effect("fails the training long before the next checkpoint", () =>
    Effect.gen(function* () {
      const events: Array<RunEvent> = []
      const full = new RunStoreError({ path: "checkpoints", operation: "write", message: "the disk is full" })
      const more = { totalSteps: 3200, checkpoint: { everySteps: 1600 } }
      yield* Effect.flip(training(() => Effect.fail(full), { events, more }).run)
      const steps = events.flatMap((event) => (event._tag === "UpdateApplied" ? [event.step] : []))
      assert.isAtMost(Math.max(...steps), 1800)
      assert.deepStrictEqual(ends(events), ["failed"])
    }),
  )
})
