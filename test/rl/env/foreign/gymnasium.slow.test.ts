import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Ppo from "../../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import * as EpisodeLog from "../../../../src/rl/env/EpisodeLog.ts"
import { env as gymnasiumEnv, type GymnasiumOptions } from "../../../../src/rl/env/foreign/gymnasium-node.ts"
import { drawAllowed } from "../../../../src/rl/env/internal/rows.ts"
import { sampleInto, shapeOf, sizeOf } from "../../../../src/rl/env/Space.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { resumable } from "../../train/resumable.ts"
import { has, python, reference } from "./python.ts"

const made = (id: string, options: GymnasiumOptions = {}) => gymnasiumEnv(id, { python, ...options })

/** Returns the id of the newest version of an env: Gymnasium removes old ones. */
const newest = (name: string): string => {
  const code = `import gymnasium; print(max(id for id in gymnasium.registry if id.startswith("${name}-v")))`
  return spawnSync(python, ["-c", code], { encoding: "utf8" }).stdout.trim()
}

const cases = [
  { id: "CartPole", needs: ["gymnasium"] },
  { id: "Taxi", needs: ["gymnasium"] },
  { id: "Blackjack", needs: ["gymnasium"] },
  { id: "LunarLander", needs: ["gymnasium", "Box2D"] },
  { id: "LunarLander", needs: ["gymnasium", "Box2D"], options: { continuous: true } },
  { id: "HalfCheetah", needs: ["gymnasium.envs.mujoco"] },
]

/** Runs an Effect whose Python finds the modules of a folder here. */
const withModules = <A, E, R>(folder: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const before = process.env.PYTHONPATH
      process.env.PYTHONPATH = fileURLToPath(new URL(folder, import.meta.url))
      return before
    }),
    () => effect,
    (before) =>
      Effect.sync(() => {
        if (before === undefined) delete process.env.PYTHONPATH
        else process.env.PYTHONPATH = before
      }),
  )

