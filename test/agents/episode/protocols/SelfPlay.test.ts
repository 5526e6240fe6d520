import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as MemorylessAgent from "../../../../src/agents/agent/MemorylessAgent.ts"
import * as SelfPlay from "../../../../src/agents/episode/protocols/SelfPlay.ts"
import * as Scripted from "../../../../src/agents/lm/providers/scripted.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import * as TicTacToe from "../../../../src/agents/task/games/TicTacToe.ts"
import { tasksOf } from "../../task/opening.ts"

const episode = { id: "g", envSeed: 1, samplingSeed: 1 }
const wellPlayed = Scripted.layer(({ messages }) =>
  TicTacToe.optimal(messages.at(-1)?.content ?? "", stream(1, messages.length)),
)

describe("SelfPlay", () => {
  it.effect("plays both players of a task's game, without the task's opponent", () =>
    Effect.gen(function* () {
      const agent = yield* MemorylessAgent.make({ model: "scripted" })
      const protocol = SelfPlay.make(agent)
      for (const env of yield* tasksOf({ type: "tic_tac_toe", num_tasks: 4, seed: 1, opponent: "random" })) {
        const rollouts = yield* Effect.scoped(protocol.play({ ...episode, env }))
        assert.deepStrictEqual(
          rollouts.map(({ meta, totalReward, length }) => [meta.player, meta.groupId, totalReward, length]),
          [
            ["X", "g", 0.5, 5],
            ["O", "g", 0.5, 4],
          ],
        )
      }
    }).pipe(Effect.provide(wellPlayed)),
  )

  it.effect("refuses a task for one player", () =>
    Effect.gen(function* () {
      const agent = yield* MemorylessAgent.make({ model: "scripted" })
      const [env] = yield* tasksOf({ type: "reverse_text", num_tasks: 1, seed: 1 })
      const { message } = yield* Effect.flip(Effect.scoped(SelfPlay.make(agent).play({ ...episode, env })))
      assert.strictEqual(
        message,
        "reverse_text-1-1: expected a game for several players, such as tic_tac_toe; reverse_text is for one",
      )
    }).pipe(Effect.provide(wellPlayed)),
  )
})
