import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { stream } from "../../../../src/base/rng/Rng.ts"
import type { BodyPull, EnvBody } from "../../../../src/rl/env/EnvBody.ts"
import type { Env } from "../../../../src/rl/env/Env.ts"
import * as HalfCheetah from "../../../../src/rl/env/mujoco/bodies/HalfCheetah.ts"
import * as Mujoco from "../../../../src/rl/env/mujoco/Mujoco.ts"
import { box } from "../../../../src/rl/env/Space.ts"
import { scene } from "../../../../src/rl/env/ui/scene.ts"
import { viewOf } from "../../../../src/rl/env/ui/view.ts"
import * as Wrapper from "../../../../src/rl/env/Wrapper.ts"

const actions = (step: number) => Array.from({ length: 6 }, (_, motor) => Math.sin(motor + step))

const bodyOf = ({ body }: Pick<Env, "body">): EnvBody => {
  if (body === undefined) throw new Error("the env has no body")
  return body
}

const prepared = (env: Env<Mujoco.MujocoState, ReturnType<typeof box>, ReturnType<typeof box>>) =>
  Effect.as(env.prepare ?? Effect.void, env)

/** A ball on a floor, or without weight above one, in the middle of the picture. */
const ballOn = (gravity: number, more: Partial<Mujoco.MujocoDefinition> = {}) =>
  Mujoco.env({
    id: "ball",
    model: {
      xml: `<mujoco><option gravity="0 0 -${gravity}"/><worldbody><geom type="plane" size="5 5 1" pos="0 0 ${gravity === 0 ? -1 : 0}"/>
        <body pos="0 0 0.1"><joint name="free" type="free"/><geom size="0.1"/></body></worldbody>
        <actuator><motor joint="free"/></actuator></mujoco>`,
    },
    observationSpace: box(-Infinity, Infinity, [3]),
    actionSpace: box(-1, 1),
    frameSkip: 4,
    camera: { at: [0, 0, 0.1], follows: -1, above: 0, floor: 0 },
    observe: ({ data }) => [...data.qpos.subarray(0, 3)],
    reward: ({ world }) => ({ high: world.data.qpos[2] }),
    ...more,
  })

const middle: BodyPull = { _tag: "Pointer", at: [240, 200] }

