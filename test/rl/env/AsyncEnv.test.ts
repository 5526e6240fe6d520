import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Es from "../../../src/rl/algorithms/episodes/Es.ts"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Rnd from "../../../src/rl/algorithms/rollouts/Rnd.ts"
import * as AsyncEnv from "../../../src/rl/env/AsyncEnv.ts"
import type { AnyBatchEnv } from "../../../src/rl/env/BatchEnv.ts"
import * as Batch from "../../../src/rl/env/Batch.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import type { Env } from "../../../src/rl/env/Env.ts"
import { drawAllowed } from "../../../src/rl/env/internal/rows.ts"
import * as KeyDoor from "../../../src/rl/env/grid/KeyDoor.ts"
import * as Space from "../../../src/rl/env/Space.ts"
import * as Wrapper from "../../../src/rl/env/Wrapper.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { keep, weightsOf } from "../train/inMemory.ts"
import { resumable } from "../train/resumable.ts"
import { courier } from "./courier.ts"
import { away } from "./elsewhere.ts"

const opened = (env: Env, numEnvs: number) =>
  Effect.flatMap(Batch.open(env, numEnvs), (batch) =>
    batch.isAsync === true ? Effect.succeed(batch) : Effect.die(`${env.id} steps at once`),
  )

const actionsFor = ({ actionSpace, observationSpace, observations, numEnvs }: AnyBatchEnv, step: number) => {
  const actions = actionSpace._tag === "Box" ? new Float32Array(numEnvs) : new Int32Array(numEnvs)
  if (observationSpace._tag === "Masked") {
    drawAllowed(observationSpace, observations, stream(3, step), actions)
    return actions
  }
  for (let index = 0; index < numEnvs; index++) Space.sampleInto(actionSpace, stream(3, step, index), actions, index)
  return actions
}

