import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Separate from "../../../../src/rl/algorithms/agents/Separate.ts"
import * as A2c from "../../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Ppo from "../../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Wasm from "../../../../src/tensor/backend/wasm.ts"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import type { AsyncBatchEnv } from "../../../../src/rl/env/BatchEnv.ts"
import type { Env } from "../../../../src/rl/env/Env.ts"
import { layer } from "../../../../src/rl/env/foreign/layer-node.ts"
import { env as pettingZooEnv, type PettingZooOptions } from "../../../../src/rl/env/foreign/pettingzoo-node.ts"
import { fromConfig } from "../../../../src/rl/env/fromConfig.ts"
import { drawAllowed } from "../../../../src/rl/env/internal/rows.ts"
import * as MultiEnv from "../../../../src/rl/env/MultiEnv.ts"
import { sampleInto, sizeOf } from "../../../../src/rl/env/Space.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { Recorder } from "../../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../../src/run/store/RunStore.ts"
import { RunOptions } from "../../../../src/run/RunOptions.ts"
import { keep } from "../../train/inMemory.ts"
import { resumable } from "../../train/resumable.ts"
import { has, python, reference } from "./python.ts"

const made = (id: string, options: PettingZooOptions = {}) => pettingZooEnv(id, { python, ...options })

const opened = (env: Env, numEnvs: number) =>
  Effect.flatMap(Batch.open(env, numEnvs), (batch) =>
    batch.isAsync === true ? Effect.succeed(batch) : Effect.die(`${env.id} steps at once`),
  )

/** Draws an action for each row. Where there are masks, the actions are allowed. */
const draw = (env: Env, batch: AsyncBatchEnv, step: number): Int32Array | Float32Array => {
  const { observationSpace: rows, observationSize, numEnvs, observations } = batch
  const size = sizeOf(env.actionSpace)
  const all = env.actionSpace._tag === "Box" ? new Float32Array(size * numEnvs) : new Int32Array(size * numEnvs)
  for (let row = 0; row < numEnvs; row++) {
    const action = all.subarray(row * size, (row + 1) * size)
    const random = stream(8, step, row)
    const seen = observations.subarray(row * observationSize, (row + 1) * observationSize)
    if (rows._tag === "Masked" && action instanceof Int32Array) drawAllowed(rows, seen, random, action)
    else sampleInto(env.actionSpace, random, action)
  }
  return all
}

const seedsOf = (row: number) =>
  Array.from({ length: 500 }, (_, episode) => stream(4, row, "episode", episode).uint32())

/** Returns an observation of a row, without its mask. */
const numbersIn = (env: Env, { observationSize }: AsyncBatchEnv, rows: Float32Array, row: number) =>
  Array.from(rows.subarray(row * observationSize, row * observationSize + sizeOf(env.observationSpace)))

const maskIn = (env: Env, { observationSize, observations }: AsyncBatchEnv, row: number) => {
  const mask = observations.subarray(row * observationSize + sizeOf(env.observationSpace), (row + 1) * observationSize)
  return mask.length === 0 ? null : Array.from(mask)
}

const isAway = (numbers: ReadonlyArray<number>) => numbers.every((number) => number === 0)

/** Runs an Effect while Python finds the games of this folder. */
const withGames = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const before = process.env.PYTHONPATH
    process.env.PYTHONPATH = fileURLToPath(new URL("games", import.meta.url))
    return Effect.ensuring(
      effect,
      Effect.sync(() => {
        if (before === undefined) delete process.env.PYTHONPATH
        else process.env.PYTHONPATH = before
      }),
    )
  })

const parallelGames = [
  { id: "classic/rps_v2", needs: ["pygame"] },
  // Its agents leave one by one.
  {
    id: "butterfly/knights_archers_zombies_v11",
    needs: ["pygame"],
    options: { spawn_delay: 2, max_zombies: 30, line_death: true, max_cycles: 200 },
  },
  { id: "butterfly/pistonball_v6", needs: ["pymunk"], options: { n_pistons: 3, max_cycles: 40 }, steps: 60 },
  { id: "mpe2.simple_spread_v3", needs: ["mpe2"] },
  { id: "mpe2.simple_spread_v3", needs: ["mpe2"], options: { continuous_actions: true } },
]

const gamesOfTurns = [
  { id: "classic/tictactoe_v3", needs: ["pygame"] },
  { id: "classic/connect_four_v3", needs: ["pygame"] },
  { id: "mpe2.simple_spread_v3", needs: ["mpe2"], api: "aec" as const },
]