describe("EnvBody of Mujoco.env", () => {
  it.effect("sees each moment, and changes no bit", () =>
    Effect.gen(function* () {
      const env = yield* prepared(HalfCheetah.env)
      const { watch } = bodyOf(env)
      let [alone, watched] = [env.reset(stream(3)), env.reset(stream(3))]
      for (let step = 0; step < 30; step++) {
        alone = env.step(alone, actions(step), stream(3)).state
        const { result, moments, seconds, terms } = watch(undefined, () => env.step(watched, actions(step), stream(3)))
        watched = result.state
        assert.deepEqual(watched, alone)
        assert.deepEqual([moments.length, seconds], [5, 0.01])
        assert.deepEqual(moments.at(-1), { scene: alone.scene, forces: alone.forces })
        assert.strictEqual(result.reward, terms.forward + terms.ctrl)
      }
    }),
  )

  it.effect("pulls a body only while it is held, and leaves nothing of it in the state", () =>
    Effect.gen(function* () {
      const env = yield* prepared(ballOn(0))
      const { watch } = bodyOf(env)
      const start = env.reset(stream(1))
      const take = (state: Mujoco.MujocoState, pull?: BodyPull) => watch(pull, () => env.step(state, [0], stream(1)))
      // The first pull takes the ball at its middle, so that it stays; the next ones move it to the right and up.
      assert.closeTo(Math.hypot(...take(start, middle).result.state.observation), 0.1, 1e-6)
      let pulled = start
      for (let step = 0; step < 100; step++) pulled = take(pulled, { _tag: "Pointer", at: [310, 130] }).result.state
      const [x, y, z] = pulled.observation
      assert.closeTo(x, 0.5, 0.02)
      assert.closeTo(y, 0, 1e-6)
      assert.closeTo(z, 0.6, 0.02)
      const { moments } = take(pulled, { _tag: "Pointer", at: [310, 130] })
      assert.containsAllKeys(moments[0], ["pull"])
      // Let go, the ball goes on as one of this place and speed that nobody has pulled.
      assert.deepEqual(take(pulled).result, env.step(pulled, [0], stream(1)))
      assert.notProperty(take(pulled).moments[0], "pull")
      // A pointer beside the ball holds nothing.
      assert.deepEqual(take(start, { _tag: "Pointer", at: [20, 20] }).result, env.step(start, [0], stream(1)))
    }),
  )

  it.effect("leaves the env's own forces as they are, and adds a pull to them", () =>
    Effect.gen(function* () {
      const wind = ({ data }: Mujoco.MujocoWorld) => void data.xfrc_applied.set([0, 0.5, 0], 6)
      const env = yield* prepared(ballOn(0, { reset: wind }))
      const { watch } = bodyOf(env)
      const start = env.reset(stream(1))
      const alone = env.step(start, [0], stream(1))
      assert.isAbove(alone.state.observation[1], 1e-7)
      assert.deepEqual(watch(undefined, () => env.step(start, [0], stream(1))).result, alone)
      const pushed = watch({ _tag: "Push", right: 1, up: 0 }, () => env.step(start, [0], stream(1))).result.state
      assert.isAbove(pushed.observation[0], 1e-4)
      assert.closeTo(pushed.observation[1], alone.state.observation[1], 1e-12)
      assert.deepEqual(
        env.step(pushed, [0], stream(1)),
        watch(undefined, () => env.step(pushed, [0], stream(1))).result,
      )
    }),
  )

  it.effect("pushes a body to the right and up, through wrappers as well", () =>
    Effect.gen(function* () {
      const plain = yield* prepared(ballOn(0))
      const env = Wrapper.stickyActions(plain, 0)
      const { watch } = bodyOf(env)
      const push = (right: number, up: number) =>
        watch({ _tag: "Push", right, up }, () => env.step(env.reset(stream(1)), [0], stream(1))).result.state.inner
      const [x, y, z] = push(1, 0).observation
      assert.isAbove(x, 1e-4)
      assert.deepEqual([y, z], [0, 0.1])
      assert.isAbove(push(0, 1).observation[2], 0.1 + 1e-4)
      assert.deepEqual(push(0, 0), plain.step(plain.reset(stream(1)), [0], stream(1)).state)
    }),
  )

  it.effect("lists contact forces as multiples of the weight", () =>
    Effect.gen(function* () {
      const env = yield* prepared(ballOn(9.81))
      let state = env.reset(stream(1))
      for (let step = 0; step < 400; step++) state = env.step(state, [0], stream(1)).state
      const [x, y, , ...force] = state.forces
      assert.strictEqual(state.forces.length, 6)
      for (const [at, value] of [x, y, ...force].entries()) assert.closeTo(value, at === 4 ? 1 : 0, 1e-3)
      assert.isEmpty([...env.step(env.reset(stream(1)), [0], stream(1)).state.forces].filter(Number.isNaN))
    }),
  )

  it.effect("finds a body where the picture shows it", () =>
    Effect.gen(function* () {
      const camera = {
        around: 0.7,
        above: 0.4,
        far: 3,
        at: [0.1, 0.2, 0.3],
        follows: -1,
        focus: 560,
        forces: false,
      } as const
      const view = viewOf(camera, scene, [0, 0])
      const env = Mujoco.env({
        id: "ball",
        model: {
          xml: `<mujoco><worldbody><body pos="0.4 -0.3 0.5"><joint name="x" type="slide"/><geom size="0.1"/></body></worldbody>
            <actuator><motor joint="x"/></actuator></mujoco>`,
        },
        observationSpace: box(-Infinity, Infinity),
        actionSpace: box(-1, 1),
        camera,
        observe: () => [0],
        reward: () => ({ none: 0 }),
      })
      yield* prepared(env)
      const drawn = /<polyline points="([\d.]+),([\d.]+)/.exec(env.renderSvg?.(env.reset(stream(1))) ?? "")
      const [x, y, away] = view.seen([0.4, -0.3, 0.5])
      assert.closeTo(Number(drawn?.[1]), x, 1e-3)
      assert.closeTo(Number(drawn?.[2]), y, 1e-3)
      for (const [at, value] of view.placeAt(x, y, away).entries()) assert.closeTo(value, [0.4, -0.3, 0.5][at], 1e-9)
    }),
  )
})
