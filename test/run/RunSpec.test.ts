import { assert, describe, it } from "vitest"
import { kindOf } from "../../src/run/RunSpec.ts"

describe("the kind of a run", () => {
  it("is what its config says under kind, whatever other keys it has", () => {
    assert.strictEqual(kindOf({ kind: "training", agent: {} }), "training")
    assert.strictEqual(kindOf({ kind: "agents" }), "agents")
    assert.strictEqual(kindOf({ kind: "evaluation", runtime: {} }), "evaluation")
  })

  it("is recognised by the keys of a file without kind", () => {
    assert.strictEqual(kindOf({ env: "cart-pole", algorithm: "ppo" }), "training")
    assert.strictEqual(kindOf({ runtime: {} }), "agents")
    assert.strictEqual(kindOf({ trainDataset: {} }), "agents")
    assert.strictEqual(kindOf({ agent: {} }), "agents")
    assert.strictEqual(kindOf({ dataset: {}, agent: {} }), "evaluation")
    assert.strictEqual(kindOf({ dataset: {}, runtime: {} }), "agents")
  })

  it("is a training for anything else, whose decoder then names the problem", () => {
    assert.strictEqual(kindOf(null), "training")
    assert.strictEqual(kindOf([]), "training")
    assert.strictEqual(kindOf({ kind: "nonsense" }), "training")
  })
})
