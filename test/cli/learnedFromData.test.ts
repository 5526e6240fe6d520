/** Tests that what was learned from data or from an expert is played from the run's folder alone, without the program. */
import { rmSync } from "node:fs"
import { assert, describe, it } from "vitest"
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

describe("a run that learned from data or from an expert", () => {
  for (const [name, algorithm] of Object.entries(algorithms)) {
    it(`is evaluated, filmed and exported without its program: ${name}`, () =>
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
      }))
  }
})
