import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { opened, problem } from "../opening.ts"
import { tasks } from "../support.ts"

describe("a data set of levels", () => {
  it.effect("needs no file, and returns its effective config", () =>
    Effect.gen(function* () {
      const { tasks: levels, config } = yield* opened({ type: "key_door", num_tasks: 1000, seed: 1 })
      assert.strictEqual(levels.size, 1000)
      assert.deepStrictEqual(config, {
        type: "key_door",
        num_tasks: 1000,
        max_samples: null,
        shuffle: false,
        seed: 1,
        verbose: true,
        rooms: 5,
        doors: 2,
      })
      const last = yield* levels.at(999)
      assert.strictEqual(last.id, "key_door-1-1000")
      assert.deepStrictEqual(last.metadata, { level: 1000, rooms: 5, doors: 2 })
      assert.strictEqual((yield* Effect.flip(levels.at(1000))).message, "key_door: there is no task 1000; it has 1000")
    }),
  )

  it.effect("differs for other settings and other seeds", () =>
    Effect.gen(function* () {
      const digest = (more: object) =>
        Effect.map(opened({ type: "text_maze", num_tasks: 10, ...more }), ({ tasks: levels }) => levels.digest)
      assert.strictEqual(yield* digest({}), yield* digest({ verbose: false }))
      const all = yield* Effect.forEach([{}, { seed: 7 }, { size: 6 }, { num_tasks: 11 }, { shuffle: true }], digest)
      assert.strictEqual(new Set(all).size, 5)
    }),
  )

  it.effect("can be shuffled and limited, like any other", () =>
    Effect.gen(function* () {
      const config = { type: "word_guess", num_tasks: 20, seed: 3 }
      const plain = (yield* tasks(config, 20)).map(({ id }) => id)
      const mixed = (yield* tasks({ ...config, shuffle: true, max_samples: 20 }, 20)).map(({ id }) => id)
      assert.notDeepEqual(mixed, plain)
      assert.deepStrictEqual(mixed.toSorted(), plain.toSorted())
      assert.deepStrictEqual(
        (yield* tasks({ ...config, shuffle: true, max_samples: 5 }, 20)).map(({ id }) => id),
        mixed.slice(0, 5),
      )
    }),
  )

  it.effect("is refused for invalid settings", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* problem({ type: "key_door", rooms: 3, doors: 3 }),
        "conf.yaml: doors: expected fewer than the 3 rooms, found 3",
      )
      assert.include(yield* problem({ type: "key_door", num_tasks: 0 }), "conf.yaml: num_tasks: expected")
      assert.include(yield* problem({ type: "text_maze", sise: 3 }), 'did you mean "size"?')
      assert.include(yield* problem({ type: "tic_tac_toe", opponent: "optimum" }), "conf.yaml: opponent: expected")
      assert.include(yield* problem({ type: "keydoor" }), 'did you mean "key_door"?')
    }),
  )
})
