import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Batch, CartPole, Env, Pendulum, Space } from "../../../../src/index.ts"
import { toCamelCase } from "../../../../src/base/config/Config.ts"
import { refuseAll, Trust } from "../../../../src/base/trust/Trust.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import type { AnyBatchEnv } from "../../../../src/rl/env/BatchEnv.ts"
import { fromConfig } from "../../../../src/rl/env/fromConfig.ts"
import { servedNumbers } from "../../../../src/rl/env/openenv/ServedNumbers.ts"
import { recipeOf } from "../../../../src/rl/env/recipe.ts"
import { makeServers } from "../../../../src/spread/openenv/connect-node.ts"
import { OpenEnvServers } from "../../../../src/spread/openenv/OpenEnvServers.ts"
import { served } from "../../../agents/openenv/support.ts"
import { advanced, type FaultyServer, observation, refusal, serve } from "../../../spread/openenv/served.ts"

const from = { source: "train.yaml", prefix: ["env"] }

const envAt = (url: string, more: object = {}) =>
  Effect.provideServiceEffect(
    fromConfig(toCamelCase({ name: "OpenEnv", url, ...more }), from),
    OpenEnvServers,
    makeServers,
  )

const waited = (wait: ReturnType<AnyBatchEnv["step"]>) => wait ?? Effect.void

/** Plays some steps in a batch, and returns all that was seen. */
const played = Effect.fnUntraced(function* (env: Env.Env, actions: ReadonlyArray<Float32Array | Int32Array>) {
  const count = actions[0].length / (env.actionSpace._tag === "Box" ? Space.sizeOf(env.actionSpace) : 1)
  const batch = yield* Batch.open(env, count)
  yield* waited(batch.reset(5, "env"))
  const rows = [Array.from(batch.observations)]
  for (const action of actions) {
    yield* waited(batch.step(action))
    rows.push([...batch.observations, ...batch.rewards, ...batch.terminated, ...batch.truncated])
  }
  return rows
})

const choices = Array.from({ length: 40 }, (_, at) => Int32Array.of(1, at % 2, 0))

