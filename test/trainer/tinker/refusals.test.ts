import { connect } from "node:net"
import { zstdCompressSync } from "node:zlib"
import { afterAll, assert, describe, it } from "vitest"
import { clientOf } from "../../../src/trainer/tinker/TinkerState.ts"
import { encodeLossRequest } from "../../../src/trainer/tinker/wire/protobuf.ts"
import {
  closeShared,
  datum,
  lossBody,
  newModel,
  startTinker,
  stepBody,
  temporaryFolder,
  type TinkerClient,
} from "./tinkerServer.ts"

afterAll(closeShared)

const serving = async (
  test: (client: TinkerClient) => Promise<void>,
  options: Parameters<typeof startTinker>[1] = {},
) => {
  const client = await startTinker(temporaryFolder(), options)
  try {
    await test(client)
  } finally {
    await client.stop()
  }
}

describe("a Tinker server", () => {
  it("names the wrong key of an example, performs the next request, and leaves other clients alone", () =>
    serving(async (client) => {
      const { model } = await newModel(client)
      const other = (await newModel(client)).model
      const rl = { logprobs: [-1, -1], advantages: [1, 1] }
      const wrong = [
        [
          lossBody(model, 0, [datum([0, 1, 999])]),
          /data\[0\]\.loss_fn_inputs\.target_tokens\[1\]: expected a token id/,
        ],
        [lossBody(model, 0, [datum([-1, 1, 2])]), /data\[0\]\.model_input\[0\]: expected a token id/],
        [lossBody(model, 0, [datum(Array.from({ length: 40 }, () => 1))]), /expected 1 to 32 tokens, found 39/],
        [lossBody(model, 0, [datum([0, 1, 2], { weights: [1] })]), /weights: expected 2 numbers/],
        [lossBody(model, 0, [datum([0, 1, 2], { weights: [1e39, 1] })]), /weights\[0\]: expected a finite number/],
        [lossBody(model, 0, [datum([0, 1, 2])], "ppo"), /logprobs: it is missing/],
        [
          lossBody(model, 0, [datum([0, 1, 2], rl)], "ppo", { clip: 1 }),
          /loss_fn_config\.clip: ppo has no such setting/,
        ],
        [lossBody(model, 0, [datum([0, 1, 2], rl)]), /logprobs: cross_entropy takes target_tokens, weights/],
        [lossBody(model, 0, [datum([0, 1, 2])], "mse"), /loss_fn: expected one of cross_entropy/],
        [lossBody(model, 0, []), /data: expected at least one datum/],
        [
          lossBody(
            model,
            0,
            [datum([0, 1, 2], { logprobs: [-1000, -1000], advantages: [1, 1] })],
            "importance_sampling",
          ),
          /not finite/,
        ],
      ] as const
      for (const [at, [body, message]] of wrong.entries()) {
        const outcome = await client.done("/forward_backward", { ...body, seq_id: at + 1 })
        assert.strictEqual(outcome.category, "user")
        assert.match(outcome.error, message)
      }
      // JSON has no NaN, but protobuf has.
      const numbers = { logprobs: Float32Array.of(-1, -1), advantages: Float32Array.of(1, NaN) }
      const examples = [{ tokens: Int32Array.of(0, 1), targets: Int32Array.of(1, 2), columns: numbers }]
      const request = { forwardOnly: false, loss: "ppo", lossConfig: {}, data: examples }
      const bytes = encodeLossRequest({ ...request, modelId: other, seqId: 1 })
      await client.send("/forward_backward", bytes, { "content-type": "application/x-protobuf" })
      const { body: nan } = await client.post("/retrieve_future", { request_id: `${other}/1` })
      assert.match(nan.error, /data\[0\]\.loss_fn_inputs\.advantages\[1\]: expected a finite number, found NaN/)
      // The ratio of a token without an advantage is infinite, and infinity times 0 is no number.
      const far = datum([0, 1, 2], { logprobs: [-1000, -1000], advantages: [0, 0] })
      const loss = await client.done("/forward", lossBody(model, wrong.length + 1, [far], "ppo"))
      assert.match(loss.error, /the loss is not a finite number/)
      const next = await client.done("/forward_backward", lossBody(model, wrong.length + 2, [datum([0, 1, 2])]))
      const same = await client.done("/forward_backward", lossBody(other, 2, [datum([0, 1, 2])]))
      assert.deepStrictEqual(next, same)
      const step = await client.done("/optim_step", stepBody(model, wrong.length + 3, 1e39))
      assert.match(step.error, /lower the learning rate/)
    }))

  it("refuses bodies that are damaged or too large, before it works on them", () =>
    serving(
      async (client) => {
        const json = { "content-type": "application/json" }
        const zstd = { ...json, "content-encoding": "zstd" }
        const protobuf = { "content-type": "application/x-protobuf" }
        const statusOf = async (body: Uint8Array | string, headers: Record<string, string>) =>
          (await client.send("/forward_backward", body, headers)).status
        assert.strictEqual(await statusOf("{", json), 400)
        assert.strictEqual(await statusOf("[]", json), 400)
        assert.strictEqual(await statusOf("x".repeat(2000), json), 413)
        // A megabyte of zeros, in about a hundred bytes.
        assert.strictEqual(await statusOf(zstdCompressSync(new Uint8Array(2 ** 20)), zstd), 413)
        assert.strictEqual(await statusOf(Uint8Array.of(1, 2, 3), zstd), 413)
        assert.strictEqual(await statusOf(Uint8Array.of(10, 200, 1), protobuf), 400)
        // A body whose length is not said, and which does not end.
        const { host, hostname, port } = new URL(client.url)
        const socket = connect(Number(port), hostname)
        const answer = new Promise((resolve) => socket.once("data", (chunk) => resolve(String(chunk))))
        const head = `POST /api/v1/forward HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\n`
        socket.write(`${head}transfer-encoding: chunked\r\n\r\n5dc\r\n${"x".repeat(0x5dc)}\r\n`)
        assert.match(String(await answer), /^HTTP\/1\.1 413 /)
        socket.destroy()
        assert.strictEqual(await statusOf("{}", { ...json, "content-encoding": "br" }), 415)
        assert.strictEqual(await statusOf("{}", { "content-type": "text/plain" }), 415)
      },
      { limits: { bodyBytes: 1000 } },
    ))

  it("refuses models, ranks, sessions and futures that there are not, and too many models", () =>
    serving(
      async (client) => {
        const { session, model } = await newModel(client, { rank: 2 })
        const create = (extra: object) =>
          client.post("/create_model", { session_id: session, model_seq_id: 1, base_model: "base", ...extra })
        assert.strictEqual((await create({ lora_config: { rank: 5 } })).body.param, "lora_config.rank")
        assert.strictEqual((await create({ base_model: "other" })).status, 404)
        assert.strictEqual((await create({ session_id: "session-99" })).body.param, "session_id")
        assert.strictEqual((await create({ model_seq_id: 0, lora_config: { rank: 3 } })).body.param, "model_seq_id")
        assert.strictEqual((await create({})).body.code, "quota_exceeded")
        assert.strictEqual((await client.post("/get_info", { model_id: model })).body.lora_rank, 2)
        assert.strictEqual((await client.post("/optim_step", stepBody("session-9-model-0", 1))).status, 404)
        assert.strictEqual((await client.post("/optim_step", stepBody(model, 100_000))).body.param, "seq_id")
        assert.strictEqual((await client.post("/retrieve_future", { request_id: `${model}/77` })).status, 410)
        assert.strictEqual((await client.post("/retrieve_future", { request_id: "../../x" })).status, 410)
        assert.strictEqual((await client.post("/publish", {})).body.code, "not_implemented")
        const path = { model_id: model, seq_id: 1, path: "../up" }
        assert.match((await client.done("/save_weights", path)).error, /path: expected a name/)
        const load = { model_id: model, seq_id: 2, path: "tinker://../weights/x", optimizer: true }
        assert.match((await client.done("/load_weights", load)).error, /path: expected tinker/)
      },
      { limits: { modelsOfKey: 1 } },
    ))

  it("takes no more models from requests at the same time, and creates a model that is asked for twice once", () =>
    serving(
      async (client) => {
        const { body } = await client.post("/create_session", {})
        const create = (at: number) =>
          client.post("/create_model", { session_id: body.session_id, model_seq_id: at % 3, base_model: "base" })
        const all = await Promise.all(Array.from({ length: 6 }, (_, at) => create(at)))
        const made = all.filter(({ status }) => status === 200).map((answer) => answer.body.model_id)
        assert.strictEqual(new Set(made).size, 2)
        assert.strictEqual(made.length, 4)
        const model = made[0]
        await client.done("/forward_backward", lossBody(model, 1, [datum([0, 1, 2])]))
        assert.strictEqual((await client.done("/optim_step", stepBody(model, 2))).metrics["step:max"], 1)
      },
      { limits: { modelsOfKey: 2 } },
    ))

  it("refuses small bodies that would become many objects, before they do", () =>
    serving(async (client) => {
      const { model } = await newModel(client)
      const protobuf = { "content-type": "application/x-protobuf", "content-encoding": "zstd" }
      /** A message with the name of a model, and a field of two bytes again and again. */
      const many = (field: number, count: number) => {
        const bytes = new Uint8Array(2 * count)
        for (let at = 0; at < bytes.length; at += 2) bytes[at] = field * 8 + 2
        return zstdCompressSync(Buffer.concat([Uint8Array.of(10, model.length), Buffer.from(model), bytes]))
      }
      const refusal = async (body: Uint8Array) => {
        const answer = await client.send("/forward_backward", body, protobuf)
        return `${answer.status} ${await answer.text()}`
      }
      assert.match(await refusal(many(3, 100_000)), /^400.*data: expected at most 65536 examples/)
      assert.match(await refusal(many(7, 2_100_000)), /^400.*expected at most 2097152 fields/)
      const inputs = Array.from({ length: 17 }, (_, at) => [18, 3, 10, 1, 65 + at]).flat()
      const example = zstdCompressSync(Uint8Array.of(10, 1, 65, 26, inputs.length, ...inputs))
      assert.match(await refusal(example), /^400.*expected at most 16 inputs/)
    }))

  it("refuses metadata, lives of checkpoints and texts that end a sample if they are too long", () =>
    serving(async (client) => {
      const { model, session } = await newModel(client)
      const long = {
        session_id: session,
        model_seq_id: 1,
        base_model: "base",
        user_metadata: { a: "x".repeat(70_000) },
      }
      assert.strictEqual((await client.post("/create_model", long)).body.param, "user_metadata")
      const save = { model_id: model, seq_id: 1, path: "a", ttl_seconds: 1e15 }
      const outcome = await client.done("/save_weights", save)
      assert.strictEqual(outcome.category, "user")
      assert.match(outcome.error, /ttl_seconds/)
      const sample = (stop: ReadonlyArray<string>) =>
        client.post("/asample", {
          base_model: "base",
          prompt: { chunks: [{ tokens: [1] }] },
          sampling_params: { stop },
        })
      assert.match((await sample(["x".repeat(2000)])).body.param, /stop/)
      assert.match((await sample(Array.from({ length: 65 }, (_, at) => `${at}`))).body.param, /stop/)
    }))

  it("tells a client that its own weights are not usable, and samples from others as before", () =>
    serving(async (client) => {
      const { model } = await newModel(client)
      const prompt = { chunks: [{ tokens: [1, 2, 3] }] }
      const sample = (weights: object) =>
        client.done("/asample", { ...weights, prompt, num_samples: 4, sampling_params: { max_tokens: 8, seed: 1 } })
      const before = await sample({ base_model: "base" })
      for (const [seq, rate] of [
        [1, 0.01],
        [3, 1e22],
      ] as const) {
        await client.done("/forward_backward", lossBody(model, seq, [datum([1, 2, 3, 0])]))
        await client.done("/optim_step", stepBody(model, seq + 1, rate))
      }
      await client.done("/save_weights_for_sampler", { model_id: model, seq_id: 5, path: "infinite" })
      const outcome = await sample({ model_path: `tinker://${model}/sampler_weights/infinite` })
      assert.strictEqual(outcome.category, "user")
      assert.match(outcome.error, /expected finite logits/)
      assert.deepStrictEqual(await sample({ base_model: "base" }), before)
    }))

  it("gives turns to API keys, and to sessions if there are none", () => {
    assert.strictEqual(clientOf({ hasKeys: true }, "alice", "session-1"), "alice")
    assert.strictEqual(clientOf({ hasKeys: false }, "local", "session-1"), "session-1")
  })

  it("keeps the requests of a model on disk within a limit, until an update makes room", () =>
    serving(
      async (client) => {
        const { model } = await newModel(client)
        const send = (path: string, seq: number) => client.post(path, lossBody(model, seq, [datum([0, 1, 2])]))
        for (let seq = 1; seq <= 5; seq++) {
          await client.done("/forward", lossBody(model, seq, [datum([0, 1, 2])]))
        }
        for (let seq = 6; seq <= 8; seq++) assert.strictEqual((await send("/forward_backward", seq)).status, 200)
        const refused = await client.done("/forward_backward", lossBody(model, 9, [datum([0, 1, 2])]))
        assert.strictEqual(refused.category, "user")
        assert.match(refused.error, /3 requests of this model are not part of an update yet.*send optim_step/)
        // The refused request has used up its number, so the update does not wait for it.
        assert.strictEqual((await client.done("/optim_step", stepBody(model, 10))).metrics["step:max"], 1)
        const next = await client.done("/forward_backward", lossBody(model, 11, [datum([0, 1, 2])]))
        assert.strictEqual(next.loss_fn_outputs.length, 1)
      },
      { limits: { requestsOnDisk: 3 } },
    ))

  it("refuses bodies while the others of the same API key take all room", () =>
    serving(
      async (client) => {
        const { model } = await newModel(client)
        const answer = await client.post("/asample", { model, padding: "x".repeat(1000) })
        assert.strictEqual(answer.status, 429)
        const settings = await client.post("/optim_step", { model, padding: "x".repeat(2 ** 20) })
        assert.strictEqual(settings.status, 413)
      },
      { limits: { bodiesOfKey: 800 } },
    ))

  it("frees the room of a client that vanishes in the middle of a body, or of its wait, and keeps its outcome", () =>
    serving(
      async (client) => {
        const { model } = await newModel(client)
        const other = (await newModel(client)).model
        const { host, hostname, port } = new URL(client.url)
        const socket = connect(Number(port), hostname)
        const isRead = new Promise((resolve) => socket.once("data", (answer) => resolve(String(answer))))
        const head = `POST /api/v1/forward HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\n`
        socket.write(`${head}expect: 100-continue\r\ncontent-length: 900\r\n\r\n{"model_id":`)
        assert.match(String(await isRead), /^HTTP\/1\.1 100 /)
        const example = lossBody(other, 1, [datum([0, 1, 2])])
        const statusOf = async () => (await client.post("/forward", example)).status
        assert.strictEqual(await statusOf(), 429)
        socket.destroy()
        while ((await statusOf()) === 429) await new Promise((resolve) => setImmediate(resolve))
        const { body } = await client.post("/retrieve_future", { request_id: `${other}/1` })
        // A request that waits for an earlier one, and a client that does not wait any longer.
        await client.post("/optim_step", stepBody(model, 2))
        const stopping = new AbortController()
        const waiting = fetch(`${client.url}/retrieve_future`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ request_id: `${model}/2` }),
          signal: stopping.signal,
        }).then(undefined, (error: unknown) => error)
        stopping.abort()
        assert.instanceOf(await waiting, DOMException)
        const forward = await client.done("/forward", lossBody(other, 2, [datum([0, 1, 2])]))
        assert.deepStrictEqual(forward, body)
        await client.post("/forward_backward", lossBody(model, 1, [datum([0, 1, 2])]))
        const outcome = await client.post("/retrieve_future", { request_id: `${model}/2` })
        assert.strictEqual(outcome.body.metrics["step:max"], 1)
      },
      { limits: { bodiesOfKey: 1000 } },
    ))

  it("forgets outcomes and sessions of the API key that has most of them, not those of others", () =>
    serving(
      async (client) => {
        const as = (key: string) => ({ "x-api-key": key })
        const begin = async (key: string) => String((await client.post("/create_session", {}, as(key))).body.session_id)
        const prompt = { chunks: [{ tokens: [1, 2] }] }
        const sample = { base_model: "base", prompt, sampling_params: { max_tokens: 1 } }
        const sampled = async (key: string) => {
          const { body } = await client.post("/asample", sample, as(key))
          await client.post("/retrieve_future", body, as(key))
          return { request_id: String(body.request_id) }
        }
        const session = await begin("tml-a")
        const outcome = await sampled("tml-a")
        const first = await sampled("tml-b")
        for (let at = 0; at < 5; at++) {
          await begin("tml-b")
          await sampled("tml-b")
        }
        assert.strictEqual((await client.post("/retrieve_future", outcome, as("tml-a"))).status, 200)
        assert.strictEqual((await client.post("/retrieve_future", first, as("tml-b"))).status, 410)
        const heartbeat = await client.post("/session_heartbeat", { session_id: session }, as("tml-a"))
        assert.strictEqual(heartbeat.status, 200)
      },
      { keys: { alice: "tml-a", bob: "tml-b" }, limits: { outcomes: 3, sessions: 3 } },
    ))

  it("keeps clients with other API keys apart", () =>
    serving(
      async (client) => {
        const as = (key: string) => ({ "x-api-key": key })
        const begin = { tags: [], user_metadata: null, sdk_version: "0" }
        assert.strictEqual((await client.post("/create_session", begin)).status, 401)
        assert.strictEqual((await client.post("/create_session", begin, as("tml-c"))).status, 401)
        const { body } = await client.post("/create_session", begin, as("tml-a"))
        const create = { session_id: body.session_id, model_seq_id: 0, base_model: "base", lora_config: { rank: 2 } }
        const made = await client.post("/create_model", create, as("tml-a"))
        assert.strictEqual(made.status, 200)
        const model_id = made.body.model_id
        assert.strictEqual((await client.post("/get_info", { model_id }, as("tml-a"))).status, 200)
        assert.strictEqual((await client.post("/get_info", { model_id }, as("tml-b"))).status, 404)
        assert.strictEqual((await client.post("/optim_step", stepBody(model_id, 1), as("tml-b"))).status, 404)
        const request_id = made.body.request_id
        assert.strictEqual((await client.post("/retrieve_future", { request_id }, as("tml-b"))).status, 410)
        assert.notInclude(JSON.stringify(client.logged), "tml-")
      },
      { keys: { alice: "tml-a", bob: "tml-b" } },
    ))
})
