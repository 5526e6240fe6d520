import { assert, describe, it } from "@effect/vitest"
import { ByteWriter } from "../../../src/base/formats/ByteWriter.ts"
import { byPath, settingTree, writeEnd, writeStart } from "../../../src/run/record/hparams.ts"
import { decode } from "../../../src/base/formats/tfevents.ts"

/** The summaries that TensorBoard 2.21 itself writes for these settings and times, as its protobuf serialises them. */
const recorded = {
  start:
    "0a86010a1c5f68706172616d735f2f73657373696f6e5f73746172745f696e666f42060801120212004a5e0a5c0a0768706172616d7312511a4f" +
    "0a170a0e616c676f726974686d2e6e616d6512051a0370706f0a120a0567616d6d61120911000000000000e03f0a170a116e6f726d616c697a65" +
    "2e726577617264731202200129000000000000f83f",
  success:
    "0a400a1a5f68706172616d735f2f73657373696f6e5f656e645f696e666f42060801120212004a1a0a180a0768706172616d73120d220b080111" +
    "0000000000000440",
  failure:
    "0a400a1a5f68706172616d735f2f73657373696f6e5f656e645f696e666f42060801120212004a1a0a180a0768706172616d73120d220b080211" +
    "0000000000000440",
}

/** The summary of the one event that is written: behind length, checksum, time and the key and size of field 5. */
const summaryOf = (write: (to: ByteWriter) => void): string => {
  const to = new ByteWriter()
  write(to)
  assert.strictEqual(decode(to.written).intactBytes, to.length)
  const event = to.written.subarray(12, -4)
  assert.deepEqual([event[0], event[9]], [0x09, 0x2a])
  const sizeBytes = event[10] < 128 ? 1 : 2
  return Buffer.from(event.subarray(10 + sizeBytes)).toString("hex")
}

describe("the records of TensorBoard's HParams plugin", () => {
  it("have the bytes that TensorBoard itself writes", () => {
    const settings = { gamma: 0.5, "normalize.rewards": true, "algorithm.name": "ppo" }
    assert.strictEqual(
      summaryOf((to) => writeStart(to, 1.5, settings)),
      recorded.start,
    )
    for (const status of ["success", "failure"] as const) {
      assert.strictEqual(
        summaryOf((to) => writeEnd(to, 2.5, status)),
        recorded[status],
      )
    }
  })

  it("hold the settings of a config by their paths, and neither data nor secrets", () => {
    const items = Array.from({ length: 200_000 }, (_, id) => ({ id, question: "?" }))
    const config = {
      trainDataset: { items, seed: 3 },
      algorithm: { name: "ppo", learningRate: 0.1, hidden: [64, 32], lstm: null },
      lmConfig: { apiKey: "secret", baseUrl: "http://localhost" },
      prompt: "long ".repeat(100),
      envs: [],
      logScalars: true,
    }
    assert.deepEqual(settingTree(config), {
      train_dataset: { seed: 3 },
      algorithm: { name: "ppo", learning_rate: 0.1, hidden: [64, 32] },
      lm_config: { base_url: "http://localhost" },
      log_scalars: true,
    })
    assert.deepEqual(byPath(settingTree(config)), {
      "train_dataset.seed": 3,
      "algorithm.name": "ppo",
      "algorithm.learning_rate": 0.1,
      "algorithm.hidden": "[64,32]",
      "lm_config.base_url": "http://localhost",
      log_scalars: true,
    })
  })
})
