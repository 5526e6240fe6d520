import { assert, describe, it } from "vitest"
import type { Env } from "../../../../src/rl/env/Env.ts"
import * as DoubleIntegrator from "../../../../src/rl/env/control/DoubleIntegrator.ts"
import * as Lander from "../../../../src/rl/env/control/Lander.ts"
import type { ActionSpace } from "../../../../src/rl/env/Space.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"

type State = ReadonlyArray<number>

/** The mean return of a rule over some episodes, and how the last step of each paid. */
const play = <A extends ActionSpace>(
  env: Env<State, A>,
  rule: (state: State, random: ReturnType<typeof stream>) => Parameters<Env<State, A>["step"]>[1],
  episodes = 40,
) => {
  const returns: Array<number> = []
  const last: Array<number> = []
  for (let episode = 0; episode < episodes; episode++) {
    const random = stream(episode)
    let state = env.reset(random)
    let total = 0
    let reward = 0
    for (let step = 0; step < (env.maxSteps ?? 0); step++) {
      const moved = env.step(state, rule(state, random), random)
      reward = moved.reward
      total += reward
      state = moved.state
      if (moved.terminated) break
    }
    returns.push(total)
    last.push(reward)
  }
  return { mean: returns.reduce((a, b) => a + b) / episodes, last }
}

describe("DoubleIntegrator-v0", () => {
  const linear = (k1: number, k2: number) => play(DoubleIntegrator.env, ([x, v]) => [-(k1 * x + k2 * v)]).mean

  it("is solved best with the gains of Riccati's equation", () => {
    const [k1, k2] = DoubleIntegrator.gains()
    const best = linear(k1, k2)
    // Where the force is cut off, the linear rule is only nearly the best: a percent.
    for (const [a, b] of [
      [0.7, 0.7],
      [1.4, 1.4],
      [0.6, 1],
      [1, 0.6],
      [1.6, 1],
      [1, 1.6],
    ]) {
      assert.isAbove(best, linear(k1 * a, k2 * b) * 1.01)
    }
    assert.isAbove(best, play(DoubleIntegrator.env, (_, random) => [random.between(-1, 1)]).mean + 3)
  })
})

/** Tilts against where it is and goes, and brakes when it falls faster than its height allows. */
const pilot = ([x, y, vx, vy, angle, spin]: State): readonly [number, number] => {
  const lean = Math.min(Math.max(0.6 * x + 1.1 * vx, -0.4), 0.4)
  const turn = 6 * (lean - angle) - 3 * spin
  const wanted = -Math.min(0.6, 0.12 + 0.4 * Math.max(0, y))
  return [vy < wanted ? 1 : -1, Math.min(Math.max(turn, -1), 1)]
}

describe("Lander-v0", () => {
  const landed = ({ last }: ReturnType<typeof play>): number => last.filter((reward) => reward > 50).length

  it("can be landed", () => {
    const outcome = play(Lander.continuous, pilot)
    assert.isAbove(landed(outcome), 35)
    assert.isAbove(outcome.mean, 150)
    const discrete = play(Lander.env, (state) => {
      const [main, turn] = pilot(state)
      return Math.abs(turn) > 0.5 && (main < 0 || Math.abs(turn) > 0.9) ? (turn > 0 ? 1 : 3) : main > 0 ? 2 : 0
    })
    assert.isAbove(landed(discrete), 30)
  })

  it("is not landed by random actions", () => {
    const outcome = play(Lander.env, (_, random) => random.integer(4))
    assert.isBelow(landed(outcome), 4)
    assert.isBelow(outcome.mean, -50)
  })
})
