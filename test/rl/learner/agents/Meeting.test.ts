import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import { EnvError } from "../../../../src/base/EnvError.ts"
import * as MultiEnv from "../../../../src/rl/env/MultiEnv.ts"
import { box, discrete } from "../../../../src/rl/env/Space.ts"
import { makeMeeting } from "../../../../src/rl/learner/agents/Meeting.ts"
import { seatsOf } from "../../../../src/rl/learner/agents/seats.ts"

/** Each agent adds its action to its own number and gets the sum of all numbers. It ends at 20. */
const game = MultiEnv.parallel({
  id: "sums",
  agents: ["a", "b", "c"],
  observationSpace: box(-100, 100, [2]),
  actionSpace: discrete(4),
  reset: (random) => [random.integer(3), 0, 0],
  observe: (numbers, agent) => [numbers[agent], agent],
  step: (numbers, actions) => {
    const next = numbers.map((number, agent) => number + actions[agent])
    const sum = next[0] + next[1] + next[2]
    return { state: next, rewards: next.map((number) => sum - number), terminated: sum >= 20 }
  },
})
const policies = [
  { name: "middle", agents: ["b"] },
  { name: "outer", agents: ["c", "a"] },
]
const seats = seatsOf(game.agents, policies, 6)

const met = () => {
  const batch = Batch.make(game, 6)
  batch.reset(3)
  return { batch, ...makeMeeting(batch, seats) }
}

describe("a meeting of learners", () => {
  it("gives each one the rows of its agents", () => {
    assert.deepStrictEqual(
      seats.map(({ rows }) => [...rows]),
      [
        [1, 4],
        [0, 2, 3, 5],
      ],
    )
  })

  it.effect("steps the games with the actions of all, as a batch of all rows does", () =>
    Effect.gen(function* () {
      const { batch, views, play } = met()
      const whole = Batch.make(game, 6)
      whole.reset(3)
      const seen: Array<ReadonlyArray<unknown>> = []
      const rollouts = views.map((view, seat) =>
        Effect.gen(function* () {
          const rows = [...seats[seat].rows]
          for (let step = 0; step < 12; step++) {
            yield* view.step(Int32Array.from(rows, (row) => (step + row) % 4))
            const { observations, rewards, terminated, finalObservations } = view
            seen.push([
              step,
              seat,
              [...observations],
              [...rewards],
              [...terminated],
              terminated[0] === 1 ? [...finalObservations.subarray(0, 2)] : [],
            ])
          }
          return seat
        }),
      )
      assert.deepStrictEqual(yield* play(rollouts), [0, 1])
      const expected: Array<ReadonlyArray<unknown>> = []
      let ends = 0
      for (let step = 0; step < 12; step++) {
        whole.step(Int32Array.from({ length: 6 }, (_, row) => (step + row) % 4))
        for (const [seat, { rows }] of seats.entries()) {
          const own = [...rows]
          const pair = (array: Float32Array, row: number) => [array[2 * row], array[2 * row + 1]]
          ends += whole.terminated[own[0]]
          expected.push([
            step,
            seat,
            own.flatMap((row) => pair(whole.observations, row)),
            own.map((row) => whole.rewards[row]),
            own.map((row) => whole.terminated[row]),
            whole.terminated[own[0]] === 1 ? pair(whole.finalObservations, own[0]) : [],
          ])
        }
      }
      assert.isAbove(ends, 1)
      const ordered = seen.toSorted(
        ([step, seat], [other, second]) => Number(step) - Number(other) || Number(seat) - Number(second),
      )
      assert.deepStrictEqual(ordered, expected)
      assert.deepStrictEqual(batch.observations, whole.observations)
    }),
  )

  it.effect("ends when one ends before the others, and can play again", () =>
    Effect.gen(function* () {
      const { views, play } = met()
      const steps = (seat: number, count: number) =>
        Effect.forEach(Array.from({ length: count }), () => views[seat].step(new Int32Array(seats[seat].rows.length)))
      for (const counts of [
        [3, 2],
        [0, 1],
      ]) {
        const { message } = yield* Effect.flip(play(counts.map((count, seat) => steps(seat, count))))
        assert.match(message, /that of (outer|middle) ended first/)
      }
      assert.lengthOf(yield* play([steps(0, 2), steps(1, 2)]), 2)
    }),
  )

  it.effect("ends with the error of the one that fails, also if its parent cannot be interrupted", () =>
    Effect.gen(function* () {
      const { views, play } = met()
      const failing = Effect.andThen(
        views[1].step(new Int32Array(4)),
        Effect.fail(new EnvError({ env: "x", message: "broken" })),
      )
      const waiting = Effect.forever(views[0].step(new Int32Array(2)))
      const error = yield* Effect.flip(Effect.uninterruptible(play<unknown, EnvError>([waiting, failing])))
      assert.strictEqual(error.message, "broken")
      const wrong = yield* Effect.flip(
        play<unknown, EnvError>([views[0].step(Int32Array.of(9, 0)), views[1].step(new Int32Array(4))]),
      )
      assert.include(wrong.message, "expected an action from 0 to 3, found 9")
    }),
  )

  it.effect("refuses what a part of the rows cannot do alone", () =>
    Effect.gen(function* () {
      const { views } = met()
      const { message } = yield* Effect.flip(views[0].reset(1))
      assert.include(message, "the policy middle has only some rows of the games, so it cannot reset the games")
      assert.throws(() => views[0].snapshot(), /cannot save the games/)
    }),
  )
})
