import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as KeyDoor from "../../../../src/agents/task/games/KeyDoor.ts"
import * as Maze from "../../../../src/agents/task/games/Maze.ts"
import * as TwentyQuestions from "../../../../src/agents/task/games/TwentyQuestions.ts"
import * as WordGuess from "../../../../src/agents/task/games/WordGuess.ts"
import { fiveLetters } from "../../../../src/agents/task/games/words.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { play, type Player, saying } from "../support.ts"

/** `[action, what the answer begins with]`, one after another. */
const script =
  (steps: ReadonlyArray<readonly [string, string]>) =>
  ({ steps: led }: { readonly steps: ReadonlyArray<{ readonly observation: string | null }> }) => {
    for (const [at, [action, said]] of steps.entries()) {
      assert.isTrue((led[at].observation ?? "(end)").startsWith(said), `${action}: ${led[at].observation}`)
    }
  }

const followed = (
  env: Parameters<typeof play>[0],
  steps: ReadonlyArray<readonly [string, string]>,
): Effect.Effect<unknown, unknown> =>
  Effect.map(play({ ...env, maxSteps: steps.length }, saying(...steps.map(([action]) => action))), script(steps))

describe("key and door", () => {
  // hall (0), east of it the study (1), behind a red door in the north of the hall the attic (2) with the treasure.
  const house: KeyDoor.House = {
    rooms: [
      { name: "hall", ways: { east: { to: 1, lock: null }, north: { to: 2, lock: "red" } } },
      { name: "study", ways: { west: { to: 0, lock: null } } },
      { name: "attic", ways: { south: { to: 0, lock: "red" } } },
    ],
    keys: { red: 1 },
    treasure: 2,
  }
  const env = KeyDoor.make({ id: "k", house })

  it.effect("is solved by fetching the key", () =>
    Effect.gen(function* () {
      const actions = ["go east", "take the red key", "go west", "unlock the red door", "go north", "take the treasure"]
      assert.deepStrictEqual(KeyDoor.solution(house), actions)
      const { score, terminated, steps, observations } = yield* play(env, saying(...actions))
      assert.strictEqual(score, 1)
      assert.isTrue(terminated)
      assert.strictEqual(steps.length, 6)
      assert.include(observations[0], "You are in the hall. Ways lead north (a red door, locked) and east.")
      assert.strictEqual(observations[1], "You are in the study. Ways lead west. Here is a red key.")
      assert.strictEqual(
        observations[5],
        "You are in the attic. Ways lead south (a red door, open). Here is the treasure.",
      )
    }),
  )

  it.effect("answers an impossible action with the possible ones, and changes nothing", () =>
    followed(env, [
      ["go north", "The red door is locked."],
      ["open door", "You don't have the red key."],
      ["unlock the blue door", "There is no blue door here."],
      ["take the red key", "There is no red key here."],
      ["take the treasure", "There is no treasure here."],
      ["go south", "No way leads south.\nYou are in the hall."],
      ["dance", "That can't be done here. You can: go north"],
      ["take constructor key", "There is no constructor key here."],
      ["", "That can't be done here."],
      ["think: I need a key", "OK."],
      ["look", "You are in the hall. Ways lead north (a red door, locked) and east."],
      ["i", "You have nothing."],
      ["E", "You are in the study."],
      ["unlock door", "There is no locked door here."],
      ["pick up the red key.", "You take the red key."],
      ["get red key", "You have the red key already."],
      ["inventory", "You have a red key."],
      ["west", "You are in the hall."],
      ["unlock the door", "The red door is open now."],
      ["open red door with the red key", "The red door is open already."],
    ]),
  )

  it.effect("is truncated if nothing is found", () =>
    Effect.gen(function* () {
      const { steps, terminated, score } = yield* play(env, saying("look"))
      assert.strictEqual(steps.length, 30)
      assert.isFalse(terminated)
      assert.strictEqual(score, 0)
    }),
  )
})

