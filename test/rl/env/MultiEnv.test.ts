import { gunzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import type { BackendError } from "../../../src/tensor/backend/Backend.ts"
import * as Batch from "../../../src/rl/env/Batch.ts"
import { check } from "../../../src/rl/env/check.ts"
import { Trainee } from "../../../src/rl/env/multi/Trainee.ts"
import * as MultiEnv from "../../../src/rl/env/MultiEnv.ts"
import { box, discrete, maskSizeOf, multiDiscrete } from "../../../src/rl/env/Space.ts"
import * as Wrapper from "../../../src/rl/env/Wrapper.ts"
import { keep } from "../train/inMemory.ts"
import { resumable } from "../train/resumable.ts"
import { envError } from "./errors.ts"

/** Agents count up at their own speeds, and leave at 4. The observation is the own count and that of the others. */
const race = MultiEnv.parallel({
  id: "race",
  agents: ["a", "b", "c"],
  observationSpace: box(0, 10, [2]),
  actionSpace: discrete(3),
  maxSteps: 6,
  reset: (random) => [0, 0, random.integer(2)],
  observe: (counts, agent) => [counts[agent], counts.reduce((sum, count) => sum + count, -counts[agent])],
  step: (counts, actions) => {
    const next = counts.map((count, agent) => count + actions[agent])
    return { state: next, rewards: actions.map(Number), terminated: next.map((count) => count >= 4) }
  },
})

/** Two agents add 1 or 2 in turns; who reaches 7 wins. Odd numbers of the other player may not be doubled. */
const adding = MultiEnv.turns({
  id: "adding",
  agents: ["x", "y"],
  observationSpace: box(-1, 20, [2]),
  actionSpace: discrete(2),
  maxSteps: 30,
  reset: (random) => ({ sum: random.integer(3), turn: 0 }),
  turn: ({ turn }) => turn,
  observe: ({ sum, turn }, agent) => [sum, turn === agent ? 1 : 0],
  actionMask: ({ sum }) => [true, sum % 2 === 0],
  step: ({ sum, turn }, action) => {
    const next = sum + action + 1
    const hasWon = next >= 7
    const own = hasWon ? 1 : 0
    return {
      state: { sum: next, turn: 1 - turn },
      rewards: turn === 0 ? [own, -own] : [-own, own],
      terminated: hasWon,
    }
  },
})

describe("a game in which all act at once", () => {
  it("has a row for each agent, and shows zeros for one that has left until the game ends", () => {
    const batch = Batch.make(race, 6)
    batch.reset(1)
    const thirds = [batch.observations[4], batch.observations[10]]
    assert.deepStrictEqual([...batch.observations.subarray(0, 2)], [0, thirds[0]])
    batch.step(Int32Array.of(2, 1, 0, 0, 0, 0))
    batch.step(Int32Array.of(2, 1, 0, 0, 0, 0))
    // The first agent of the first game left with 4.
    assert.deepStrictEqual([...batch.observations.subarray(0, 4)], [0, 0, 2, 4 + thirds[0]])
    assert.deepStrictEqual([...batch.rewards], [2, 1, 0, 0, 0, 0])
    assert.deepStrictEqual([...batch.terminated], [0, 0, 0, 0, 0, 0])
    // Its action counts as zero, and so does its reward.
    batch.step(Int32Array.of(2, 2, 2, 0, 0, 0))
    assert.deepStrictEqual([...batch.rewards], [0, 2, 2, 0, 0, 0])
    batch.step(Int32Array.of(2, 0, 2, 0, 0, 0))
    assert.deepStrictEqual([...batch.terminated], [1, 1, 1, 0, 0, 0])
    assert.deepStrictEqual([...batch.finalObservations.subarray(0, 6)], [0, 0, 0, 0, 4 + thirds[0], 8])
    for (let step = 0; step < 2; step++) batch.step(Int32Array.of(0, 0, 0, 2, 1, 0))
    // The time limit truncates the second game, but for its first agent, which has left, it is over.
    assert.deepStrictEqual([...batch.truncated], [0, 0, 0, 1, 1, 1])
    assert.deepStrictEqual([...batch.terminated], [0, 0, 0, 1, 0, 0])
  })

  it("restarts whole games, and steps some in parts like all together", () => {
    const batch = Batch.make(race, 6)
    batch.reset(1)
    batch.step(Int32Array.of(1, 1, 1, 1, 1, 1))
    batch.restart(Uint8Array.of(0, 1, 0, 0, 0, 0))
    assert.deepStrictEqual([...batch.observations.subarray(0, 4)].slice(0, 1), [0])
    assert.strictEqual(batch.observations[6], 1)
    const [whole, second] = [Batch.make(race, 6), Batch.make(race, 3, { firstIndex: 3 })]
    whole.reset(5)
    second.reset(5)
    assert.deepStrictEqual(second.observations, whole.observations.subarray(6))
  })

  it("becomes an env of one agent, whose game ends when it leaves", () => {
    const env = MultiEnv.against(race, () => 0, { as: "b" })
    assert.deepStrictEqual(check(env), [])
    const batch = Batch.make(env, 1)
    batch.reset(1)
    batch.step(Int32Array.of(2))
    batch.step(Int32Array.of(2))
    assert.deepStrictEqual([batch.rewards[0], batch.terminated[0], batch.finalObservations[0]], [2, 1, 4])
    for (const one of [MultiEnv.against(race), MultiEnv.against(adding)]) assert.deepStrictEqual(check(one), [])
  })

  it.effect("is validated with whole games", () =>
    Effect.gen(function* () {
      const validation = { everySteps: 96, episodes: 99 }
      const settings = { env: race, numEnvs: 6, algorithm: Ppo.make({ nsteps: 16, epochs: 1 }), totalSteps: 96 }
      const { result } = yield* keep({ ...settings, validation })
      assert.strictEqual(result.validation?.episodes, 99)
      const error = yield* Effect.flip(keep({ ...settings, numEnvs: 4 }))
      assert.include(error.message, "expected a multiple of 3 as the number of envs, found 4")
    }),
  )
})

describe("the pool of past selves", () => {
  it.effect("keeps the newest ones, also after a resume with a smaller size", () =>
    Effect.gen(function* () {
      let updates = 0
      let afterUpdate: (updates: number) => Effect.Effect<void, BackendError> = () => Effect.void
      const program = {
        name: "policy",
        device: "none",
        feeds: { observations: new Float32Array(3) },
        results: {},
        iterations: () => 1,
      }
      const trainee = {
        seed: 1,
        policy: () =>
          Effect.succeed({
            program: { ...program, run: Effect.void, read: () => Effect.die("unread"), write: () => Effect.void },
            refresh: Effect.void,
            read: Effect.sync(() => Float32Array.of(updates)),
            write: () => Effect.void,
          }),
        afterUpdate: (run: typeof afterUpdate) => void (afterUpdate = run),
      }
      const place = {
        id: "adding",
        rowSpace: adding.observationSpace,
        actionSpace: adding.actionSpace,
        rows: 1,
        perRow: 1,
      }
      const open = (size: number) =>
        MultiEnv.pastSelves({ every: 1, size }).open(place).pipe(Effect.provideService(Trainee, trainee))
      const update = Effect.suspend(() => afterUpdate(++updates))
      const poolOf = (saved: Readonly<Record<string, ArrayLike<number>>> = {}) =>
        Object.entries(saved).flatMap(([name, weights]) => (/^pool\.\d+$/.test(name) ? Array.from(weights) : []))
      const large = yield* open(4)
      for (let count = 0; count < 6; count++) yield* update
      const saved = large.save?.() ?? {}
      assert.deepStrictEqual(poolOf(saved), [3, 4, 5, 6])
      const small = yield* open(2)
      yield* small.load?.(saved) ?? Effect.void
      yield* update
      assert.deepStrictEqual(poolOf(small.save?.()), [6, 7])
    }).pipe(Effect.scoped),
  )
})

describe("a rendered game", () => {
  it.effect("is that of the validation, with pictures of the whole game and the actions of all agents", () =>
    Effect.gen(function* () {
      const pictured = MultiEnv.parallel({
        ...race.game,
        renderSvg: (counts) => `<svg viewBox="0 0 1 1"><!--${String(counts)}--></svg>`,
      })
      const { files } = yield* keep({
        env: pictured,
        numEnvs: 6,
        algorithm: Ppo.make({ nsteps: 16, minibatches: 1, epochs: 1 }),
        totalSteps: 96,
        validation: { everySteps: 96, episodes: 6, sampled: true },
        render: { everySteps: 96, episodes: 2 },
      })
      const bytesOf = (name: string) =>
        [...files].flatMap(([path, bytes]) => (path.endsWith(name) ? [bytes] : []))[0] ?? new Uint8Array()
      const textOf = (name: string) => new TextDecoder().decode(bytesOf(name))
      const episodes = JSON.parse(gunzipSync(bytesOf("trajectories.json.gz")).toString())
      const { returns } = JSON.parse(textOf("evaluation_results.json"))
      assert.lengthOf(episodes, 2)
      for (const [episode, { trajectory }] of episodes.entries()) {
        let total = 0
        for (const { action, reward, observation, state } of trajectory) {
          total += reward
          assert.lengthOf(action, 3)
          assert.strictEqual(observation.length, 2)
          assert.lengthOf(state.inner, 3)
        }
        assert.strictEqual(total, returns[3 * episode])
      }
      assert.include(textOf("episode.svg"), `<!--${episodes[0].trajectory.at(-1).state.inner.join()}-->`)
    }),
  )
})

describe("a game of turns", () => {
  it("lets an agent only wait while another acts", () => {
    const batch = Batch.make(adding, 2)
    batch.reset(2)
    assert.strictEqual(maskSizeOf(batch.observationSpace), 2)
    const sum = batch.observations[0]
    assert.deepStrictEqual([...batch.observations.subarray(2, 8)], [1, sum % 2 === 0 ? 1 : 0, sum, 0, 1, 0])
    batch.step(Int32Array.of(0, 0))
    assert.strictEqual(batch.observations[1], 0)
    assert.throws(() => batch.step(Int32Array.of(1, 0)), /env 0, episode 0, step 2: the action mask forbids 1/)
  })

  const algorithms = [
    Ppo.make({ nsteps: 16, epochs: 1, minibatches: 2, hidden: [8] }),
    Ppo.make({ nsteps: 16, epochs: 1, minibatches: 1, hidden: [8], lstm: 4 }),
    Dqn.make({ learningStarts: 32, batchSize: 16, hidden: [8], learningRate: 0.02, updateTargetFreq: 50 }),
  ]
  for (const [index, algorithm] of algorithms.entries()) {
    it.effect(
      `${algorithm.name} ${index}: resumes with the same bits, with past selves as opponents`,
      () =>
        Effect.gen(function* () {
          const env = MultiEnv.against(adding, MultiEnv.pastSelves({ every: 2, size: 3, slots: 2 }))
          const settings = {
            env,
            numEnvs: 5,
            algorithm,
            totalSteps: 1200,
            validation: { everySteps: 400, episodes: 4, envs: [MultiEnv.against(adding)] },
          }
          const { whole, resumed, stoppedAt } = yield* resumable(settings, 410)
          assert.isBelow(stoppedAt, 1200)
          assert.strictEqual(resumed.digest, whole.digest)
          // Opponents that are never refreshed play otherwise.
          const old = MultiEnv.against(adding, MultiEnv.pastSelves({ every: 100_000, size: 3, slots: 2 }))
          const { result } = yield* keep({ ...settings, env: old })
          assert.notStrictEqual(result.digest, whole.digest)
        }),
      { tags: index === 0 ? [] : "slow" },
    )
  }

  it.effect("is played against a policy for each agent, which remembers its own games", () =>
    Effect.gen(function* () {
      const seen: Array<ReadonlyArray<unknown>> = []
      const counting = {
        actionSpace: race.actionSpace,
        actAll: (observations: ReadonlyArray<unknown>, states: ReadonlyArray<unknown> = []) =>
          Effect.sync(() => {
            seen.push(states)
            return observations.map((_, at) => {
              const state = states[at]
              return { action: 1, state: [(Array.isArray(state) ? Number(state[0]) : 0) + 1] }
            })
          }),
      }
      const env = MultiEnv.against(race, { a: counting, c: () => 0 }, { as: "b" })
      const batch = yield* Batch.open(env, 2)
      if (batch.isAsync !== true) return assert.fail("steps at once")
      yield* batch.reset(1)
      for (let step = 0; step < 3; step++) yield* batch.step(Int32Array.of(1, 0))
      const saved = batch.snapshot()
      yield* batch.step(Int32Array.of(1, 0))
      // In the fourth step the first env's agent leaves, and its next game begins.
      assert.deepStrictEqual([...batch.terminated], [1, 0])
      assert.deepStrictEqual(seen, [
        [null, null],
        [[1], [1]],
        [[2], [2]],
        [[3], [3]],
      ])
      const other = yield* Batch.open(env, 2)
      if (other.isAsync !== true) return assert.fail("steps at once")
      yield* other.restore(saved)
      yield* other.step(Int32Array.of(1, 0))
      assert.deepStrictEqual(other.snapshot(), batch.snapshot())
    }),
  )
})

describe("an agent whose turn does not come", () => {
  const waiting = {
    id: "waiting",
    agents: ["a", "b"],
    observationSpace: box(0, 1),
    actionSpace: discrete(2),
    reset: () => ({ turn: 0 }),
    turn: ({ turn }: { readonly turn: number }) => turn,
    observe: () => [0],
    step: () => ({ state: { turn: 1 }, rewards: [0, 0], terminated: false }),
  }

  it("ends with an error, not never", () => {
    const game = MultiEnv.turns(waiting)
    const batch = Batch.make(MultiEnv.against(game, "random", { as: "a" }), 1)
    batch.reset(1)
    const message = 'waiting: 10000 steps passed without a turn of a; "maxSteps" can end such games'
    assert.include(envError(() => batch.step(Int32Array.of(0))).message, message)
    const late = MultiEnv.turns({ ...waiting, reset: () => ({ turn: 1 }) })
    const error = envError(() => Batch.make(MultiEnv.against(late, "random", { as: "a" }), 1).reset(1))
    assert.include(error.message, message)
    assert.include(JSON.stringify(check(MultiEnv.against(game))), "steps passed without a turn of")
  })

  it("is not asked for its mask where the game is truncated", () => {
    const game = MultiEnv.turns({
      ...waiting,
      maxSteps: 3,
      actionMask: ({ turn }, agent) => (turn === agent ? [1, 1] : [0, 0]),
      step: ({ turn }) => ({ state: { turn: 1 - turn }, rewards: [0, 0], terminated: false }),
    })
    const env = MultiEnv.against(game, "random", { as: "a" })
    const batch = Batch.make(env, 1)
    batch.reset(1)
    batch.step(Int32Array.of(0))
    batch.step(Int32Array.of(0))
    assert.deepStrictEqual([batch.truncated[0], ...batch.finalObservations], [1, 0, 1, 1])
    assert.deepStrictEqual(check(env), [])
  })
})

describe("errors of games", () => {
  const definition = { ...race.game, id: "mine" }
  it("name what is wrong", () => {
    assert.include(
      envError(() => MultiEnv.parallel({ ...definition, agents: ["a"] })).message,
      'mine: "agents" of MultiEnv.parallel must be two or more different names',
    )
    assert.include(
      envError(() => MultiEnv.against(race, "random", { as: "d" })).message,
      'race: "as" must be one of a, b, c, found d',
    )
    assert.include(
      envError(() => MultiEnv.against(race, { d: "random" })).message,
      'opponents: there is no agent "d"; expected a, b, c',
    )
    assert.include(
      envError(() => MultiEnv.against(race, { a: "random" }, { as: "b" })).message,
      "opponents: nobody plays c",
    )
    assert.include(
      envError(() => Batch.make(race, 4)).message,
      "expected a multiple of 3 as the number of envs, found 4",
    )
    assert.include(
      envError(() => Wrapper.frameStack(race, 2)).message,
      "it has several agents; wrap what MultiEnv.against",
    )
    const wrong = MultiEnv.parallel({ ...definition, step: () => ({ state: 0, rewards: [1, 2], terminated: false }) })
    const batch = Batch.make(wrong, 3)
    batch.reset(1)
    assert.include(
      envError(() => batch.step(new Int32Array(3))).message,
      "mine: env 0, episode 0, step 1: mine: rewards are [1,2]; expected 3 finite numbers",
    )
    const cheat = Batch.make(
      MultiEnv.against(adding, () => 1),
      8,
    )
    const error = envError(() => {
      cheat.reset(1)
      for (let step = 0; step < 5; step++) cheat.step(new Int32Array(8))
    })
    assert.match(error.message, /the opponent that plays (x|y): the action mask forbids 1/)
    const stuck = MultiEnv.turns({
      id: "stuck",
      agents: ["x", "y"],
      observationSpace: box(0, 1),
      actionSpace: discrete(2),
      reset: () => 0,
      turn: (turn) => turn,
      observe: () => [0],
      actionMask: (turn) => [turn === 0, turn === 0],
      step: (turn) => ({ state: 1 - turn, rewards: [0, 0], terminated: false }),
    })
    for (const opponent of ["random", () => 0] as const) {
      const batch = Batch.make(MultiEnv.against(stuck, opponent, { as: "x" }), 1)
      batch.reset(1)
      const { message } = envError(() => batch.step(Int32Array.of(0)))
      assert.include(message, "stuck: actionMask forbids all 2 choices; expected at least one that is allowed")
    }
    assert.throws(
      () => MultiEnv.against(race, { actAll: () => Effect.succeed([]), actionSpace: multiDiscrete([3, 2]) }),
      /other actions/,
    )
  })

  it.effect("say where past selves can play", () =>
    Effect.gen(function* () {
      const env = MultiEnv.against(adding, MultiEnv.pastSelves())
      const error = yield* Effect.flip(Effect.scoped(Batch.open(env, 2)))
      assert.include(error.message, "adding against past selves: past selves play only in the envs of a training")
      const settings = { env, numEnvs: 4, algorithm: Ppo.make({ nsteps: 16 }), totalSteps: 64 }
      const normalised = yield* Effect.flip(keep({ ...settings, normalize: { observations: true } }))
      assert.include(normalised.message, "set normalize.observations to false")
      const validated = yield* Effect.flip(keep({ ...settings, validation: { everySteps: 64 } }))
      assert.include(validated.message, "name others for validations")
    }),
  )
})
