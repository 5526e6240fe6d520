import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Against from "../../../../src/agents/task/Against.ts"
import * as TicTacToe from "../../../../src/agents/task/games/TicTacToe.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { tasksOf } from "../opening.ts"
import { play, saying } from "../support.ts"

const against = (others: Against.TextPolicy, player = "X") =>
  Against.make(TicTacToe.players, { id: "t", type: "tic_tac_toe", player, others })

/** Plays by a policy, as the opponents do. */
const by = (policy: Against.TextPolicy) => (observation: string, step: number) => policy(observation, stream(7, step))

describe("tic-tac-toe for two", () => {
  it.effect("shows the board to both players, and gives the winner a point", () =>
    Effect.gen(function* () {
      const episode = yield* TicTacToe.players.begin(stream(1))
      assert.deepStrictEqual(episode.toMove, ["X"])
      assert.strictEqual(
        episode.observations["X"],
        "Tic-tac-toe. You are X. Three in a row win: across, down or diagonally. Answer with a free place, such as b2.\n" +
          "3 . . .\n2 . . .\n1 . . .\n  a b c\nYour move. Free: a3, b3, c3, a2, b2, c2, a1, b1, c1",
      )
      const first = yield* episode.step({ X: "a1" })
      assert.deepStrictEqual(first.toMove, ["O"])
      assert.include(first.observations["O"], "3 . . .\n2 . . .\n1 X . .\n  a b c\nYour move. Free: a3")
      assert.include(first.observations["X"], "O is to move.")
      yield* episode.step({ O: "a2" })
      yield* episode.step({ X: "I play B1." })
      yield* episode.step({ O: "b2" })
      const last = yield* episode.step({ X: "c1" })
      assert.isTrue(last.terminated)
      assert.deepStrictEqual(last.toMove, [])
      assert.deepStrictEqual(last.feedback, {
        X: { score: 1, target: null, message: "X takes c1. You win." },
        O: { score: 0, target: null, message: "X takes c1. You lose." },
      })
      assert.strictEqual(last.observations["O"], "Tic-tac-toe. You are O.\n3 . . .\n2 O O .\n1 X X X\n  a b c")
    }),
  )

  it.effect("gives both half a point for a draw", () =>
    Effect.gen(function* () {
      const episode = yield* TicTacToe.players.begin(stream(1))
      const moves = ["b2", "a1", "a3", "c1", "b1", "b3", "a2", "c2", "c3"]
      for (const [at, move] of moves.entries()) {
        const step = yield* episode.step({ [at % 2 === 0 ? "X" : "O"]: move })
        assert.strictEqual(step.terminated, at === 8)
        assert.strictEqual(step.feedback["O"].score, at === 8 ? 0.5 : 0)
      }
    }),
  )

  it.effect("explains an invalid move, and lets the same player move again", () =>
    Effect.gen(function* () {
      const episode = yield* TicTacToe.players.begin(stream(1))
      yield* episode.step({ X: "b2" })
      const bad: ReadonlyArray<[action: string, said: string]> = [
        ["b2", "b2 is taken. Free: a3, b3, c3, a2, c2, a1, b1, c1"],
        ["d4", "That names no place. Free: a3, b3"],
        ["a1 or c3", "That names no place."],
        ["", "That names no place."],
        ["think: a1 is a corner", "OK."],
      ]
      for (const [action, said] of bad) {
        const step = yield* episode.step({ O: action })
        assert.deepStrictEqual(step.toMove, ["O"], action)
        assert.isTrue(step.observations["O"]?.startsWith(said), action)
        assert.notInclude(step.observations["X"], said)
        assert.include(step.observations["O"], "2 . X .")
      }
    }),
  )
})

describe("tic-tac-toe in words, after an opening", () => {
  it.effect("explains the rules to each player before the first move, and only then", () =>
    Effect.gen(function* () {
      const episode = yield* TicTacToe.playersOf({ opening: [4, 0, 8] }).begin(stream(1))
      const rules = /Three in a row win: .* Answer with a free place, such as b2\./
      assert.deepStrictEqual(episode.toMove, ["O"])
      assert.match(episode.observations["O"] ?? "", rules)
      const second = yield* episode.step({ O: "c3" })
      assert.match(second.observations["X"] ?? "", rules)
      const third = yield* episode.step({ X: "a2" })
      assert.notMatch(third.observations["O"] ?? "", rules)
    }),
  )
})