describe("a maze", () => {
  // 0 - 1
  //     |
  // 2 - 3
  const maze: Maze.Maze = {
    size: 2,
    start: 0,
    exit: 2,
    ways: [["east"], ["south", "west"], ["east"], ["north", "west"]],
  }
  const env = Maze.make({ id: "m", maze })

  it.effect("is left by the shortest way", () =>
    Effect.gen(function* () {
      const way = Maze.wayOut(maze, 0)
      assert.deepStrictEqual(way, ["east", "south", "west"])
      const { score, terminated, observations } = yield* play(env, saying(...way))
      assert.strictEqual(score, 1)
      assert.isTrue(terminated)
      assert.include(observations[0], "You are at row 1, column 1. Ways lead east.")
      assert.strictEqual(observations[1], "You are at row 1, column 2. Ways lead south and west.")
    }),
  )

  it.effect("reports walls", () =>
    followed(env, [
      ["south", "There is a wall in the south.\nYou are at row 1, column 1."],
      ["north", "There is a wall in the north."],
      ["up", "That is no way to go. Answer with north, east, south, west."],
      ["go east or south", "That is no way to go."],
      ["thought: east it is", "OK."],
      ["Go east.", "You are at row 1, column 2."],
      ["w", "You are at row 1, column 1."],
    ]),
  )

  it.effect("is truncated if nobody moves", () =>
    Effect.gen(function* () {
      const { steps, terminated } = yield* play(env, saying("north"))
      assert.strictEqual(steps.length, 16)
      assert.isFalse(terminated)
    }),
  )
})

/** Guesses a word that all marks fit, and that parts the words left best. */
const reasoning = (): Player => {
  let left: ReadonlyArray<string> = fiveLetters
  return (observation, step) => {
    const told = /^([a-z]{5}) ([-+?]{5})/.exec(observation)
    if (step === 0) left = fiveLetters
    if (told !== null) left = left.filter((word) => WordGuess.marksOf(told[1], word) === told[2])
    if (step === 0) return "raise"
    const largest = (guess: string): number => {
      const groups = new Map<string, number>()
      for (const word of left) {
        const marks = WordGuess.marksOf(guess, word)
        groups.set(marks, (groups.get(marks) ?? 0) + 1)
      }
      return Math.max(...groups.values())
    }
    return left.reduce((best, word) => (largest(word) < largest(best) ? word : best), left[0])
  }
}

describe("a hidden word", () => {
  it("marks letters, each as often as it occurs", () => {
    const table: ReadonlyArray<[guess: string, word: string, marks: string]> = [
      ["crane", "crane", "+++++"],
      ["stone", "notes", "?????"],
      ["llama", "label", "+??--"],
      ["geese", "eagle", "??--+"],
      ["eerie", "eagle", "+---+"],
      ["bumpy", "crane", "-----"],
    ]
    for (const [guess, word, marks] of table)
      assert.strictEqual(WordGuess.marksOf(guess, word), marks, `${guess} ${word}`)
  })

  it("is one of many words, all different", () => {
    assert.isAbove(fiveLetters.length, 230)
    assert.strictEqual(new Set(fiveLetters).size, fiveLetters.length)
    for (const word of fiveLetters) assert.match(word, /^[a-z]{5}$/)
  })

  it.effect("can always be found in six guesses by heeding the marks", () =>
    Effect.gen(function* () {
      for (const word of fiveLetters) {
        const { score, steps } = yield* play(WordGuess.make({ id: "w", word }), reasoning())
        assert.strictEqual(score, 1, word)
        assert.isAtMost(steps.length, 6, word)
      }
    }),
  )

  it.effect("counts only guesses, and explains what a guess is", () =>
    followed(WordGuess.make({ id: "w", word: "crane" }), [
      ["cranes", 'Answer with one word of five letters, a to z, such as "crane". 6 guesses are left.'],
      ["12345", "Answer with one word"],
      ["river or stone", "Answer with one word"],
      ["think: river or stone", "OK."],
      ["My guess: RIVER!", "river ?--?-\n5 guesses are left."],
      ["stone", "stone ---++\n4 guesses are left."],
    ]),
  )

  it.effect("is revealed when no guess is left, and not before", () =>
    Effect.gen(function* () {
      const { steps, score, terminated } = yield* play(WordGuess.make({ id: "w", word: "crane" }), saying("bumpy"))
      assert.strictEqual(steps.length, 6)
      assert.isTrue(terminated)
      assert.strictEqual(score, 0)
      assert.strictEqual(steps[4].observation, "bumpy -----\n1 guess is left.")
      assert.deepStrictEqual(steps[5].feedback, {
        score: 0,
        target: "crane",
        message: "No guess is left. The word was crane.",
      })
      assert.deepStrictEqual(new Set(steps.slice(0, 5).map(({ feedback }) => feedback.target)), new Set([null]))
    }),
  )

  it.effect("is truncated if nobody guesses", () =>
    Effect.gen(function* () {
      const { steps, terminated } = yield* play(WordGuess.make({ id: "w", word: "crane" }), saying("hm"))
      assert.strictEqual(steps.length, 18)
      assert.isFalse(terminated)
    }),
  )
})