describe("an env that steps by Effects", () => {
  const envs: ReadonlyArray<Env> = [
    CartPole.env,
    Wrapper.timeLimit(Pendulum.env, 30),
    Wrapper.timeLimit(KeyDoor.small, 20),
    Wrapper.timeLimit(courier(4), 7),
  ]
  for (const env of envs) {
    it.effect(`${env.id}: has the results of the env that steps at once`, () =>
      Effect.gen(function* () {
        const batch = yield* opened(away(env), 3)
        const reference = Batch.make(env, 3)
        reference.reset(5, "a")
        yield* batch.reset(5, "a")
        assert.deepStrictEqual(batch.observationSpace, reference.observationSpace)
        for (let step = 0; step < 100; step++) {
          assert.deepStrictEqual(batch.observations, reference.observations)
          const actions = actionsFor(batch, step)
          reference.step(actions)
          yield* batch.step(actions)
          assert.deepStrictEqual(batch.rewards, reference.rewards)
          assert.deepStrictEqual(batch.terminated, reference.terminated)
          assert.deepStrictEqual(batch.truncated, reference.truncated)
          assert.deepStrictEqual(batch.finalObservations, reference.finalObservations)
          if (step === 40) {
            reference.restart(Uint8Array.of(0, 1, 0))
            yield* batch.restart(Uint8Array.of(0, 1, 0))
          }
        }
        const saved = batch.snapshot()
        const other = yield* opened(away(env), 3)
        yield* other.restore(saved)
        for (let step = 0; step < 50; step++) {
          const actions = actionsFor(batch, step)
          yield* batch.step(actions)
          yield* other.step(actions)
          assert.deepStrictEqual(other.snapshot(), batch.snapshot())
        }
      }),
    )
  }

  const algorithms: ReadonlyArray<Algorithm> = [
    Ppo.make({ nsteps: 32, epochs: 1 }),
    A2c.make(),
    Rnd.make({ nsteps: 32, epochs: 1, initObsSteps: 8 }),
    Dqn.make({ learningStarts: 64, batchSize: 16 }),
    Es.make({ maxEpisodeSteps: 40 }),
  ]
  for (const algorithm of algorithms) {
    it.effect(
      `${algorithm.name}: learns, validates and resumes as with the env that steps at once`,
      () =>
        Effect.gen(function* () {
          const settings = {
            numEnvs: 4,
            algorithm,
            totalSteps: 512,
            validation: { everySteps: 256, episodes: 3 },
            normalize: { observations: true, rewards: true },
          }
          const here = yield* keep({ ...settings, env: CartPole.env })
          const { whole, resumed, stoppedAt } = yield* resumable({ ...settings, env: away(CartPole.env) }, 200)
          assert.isBelow(stoppedAt, 512)
          assert.strictEqual(whole.digest, here.result.digest)
          assert.strictEqual(resumed.digest, here.result.digest)
          assert.isAbove(weightsOf(here).length, 0)
          assert.deepStrictEqual(resumed.validation, here.result.validation)
        }),
      { tags: ["dqn", "es"].includes(algorithm.name) ? [] : "slow" },
    )
  }

  for (const algorithm of [
    Ppo.make({ nsteps: 32, epochs: 1 }),
    Dqn.make({ learningStarts: 64, batchSize: 16, hidden: [16] }),
  ]) {
    it.effect(
      `${algorithm.name}: obeys masks, learns and resumes as with the env that steps at once`,
      () =>
        Effect.gen(function* () {
          const validation = { everySteps: 256, episodes: 3 }
          const settings = { numEnvs: 4, algorithm, totalSteps: 512, validation, normalize: { observations: true } }
          const here = yield* keep({ ...settings, env: courier(4) })
          const { whole, resumed, stoppedAt } = yield* resumable({ ...settings, env: away(courier(4)) }, 200)
          assert.isBelow(stoppedAt, 512)
          assert.strictEqual(whole.digest, here.result.digest)
          assert.strictEqual(resumed.digest, here.result.digest)
        }),
      { tags: algorithm.name === "ppo" ? [] : "slow" },
    )
  }

  it.effect("says what is wrong with a mask", () =>
    Effect.gen(function* () {
      const masking = (actionMask: AsyncEnv.EnvSession["actionMask"]) =>
        AsyncEnv.make({
          id: "masking",
          observationSpace: Space.box(0, 1),
          actionSpace: Space.discrete(3),
          hasActionMask: true,
          open: () =>
            Effect.succeed({
              reset: () => Effect.succeed([0]),
              step: () => Effect.succeed({ observation: [0], reward: 0, terminated: false }),
              ...(actionMask && { actionMask }),
            }),
        })
      const cases = [
        [undefined, "its session has no actionMask"],
        [Effect.succeed([1, 0]), "actionMask returned 2 elements; expected 3, one for each choice"],
        [Effect.succeed([0, 0, 0]), "actionMask forbids all 3 choices; expected at least one that is allowed"],
        [Effect.fail("gone"), "actionMask failed: gone"],
      ] as const
      for (const [mask, problem] of cases) {
        const batch = yield* opened(masking(mask), 2)
        assert.strictEqual((yield* Effect.flip(batch.reset(1))).message, `masking: env 0, episode 0, reset: ${problem}`)
      }
      const batch = yield* opened(masking(Effect.succeed([true, false, 1])), 2)
      yield* batch.reset(1)
      assert.deepStrictEqual([...batch.observations], [0, 1, 0, 1, 0, 1, 0, 1])
      const error = yield* Effect.flip(batch.step(Int32Array.of(0, 1)))
      assert.strictEqual(error.message, "masking: env 1, episode 0, step 1: the action mask forbids 1")
      assert.throws(
        () => away({ ...Pendulum.env, actionMask: () => [1] }),
        /Pendulum-v1 elsewhere: action masks need choices as actions/,
      )
    }),
  )

  it.effect("works within wrappers of actions, rewards and observations, and refuses the others", () =>
    Effect.gen(function* () {
      const wrap = (env: Env<unknown, Space.Box, Space.Box>) =>
        Wrapper.keepObservations(Wrapper.scaleReward(Wrapper.rescaleAction(env), 0.1), [0, 2])
      const batch = yield* opened(wrap(away(Pendulum.env)), 2)
      const reference = Batch.make(wrap(Pendulum.env), 2)
      reference.reset(1)
      yield* batch.reset(1)
      for (let step = 0; step < 5; step++) {
        reference.step(Float32Array.of(0.5, -1))
        yield* batch.step(Float32Array.of(0.5, -1))
        assert.deepStrictEqual(batch.observations, reference.observations)
        assert.deepStrictEqual(batch.rewards, reference.rewards)
      }
      assert.throws(() => Wrapper.frameStack(away(Pendulum.env), 2), /it steps elsewhere, so wrap it there/)
      assert.throws(() => Batch.make(away(CartPole.env), 1).reset(1), /open a batch of it by Batch.open/)
    }),
  )

  it.effect("ends an episode as truncated on a resume if it takes another course then", () =>
    Effect.gen(function* () {
      let clock = 0
      const drifting = AsyncEnv.make({
        id: "drifting",
        observationSpace: Space.box(0, 1000),
        actionSpace: Space.discrete(2),
        open: () =>
          Effect.succeed({
            reset: () => Effect.succeed([0]),
            step: () => Effect.sync(() => ({ observation: [++clock], reward: 1, terminated: false })),
          }),
      })
      const batch = yield* opened(drifting, 1)
      yield* batch.reset(1)
      for (let step = 0; step < 3; step++) yield* batch.step(Int32Array.of(1))
      const other = yield* opened(drifting, 1)
      yield* other.restore(batch.snapshot())
      assert.deepStrictEqual(other.observations, Float32Array.of(3))
      yield* other.step(Int32Array.of(1))
      assert.deepStrictEqual(
        [other.truncated[0], other.terminated[0], other.rewards[0], other.finalObservations[0], other.observations[0]],
        [1, 0, 0, 3, 0],
      )
      yield* other.step(Int32Array.of(1))
      assert.deepStrictEqual([other.truncated[0], other.rewards[0], other.observations[0]], [0, 1, 7])
    }),
  )

  const failing = (step: AsyncEnv.EnvSession<Space.Discrete>["step"], timeoutSeconds = 60) =>
    AsyncEnv.make({
      id: "failing",
      observationSpace: Space.box(0, 1),
      actionSpace: Space.discrete(2),
      timeoutSeconds,
      open: () => Effect.succeed({ reset: () => Effect.succeed([0]), step }),
    })

  it.effect("says in which env, episode and step a failure, an exception or a wrong result was", () =>
    Effect.gen(function* () {
      const outcome = { observation: [0], reward: 1, terminated: false }
      const cases = [
        [() => Effect.fail(new Error("no network")), "step failed: no network"],
        [() => Effect.die(new TypeError("broken")), "step failed: broken"],
        [() => Effect.succeed({ ...outcome, observation: [0, 1] }), "observation: expected 1 numbers, found 2"],
        [() => Effect.succeed({ ...outcome, reward: NaN }), "reward is NaN, not a finite number"],
      ] as const
      for (const [step, message] of cases) {
        const batch = yield* opened(failing(step), 2)
        yield* batch.reset(1)
        const error = yield* Effect.flip(batch.step(Int32Array.of(1, 0)))
        assert.strictEqual(error.message, `failing: env 0, episode 0, step 1: ${message}`)
      }
      const batch = yield* opened(failing(cases[0][0]), 2)
      yield* batch.reset(1)
      const wrong = yield* Effect.flip(batch.step(Int32Array.of(1, 2)))
      assert.include(wrong.message, "env 1, episode 0, step 1: expected an action from 0 to 1, found 2")
    }),
  )

  it.effect("gives up a step that takes too long, and ends a step before an interruption", () =>
    Effect.gen(function* () {
      const stuck = yield* opened(
        failing(() => Effect.never, 5),
        1,
      )
      yield* stuck.reset(1)
      const waiting = yield* Effect.forkChild(Effect.flip(stuck.step(Int32Array.of(0))))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* Fiber.join(waiting)).message, "failing: its envs did not answer within 5 seconds")

      let steps = 0
      const slow = yield* opened(
        failing(() =>
          Effect.sync(() => ({ observation: [++steps % 2], reward: 1, terminated: false })).pipe(
            Effect.delay("2 seconds"),
          ),
        ),
        1,
      )
      yield* slow.reset(1)
      const stepping = yield* Effect.forkChild(slow.step(Int32Array.of(0)))
      yield* TestClock.adjust("1 second")
      const stopping = yield* Effect.forkChild(Fiber.interrupt(stepping))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(stopping)
      assert.strictEqual(steps, 1)
    }),
  )

  it.effect("reads an answer that came while the process was stopped for longer than the time limit", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const answer = yield* Deferred.make<AsyncEnv.AsyncStep>()
      let [sleeps, stopped] = [0, 0n]
      const monotonicTimeNanosUnsafe = () => clock.monotonicTimeNanosUnsafe() + stopped
      const stoppedOnce: Clock.Clock = {
        ...clock,
        monotonicTimeNanosUnsafe,
        monotonicTimeNanos: Effect.sync(monotonicTimeNanosUnsafe),
        // Wakes an hour later the first time. The answer, which came long ago, is read after that.
        sleep: () => {
          if (sleeps++ > 0) {
            return Effect.andThen(
              Deferred.succeed(answer, { observation: [1], reward: 1, terminated: false }),
              Effect.never,
            )
          }
          stopped = 3_600_000_000_000n
          return Effect.void
        },
      }
      const batch = yield* opened(
        failing(() => Deferred.await(answer), 5),
        1,
      )
      yield* batch.reset(1)
      yield* Effect.provideService(batch.step(Int32Array.of(0)), Clock.Clock, stoppedOnce)
      assert.strictEqual(batch.observations[0], 1)
    }),
  )
})
