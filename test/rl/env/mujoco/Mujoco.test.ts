import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { stream } from "../../../../src/base/rng/Rng.ts"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import type { AnyBatchEnv } from "../../../../src/rl/env/BatchEnv.ts"
import * as HalfCheetah from "../../../../src/rl/env/mujoco/bodies/HalfCheetah.ts"
import * as Hopper from "../../../../src/rl/env/mujoco/bodies/Hopper.ts"
import * as Mujoco from "../../../../src/rl/env/mujoco/Mujoco.ts"
import { box } from "../../../../src/rl/env/Space.ts"

const slider = (xml = "<motor joint='x' ctrlrange='-1 1'/>", geom = "size='0.1'") => ({
  xml: `<mujoco><worldbody><body><joint name="x" type="slide" axis="1 0 0"/><geom ${geom}/></body></worldbody>
    <actuator>${xml}</actuator></mujoco>`,
})

const ballWith = (more: Partial<Mujoco.MujocoDefinition> = {}) =>
  Mujoco.env({
    id: "ball",
    model: slider(),
    frameSkip: 5,
    observationSpace: box(-Infinity, Infinity, [2]),
    actionSpace: box(-1, 1),
    reset: ({ data }, random) => {
      data.qpos[0] = random.between(-1, 1)
    },
    observe: ({ data }) => [data.qpos[0], data.qvel[0]],
    reward: ({ world, action }) => ({ near: -Math.abs(world.data.qpos[0]), control: -0.1 * action[0] * action[0] }),
    ...more,
  })

const messageOf = (definition: Partial<Mujoco.MujocoDefinition>) =>
  Effect.scoped(Batch.open(ballWith(definition), 1)).pipe(
    Effect.flip,
    Effect.map(({ message }) => message),
  )

