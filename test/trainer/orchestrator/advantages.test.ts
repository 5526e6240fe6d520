import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as MemorylessAgent from "../../../src/agents/agent/MemorylessAgent.ts"
import * as SelfPlay from "../../../src/agents/episode/protocols/SelfPlay.ts"
import { Lm, type LmService } from "../../../src/agents/lm/Lm.ts"
import { TokenObjective } from "../../../src/rl/losses/Losses.ts"
import { isPlayed, samplesOf, usableOf } from "../../../src/trainer/orchestrator/advantages.ts"
import * as Against from "../../../src/agents/task/Against.ts"
import * as TicTacToe from "../../../src/agents/task/games/TicTacToe.ts"
import { completion } from "../../agents/lm/support.ts"

const env = Against.make(TicTacToe.playersOf({ invalidMoves: "lose" }), {
  id: "t",
  type: "tic_tac_toe",
  player: "X",
  others: TicTacToe.random,
})

/** A model that answers with these moves, one after the other, of two tokens each. */
const playing = (...moves: ReadonlyArray<string>): LmService => {
  let made = 0
  return {
    complete: () =>
      Effect.sync(() => ({
        ...completion(moves[made++] ?? ""),
        tokens: { promptIds: [1], completionIds: [2, 3], logprobs: [-1, -1] },
      })),
  }
}

const place = {
  run: "run_a",
  step: 0,
  temperature: 1,
  width: 64,
  evenGroups: "keep" as const,
  objective: Schema.decodeUnknownSync(TokenObjective)({ type: "dr_grpo", normalisation: { type: "token_mean" } }),
}

describe("the samples of self-play", () => {
  it.effect("compare each player with the same player in other games, if it has made a move", () =>
    Effect.gen(function* () {
      const games = [["nowhere"], ["b2", "nowhere"], ["b2", "a1", "nowhere"]]
      const rollouts = yield* Effect.forEach(games, (moves, game) =>
        Effect.gen(function* () {
          const agent = yield* Effect.provideService(MemorylessAgent.make({ model: "m" }), Lm, playing(...moves))
          const episode = { id: `game-${game}`, env, envSeed: 1, samplingSeed: 1, groupId: "start" }
          return yield* Effect.scoped(SelfPlay.make(agent).play(episode))
        }),
      )
      const { usable } = yield* usableOf(rollouts.flat().filter(isPlayed), place)
      const { samples, groups } = samplesOf(usable, place)
      assert.strictEqual(groups, 2)
      // X loses the first and the third game. O, who has no move in the first one, loses the second and wins the third.
      const third = 1 / 3
      assert.deepStrictEqual(
        samples.map(({ id, advantages }) => [id.replace(/\/turn.*/, ""), Math.fround(advantages[1])]),
        [
          ["game-0/X", -third],
          ["game-1/X", 2 * third],
          ["game-1/O", -0.5],
          ["game-2/X", -third],
          ["game-2/X", -third],
          ["game-2/O", 0.5],
        ].map(([id, advantage]) => [id, Math.fround(Number(advantage))]),
      )
    }),
  )
})