/** Asks what parts the things that are left most evenly. */
const halving = (): Player => {
  let left = Object.keys(TwentyQuestions.things)
  const has = (thing: string, attribute: TwentyQuestions.ThingAttribute): boolean =>
    TwentyQuestions.things[thing].includes(attribute)
  return (observation) => {
    const told = /^(\w+): (yes|no)\./.exec(observation)
    const about = TwentyQuestions.attributes.find((attribute) => attribute === told?.[1])
    if (about !== undefined) left = left.filter((thing) => has(thing, about) === (told?.[2] === "yes"))
    if (left.length === 1) return `Is it a ${left[0]}?`
    const odds = (attribute: TwentyQuestions.ThingAttribute): number =>
      Math.abs(left.filter((thing) => has(thing, attribute)).length - left.length / 2)
    const best = TwentyQuestions.attributes.reduce((one, other) => (odds(other) < odds(one) ? other : one))
    return `Has it to do with ${best}?`
  }
}

describe("twenty questions", () => {
  it("are about things that differ", () => {
    const told = Object.values(TwentyQuestions.things).map((some) => some.toSorted().join(" "))
    assert.isAbove(told.length, 30)
    assert.strictEqual(new Set(told).size, told.length)
  })

  it.effect("suffice for each thing by halving", () =>
    Effect.gen(function* () {
      for (const thing of Object.keys(TwentyQuestions.things)) {
        const { score, steps } = yield* play(TwentyQuestions.make({ id: "q", thing }), halving())
        assert.strictEqual(score, 1, thing)
        assert.isAtMost(steps.length, 10, thing)
      }
    }),
  )

  it.effect("are understood in everyday wordings, and only questions count", () =>
    followed(TwentyQuestions.make({ id: "q", thing: "cat", questions: 4 }), [
      ["Is it red or yellow?", "Ask about one of: alive, animal"],
      ["Does it bark?", "Ask about one of"],
      ["__proto__", "Ask about one of"],
      ["think: a dog is a pet", "OK."],
      ["Does it swim?", "swims: no.\n3 questions are left."],
      ["Is it furry?", "fur: yes.\n2 questions are left."],
      ["I guess it is a dog.", "No, it is not: dog.\n1 question is left."],
    ]),
  )

  it.effect("reveal the thing after the last question", () =>
    Effect.gen(function* () {
      const env = TwentyQuestions.make({ id: "q", thing: "cat", questions: 2 })
      const { steps, score } = yield* play(env, saying("red?"))
      assert.strictEqual(score, 0)
      assert.strictEqual(steps.length, 2)
      assert.isNull(steps[0].feedback.target)
      assert.strictEqual(steps[1].feedback.target, "cat")
      assert.strictEqual(steps[1].feedback.message, "red: no. No question is left. It was: cat.")
    }),
  )
})

describe("random levels", () => {
  it("are houses with the given number of doors, the treasure behind one of them", () => {
    for (let seed = 0; seed < 50; seed++) {
      const house = KeyDoor.drawn(6, 3, stream(seed))
      assert.strictEqual(Object.keys(house.keys).length, 3)
      assert.isTrue(Object.values(house.rooms[house.treasure].ways).every(({ lock }) => lock !== null))
    }
  })
})
