import { zstdCompressSync } from "node:zlib"
import { afterAll, assert, describe, it } from "vitest"
import { ProtobufMessage } from "../../../src/base/formats/protobuf.ts"
import { closeShared, datum, lossBody, newModel, startTinker, stepBody, temporaryFolder } from "./tinkerServer.ts"

afterAll(closeShared)

const examples = [datum([1, 2, 3, 0, 1]), datum([3, 3, 2]), datum([0, 1])]

describe("training by Tinker's protocol", () => {
  it("lowers the loss, and gives the log-probability of each target", async () => {
    const client = await startTinker(temporaryFolder())
    const { model } = await newModel(client)
    const losses: Array<number> = []
    for (let step = 0; step < 8; step++) {
      const output = await client.done("/forward_backward", lossBody(model, 2 * step + 1, examples))
      assert.deepStrictEqual(
        output.loss_fn_outputs.map(
          ({ logprobs }: { readonly logprobs: { readonly data: ReadonlyArray<number> } }) => logprobs.data.length,
        ),
        [4, 2, 1],
      )
      losses.push(output.metrics["loss:sum"])
      const stepped = await client.done("/optim_step", stepBody(model, 2 * step + 2, 0.05))
      assert.strictEqual(stepped.metrics["step:max"], step + 1)
    }
    assert.isBelow(losses[7], losses[0])
    await client.stop()
  })

  it("computes the losses of the protocol, and has no memory of the forward pass", async () => {
    const client = await startTinker(temporaryFolder())
    const { model } = await newModel(client)
    const inputs = { logprobs: [-1.2, -2.4, -0.5], advantages: [1, -2, 0.5] }
    const data = [datum([0, 1, 2, 3], inputs)]
    const plain = await client.done("/forward", lossBody(model, 1, [datum([0, 1, 2, 3])]))
    const logprobs: ReadonlyArray<number> = plain.loss_fn_outputs[0].logprobs.data
    const sum = (of: (ratio: number, advantage: number, logprob: number, at: number) => number): number =>
      logprobs.reduce(
        (all, one, at) => all + of(Math.exp(one - inputs.logprobs[at]), inputs.advantages[at], one, at),
        0,
      )
    const clip = (ratio: number): number => Math.min(Math.max(ratio, 0.9), 1.5)
    const expected = {
      cross_entropy: -logprobs.reduce((all, one) => all + one, 0),
      importance_sampling: sum((ratio, advantage) => -ratio * advantage),
      ppo: sum((ratio, advantage) => -Math.min(ratio * advantage, clip(ratio) * advantage)),
      cispo: sum((ratio, advantage, logprob) => -clip(ratio) * advantage * logprob),
      dro: sum((_, advantage, one, at) => -(advantage * one - 0.15 * (one - inputs.logprobs[at]) ** 2)),
    }
    const configs = {
      ppo: { clip_low_threshold: 0.9, clip_high_threshold: 1.5 },
      cispo: { clip_low_threshold: 0.9, clip_high_threshold: 1.5 },
      dro: { beta: 0.3 },
    }
    let seq = 2
    for (const [loss, value] of Object.entries(expected)) {
      const config = loss in configs ? configs[loss as keyof typeof configs] : null
      const sent = loss === "cross_entropy" ? [datum([0, 1, 2, 3])] : data
      const { metrics } = await client.done("/forward", lossBody(model, seq++, sent, loss, config))
      assert.closeTo(metrics["loss:sum"], value, 1e-5, loss)
    }
    const stepped = await client.done("/optim_step", stepBody(model, seq))
    assert.match(stepped.error, /there is no gradient/)
    await client.stop()
  })

  it("adds up gradients, and its custom losses are weights of log-probabilities", async () => {
    const client = await startTinker(temporaryFolder())
    const { model } = await newModel(client)
    // A first update, so that both matrices of the adapter have gradients.
    await client.done("/forward_backward", lossBody(model, 1, examples))
    await client.done("/optim_step", stepBody(model, 2, 0.1))
    const other = (await newModel(client)).model
    await client.done("/forward_backward", lossBody(other, 1, examples))
    await client.done("/optim_step", stepBody(other, 2, 0.1))
    const rl = { logprobs: [-1, -1.5], advantages: [2, -1] }
    const { loss_fn_outputs } = await client.done("/forward", lossBody(model, 3, [datum([2, 1, 0])]))
    const weights = loss_fn_outputs[0].logprobs.data.map(
      (one: number, at: number) => Math.exp(one - rl.logprobs[at]) * rl.advantages[at],
    )
    await client.done("/forward_backward", lossBody(model, 4, [datum([2, 1, 0], { weights })]))
    const custom = await client.done("/optim_step", stepBody(model, 5))
    await client.done("/forward_backward", lossBody(other, 3, [datum([2, 1, 0], rl)], "importance_sampling"))
    const own = await client.done("/optim_step", stepBody(other, 4))
    assert.closeTo(custom.metrics["grad_norm:mean"], own.metrics["grad_norm:mean"], 1e-5)
    await client.done("/forward_backward", lossBody(other, 5, examples))
    const once = await client.done("/optim_step", stepBody(other, 6, 0))
    await client.done("/forward_backward", lossBody(other, 7, examples))
    await client.done("/forward_backward", lossBody(other, 8, examples))
    const twice = await client.done("/optim_step", stepBody(other, 9, 0))
    assert.closeTo(twice.metrics["grad_norm:mean"] / once.metrics["grad_norm:mean"], 2, 1e-5)
    await client.stop()
  })

  it("takes protobuf with zstd, and answers protobuf", async () => {
    const client = await startTinker(temporaryFolder())
    const { model } = await newModel(client)
    const tokens = new Uint8Array(Int32Array.of(1, 2, 3).buffer)
    const targets = new Uint8Array(BigInt64Array.of(2n, 3n, 0n).buffer)
    const chunk = new ProtobufMessage().message(1, new ProtobufMessage().bytes(1, tokens))
    const tensor = new ProtobufMessage().bytes(1, targets).int(3, 2).int(4, 3)
    const input = new ProtobufMessage().text(1, "target_tokens").message(2, tensor)
    const body = new ProtobufMessage()
      .text(1, model)
      .int(2, 1)
      .message(3, new ProtobufMessage().message(1, chunk).message(2, input))
      .text(4, "cross_entropy")
      .int(6, 0)
      .finish()
    const headers = { "content-type": "application/x-protobuf", "content-encoding": "zstd" }
    const accepted = await client.send("/forward", zstdCompressSync(body), headers)
    assert.deepStrictEqual(await accepted.json(), { request_id: `${model}/1`, model_id: model })
    const asked = { "content-type": "application/json", accept: "application/x-protobuf" }
    const request = JSON.stringify({ request_id: `${model}/1` })
    const answer = await client.send("/retrieve_future", request, asked)
    assert.strictEqual(answer.headers.get("content-type"), "application/x-protobuf")
    const json = await client.done("/forward", lossBody(model, 2, [datum([1, 2, 3, 0])]))
    const bytes = new Uint8Array(await answer.arrayBuffer())
    const numbers = new Uint8Array(Float32Array.from(json.loss_fn_outputs[0].logprobs.data).buffer)
    assert.include(Buffer.from(bytes).toString("latin1"), Buffer.from(numbers).toString("latin1"))
    await client.stop()
  })

  it("samples from saved weights, with log-probabilities of the prompt", async () => {
    const client = await startTinker(temporaryFolder())
    const { session, model } = await newModel(client)
    for (let step = 0; step < 10; step++) {
      await client.done("/forward_backward", lossBody(model, 2 * step + 1, [datum([1, 2, 3, 0])]))
      await client.done("/optim_step", stepBody(model, 2 * step + 2, 0.2))
    }
    const saved = await client.done("/save_weights_for_sampler", {
      model_id: model,
      seq_id: 21,
      sampling_session_seq_id: 0,
    })
    const prompt = { chunks: [{ type: "encoded_text", tokens: [1, 2, 3] }] }
    const sample = (seq_id: number, extra: object = {}) =>
      client.done("/asample", {
        sampling_session_id: saved.sampling_session_id,
        seq_id,
        num_samples: 2,
        prompt,
        sampling_params: { max_tokens: 4, seed: 7, temperature: 1 },
        ...extra,
      })
    const first = await sample(0, { prompt_logprobs: true, topk_prompt_logprobs: 2 })
    assert.strictEqual(first.sequences.length, 2)
    assert.notDeepEqual(first.sequences[0], first.sequences[1])
    assert.deepStrictEqual((await sample(1)).sequences, first.sequences)
    const { loss_fn_outputs } = await client.done("/forward", lossBody(model, 22, [datum([1, 2, 3])]))
    assert.deepStrictEqual(first.prompt_logprobs, [null, ...loss_fn_outputs[0].logprobs.data])
    const [none, ...top] = first.topk_prompt_logprobs
    assert.isNull(none)
    assert.strictEqual(top.length, 2)
    assert.isAtLeast(top[0][0][1], top[0][1][1])
    const opened = await client.post("/create_sampling_session", {
      session_id: session,
      sampling_session_seq_id: 1,
      base_model: "base",
    })
    const base = await sample(0, { sampling_session_id: opened.body.sampling_session_id })
    assert.notDeepEqual(base.sequences, first.sequences)
    await client.stop()
  })
})
