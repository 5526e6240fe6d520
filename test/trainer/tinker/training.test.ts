import { afterAll, assert, describe, it } from "vitest"
import { closeShared, datum, lossBody, newModel, startTinker, stepBody, temporaryFolder } from "./tinkerServer.ts"

afterAll(closeShared)

const examples = [datum([1, 2, 3, 0, 1]), datum([3, 3, 2]), datum([0, 1])]

describe("training by Tinker's protocol", () => {
  it("lowers the loss, and gives the log-probability of each target", async () => {
    const client = await startTinker(temporaryFolder())
    const { model } = await newModel(client)
    const losses: Array<number> = []
    for (let step = 0; step < 8; step++) {
      const { metrics, loss_fn_outputs } = await client.done(
        "/forward_backward",
        lossBody(model, 2 * step + 1, examples),
      )
      assert.deepStrictEqual(
        loss_fn_outputs.map(
          ({ logprobs }: { readonly logprobs: { readonly data: ReadonlyArray<number> } }) => logprobs.data.length,
        ),
        [4, 2, 1],
      )
      losses.push(metrics["loss:sum"])
      const stepped = await client.done("/optim_step", stepBody(model, 2 * step + 2, 0.05))
      assert.strictEqual(stepped.metrics["step:max"], step + 1)
    }
    assert.isBelow(losses[7], losses[0])
    await client.stop()
  })
})
