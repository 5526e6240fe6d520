import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { parse, stringify } from "yaml"
import { isPlain, toCamelCase, toSnakeCase } from "../../../src/base/config/Config.ts"
import * as Batch from "../../../src/rl/env/Batch.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import type * as Env from "../../../src/rl/env/Env.ts"
import { builtIn, envConfigOf } from "../../../src/rl/env/Envs.ts"
import { fromConfig } from "../../../src/rl/env/fromConfig.ts"
import * as MemoryChain from "../../../src/rl/env/games/MemoryChain.ts"
import * as TicTacToe from "../../../src/rl/env/games/TicTacToe.ts"
import * as ApplePicker from "../../../src/rl/env/grid/ApplePicker.ts"
import * as DeepSea from "../../../src/rl/env/grid/DeepSea.ts"
import * as GridWorld from "../../../src/rl/env/grid/GridWorld.ts"
import * as PixelMaze from "../../../src/rl/env/grid/PixelMaze.ts"
import * as KeyDoor from "../../../src/rl/env/grid/KeyDoor.ts"
import * as Breakout from "../../../src/rl/env/pixel/Breakout.ts"
import * as Catch from "../../../src/rl/env/pixel/Catch.ts"
import * as SpaceInvaders from "../../../src/rl/env/pixel/SpaceInvaders.ts"
import * as Wrapper from "../../../src/rl/env/Wrapper.ts"

const made: ReadonlyArray<Env.Env> = [
  ...builtIn,
  KeyDoor.make({ size: 12, rooms: 4, layoutSeed: 1, maxSteps: 200 }),
  GridWorld.make({ size: 9, density: 0.1 }),
  ApplePicker.make({ size: 12, apples: 3, layoutSeed: 4 }),
  PixelMaze.make({ layoutSeed: 2, layouts: 5, apples: 1, maxSteps: 30 }),
  DeepSea.make({ size: 6, stochastic: true, moveCost: 0.02, mappingSeed: 7 }),
  DeepSea.make({ randomActions: false }),
  MemoryChain.make({ length: 4, bits: 3 }),
  Breakout.make({ stickyActionProb: 0 }),
  SpaceInvaders.make({ stickyActionProb: 0.5, useMinimalActionSet: false, difficultyRamping: false }),
  Catch.make({ stickiness: 0.5, ramps: false }),
  TicTacToe.make({ opponent: "optimal" }),
  Wrapper.timeLimit(CartPole.env, 7),
  Wrapper.clipAction(Pendulum.env),
  Wrapper.rescaleAction(Pendulum.env, -2, 3),
  Wrapper.clipReward(Wrapper.scaleReward(Pendulum.env, 0.1), -1),
  Wrapper.keepObservations(CartPole.env, [2, 0]),
  Wrapper.frameStack(CartPole.env, 3),
  Wrapper.stickyActions(Breakout.make({ stickyActionProb: 0 }), 0.4),
  Wrapper.noopStarts(Pendulum.env, [0], 5),
]

/** Returns what an env is, and a hash of the numbers that it gives in some steps. */
const course = (env: Env.Env): ReadonlyArray<unknown> => {
  const batch = Batch.make(env, 3)
  batch.reset(5, "env")
  const discrete = env.actionSpace._tag === "Discrete"
  const hash = createHash("sha256")
  for (let step = 0; step < 60; step++) {
    const number = (index: number): number => (discrete ? (step * 7 + index) % 2 : Math.sin(step + index))
    const actions = Array.from({ length: 3 * batch.actionSize }, (_, index) => number(index))
    batch.step(discrete ? Int32Array.from(actions) : Float32Array.from(actions))
    for (const numbers of [batch.observations, batch.rewards, batch.terminated, batch.truncated]) hash.update(numbers)
  }
  return [env.id, env.observationSpace, env.actionSpace, hash.digest("hex")]
}

