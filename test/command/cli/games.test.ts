/** Tests how runs of games of several agents are evaluated and exported. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { effect, resultOf, withFolder, write } from "./effect.ts"

const programOf = (algorithm: string): string => `
import { MultiEnv, Ppo, Separate, Space, Train } from "effect-rl"
const race = MultiEnv.parallel({
  id: "race",
  agents: ["left", "middle", "right"],
  observationSpace: Space.box(-9, 9, [1]),
  actionSpace: Space.discrete(2),
  maxSteps: 8,
  reset: () => [0, 0, 0],
  observe: (places, agent) => [places[agent]],
  step: (places, actions) => ({
    state: places.map((place, agent) => place + actions[agent]),
    rewards: [1, 0.5, -1],
    terminated: false,
  }),
})
const ppo = Ppo.make({ nsteps: 16, minibatches: 2, hidden: [8] })
export default Train.run({ env: race, numEnvs: 6, algorithm: ${algorithm}, totalSteps: 96 })`

describe("a run of a game", () => {
  for (const [kind, algorithm] of [
    ["a shared policy", "ppo"],
    ["separate policies", 'Separate.make({ outer: { agents: ["left", "right"], algorithm: ppo }, middle: ppo })'],
  ]) {
    it(`with ${kind} is evaluated and exported`, { tags: algorithm === "ppo" ? "slow" : [] }, () =>
      withFolder(async (folder) => {
        const file = write(folder, "train.ts", programOf(algorithm))
        const done = await effect(["run", file, "--backend", "wasm", "--quiet", "--json"], folder)
        assert.strictEqual(done.code, 0, done.stderr)
        const { runDir } = resultOf(done)
        const evaluate = (...more: ReadonlyArray<string>) =>
          effect(["eval", runDir, "--backend", "wasm", "--file", file, "--episodes", "6", ...more], folder)
        const shown = await evaluate()
        const expected =
          /^1\.33 ± 6\.80 over 6 episodes \(left 8\.00, middle 4\.00, right -8\.00\), by the policy of step 96\n$/
        assert.match(shown.stdout, expected, shown.stderr)
        assert.deepInclude(resultOf(await evaluate("--json")), { agents: { left: 8, middle: 4, right: -8 } })
        for (const format of ["h5", "h", "onnx", "worker"]) {
          const args = ["export", runDir, "--to", format, "--file", file, "--out", `policy-${format}`]
          const exported = await effect(args, folder)
          if (kind === "a shared policy") assert.strictEqual(exported.code, 0, exported.stderr)
          else {
            const problem = `--to ${format} writes one policy, but this run has separate ones; copy policy.outer.onnx or policy.middle.onnx from `
            assert.include(exported.stderr, problem)
            const place = exported.stderr.trim().split(" from ")[1]
            assert.isNotEmpty(readFileSync(join(place, "policy.outer.onnx")))
          }
        }
      }),
    )
  }
})
