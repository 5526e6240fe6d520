import { assert, describe, it } from "vitest"

/** Imports an example, which runs it, without what it prints. */
const quietly = async <A>(load: () => Promise<A>): Promise<A> => {
  const { log } = console
  console.log = () => undefined
  try {
    return await load()
  } finally {
    console.log = log
  }
}

describe("examples of services of one's own", () => {
  it("own-recorder.ts counts episodes, and the training is the same", { tags: "slow" }, async () => {
    const { results } = await quietly(() => import("../../examples/own-parts/own-recorder.ts"))
    const [silent, counted] = results
    assert.strictEqual(silent.digest, counted.digest)
  })

  it("own-store.ts keeps a run in a KeyValueStore and resumes it from there", async () => {
    const { outcome } = await quietly(() => import("../../examples/own-parts/own-store.ts"))
    assert.strictEqual(outcome.steps, 4096)
    for (const file of ["config.yaml", "return.json", "scores/train/scores.jsonl", "checkpoints/latest.json"]) {
      assert.include(outcome.keys, `${outcome.runDir}/${file}`)
    }
  })

  it("own-checkpoints.ts keeps only checkpoints in a KeyValueStore and resumes from them", async () => {
    const { outcome } = await quietly(() => import("../../examples/own-parts/own-checkpoints.ts"))
    assert.strictEqual(outcome.steps, 4096)
    assert.isAbove(outcome.keys.filter((key) => key.endsWith("/weights.safetensors")).length, 0)
    assert.deepStrictEqual(
      outcome.files.filter((path) => path.includes("checkpoints/")),
      [],
    )
  })
})

describe("examples of going on from a run", () => {
  it("fine-tune.ts begins with the weights of another run, with other envs", { tags: "slow" }, async () => {
    const { outcome } = await quietly(() => import("../../examples/programs/fine-tune.ts"))
    const [tuned, fromScratch] = [outcome.tuned, outcome.fromScratch].map(({ validation }) => validation?.meanReturn)
    assert.isAbove(tuned ?? NaN, fromScratch ?? NaN)
  })
})