describe("games of PettingZoo", () => {
  for (const { id, needs, options = {}, steps = 300 } of parallelGames) {
    it.effect.skipIf(!has("pettingzoo", ...needs))(`${id} ${JSON.stringify(options)} equals Python's own`, () =>
      Effect.gen(function* () {
        const env = made(id, { options })
        const { agents = [] } = env
        const batch = yield* opened(env, agents.length)
        const { rewards, terminated, truncated } = batch
        yield* batch.reset(4)
        const size = sizeOf(env.actionSpace)
        const actions: Array<unknown> = []
        const shown: Array<unknown> = []
        let present: ReadonlyArray<string> = agents
        /** Notes what the agents see that are still in the game. */
        const look = () => {
          const numbers = agents.map((_, row) => numbersIn(env, batch, batch.observations, row))
          present = present.filter((agent) => agents.length <= 2 || !isAway(numbers[agents.indexOf(agent)]))
          shown.push(
            Object.fromEntries(
              present.map((agent) => {
                const row = agents.indexOf(agent)
                return [agent, [numbers[row], maskIn(env, batch, row)]]
              }),
            ),
          )
        }
        look()
        for (let step = 0; step < steps; step++) {
          const action = draw(env, batch, step)
          actions.push(agents.map((_, row) => Array.from(action.subarray(row * size, (row + 1) * size))))
          yield* batch.step(action)
          shown.push(Array.from(rewards))
          if ((terminated[0] | truncated[0]) !== 0) {
            for (const row of agents.keys()) assert.strictEqual(terminated[row] | truncated[row], 1)
            const endOf = (row: number) => [
              numbersIn(env, batch, batch.finalObservations, row),
              terminated[row] === 1,
              truncated[row] === 1,
            ]
            shown.push(Object.fromEntries(present.map((agent) => [agent, endOf(agents.indexOf(agent))])))
            present = agents
          }
          look()
        }
        const trace = reference("trace_pettingzoo.py", { id, options, api: "parallel", seeds: seedsOf(0), actions })
        assert.deepStrictEqual(shown, trace)
      }),
    )
  }

  for (const { id, needs, api } of gamesOfTurns) {
    it.effect.skipIf(!has("pettingzoo", ...needs))(`${id}, in turns, equals Python's own`, () =>
      Effect.gen(function* () {
        const env = made(id, api === undefined ? {} : { api })
        const { agents = [] } = env
        const batch = yield* opened(env, agents.length)
        const { rewards, terminated, truncated } = batch
        yield* batch.reset(4)
        const shown: Array<unknown> = []
        const actions: Array<unknown> = []
        let turn = 0
        const gained = agents.map(() => 0)
        const look = () => {
          const mask = maskIn(env, batch, turn)
          const own = api === "aec" ? null : mask
          shown.push([agents[turn], numbersIn(env, batch, batch.observations, turn), own, Math.fround(gained[turn])])
          gained[turn] = 0
          for (const row of agents.keys()) {
            if (row !== turn) assert.strictEqual(maskIn(env, batch, row)?.indexOf(1, 1), -1, "others only wait")
          }
        }
        look()
        for (let step = 0; step < 300; step++) {
          const action = draw(env, batch, step)
          actions.push([action[turn]])
          yield* batch.step(action)
          for (const row of agents.keys()) gained[row] += rewards[row]
          turn = (turn + 1) % agents.length
          if ((terminated[0] | truncated[0]) !== 0) {
            const endOf = (row: number) => [
              numbersIn(env, batch, batch.finalObservations, row),
              Math.fround(gained[row]),
              terminated[row] === 1,
              truncated[row] === 1,
            ]
            shown.push(Object.fromEntries(agents.map((agent, row) => [agent, endOf(row)])))
            gained.fill(0)
            turn = 0
          }
          look()
        }
        const trace = reference("trace_pettingzoo.py", { id, options: {}, api: "aec", seeds: seedsOf(0), actions })
        assert.deepStrictEqual(shown, trace)
      }),
    )
  }

  it.effect.skipIf(!has("pettingzoo", "pygame"))("learn, validate and resume, whatever the number of processes", () =>
    Effect.gen(function* () {
      const settings = {
        env: made("classic/tictactoe_v3"),
        numEnvs: 6,
        algorithm: Ppo.make({ nsteps: 32, epochs: 1 }),
        totalSteps: 768,
        validation: { everySteps: 384, episodes: 4 },
      }
      const { whole, resumed } = yield* resumable(settings, 300)
      assert.strictEqual(resumed.digest, whole.digest)
      const config = { name: "PettingZoo", id: "classic/tictactoe_v3", processes: 2, python }
      const env = yield* fromConfig(config, { source: "train.yaml" }).pipe(Effect.provide(layer))
      const { result } = yield* keep({ ...settings, env })
      assert.strictEqual(result.digest, whole.digest)
      const error = yield* Effect.flip(keep({ ...settings, numEnvs: 5 }))
      assert.include(error.message, "expected a multiple of 2 as the number of envs, found 5")
    }),
  )

  it.effect.skipIf(!has("pettingzoo", "pygame"))("train separate policies, and resume them bit for bit", () =>
    Effect.gen(function* () {
      const settings = {
        env: made("classic/tictactoe_v3", { processes: 2 }),
        numEnvs: 6,
        algorithm: Separate.make({
          player_1: Ppo.make({ nsteps: 32, epochs: 1, minibatches: 3 }),
          player_2: A2c.make({ nsteps: 32 }),
        }),
        totalSteps: 768,
        validation: { everySteps: 384, episodes: 4 },
      }
      const { whole, resumed } = yield* resumable(settings, 300)
      assert.strictEqual(resumed.digest, whole.digest)
    }),
  )

  it.effect.skipIf(!has("pettingzoo", "pygame"))("restart whole games, and are drawn", () =>
    Effect.gen(function* () {
      const env = made("classic/tictactoe_v3", { options: { screenHeight: 60 } })
      const batch = yield* opened(env, 4)
      yield* batch.reset(1)
      yield* batch.step(Int32Array.of(4, 0, 4, 0))
      const mark = numbersIn(env, batch, batch.observations, 0).indexOf(1)
      assert.strictEqual(mark, 4)
      yield* batch.restart(Uint8Array.of(0, 1, 0, 0))
      const marks = [0, 1, 2, 3].map((row) => numbersIn(env, batch, batch.observations, row).filter(Boolean).length)
      assert.deepStrictEqual(marks, [0, 0, 1, 1])
      const picture = yield* batch.renderSvg?.(3) ?? Effect.die("cannot be drawn")
      assert.match(picture, /^<svg .*viewBox="0 0 60 60"><image .*href="data:image\/png;base64,iVBOR/)
    }),
  )

  it.effect.skipIf(!has("pettingzoo"))("have agents that leave, and masks in their info", () =>
    withGames(
      Effect.gen(function* () {
        const env = made("uneven_v0", { wrappers: [{ name: "uneven_v0.Even" }] })
        assert.deepStrictEqual(env.agents, ["short", "long"])
        const batch = yield* opened(env, 2)
        const { rewards, terminated, finalObservations } = batch
        yield* batch.reset(1)
        const begun = batch.observations[8]
        const rows = () => [0, 1].map((row) => Array.from(batch.observations.subarray(7 * row, 7 * row + 7)))
        assert.deepStrictEqual(rows(), [
          [0, 0, 1, 1, 1, 1, 1],
          [begun, begun, 1, 1, 1, 1, 1],
        ])
        yield* batch.step(Int32Array.of(2, 1, 0, 0))
        // The first agent has left; it only waits.
        assert.deepStrictEqual(rows(), [
          [0, 0, 1, 0, 0, 1, 0],
          [begun, begun, 1, 1, 1, 1, 1],
        ])
        assert.deepStrictEqual([...rewards, ...terminated], [1, 1, 0, 0])
        yield* batch.step(Int32Array.of(0, 0, 1, 1))
        assert.deepStrictEqual([...rewards, ...terminated], begun === 1 ? [0, 1, 1, 1] : [0, 1, 0, 0])
        if (begun === 0) yield* batch.step(Int32Array.of(0, 0, 0, 1))
        assert.deepStrictEqual([...terminated], [1, 1])
        assert.deepStrictEqual([...finalObservations.subarray(0, 2)], [0, 0])
        assert.deepStrictEqual([...finalObservations.subarray(7, 9)], [3, 3])
        const error = yield* Effect.flip(batch.step(Int32Array.of(0, 2, 0, 0)))
        assert.match(error.message, /expected a number as element 1 of the action from 0 to 1, found 2/)
      }),
    ),
  )

  it.effect.skipIf(!has("pettingzoo", "pygame"))("are played by one agent against others", () =>
    Effect.gen(function* () {
      const game = made("classic/tictactoe_v3")
      /** Marks the first free cell. */
      const first = (_: unknown, { mask }: { readonly mask: ArrayLike<number | boolean> | undefined }) =>
        Array.from(mask ?? []).findIndex((allowed) => Number(allowed) === 1)
      const played = (as: string, ...moves: ReadonlyArray<number>) =>
        Effect.gen(function* () {
          const env = MultiEnv.against(game, first, { as })
          assert.strictEqual(env.id, "classic/tictactoe_v3 against opponents")
          const batch = yield* opened(env, 2)
          yield* batch.reset(1)
          const seen: Array<unknown> = []
          for (const move of moves) {
            yield* batch.step(Int32Array.of(move, move))
            const { rewards, terminated, truncated } = batch
            seen.push([rewards[1], terminated[1], truncated[1]])
          }
          const marks = (rows: Float32Array) => numbersIn(env, batch, rows, 1).filter(Boolean).length
          return [...seen, marks(batch.finalObservations), marks(batch.observations)]
        })
      const goesOn = [0, 0, 0]
      // The other one marks cells 0, 1 and 2, which are a line; so are 3, 4 and 5.
      assert.deepStrictEqual(yield* played("player_1", 4, 3, 5), [goesOn, goesOn, [1, 1, 0], 5, 0])
      assert.deepStrictEqual(yield* played("player_2", 4, 3), [goesOn, [-1, 1, 0], 5, 1])
      assert.throws(() => MultiEnv.against(game, first, { as: "player_3" }), /"as" must be one of player_1, player_2/)
    }),
  )

  it.effect.skipIf(!has("pettingzoo", "pygame"))("are learned against others, also against past selves", () =>
    Effect.gen(function* () {
      const game = made("classic/tictactoe_v3", { processes: 2 })
      const settings = {
        env: MultiEnv.against(game),
        numEnvs: 4,
        algorithm: Ppo.make({ nsteps: 32, epochs: 1 }),
        totalSteps: 512,
        validation: { everySteps: 256, episodes: 4 },
      }
      const { whole, resumed } = yield* resumable(settings, 200)
      assert.strictEqual(resumed.digest, whole.digest)
      const env = MultiEnv.against(game, MultiEnv.pastSelves({ every: 1, slots: 2 }))
      const selves = { ...settings, env, validation: { ...settings.validation, envs: [settings.env] } }
      const past = yield* resumable(selves, 200, { ...selves })
      assert.strictEqual(past.resumed.steps, 512)
    }),
  )

  it.effect.skipIf(!has("pettingzoo"))("say which agents have other spaces than the first", () =>
    withGames(
      Effect.sync(() =>
        assert.throws(
          () => made("uneven_v0"),
          /its agents must have the same observations, but they differ: short has Box.*, long has Box.*; wrappers such as/,
        ),
      ),
    ),
  )

  it.effect.skipIf(!has("pettingzoo"))("say that a wrapper's name lacks its module", () =>
    withGames(
      Effect.sync(() =>
        assert.throws(
          () => made("uneven_v0", { wrappers: [{ name: "Even" }] }),
          /^uneven_v0: ValueError: wrapper Even: expected a module and its function, such as supersuit\.pad_observations_v0$/,
        ),
      ),
    ),
  )

  it.effect.skipIf(!has("pettingzoo", "pygame"))("are trained in the example connect-four.ts", () =>
    Effect.gen(function* () {
      const file = new URL("../../../../examples/foreign-envs/connect-four.ts", import.meta.url)
      assert.isAtMost(readFileSync(file, "utf8").trim().split("\n").length, 40)
      const { default: example } = yield* Effect.promise(
        () => import("../../../../examples/foreign-envs/connect-four.ts"),
      )
      const settings = { totalSteps: 2048, "validation.everySteps": 2048, "validation.episodes": 4 }
      const overrides = Object.entries(settings).map(([path, value]) => ({ path, value, source: "test" }))
      const result = yield* example.pipe(
        Effect.provideService(RunOptions, { overrides, source: "example", name: "run" }),
        Effect.provide(Layer.mergeAll(Wasm.layer, RunStore.memory().layer, Recorder.layerSilent)),
      )
      assert.strictEqual(result.validation?.episodes, 4)
    }),
  )

  it.skipIf(!has("pettingzoo", "pygame"))(
    "say what is wrong: no such game, no such module, a wrong option, no Python",
    () => {
      assert.throws(
        () => made("classic/tictactoo_v3"),
        /^classic\/tictactoo_v3: ValueError: PettingZoo \S+ has no such game; did you mean classic\/tictactoe_v3\?$/,
      )
      assert.throws(() => made("classic/tictactoo-v3"), /did you mean classic\/tictactoe-v3\?$/)
      assert.throws(
        () => made("classic/tictactoe_v3", { api: "parallel" }),
        /has no such game in which all agents act at once \(api: parallel\), only one in which they take turns \(api: aec\)$/,
      )
      assert.throws(() => made("no_such_package.game_v1"), /has no module no_such_package; install it/)
      assert.throws(() => made("classic/tictactoe_v3", { options: { size: 4 } }), /TypeError: .*size/)
      assert.throws(
        () => pettingZooEnv("classic/tictactoe_v3", { python: "no-such-python" }),
        /no-such-python was not found; install Python 3.9 or later, then: python3 -m pip install pettingzoo gymnasium/,
      )
    },
  )
})
