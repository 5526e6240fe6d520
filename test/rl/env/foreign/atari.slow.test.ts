import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Ppo from "../../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import * as EpisodeLog from "../../../../src/rl/env/EpisodeLog.ts"
import { env as gymnasiumEnv } from "../../../../src/rl/env/foreign/gymnasium-node.ts"
import { shapeOf } from "../../../../src/rl/env/Space.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { resumable } from "../../train/resumable.ts"
import { has, python, reference } from "./python.ts"

const isThere = has("gymnasium", "ale_py", "cv2")

/** A game as in `examples/foreign-envs/atari-pong.ts`. */
const atari = (game: string, processes = 1) =>
  gymnasiumEnv(`ale_py:ALE/${game}-v5`, {
    python,
    processes,
    options: { frameskip: 1, repeat_action_probability: 0, obs_type: "grayscale" },
    wrappers: [
      { name: "AtariPreprocessing", noop_max: 30, frame_skip: 4, screen_size: 84 },
      { name: "effect_rl_wrappers.EpisodicLife" },
      { name: "effect_rl_wrappers.FireReset" },
      { name: "ClipReward", min_reward: -1, max_reward: 1 },
      { name: "FrameStackObservation", stack_size: 4 },
    ],
    gameScores: true,
  })

const sum = (numbers: ArrayLike<number>): number => Array.from(numbers).reduce((total, number) => total + number, 0)

/** Plays random actions, and returns one row for each step. */
const played = Effect.fnUntraced(function* (game: string, steps: number) {
  const batch = yield* Batch.open(atari(game), 1)
  if (batch.isAsync !== true) return assert.fail("steps at once")
  const log = EpisodeLog.record(batch)
  yield* log.reset(4)
  const actions = Array.from({ length: steps }, (_, step) => stream(8, step).integer(4))
  const rows: Array<ReadonlyArray<number>> = []
  for (const action of actions) {
    yield* log.step(Int32Array.of(action))
    const { terminated, truncated, rewards, scores = rewards, livesLost = [0], observations, finalObservations } = log
    const final = terminated[0] === 1 ? sum(finalObservations) : -1
    rows.push([rewards[0], scores[0], terminated[0], truncated[0], livesLost[0], sum(observations), final])
  }
  return { log, rows, actions }
})

describe("Atari's games by the bridge", () => {
  it.effect.skipIf(!isThere)(
    "play Space Invaders as in Python: three lives are one recorded game, with unclipped scores",
    () =>
      Effect.gen(function* () {
        const env = atari("SpaceInvaders")
        assert.deepStrictEqual(shapeOf(env.observationSpace), [4, 84, 84])
        const { log, rows, actions } = yield* played("SpaceInvaders", 1500)
        assert.isTrue(log.observations.every((pixel) => Number.isInteger(pixel) && pixel >= 0 && pixel <= 255))
        const seeds = Array.from({ length: 100 }, (_, game) => stream(4, 0, "episode", game).uint32())
        assert.deepStrictEqual(rows, reference("trace_atari.py", { id: "ALE/SpaceInvaders-v5", seeds, actions }))

        assert.isTrue(rows.every(([reward]) => [0, 1].includes(reward)))
        assert.isAbove(Math.max(...rows.map(([, score]) => score)), 1)
        const { episodes } = log
        assert.isAbove(episodes.length, 1)
        const lives = rows.filter(([, , , , isLost]) => isLost === 1).length
        assert.isTrue(lives >= 2 * episodes.length && lives <= 2 * (episodes.length + 1))
        const last = episodes.steps[episodes.length - 1]
        assert.strictEqual(
          sum(episodes.returns.subarray(0, episodes.length)),
          sum(rows.slice(0, last).map(([, score]) => score)),
        )
      }).pipe(Effect.scoped),
  )

  it.effect.skipIf(!isThere)("train, record whole games, and resume with the same bits, whatever the processes", () =>
    Effect.gen(function* () {
      const convolutions = [{ filters: 4, kernel: 8, stride: 8 }]
      const settings = {
        env: atari("Breakout"),
        numEnvs: 2,
        algorithm: Ppo.make({ hidden: [16], convolutions, nsteps: 64, epochs: 1 }),
        totalSteps: 1536,
        validation: { everySteps: 768, episodes: 2, sampled: true },
      }
      const { whole, resumed, stoppedAt } = yield* resumable(settings, 600)
      assert.isBelow(stoppedAt, 1536)
      assert.strictEqual(resumed.digest, whole.digest)
      assert.isAbove(whole.episodes, 2)
      const two = yield* resumable({ ...settings, env: atari("Breakout", 2) }, 600)
      assert.strictEqual(two.whole.digest, whole.digest)
    }),
  )

  it.effect.skipIf(!isThere)("score a game of Pong from −21 to 21", () =>
    Effect.gen(function* () {
      const { log } = yield* played("Pong", 1100)
      assert.isAbove(log.episodes.length, 0)
      const [first] = log.episodes.returns
      assert.isTrue(Number.isInteger(first) && first >= -21 && first < -10)
      assert.isAbove(log.episodes.lengths[0], 500)
    }).pipe(Effect.scoped),
  )
})
