import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import type { Env } from "../../../src/rl/env/Env.ts"
import * as EnvPool from "../../../src/rl/env/pool/pool-node.ts"
import * as Wrapper from "../../../src/rl/env/Wrapper.ts"
import * as Validator from "../../../src/rl/train/Validator.ts"
import { keep } from "./inMemory.ts"
import { resumable } from "./resumable.ts"

const algorithm = Ppo.make({ hidden: [8], nsteps: 16, minibatches: 1, epochs: 1 })
const short = { env: CartPole.env, numEnvs: 2, totalSteps: 128, algorithm, validation: { everySteps: 64, episodes: 3 } }

/** Plays `episodes` episodes of an env, in this thread or in others. */
const playing = (env: Env = CartPole.env, options: Validator.PlayerOptions = { episodes: 3 }) =>
  Validator.layer({ name: "mine", make: ({ player }) => player(env, options) })

const scoresWith = (layer: Layer.Layer<never>) =>
  Effect.map(Effect.provide(keep(short), layer), ({ events, result }) => ({
    digest: result.digest,
    returns: events.flatMap((event) =>
      event._tag === "ValidationEnded" ? [event.episodes.map((episode) => episode.return)] : [],
    ),
    notes: events.flatMap((event) => (event._tag === "Note" ? [event.message] : [])),
  }))

describe("a validator of one's own", () => {
  it.effect(
    "plays what the built-in one plays, in this thread or in others",
    () =>
      Effect.gen(function* () {
        const builtIn = yield* scoresWith(Layer.empty)
        const own = yield* scoresWith(playing())
        const inThreads = yield* scoresWith(
          Layer.merge(EnvPool.layer, playing(CartPole.env, { episodes: 3, workers: 2 })),
        )
        assert.strictEqual(builtIn.returns.length, 2)
        assert.deepStrictEqual(own.returns, builtIn.returns)
        assert.deepStrictEqual(inThreads.returns, builtIn.returns)
        assert.deepStrictEqual([own.digest, inThreads.digest], [builtIn.digest, builtIn.digest])
        assert.deepStrictEqual(own.notes, ["validations are played by mine"])
      }),
    { tags: "slow" },
  )

  it.effect("decides what counts, and resumes to the same bits", () =>
    Effect.gen(function* () {
      const best = Validator.layer({
        name: "best",
        make: ({ player, env }) =>
          Effect.map(
            player(Wrapper.timeLimit(env, 20), { episodes: 4, first: 10, sampled: true }),
            (play) => (at) => Effect.map(play(at), (episodes) => [episodes.toSorted((a, b) => b.return - a.return)[0]]),
          ),
      })
      const { returns } = yield* scoresWith(best)
      assert.deepStrictEqual(
        returns.map((all) => all.length),
        [1, 1],
      )
      assert.isTrue(returns.every(([score]) => score > 0 && score <= 20))
      const { whole, resumed } = yield* Effect.provide(resumable(short, 64), best)
      assert.strictEqual(resumed.digest, whole.digest)
      assert.strictEqual(whole.validation?.episodes, 1)
    }),
  )

  it.effect("is refused with envs of other spaces, and counts as failed without episodes", () =>
    Effect.gen(function* () {
      const other = yield* Effect.flip(Effect.provide(keep(short), playing(Pendulum.env)))
      assert.include(other.message, 'the validator "mine" plays Pendulum-v1, which has other observations or actions')
      const nothing = Validator.layer({ name: "nothing", make: () => Effect.succeed(() => Effect.succeed([])) })
      const { result, events } = yield* Effect.provide(keep(short), nothing)
      assert.strictEqual(result.failedValidations, 2)
      const warnings = events.flatMap((event) => (event._tag === "Warning" ? [event.message] : []))
      assert.include(warnings.join(), 'the validator "nothing" gave no episodes')
    }),
  )
})
