import { readFileSync } from "node:fs"
import { assert } from "vitest"

/** An episode that Gymnasium played: its initial state, and the result of every action. */
export interface Episode<Action> {
  readonly initialState: ReadonlyArray<number>
  readonly terminated: boolean
  readonly actions: ReadonlyArray<Action>
  readonly states: ReadonlyArray<ReadonlyArray<number>>
  readonly observations: ReadonlyArray<ReadonlyArray<number>>
  readonly rewards: ReadonlyArray<number>
}

/** The file says in its first line where it is from; each of the others is an episode. */
export const readTrace = <Action>(id: string): ReadonlyArray<Episode<Action>> => {
  const [, ...episodes] = readFileSync(new URL(`./data/${id}.jsonl`, import.meta.url), "utf8")
    .trimEnd()
    .split("\n")
  return episodes.map((line): Episode<Action> => JSON.parse(line))
}

interface Moved {
  readonly state: ReadonlyArray<number>
  readonly observation: ReadonlyArray<number>
  readonly reward: number
  readonly terminated: boolean
}

/**
 * Runs free along every episode, never put back on the trace: states stay within 1e-9, observations are the same
 * float32 numbers, endings and, where they are whole numbers, rewards are equal.
 */
export const follows = <Action>(
  episodes: ReadonlyArray<Episode<Action>>,
  dynamics: (state: ReadonlyArray<number>, action: Action) => Moved,
  rewardTolerance = 0,
): void => {
  assert.strictEqual(episodes.length, 8)
  for (const episode of episodes) {
    let state = episode.initialState
    for (const [step, action] of episode.actions.entries()) {
      const moved = dynamics(state, action)
      state = moved.state
      assert.strictEqual(state.length, episode.states[step].length)
      for (const [at, value] of state.entries())
        if (!(Math.abs(value - episode.states[step][at]) <= 1e-9))
          assert.fail(`step ${step}: ${value}, not ${episode.states[step][at]}`)
      assert.deepEqual(moved.observation, episode.observations[step].map(Math.fround))
      assert.approximately(moved.reward, episode.rewards[step], rewardTolerance)
      assert.strictEqual(moved.terminated, episode.terminated && step === episode.actions.length - 1)
    }
  }
}
