import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { CartPole, Demonstrations, EnvError, Pendulum, Transitions, Wrapper } from "../../../../src/index.ts"

/** Pendulum's episodes end by truncation alone. */
const short = Wrapper.timeLimit(Pendulum.env, 5)

describe("Transitions", () => {
  it("have the observation after each step, and say how episodes ended", () => {
    const fall = Transitions.record(CartPole.env, { episodes: 2, policy: () => 1, seed: 3 })
    assert.deepEqual([...fall.terminated], [1, 1])
    assert.strictEqual(fall.rows, fall.lengths[0] + fall.lengths[1])
    assert.deepEqual(fall.returns, [...fall.lengths])
    // The speed of the cart grows with every push to the right, also from the last step to the final observation.
    const speeds = [...fall.observations].filter((_, at) => at % 4 === 1)
    for (const [episode, start] of [0, fall.lengths[0]].entries()) {
      const last = speeds[start + fall.lengths[episode] - 1]
      assert.isAbove(fall.finalObservations[4 * episode + 1], last + 0.15)
      assert.isAbove(Math.abs(fall.finalObservations[4 * episode + 2]), 0.2, "the pole has fallen")
    }
    const cut = Transitions.record(short, { episodes: 2, policy: () => [0] })
    assert.deepEqual([...cut.terminated], [0, 0])
    assert.deepEqual([...cut.lengths], [5, 5])
    const shorter = Transitions.record(short, { episodes: 1, policy: () => [0], maxSteps: 3 })
    assert.deepEqual(shorter.finalObservations, cut.observations.slice(9, 12))
  })

  it("of random play are drawn from the seed, in the whole space", () => {
    const draw = (seed: number) => Transitions.record(short, { episodes: 40, policy: "random", seed })
    assert.deepEqual(draw(1), draw(1))
    assert.notDeepEqual(draw(1).actions, draw(2).actions)
    assert.isBelow(Math.min(...draw(1).actions), -1.8)
    assert.isAbove(Math.max(...draw(1).actions), 1.8)
  })

  it("are joined", () => {
    const one = Transitions.record(CartPole.env, { episodes: 2, policy: () => 0 })
    const other = Transitions.record(CartPole.env, { episodes: 1, policy: () => 1 })
    const both = Transitions.concat([one, other])
    assert.deepEqual([...both.lengths], [...one.lengths, ...other.lengths])
    assert.deepEqual(both.actions.slice(one.rows), other.actions)
    assert.deepEqual(both.observations.slice(4 * one.rows), other.observations)
    assert.strictEqual(both.rows, one.rows + other.rows)
    assert.instanceOf(both.actions, Int32Array)
  })

  it.effect("of a loaded policy are what it does with its memory, which begins anew in each episode", () =>
    Effect.gen(function* () {
      const act = (observation: ArrayLike<number>, step: number) => [((observation[1] > 0 ? 1 : -1) * step) / 4]
      const policy = {
        // The memory counts the steps of the episode.
        act: (observation: unknown, [step]: ReadonlyArray<number> = [1]) =>
          Effect.succeed({ action: Array.isArray(observation) ? act(observation, step) : [], state: [step + 1] }),
      }
      const played = yield* Transitions.play(short, policy, { episodes: 2, seed: 0 })
      assert.deepEqual([...played.lengths], [5, 5])
      for (let row = 0; row < played.rows; row++) {
        const observation = played.observations.subarray(3 * row, 3 * row + 3)
        // Each episode begins without memory.
        assert.deepEqual([played.actions[row]], act(observation, (row % 5) + 1))
      }
      const confused = {
        act: () =>
          Effect.succeed({
            get action(): number {
              throw new TypeError("a bug")
            },
            state: undefined,
          }),
      }
      const exit = yield* Effect.exit(Transitions.play(short, confused, { episodes: 1 }))
      assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
      const wrong = { act: () => Effect.succeed({ action: [NaN], state: undefined }) }
      const error = yield* Effect.flip(Transitions.play(short, wrong, { episodes: 1 }))
      assert.instanceOf(error, EnvError)
      assert.include(error.message, "transitions: episode 0, step 1: an action of")
    }),
  )

  it("begin with demonstrations", () => {
    const shown = Demonstrations.record(CartPole.env, { episodes: 1, policy: () => 1 })
    const { rows, observations, actions, returns } = Transitions.record(CartPole.env, { episodes: 1, policy: () => 1 })
    assert.deepEqual(shown, { rows, observations, actions, returns })
  })
})