describe("envs of Gymnasium", () => {
  for (const { id: name, needs, options = {} } of cases) {
    it.effect.skipIf(!has(...needs))(`${name} ${JSON.stringify(options)}: equals Python's own for 1,000 steps`, () =>
      Effect.gen(function* () {
        const id = newest(name)
        const env = made(id, { options })
        const batch = yield* Batch.open(env, 1)
        if (batch.isAsync !== true) return assert.fail("steps at once")
        yield* batch.reset(4)
        const size = sizeOf(env.actionSpace)
        const { observationSpace: rows } = batch
        assert.strictEqual(rows._tag === "Masked", name === "Taxi")
        const shown: Array<unknown> = [Array.from(batch.observations)]
        const actions: Array<unknown> = []
        for (let step = 0; step < 1000; step++) {
          const action = env.actionSpace._tag === "Box" ? new Float32Array(size) : new Int32Array(size)
          if (rows._tag === "Masked") drawAllowed(rows, batch.observations, stream(8, step), action)
          else sampleInto(env.actionSpace, stream(8, step), action)
          yield* batch.step(action)
          actions.push(env.actionSpace._tag === "Box" ? Array.from(action) : action[0])
          const ended = (batch.terminated[0] | batch.truncated[0]) !== 0
          const seen = Array.from(ended ? batch.finalObservations : batch.observations)
          shown.push([seen, batch.rewards[0], batch.terminated[0] === 1, batch.truncated[0] === 1])
          if (ended) shown.push(Array.from(batch.observations))
        }
        const seeds = Array.from({ length: 1001 }, (_, episode) => stream(4, 0, "episode", episode).uint32())
        assert.deepStrictEqual(shown, reference("trace.py", { id, options, seeds, actions }))
      }),
    )
  }

  it.effect.skipIf(!has("numpy"))("give the masks in their info", () =>
    Effect.gen(function* () {
      const batch = yield* Batch.open(made("Stub-v0"), 3)
      if (batch.isAsync !== true) return assert.fail("steps at once")
      const { observationSpace: rows, observations, finalObservations, terminated, truncated } = batch
      if (rows._tag !== "Masked") return assert.fail("has no masks")
      assert.deepStrictEqual(rows.choices, [3])
      yield* batch.reset(1)
      const ends = { terminated: 0, truncated: 0 }
      const maskOf = (at: number) => [at > 0 ? 1 : 0, at < 9 ? 1 : 0, 1]
      const actions = new Int32Array(3)
      for (let step = 0; step < 100; step++) {
        for (let at = 0; at < 12; at += 4)
          assert.deepStrictEqual([...observations.subarray(at + 1, at + 4)], maskOf(observations[at]))
        drawAllowed(rows, observations, stream(2, step), actions)
        yield* batch.step(actions)
        for (let index = 0; index < 3; index++) {
          const final = [...finalObservations.subarray(4 * index, 4 * index + 4)]
          ends.terminated += terminated[index]
          ends.truncated += truncated[index]
          if (terminated[index] === 1) assert.deepStrictEqual(final, [9, 1, 1, 1])
          else if (truncated[index] === 1) assert.deepStrictEqual(final.slice(1), maskOf(final[0]))
        }
      }
      assert.isAbove(ends.terminated, 0)
      assert.isAbove(ends.truncated, 0)
      for (let index = 0; index < 3; index++) actions[index] = observations[4 * index] === 0 ? 0 : 2
      actions[1] = 0
      while (observations[4] > 0) {
        yield* batch.step(actions)
        for (let index = 0; index < 3; index += 2) actions[index] = 2
      }
      const error = yield* Effect.flip(batch.step(actions))
      assert.match(error.message, /^Stub-v0: env 1, episode \d+, step \d+: the action mask forbids 0$/)

      const free = yield* Batch.open(made("Stub-v0", { actionMasks: false }), 1)
      assert.strictEqual(free.observationSpace._tag, "Discrete")
    }).pipe((effect) => withModules("stub", effect)),
  )

  it.effect.skipIf(!has("gymnasium"))("count what a game earns before the agent acts as its own score", () =>
    Effect.gen(function* () {
      const env = made("CartPole-v1", { wrappers: [{ name: "starts.FirstSteps" }], gameScores: true })
      const batch = yield* Batch.open(env, 1)
      if (batch.isAsync !== true) return assert.fail("steps at once")
      const log = EpisodeLog.record(batch)
      yield* log.reset(1)
      const scores: Array<number> = []
      const firsts = [0]
      for (let step = 0; step < 40; step++) {
        yield* log.step(Int32Array.of(1))
        scores.push(log.scores?.[0] ?? NaN)
        if (log.terminated[0] === 1) firsts.push(step + 1)
      }
      // Each step has the reward 1, and the wrapper takes three steps at the start of a game.
      assert.isAbove(firsts.length, 2)
      assert.deepStrictEqual(
        scores,
        scores.map((_, step) => (firsts.includes(step) ? 4 : 1)),
      )
      assert.strictEqual(log.episodes.returns[0], log.episodes.lengths[0] + 3)
    }).pipe((effect) => withModules("games", effect)),
  )

  it.effect.skipIf(!has("gymnasium"))("learn, and resume with the same bits, whatever the number of processes", () =>
    Effect.gen(function* () {
      const settings = {
        env: made("CartPole-v1"),
        numEnvs: 4,
        algorithm: Ppo.make({ nsteps: 64, epochs: 1 }),
        totalSteps: 1024,
        validation: { everySteps: 512, episodes: 3 },
      }
      const { whole, resumed } = yield* resumable(settings, 300)
      assert.strictEqual(resumed.digest, whole.digest)
      const three = yield* resumable({ ...settings, env: made("CartPole-v1", { processes: 3 }) }, 300)
      assert.strictEqual(three.whole.digest, whole.digest)
    }),
  )

  it.skipIf(!has("gymnasium"))("say what is wrong: no such env, a wrong version, a wrong option", () => {
    assert.throws(
      () => made("LunarLadder-v3"),
      /LunarLadder-v3: .*NameNotFound: Environment `LunarLadder` doesn't exist/,
    )
    assert.throws(() => made("CartPole-v7"), /CartPole-v7: .*VersionNotFound/)
    assert.throws(() => made("CartPole-v1", { options: { no_such: 1 } }), /CartPole-v1: TypeError: .*no_such/)
    assert.throws(
      () => made("CartPole-v1", { wrappers: [{ name: "NoSuch" }] }),
      /CartPole-v1: AttributeError: .*NoSuch/,
    )
  })

  it.effect.skipIf(!has("gymnasium"))("use Gymnasium's wrappers", () =>
    Effect.gen(function* () {
      const env = made("CartPole-v1", { wrappers: [{ name: "FrameStackObservation", stackSize: 3 }] })
      assert.deepStrictEqual(shapeOf(env.observationSpace), [3, 4])
      const batch = yield* Batch.open(env, 2)
      if (batch.isAsync !== true) return assert.fail("steps at once")
      yield* batch.reset(1)
      assert.lengthOf(batch.observations, 24)
    }),
  )

  it.effect.skipIf(!has("gymnasium", "pygame"))("show images with the channels first", () =>
    Effect.gen(function* () {
      const env = made("CartPole-v1", { wrappers: [{ name: "AddRenderObservation" }] })
      assert.deepStrictEqual(shapeOf(env.observationSpace), [3, 400, 600])
      const batch = yield* Batch.open(env, 1)
      yield* batch.reset(1) ?? Effect.void
      const countIn = (channel: number, value: number) =>
        batch.observations.subarray(channel * 240_000, (channel + 1) * 240_000).filter((pixel) => pixel === value)
          .length
      // The pole has the colour (202, 152, 101).
      assert.isAbove(countIn(0, 202), 100)
      assert.isAbove(countIn(2, 101), 100)
      assert.isBelow(countIn(0, 101) + countIn(2, 202), 10)
    }),
  )

  it.effect.skipIf(!has("gymnasium", "pygame"))("are drawn as pictures", () =>
    Effect.gen(function* () {
      const batch = yield* Batch.open(made("CartPole-v1"), 2)
      if (batch.isAsync !== true || batch.renderSvg === undefined) return assert.fail("cannot be drawn")
      yield* batch.reset(1)
      const picture = yield* batch.renderSvg(1)
      assert.match(picture, /^<svg .*viewBox="0 0 600 400"><image .*href="data:image\/png;base64,iVBOR/)
    }),
  )
})
