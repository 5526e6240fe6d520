import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import * as fc from "fast-check"
import * as KeyDoor from "../src/agents/task/games/KeyDoor.ts"
import * as Maze from "../src/agents/task/games/Maze.ts"
import * as TwentyQuestions from "../src/agents/task/games/TwentyQuestions.ts"
import * as WordGuess from "../src/agents/task/games/WordGuess.ts"
import { fiveLetters } from "../src/agents/task/games/words.ts"
import type { TextEnv } from "../src/agents/task/TextEnv.ts"
import { stream } from "../src/base/rng/Rng.ts"
import { play, saying, tasks } from "../test/agents/task/support.ts"
import { tries } from "../test/house/tries.ts"

/** Games of several steps, by what a config calls them. */
const games = ["key_door", "text_maze", "tic_tac_toe", "word_guess", "twenty_questions", "calendar"]

/** Generates actions that people might write in any of the games, sensible or not. */
const action = fc.oneof(
  fc.constantFrom("north", "go east", "s", "west", "look", "take red key", "unlock door", "a1", "b2", "c3", "b1"),
  fc.constantFrom(
    "crane",
    "stone",
    "alive?",
    "is it a dog?",
    "wheels",
    "take the treasure",
    "",
    "toString",
    "think: hm",
  ),
  fc.string({ unit: "binary", maxLength: 20 }),
)

const law = <Ts extends [unknown, ...Array<unknown>]>(
  arbitraries: { [K in keyof Ts]: fc.Arbitrary<Ts[K]> },
  holds: (...values: Ts) => Effect.Effect<void, unknown, Scope.Scope>,
  numRuns: number,
): Effect.Effect<void> =>
  Effect.promise(() =>
    fc.assert(
      fc.asyncProperty(...arbitraries, (...values: Ts) => Effect.runPromise(Effect.scoped(holds(...values)))),
      { numRuns: tries(numRuns) },
    ),
  )

const one = (type: string, seed: number) => Effect.map(tasks({ type, num_tasks: 3, seed }, 1), ([env]) => env)

describe("a game in words", () => {
  it.effect("is the same episode for the same seed and actions, scores 0 to 1, and never fails", () =>
    law(
      [fc.constantFrom(...games), fc.nat(1000), fc.array(action, { minLength: 1, maxLength: 30 })],
      Effect.fnUntraced(function* (type, seed, actions) {
        // `play` checks the score.
        const first = yield* play(yield* one(type, seed), saying(...actions), seed)
        const second = yield* play(yield* one(type, seed), saying(...actions), seed)
        assert.deepStrictEqual({ ...second, env: null }, { ...first, env: null })
      }),
      300,
    ),
  )

  it.effect("is not changed by thinking aloud", () =>
    law(
      [fc.constantFrom("key_door", "text_maze", "word_guess", "twenty_questions"), fc.nat(1000), fc.array(action)],
      Effect.fnUntraced(function* (type, seed, actions) {
        const env = yield* one(type, seed)
        const plain = yield* env.begin(stream(1))
        const aloud = yield* env.begin(stream(1))
        for (const action of actions) {
          const thought = yield* aloud.step("think: what now?")
          assert.deepStrictEqual([thought.observation, thought.feedback.score, thought.terminated], ["OK.", 0, false])
          const led = yield* plain.step(action)
          assert.deepStrictEqual(yield* aloud.step(action), led)
          if (led.terminated) return
        }
      }),
      200,
    ),
  )

  it.effect("has the same task for any number of tasks, and another at another index", () =>
    law(
      [fc.constantFrom(...games), fc.nat(1000)],
      Effect.fnUntraced(function* (type, seed) {
        const few = yield* tasks({ type, num_tasks: 3, seed }, 3)
        const many = yield* tasks({ type, num_tasks: 300, seed }, 3)
        const begun = Effect.fnUntraced(function* (env: TextEnv) {
          return [env.id, env.metadata, (yield* env.begin(stream(1))).observation]
        })
        for (const at of [0, 1, 2]) assert.deepStrictEqual(yield* begun(many[at]), yield* begun(few[at]))
        assert.strictEqual(new Set(many.map(({ id }) => id)).size, 3)
      }),
      50,
    ),
  )
})

