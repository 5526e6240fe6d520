/** Reads what MinAtar itself showed, as minatar_trace.py prints it, and compares it with an env of ours. */
import { assert } from "vitest"
import { Stream } from "../../../../src/base/rng/Rng.ts"
import type { BoardEnv } from "../../../../src/rl/env/internal/board.ts"
import * as Asterix from "../../../../src/rl/env/pixel/Asterix.ts"
import * as Breakout from "../../../../src/rl/env/pixel/Breakout.ts"
import * as Freeway from "../../../../src/rl/env/pixel/Freeway.ts"
import type { RampedOptions } from "../../../../src/rl/env/pixel/minAtar.ts"
import * as Seaquest from "../../../../src/rl/env/pixel/Seaquest.ts"
import * as SpaceInvaders from "../../../../src/rl/env/pixel/SpaceInvaders.ts"

interface Game {
  readonly make: (options?: RampedOptions) => BoardEnv
  readonly ramps: boolean
}

/** The games by MinAtar's names. */
export const games: Readonly<Record<string, Game>> = {
  asterix: { make: Asterix.make, ramps: true },
  breakout: { make: Breakout.make, ramps: false },
  freeway: { make: Freeway.make, ramps: false },
  seaquest: { make: Seaquest.make, ramps: true },
  space_invaders: { make: SpaceInvaders.make, ramps: true },
}

/** The generator of the same name in minatar_trace.py, as a stream. */
class Draws extends Stream {
  private word: number

  constructor(seed: number) {
    super(0, 0, 0, 0)
    this.word = seed
  }
  override uniformDouble(): number {
    this.word = (Math.imul(this.word, 1664525) + 1013904223) >>> 0
    return this.word / 2 ** 32
  }
  override integer(n: number): number {
    return Math.floor(this.uniformDouble() * n)
  }
}

interface Run {
  readonly seed: number
  readonly steps: number
  readonly policy: string
  readonly sticky_action_prob: number
  readonly difficulty_ramping: boolean
  readonly use_minimal_action_set: boolean
  readonly actions: ReadonlyArray<number>
}

/** The totals of a run, for tests to see that it reached what they are about. */
interface Totals {
  readonly policy: string
  readonly steps: number
  readonly episodes: number
  readonly reward: number
}

type Watch = (state: Int32Array, policy: string) => void

/**
 * Plays all runs of a trace; each step must have the trace's reward and end, and each observation all its cells. `watch` gets
 * each state.
 */
export const follow = (game: string, trace: string, watch: Watch = () => {}): ReadonlyArray<Totals> => {
  // Each run begins with a line of JSON.
  const runs = trace.split(/^(?=\{)/m)
  return runs.map((run) => followRun(game, run.trimEnd().split("\n"), watch))
}

const followRun = (game: string, [head, ...lines]: ReadonlyArray<string>, watch: Watch): Totals => {
  const run: Run = JSON.parse(head)
  const { make, ramps } = games[game]
  const env = make({
    stickyActionProb: run.sticky_action_prob,
    useMinimalActionSet: run.use_minimal_action_set,
    ...(ramps ? { difficultyRamping: run.difficulty_ramping } : {}),
  })
  assert.deepStrictEqual(env.actionSpace.n, run.actions.length)
  const random = new Draws(run.seed)
  const totals = { policy: run.policy, steps: 0, episodes: 0, reward: 0 }
  let shown = new Float32Array(0)
  let state: Int32Array = new Int32Array(0)
  for (const line of lines) {
    const [action, ...rest] = line.split(" ").filter((part) => part !== "")
    const where = `${env.id}, ${run.policy}, episode ${totals.episodes}, step ${totals.steps}`
    const [reward, over, ...cells] = action === "reset" ? ["0", "0", ...rest] : rest
    if (action === "reset") {
      state = env.reset(random)
      totals.episodes++
    } else {
      const moved = env.step(state, Number(action), random)
      assert.strictEqual(moved.reward, Number(reward), where)
      assert.strictEqual(moved.terminated, over === "1", where)
      state = moved.state
      totals.steps++
      totals.reward += moved.reward
    }
    watch(state, run.policy)
    const seen = Float32Array.from(env.observe(state))
    if (shown.length === 0) shown = new Float32Array(seen.length)
    for (const cell of cells) shown[Number(cell)] = 1 - shown[Number(cell)]
    for (let cell = 0; cell < seen.length; cell++)
      if (seen[cell] !== shown[cell]) assert.fail(`${where}: cell ${cell} is ${seen[cell]}, not ${shown[cell]}`)
  }
  assert.strictEqual(totals.steps, run.steps)
  return totals
}