const messageOf = (said: unknown) =>
  Effect.map(Effect.flip(fromConfig(said, { source: "conf.yaml", prefix: ["env"] })), ({ message }) => message)

describe("an env of a config", () => {
  const equals = (env: Env.Env) =>
    Effect.gen(function* () {
      const said = envConfigOf(env)
      const read: unknown = toCamelCase(parse(stringify(toSnakeCase(said))))
      const again = yield* fromConfig(read, { source: "conf.yaml", prefix: ["env"] })
      for (const { prepare } of [env, again]) yield* prepare ?? Effect.void
      assert.deepEqual(course(again), course(env), JSON.stringify(said))
    })
  // Each MuJoCo env takes a while to load, and all are made from their configs in the same way.
  const [light, mujoco] = [made.filter(({ prepare }) => !prepare), made.filter(({ prepare }) => prepare)]

  it.effect("equals the env made in code, through YAML and back", () =>
    Effect.forEach([...light, ...mujoco.slice(0, 1)], equals),
  )

  it.effect("equals the env made in code, for each with MuJoCo", () => Effect.forEach(mujoco, equals), {
    tags: "slow",
  })

  it("tells envs of the same id apart", () => {
    const said = [Breakout.env, Breakout.make({ stickyActionProb: 0 }), Wrapper.timeLimit(Breakout.env, 9)].map(
      envConfigOf,
    )
    assert.strictEqual(new Set(said.map((one) => JSON.stringify(one))).size, 3)
    assert.deepEqual(said[2], { name: "TimeLimit", steps: 9, env: { name: "Breakout" } })
  })

  it("doesn't exist for an env with code of its own", () => {
    const own = { ...KeyDoor.env, step: KeyDoor.env.step }
    assert.isUndefined(envConfigOf(own))
    assert.isUndefined(envConfigOf(Wrapper.timeLimit(own, 5)))
    assert.isUndefined(envConfigOf(TicTacToe.make({ opponent: (board) => board.indexOf(0) })))
    assert.isFalse(builtIn.some(({ id }) => id === TicTacToe.make({ opponent: () => 0 }).id))
  })

  it.effect("is refused with the place of a wrong value", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* messageOf({ name: "KeyDor" }),
        'conf.yaml: env.name: unknown env "KeyDor"; did you mean "KeyDoor"?',
      )
      assert.match(yield* messageOf("CartPole"), /^conf\.yaml: env: unknown env "CartPole"; did you mean "CartPole-v1"/)
      assert.match(
        yield* messageOf({ name: "KeyDoor", sise: 3 }),
        /unknown key "env\.sise"; did you mean "env\.size"\?/,
      )
      assert.match(yield* messageOf({ name: "KeyDoor", size: 4 }), /^conf\.yaml: env: KeyDoor: size 4; for 2 rooms/)
      assert.match(yield* messageOf({ name: "KeyDoor", size: "x" }), /env\.size: expected/)
      assert.match(yield* messageOf({ name: "ScaleReward", factor: 2, env: "Pendulm-v1" }), /^conf\.yaml: env\.env: /)
      assert.match(yield* messageOf({ name: "ClipAction", env: "CartPole-v1" }), /are discrete/)
      assert.match(yield* messageOf({ name: "toString" }), /env\.name: unknown env "toString"/)
      assert.match(yield* messageOf(3), /env: expected an env's id/)
    }),
  )
})

describe("a user's own opponent", () => {
  it("may only take a free place", () => {
    for (const opponent of [() => 9, () => 0.5, () => -1, (board: ReadonlyArray<number>) => board.findIndex(Boolean)]) {
      const env = TicTacToe.make({ opponent })
      const batch = Batch.make(env, 2)
      assert.throws(() => {
        batch.reset(1, "env")
        for (let step = 0; step < 9; step++) batch.step(Int32Array.of(step, step))
      }, /the opponent played .* expected the number of a free place/)
    }
    assert.isTrue(isPlain(envConfigOf(TicTacToe.env)))
  })
})