describe("a house of keys and doors", () => {
  it.effect("can always be solved within the step limit", () =>
    law(
      [fc.integer({ min: 2, max: 12 }), fc.nat(8), fc.nat()],
      Effect.fnUntraced(function* (rooms, doors, seed) {
        const house = KeyDoor.drawn(rooms, Math.min(doors, rooms - 1), stream(seed))
        const { score, terminated } = yield* play(KeyDoor.make({ id: "k", house }), saying(...KeyDoor.solution(house)))
        assert.isTrue(terminated)
        assert.strictEqual(score, 1)
      }),
      300,
    ),
  )

  it.effect("doesn't mention the treasure before the agent is there", () =>
    law(
      [fc.nat(), fc.array(action)],
      Effect.fnUntraced(function* (seed, actions) {
        const house = KeyDoor.drawn(5, 2, stream(seed))
        const elsewhere = { ...house, treasure: 99 }
        const seen = yield* play(KeyDoor.make({ id: "k", house }), saying(...actions, "look"))
        const other = yield* play(KeyDoor.make({ id: "k", house: elsewhere }), saying(...actions, "look"))
        const at = seen.observations.findIndex((text) => text?.includes("Here is the treasure") ?? true)
        const until = at < 0 ? undefined : at
        assert.deepStrictEqual(seen.observations.slice(0, until), other.observations.slice(0, until))
      }),
      100,
    ),
  )
})

describe("a maze in words", () => {
  it.effect("has a way out from every place, and doesn't reveal the exit", () =>
    law(
      [fc.integer({ min: 2, max: 9 }), fc.nat()],
      Effect.fnUntraced(function* (size, seed) {
        const maze = Maze.drawn(size, stream(seed))
        for (let start = 0; start < size * size; start++) {
          if (start === maze.exit) continue
          const env = Maze.make({ id: "m", maze: { ...maze, start } })
          const { score, observations } = yield* play(env, saying(...Maze.wayOut(maze, start)))
          assert.strictEqual(score, 1)
          const elsewhere = yield* Maze.make({ id: "m", maze: { ...maze, start, exit: -1 } }).begin(stream(1))
          assert.strictEqual(observations[0], elsewhere.observation)
        }
      }),
      40,
    ),
  )
})

describe("a secret", () => {
  it.effect("doesn't show in observations before a guess or a question", () =>
    law(
      [
        fc.constantFrom(...fiveLetters),
        fc.constantFrom(...Object.keys(TwentyQuestions.things)),
        // No word in it.
        fc.string({ unit: fc.constantFrom(..."0123456789 .?!-") }),
      ],
      Effect.fnUntraced(function* (word, thing, said) {
        const seen = (env: TextEnv) => Effect.map(play(env, saying(said, "", "think: x")), ({ steps }) => steps)
        assert.deepStrictEqual(
          yield* seen(WordGuess.make({ id: "w", word })),
          yield* seen(WordGuess.make({ id: "w", word: "crane" })),
        )
        assert.deepStrictEqual(
          yield* seen(TwentyQuestions.make({ id: "q", thing })),
          yield* seen(TwentyQuestions.make({ id: "q", thing: "dog" })),
        )
      }),
      100,
    ),
  )

  it.effect("isn't in a task's metadata or first observation", () =>
    law(
      [fc.nat(1000)],
      Effect.fnUntraced(function* (seed) {
        for (const type of ["word_guess", "codebook"]) {
          const [env] = yield* tasks({ type, num_tasks: 1, seed }, 1)
          const { observation, step } = yield* env.begin(stream(1))
          let target: string | null = null
          for (let guess = 0; target === null; guess++) target = (yield* step("bumpy")).feedback.target
          assert.notInclude(`${observation} ${JSON.stringify(Object.values(env.metadata ?? {}))} ${env.id}`, target)
        }
      }),
      100,
    ),
  )
})
