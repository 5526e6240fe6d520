import { assert, describe, it } from "@effect/vitest"
import { EngineError } from "../../../src/decoder/inference/EngineError.ts"
import * as Decoder from "../../../src/decoder/networks/Decoder.ts"
import * as Rng from "../../../src/base/rng/Rng.ts"
import { config } from "./fixture.ts"

const shape = { rank: 8, targets: Decoder.projections }
const name = "model.layers.1.mlp.down_proj"

describe("MultiLoRA", () => {
  it("resets one adapter: A within ±1 / √inputs by the run's stream and the name, B zero, all others bit-equal", () => {
    const adapters = new Decoder.MultiLoRA(config, shape, 3)
    adapters.reset(0, { rank: 8, alpha: 16 }, Rng.stream(1, "run_a"))
    adapters.reset(2, { rank: 8, alpha: 16 }, Rng.stream(1, "run_c"))
    const before = adapters.table.slice()
    adapters.reset(1, { rank: 8, alpha: 16 }, Rng.stream(1, "run_b"))
    const { [`${name}.lora_A.weight`]: a, [`${name}.lora_B.weight`]: b } = adapters.stateDictOf(1)
    assert.deepStrictEqual(
      [a.shape, b.shape],
      [
        [8, 112],
        [64, 8],
      ],
    )
    const bound = 1 / Math.sqrt(112)
    assert.isTrue(a.data.every((number) => Math.abs(number) <= bound))
    const deviation = Math.sqrt(a.data.reduce((sum, number) => sum + number ** 2, 0) / a.data.length)
    assert.closeTo(deviation, bound / Math.sqrt(3), 0.1 * bound)
    assert.isTrue(b.data.every((number) => number === 0))
    for (const index of [0, 2]) {
      const at = index * adapters.size
      assert.deepStrictEqual(adapters.row(index), before.slice(at, at + adapters.size))
    }
    // The values depend on the stream and the name, not on the place or on what was there.
    const again = new Decoder.MultiLoRA(config, shape, 1)
    again.reset(0, { rank: 8, alpha: 16 }, Rng.stream(1, "run_c"))
    again.reset(0, { rank: 8, alpha: 16 }, Rng.stream(1, "run_b"))
    assert.deepStrictEqual(again.stateDictOf(0), adapters.stateDictOf(1))
    assert.notDeepEqual(adapters.stateDictOf(0), adapters.stateDictOf(1))
    assert.notDeepEqual(a.data, adapters.stateDictOf(1)["model.layers.0.mlp.down_proj.lora_A.weight"].data)
  })

  it("keeps a lower rank in the first rows of A and columns of B, and saves and loads it alone", () => {
    const adapters = new Decoder.MultiLoRA(config, shape, 2)
    // A run of the full rank, whose numbers must not remain, had the place before.
    adapters.reset(0, { rank: 8, alpha: 8 }, Rng.stream(1, "run_z"))
    adapters.row(0).fill(9)
    adapters.reset(0, { rank: 3, alpha: 6 }, Rng.stream(1, "run_a"))
    assert.strictEqual(adapters.scalings[0], 2)
    const whole = adapters.namedParametersOf(0)
    whole[`${name}.lora_B.weight`].data.set([1, 2, 3])
    assert.isTrue(whole[`${name}.lora_A.weight`].data.subarray(3 * 112).every((number) => number === 0))
    assert.isTrue(whole[`${name}.lora_B.weight`].data.every((number, at) => at < 3 || number === 0))
    const saved = adapters.stateDictOf(0)
    assert.deepStrictEqual(saved[`${name}.lora_A.weight`].shape, [3, 112])
    assert.deepStrictEqual([...saved[`${name}.lora_B.weight`].data.subarray(0, 4)], [1, 2, 3, 0])
    adapters.load(1, { rank: 3, alpha: 6 }, saved)
    assert.deepStrictEqual(adapters.row(1), adapters.row(0))
    adapters.clear(0)
    assert.isTrue(adapters.row(0).every((number) => number === 0))
    assert.strictEqual(adapters.scalings[0], 0)
    assert.isUndefined(adapters.optionsOf(0))
    assert.deepStrictEqual(adapters.stateDictOf(1), saved)
  })

  it("refuses what does not fit, says what, and changes nothing", () => {
    const adapters = new Decoder.MultiLoRA(config, shape, 2)
    const options = { rank: 8, alpha: 16 }
    adapters.reset(0, options, Rng.stream(1, "run_a"))
    const before = adapters.table.slice()
    const saved = adapters.stateDictOf(0)
    const key = `${name}.lora_A.weight`
    const { [key]: one, ...rest } = saved
    const refused = (body: () => void, message: string) => {
      assert.throws(body, EngineError, message)
      assert.deepStrictEqual(adapters.table, before)
    }
    const random = Rng.stream(1, "run_b")
    refused(() => adapters.reset(2, options, random), "adapter 2: expected an index from 0 to 1")
    refused(
      () => adapters.reset(0, { rank: 9, alpha: 1 }, random),
      "adapter 0: rank: expected an integer from 1 to 8, found 9",
    )
    refused(
      () => adapters.reset(0, { rank: 8, alpha: 0 }, random),
      "adapter 0: alpha: expected a positive number, found 0",
    )
    refused(() => adapters.stateDictOf(1), "adapter 1: it was neither reset nor loaded")
    refused(() => adapters.load(0, options, rest), `parameter "${key}": it is missing`)
    refused(
      () => adapters.load(0, options, { ...saved, other: one }),
      'parameter "other": the adapters here have no such',
    )
    refused(() => adapters.load(0, { rank: 4, alpha: 8 }, saved), "expected shape [4, 64], found [8, 64]")
    refused(
      () => adapters.load(0, options, { ...saved, [key]: { ...one, data: one.data.with(5, Number.NaN) } }),
      `parameter "${key}": expected finite numbers, found NaN`,
    )
    assert.throws(() => new Decoder.MultiLoRA(config, { rank: 0, targets: ["q_proj"] }, 1), EngineError, "rank")
    assert.throws(() => new Decoder.MultiLoRA(config, { rank: 4, targets: [] }, 1), EngineError, "targets")
  })
})
