/** Tests that what was learned from data or from an expert is played from the run's folder alone, without the program. */
import { rmSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { shownScore } from "../../../src/base/text/text.ts"
import { effect, resultOf, withFolder, write } from "./effect.ts"

const algorithms: Readonly<Record<string, string>> = {
  bc: "Bc.make(Demonstrations.record(CartPole.env, { episodes: 2, policy }), { hidden: [8] })",
  dagger: "Dagger.make(policy, { nsteps: 16, hidden: [8] })",
  gail: "Gail.make(Demonstrations.record(CartPole.env, { episodes: 2, policy }), { nsteps: 16, hidden: [8], lstm: 4 })",
  iql: "Iql.make(Transitions.record(CartPole.env, { episodes: 2, policy }), { hidden: [8], batchSize: 16 })",
}

const programOf = (algorithm: string): string => `
import { Bc, CartPole, Dagger, Demonstrations, Gail, Iql, Train, Transitions } from "effect-rl"
const policy = ([, , angle, spin]: ReadonlyArray<number>) => (angle + spin > 0 ? 1 : 0)
export default Train.run({
  env: CartPole.env,
  numEnvs: 4,
  algorithm: ${algorithm},
  totalSteps: 128,
  validation: { everySteps: 64, episodes: 2, maxSteps: 20 },
})`

const separately = `
import { Demonstrations, Env, Gail, MultiEnv, Ppo, Separate, Space, Train } from "effect-rl"
const spaces = { observationSpace: Space.box(-10, 10, [1]), actionSpace: Space.discrete(2), maxSteps: 10 }
const moved = (place: number, action: number) => place + 2 * action - 1
const game = MultiEnv.parallel({
  ...spaces,
  id: "two",
  agents: ["a", "b"],
  reset: () => [0, 0],
  observe: (places, agent) => [places[agent]],
  step: (places, actions) => ({
    state: places.map((place, agent) => moved(place, actions[agent])),
    rewards: actions.map(Number),
    terminated: false,
  }),
})
const alone = Env.make({
  ...spaces,
  id: "one",
  reset: () => 0,
  observe: (place) => [place],
  step: (place, action) => ({ state: moved(place, action), reward: action, terminated: false }),
})
const shown = Demonstrations.record(alone, { episodes: 2, policy: () => 1 })
const small = { nsteps: 16, hidden: [8], minibatches: 2 }
export default Train.run({
  env: game,
  numEnvs: 4,
  algorithm: Separate.make({ a: Gail.make(shown, small), b: Ppo.make(small) }),
  totalSteps: 128,
  validation: { everySteps: 64, episodes: 2 },
})`

describe("a run that learned from data or from an expert", () => {
  for (const [name, algorithm] of Object.entries(algorithms)) {
    // One of them is enough for every change.
    it(`is evaluated, filmed and exported without its program: ${name}`, { tags: name === "iql" ? [] : "slow" }, () =>
      withFolder(async (folder) => {
        const file = write(folder, "train.ts", programOf(algorithm))
        const outcome = await effect(["run", file, "--backend", "wasm", "--quiet", "--json"], folder)
        assert.strictEqual(outcome.code, 0, outcome.stderr)
        const { runDir } = resultOf(outcome)
        const evaluated = async (...more: ReadonlyArray<string>) => {
          const done = await effect(["eval", runDir, "--backend", "wasm", "--json", ...more], folder)
          assert.strictEqual(done.code, 0, done.stderr)
          const { wallSeconds: _, stepsPerSecond: __, ...scores } = resultOf(done)
          return scores
        }
        const withProgram = await evaluated("--file", file)
        rmSync(file)
        assert.deepEqual(await evaluated(), withProgram)
        for (const format of ["gif", "worker"]) {
          const exported = await effect(["export", runDir, "--to", format, "--out", `policy-${format}`], folder)
          assert.strictEqual(exported.code, 0, exported.stderr)
        }
        // A training needs the data.
        const again = await effect(["replay", runDir], folder)
        assert.include(again.stderr, `${name} learns from data or an expert, which a config can't hold, only a program`)
      }),
    )
  }

  it("is evaluated without its program as one of separate policies, too", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", separately)
      const outcome = await effect(["run", file, "--backend", "wasm", "--quiet", "--json"], folder)
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      const { runDir, validation } = resultOf(outcome)
      const listed = resultOf(await effect(["runs", "--json"], folder))
      const scores: ReadonlyArray<readonly [string, unknown]> = Object.entries(Object(listed.agents))
      assert.deepInclude(Object(validation), { agents: scores.map(([agent, meanReturn]) => ({ agent, meanReturn })) })
      const { stdout } = await effect(["run", file, "--backend", "wasm"], folder)
      const shown = scores.map(([agent, score]) => `${agent} ${shownScore(Number(score))}`).join(", ")
      assert.include(stdout, ` over 2 episodes (${shown})\n`)
      const evaluated = async (...more: ReadonlyArray<string>) => {
        const done = await effect(["eval", runDir, "--backend", "wasm", "--json", ...more], folder)
        assert.strictEqual(done.code, 0, done.stderr)
        const { wallSeconds: _, stepsPerSecond: __, ...scores } = resultOf(done)
        return scores
      }
      const withProgram = await evaluated("--file", file)
      // The game is made in code, but not the demonstrations.
      const playing = `export default Train.run({ env: game, algorithm: "separate", totalSteps: 1 })`
      write(folder, "play.ts", separately.slice(0, separately.indexOf("const shown")) + playing)
      assert.deepEqual(await evaluated("--file", "play.ts"), withProgram)
    }),
  )
})
