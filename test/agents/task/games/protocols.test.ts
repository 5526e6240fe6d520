import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as MemorylessAgent from "../../../../src/agents/agent/MemorylessAgent.ts"
import type * as Against from "../../../../src/agents/task/Against.ts"
import * as TicTacToe from "../../../../src/agents/task/games/TicTacToe.ts"
import * as MultiAgentSync from "../../../../src/agents/episode/protocols/MultiAgentSync.ts"
import * as SingleAgent from "../../../../src/agents/episode/protocols/SingleAgent.ts"
import type { LmRequest } from "../../../../src/agents/lm/Chat.ts"
import * as Scripted from "../../../../src/agents/lm/providers/scripted.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { tasks } from "../support.ts"

/** A model that plays by a policy. */
const by =
  (policy: Against.TextPolicy) =>
  ({ messages }: LmRequest): string =>
    policy(messages.at(-1)?.content ?? "", stream(1, messages.length))

const game = { id: "g", envSeed: 1, samplingSeed: 1 }

describe("games in words, played by agents", () => {
  it.effect("tic-tac-toe is a draw if one agent plays both sides well", () =>
    Effect.gen(function* () {
      const agent = yield* MemorylessAgent.make({ model: "scripted" })
      const rollouts = yield* Effect.scoped(MultiAgentSync.make(agent).play({ ...game, env: TicTacToe.players }))
      assert.deepStrictEqual(
        rollouts.map(({ totalReward, ending }) => [totalReward, ending.terminated]),
        [
          [0.5, true],
          [0.5, true],
        ],
      )
    }).pipe(Effect.provide(Scripted.layer(by(TicTacToe.optimal)))),
  )

  it.effect("a task of tic-tac-toe is never lost by an agent that plays well", () =>
    Effect.gen(function* () {
      const agent = yield* MemorylessAgent.make({ model: "scripted" })
      const envs = yield* tasks({ type: "tic_tac_toe", num_tasks: 10, seed: 1 }, 10)
      for (const env of envs) {
        assert.isAtLeast((yield* SingleAgent.play(agent, { ...game, env })).totalReward, 0.5)
      }
      assert.strictEqual(new Set(envs.map(({ metadata }) => metadata["player"])).size, 2)
    }).pipe(Effect.provide(Scripted.layer(by(TicTacToe.optimal)))),
  )

  for (const type of ["key_door", "text_maze", "tic_tac_toe", "word_guess", "twenty_questions", "calendar"]) {
    it.effect(`${type} is truncated when the agent only thinks`, () =>
      Effect.gen(function* () {
        const agent = yield* MemorylessAgent.make({ model: "scripted" })
        const [env] = yield* tasks({ type, num_tasks: 1, seed: 1 }, 1)
        const rollout = yield* SingleAgent.play(agent, { ...game, env })
        assert.deepStrictEqual(rollout.ending, { terminated: false, truncated: true, truncationReason: "max_steps" })
        assert.strictEqual(rollout.totalReward, 0)
        assert.strictEqual(rollout.steps.filter(({ _tag }) => _tag === "EnvironmentStep").length, env.maxSteps)
      }).pipe(Effect.provide(Scripted.layer(() => "think: what a game"))),
    )
  }
})