describe("an env that a server of OpenEnv plays", () => {
  it.effect("has the spaces of the server, and the same episodes for the same seed", () =>
    Effect.gen(function* () {
      const url = yield* served(yield* servedNumbers(CartPole.env))
      const env = yield* envAt(url)
      assert.deepStrictEqual(env.actionSpace, Space.discrete(2))
      assert.deepStrictEqual(env.observationSpace, Space.box(-Infinity, Infinity, [4]))
      assert.deepInclude(recipeOf(env), { name: "OpenEnv", url })
      const first = yield* played(env, choices)
      assert.deepStrictEqual(yield* played(env, choices), first)
      const seed = stream(5, "env", 1, "episode", 0).uint32()
      const local = Batch.make(CartPole.env, 1)
      local.reset(seed, "openenv")
      assert.deepStrictEqual(first[0].slice(4, 8), Array.from(local.observations))
      const ends = first.slice(1).reduce((sum, row) => sum + row[15] + row[16] + row[17], 0)
      assert.isAbove(ends, 2)
    }).pipe(Effect.scoped),
  )

  it.effect("has lists of real numbers as actions, and a time limit that is no terminal state", () =>
    Effect.gen(function* () {
      const url = yield* served(yield* servedNumbers({ ...Pendulum.env, maxSteps: 3 }))
      const env = yield* envAt(url)
      assert.deepStrictEqual(env.actionSpace, Pendulum.env.actionSpace)
      const rows = yield* played(
        env,
        [0.5, -1, 2].map((torque) => Float32Array.of(torque, 0)),
      )
      assert.deepStrictEqual(rows[3].slice(-4), [0, 0, 1, 1])
    }).pipe(Effect.scoped),
  )

  it.effect("has masks, if the observations have them or list what is allowed", () =>
    Effect.gen(function* () {
      const masked = Env.make({
        id: "masked",
        observationSpace: Space.box(0, 9),
        actionSpace: Space.discrete(3),
        reset: () => 0,
        observe: (at) => [at],
        step: (at) => ({ state: at + 1, reward: 0, terminated: false }),
        actionMask: (at) => [true, at === 1, false],
      })
      const url = yield* served(yield* servedNumbers(masked))
      const steps = yield* played(yield* envAt(url), [Int32Array.of(0), Int32Array.of(1)])
      assert.deepStrictEqual(
        [steps[0], steps[1].slice(0, 4)],
        [
          [0, 1, 0, 0],
          [1, 1, 1, 0],
        ],
      )
      const board = {
        info: [
          [1, 2],
          [3, 4],
        ],
        legal: [0, 2],
      }
      const server = yield* serve({
        schema: {
          action: { type: "object", properties: { column: { type: "integer" }, game: { type: "string" } } },
          observation: { type: "object", properties: { info: { type: "array" }, legal: { type: "array" } } },
        },
        answer: () => observation(board, { reward: 1 }),
      })
      const env = yield* envAt(server.url, {
        observation_key: "info",
        observation_shape: [2, 2],
        action_defaults: { game: "four" },
        choices: 3,
        legal_actions_key: "legal",
        options: { first_player: 1 },
      })
      const [first] = yield* played(env, [Int32Array.of(2)])
      assert.deepStrictEqual(first, [1, 2, 3, 4, 1, 0, 1])
      const [reset, step] = server.messages
      assert.deepInclude(reset["data"], { first_player: 1 })
      assert.deepStrictEqual(step, { type: "step", data: { game: "four", column: 2 } })
    }).pipe(Effect.scoped),
  )

  it.effect("fails with the reason if the server has no free session for long", () =>
    Effect.gen(function* () {
      const schema = {
        action: { type: "object", properties: { action: { type: "integer", minimum: 0, maximum: 1 } } },
        observation: {
          type: "object",
          properties: { values: { type: "array", items: { type: "number" }, minItems: 1, maxItems: 1 } },
        },
      }
      const { url } = yield* serve({ schema, answer: () => refusal("CAPACITY_REACHED", "full: 1/1") })
      const playing = yield* Effect.forkChild(Effect.flip(played(yield* envAt(url), [Int32Array.of(1)])))
      yield* advanced(playing)
      assert.include((yield* Fiber.join(playing)).message, `its server at ${url} has no free session: full: 1/1`)
    }).pipe(Effect.scoped),
  )

  it.effect("fails with what is wrong", () =>
    Effect.gen(function* () {
      const opening = (server: Partial<FaultyServer>, more: object = {}) =>
        Effect.gen(function* () {
          const { url } = yield* serve({ answer: () => observation({ values: [1] }), ...server })
          return (yield* Effect.flip(envAt(url, more))).message
        }).pipe(Effect.scoped)
      const schema = (values: object, action: object) => ({
        action: { type: "object", properties: { action } },
        observation: { type: "object", properties: { values } },
      })
      const list = { type: "array" }
      const one = { type: "array", items: { type: "number" }, minItems: 1, maxItems: 1 }
      const two = { type: "integer", minimum: 0, maximum: 1 }
      assert.strictEqual(
        yield* opening({ schema: schema(list, two) }, { observation_key: "values" }),
        "train.yaml: env.url: OpenEnv: observation_shape: expected the shape, because the server does not say it",
      )
      const unsized =
        "observation_key: expected the key with the numbers, because the server describes none of a fixed size"
      assert.include(yield* opening({ schema: schema(list, two) }), unsized)
      assert.include(
        yield* opening({ schema: schema(one, { type: "integer" }) }),
        "choices: expected the number of choices",
      )
      for (const size of [2 ** 40, 2.5]) {
        const wrong = { ...one, minItems: size, maxItems: size }
        assert.include(yield* opening({ schema: schema(wrong, two) }), unsized)
      }
      assert.include(
        yield* opening({ schema: schema(one, one) }, { legal_actions_key: "legal" }),
        "legal_actions_key: expected null, because an action is not one choice",
      )
      const { message } = yield* Effect.flip(Effect.provideService(envAt("http://127.0.0.1:1"), Trust, refuseAll))
      assert.include(message, 'train.yaml: env.url: this would send texts to "http://127.0.0.1:1"')
      const playing = (answer: FaultyServer["answer"]) =>
        Effect.gen(function* () {
          const { url } = yield* serve({ schema: schema(one, two), answer })
          return (yield* Effect.flip(played(yield* envAt(url), [Int32Array.of(1)]))).message
        }).pipe(Effect.scoped)
      const later = (reply: string) => playing(({ type }) => (type === "reset" ? observation({ values: [1] }) : reply))
      const wrong = `its server sent a wrong observation; expected 1 numbers at "values"`
      assert.include(yield* later(observation({ values: [1, 2] })), wrong)
      assert.include(yield* later(observation({ values: ["1"] })), wrong)
      assert.include(yield* playing(() => observation({})), wrong)
      assert.include(
        yield* later(refusal("EXECUTION_ERROR", "broken")),
        "its server failed with EXECUTION_ERROR: broken",
      )
    }),
  )
})
