import { assert, it } from "vitest"
import { projections } from "../../../src/decoder/networks/Decoder.ts"
import { sizeProblems } from "../../../src/trainer/config/readConfig.ts"

const model = { hiddenSize: 8, maxPositions: 64 }
const problemsOf = (targets: ReadonlyArray<(typeof projections)[number]>, kinds: object) => {
  const [first, ...rest] = targets
  return sizeProblems(
    { width: 8, rows: 1, lora: { rank: 2, alpha: 2, targets: [first, ...rest] } },
    { ...model, ...kinds },
  )
}

it("routers are replayed only for a model with experts", () => {
  const sizes = { width: 8, rows: 1, lora: null, enableRouterReplay: true }
  const experts = { count: 2, perToken: 1, units: 2, normalised: true }
  assert.deepStrictEqual(sizeProblems(sizes, { ...model, experts }), [])
  assert.deepStrictEqual(sizeProblems(sizes, model), [
    [
      "trainer.enable_router_replay",
      "expected false, because the model has no experts whose choice could be replayed; found true: leave the key out, or choose a mixture of experts, such as Qwen3-MoE",
    ],
  ])
})

it("projections that a model lacks are refused if the config lists them, and left out if it lists none", () => {
  const experts = { experts: { count: 2, perToken: 1, units: 2, normalised: true } }
  assert.deepStrictEqual(problemsOf(projections, experts), [])
  assert.deepStrictEqual(problemsOf(["q_proj", "gate_proj"], {}), [])
  assert.deepStrictEqual(problemsOf(["q_proj", "gate_proj"], { gated: false }), [
    [
      "trainer.lora.targets",
      "expected some of the model's projections (q_proj, k_proj, v_proj, o_proj, up_proj, down_proj), found gate_proj",
    ],
  ])
  assert.deepStrictEqual(
    problemsOf(["up_proj", "down_proj"], experts).map(([key]) => key),
    ["trainer.lora.targets"],
  )
})