describe("Mujoco.env", () => {
  it.effect("moves as a force moves a mass, and adds up the terms of its reward", () =>
    Effect.gen(function* () {
      const env = ballWith({ reset: () => {} })
      yield* env.prepare ?? Effect.void
      const state = env.reset(stream(1))
      const { state: next, reward } = env.step(state, [1], stream(1))
      // Ten milliseconds: five steps of MuJoCo's usual 2 ms, semi-implicit. The mass is that of a ball of water.
      const mass = 1000 * (4 / 3) * Math.PI * 0.1 ** 3
      assert.closeTo(next.observation[1], 0.01 / mass, 1e-12)
      assert.closeTo(next.observation[0], (0.002 * 0.002 * 15) / mass, 1e-12)
      assert.deepEqual(Object.keys(next.terms), ["near", "control"])
      assert.strictEqual(reward, next.terms.near + next.terms.control)
      // Actions beyond the bounds are clipped, for the motors and for the reward.
      assert.deepEqual(env.step(state, [7], stream(1)), env.step(state, [1], stream(1)))
    }),
  )

  it.effect("gives each env its own course, whatever the others do", () =>
    Effect.gen(function* () {
      const alone = yield* Batch.open(Hopper.env, 1, { firstIndex: 2 })
      const all = yield* Batch.open(Hopper.env, 4)
      for (const batch of [alone, all]) yield* Effect.sync(() => batch.reset(5, "env"))
      const action = (row: number, step: number) => [0, 1, 2].map((motor) => Math.sin(3 * row + motor + step))
      for (let step = 0; step < 40; step++) {
        yield* Effect.sync(() => alone.step(Float32Array.from(action(2, step))))
        yield* Effect.sync(() => all.step(Float32Array.from([0, 1, 2, 3].flatMap((row) => action(row, step)))))
        assert.deepEqual(alone.observations, all.observations.slice(2 * 11, 3 * 11))
      }
    }),
  )

  it.effect("goes on from a snapshot with the same bits", () =>
    Effect.gen(function* () {
      const course = (batch: AnyBatchEnv, steps: number) => {
        const rows: Array<number> = []
        for (let step = 0; step < steps; step++) {
          batch.step(Float32Array.from({ length: 12 }, (_, at) => Math.cos(at + step)))
          rows.push(...batch.observations, ...batch.rewards)
        }
        return rows
      }
      const first = yield* Batch.open(HalfCheetah.env, 2)
      yield* Effect.sync(() => first.reset(7))
      yield* Effect.sync(() => course(first, 30))
      const saved = yield* Effect.sync(() => first.snapshot())
      const expected = yield* Effect.sync(() => course(first, 30))
      // Another env of the same definition, as in another process.
      const second = yield* Batch.open(HalfCheetah.make(), 2)
      yield* Effect.sync(() => second.restore(saved))
      assert.deepEqual(yield* Effect.sync(() => course(second, 30)), expected)
    }),
  )

  it.effect("cuts an episode off if the simulation diverges", () =>
    Effect.gen(function* () {
      const env = ballWith({ reset: ({ data }) => void (data.qvel[0] = 1e11) })
      yield* env.prepare ?? Effect.void
      const moved = env.step(env.reset(stream(1)), [0], stream(1))
      assert.isTrue(moved.truncated)
      assert.strictEqual(moved.reward, 0)
      assert.isTrue([...moved.state.observation].every(Number.isFinite))
      assert.strictEqual(moved.diverged, true)
      assert.match(moved.state.divergence ?? "", /^the simulation diverged at 0\.?\d* s: mjWARN_BADQVEL$/)
      // The next episode begins as if nothing had happened.
      const healthy = ballWith()
      yield* healthy.prepare ?? Effect.void
      const start = Mujoco.stateAt(env, { qpos: [0.5], qvel: [0] })
      assert.deepEqual(
        env.step(start, [1], stream(1)).state.simulation,
        healthy.step(Mujoco.stateAt(healthy, { qpos: [0.5], qvel: [0] }), [1], stream(1)).state.simulation,
      )
    }),
  )

  it.effect("says what is wrong with a model, and in which line", () =>
    Effect.gen(function* () {
      const mesh =
        "type='mesh' mesh='m'/></body></worldbody><asset><mesh name='m' file='hull.obj'/></asset><worldbody><body><geom size='1'"
      assert.include(yield* messageOf({ model: slider("", mesh) }), "ball: model: ")
      assert.include(yield* messageOf({ model: slider("", mesh) }), "hull.obj")
      assert.match(yield* messageOf({ model: slider("<motor joint='y'/>") }), /unknown (transmission )?target.*line 2/)
      assert.match(yield* messageOf({ model: { xml: "no model" } }), /XML parse error/)
      assert.strictEqual(
        yield* messageOf({ model: slider("") }),
        "ball: the model has no actuators, so no action can move it; add <actuator> with a motor for each joint that an action moves",
      )
      assert.throws(() => ballWith({ frameSkip: 0 }), "frameSkip: expected a whole number from 1 to 10000, found 0")
    }),
  )

  it("needs to be prepared, and says how", () => {
    assert.throws(() => ballWith().reset(stream(1)), /MuJoCo is not loaded; open a batch by Batch.open/)
  })

  it.effect("reads the files that a model refers to", () =>
    Effect.gen(function* () {
      const part =
        "<mujoco><worldbody><body name='part'><joint name='x' type='slide'/><geom size='1'/></body></worldbody></mujoco>"
      const xml = "<mujoco><include file='part.xml'/><actuator><motor joint='x'/></actuator></mujoco>"
      const env = ballWith({ model: { xml, files: { "part.xml": new TextEncoder().encode(part) } } })
      yield* env.prepare ?? Effect.void
      assert.strictEqual(Mujoco.worldAt(env, env.reset(stream(1))).indexOf("body", "part"), 1)
      assert.throws(() => Mujoco.worldAt(env, env.reset(stream(1))).indexOf("body", "arm"), 'no body "arm"')
    }),
  )
})