describe("tic-tac-toe for small models", () => {
  it.effect("shows only the board from each player's side, after an opening, and takes numbers and names", () =>
    Effect.gen(function* () {
      const game = TicTacToe.playersOf({ observation: "board", opening: [4, 0, 8] })
      const episode = yield* game.begin(stream(1))
      assert.deepStrictEqual(episode.toMove, ["O"])
      assert.deepStrictEqual(episode.observations, { X: "A234e678i", O: "a234E678I" })
      assert.deepStrictEqual(TicTacToe.boardOf("a234E678I"), [1, 0, 0, 0, 2, 0, 0, 0, 2])
      assert.strictEqual((yield* episode.step({ O: "9" })).observations["O"], "a234E678I")
      assert.strictEqual((yield* episode.step({ O: " 2 " })).observations["O"], "ab34E678I")
      assert.strictEqual((yield* episode.step({ X: "c3" })).observations["X"], "ABc4e678i")
    }),
  )

  it.effect("ends the game by an invalid move where this loses, and gives the other player the point", () =>
    Effect.gen(function* () {
      const game = TicTacToe.playersOf({ invalidMoves: "lose" })
      const episode = yield* game.begin(stream(1))
      yield* episode.step({ X: "b2" })
      const { terminated, toMove, feedback } = yield* episode.step({ O: "b2" })
      assert.deepStrictEqual([terminated, toMove], [true, []])
      assert.deepStrictEqual(feedback, {
        X: { score: 1, target: null, message: "The move of O is invalid. You win." },
        O: { score: 0, target: null, message: "b2 is taken. Free: a3, b3, c3, a2, c2, a1, b1, c1 You lose." },
      })
    }),
  )

  it.effect(
    "begins each task with an opening, plays the chosen player as a demonstration, and scores draws as asked",
    () =>
      Effect.gen(function* () {
        const config = {
          type: "tic_tac_toe",
          num_tasks: 40,
          seed: 1,
          observation: "board",
          draw: 1,
          opponent: "optimal",
        }
        const taken = new Set<number>()
        for (const env of yield* tasksOf({ ...config, opening: 6 })) {
          const { observation } = yield* env.begin(stream(1))
          taken.add(observation.replace(/[1-9]/g, "").length)
          const move = env.demonstrate?.(observation, stream(1), 0)
          assert.include(observation, String(move))
          assert.match(String(move), /^[1-9]$/)
        }
        // Before the agent's first move, its opponent may have moved, too.
        assert.deepStrictEqual([...taken].sort(), [0, 1, 2, 3, 4, 5, 6])
        for (const env of (yield* tasksOf(config)).slice(0, 10)) {
          const { score } = yield* play(env, (seen, step) => String(env.demonstrate?.(seen, stream(2), step)))
          assert.strictEqual(score, 1)
        }
      }),
  )
})

describe("tic-tac-toe against an opponent", () => {
  it.effect("is never lost by optimal play, and never won against it", () =>
    Effect.gen(function* () {
      for (const player of ["X", "O"]) {
        for (let seed = 0; seed < 20; seed++) {
          const { score } = yield* play(against(TicTacToe.random, player), by(TicTacToe.optimal), seed)
          assert.isAtLeast(score, 0.5)
          const other = yield* play(against(TicTacToe.optimal, player), by(TicTacToe.random), seed)
          assert.isAtMost(other.score, 0.5)
          assert.isTrue(other.terminated)
        }
        const even = yield* play(against(TicTacToe.optimal, player), by(TicTacToe.optimal))
        assert.strictEqual(even.score, 0.5)
      }
    }),
  )

  it.effect("plays the same game for the same seed, and another for another", () =>
    Effect.gen(function* () {
      const game = (seed: number) => play(against(TicTacToe.random, "O"), by(TicTacToe.optimal), seed)
      assert.deepStrictEqual((yield* game(3)).observations, (yield* game(3)).observations)
      const firsts = yield* Effect.forEach([1, 2, 3, 4, 5, 6], (seed) =>
        Effect.map(game(seed), ({ observations }) => observations[0]),
      )
      assert.isAbove(new Set(firsts).size, 1)
    }),
  )

  it.effect("is truncated if nobody makes a move", () =>
    Effect.gen(function* () {
      const { steps, terminated, score } = yield* play(against(TicTacToe.random), saying("z9"))
      assert.strictEqual(steps.length, 30)
      assert.isFalse(terminated)
      assert.strictEqual(score, 0)
    }),
  )

  it.effect("ends with the final board", () =>
    Effect.gen(function* () {
      const { observations } = yield* play(against(TicTacToe.optimal), by(TicTacToe.optimal))
      assert.notInclude(observations.at(-1), ".\n.")
      assert.notInclude(observations.at(-1), "Your move")
    }),
  )

  it.effect("stops opponents that move for ever", () =>
    Effect.gen(function* () {
      const stubborn = against(() => "nowhere", "O")
      const error = yield* Effect.flip(stubborn.begin(stream(1)))
      assert.include(error.message, "the others moved 1000 times without ending their turns")
    }),
  )
})
