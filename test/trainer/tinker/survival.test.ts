import { cpSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, assert, describe, it } from "vitest"
import { RunStoreError } from "../../../src/run/store/RunStoreError.ts"
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

const examples = [datum([1, 2, 3, 0, 1]), datum([3, 3, 2])]
const future = (model: string, seq: number) => ({ request_id: `${model}/${seq}` })

describe("what a Tinker server has acknowledged", () => {
  it("is there after the server was stopped, bit for bit, also the sum of gradients", async () => {
    const alone = await startTinker(temporaryFolder())
    const one = (await newModel(alone)).model
    const all: Array<unknown> = []
    const requests = (model: string) => [
      ["/forward_backward", lossBody(model, 1, examples)] as const,
      ["/optim_step", stepBody(model, 2)] as const,
      ["/forward_backward", lossBody(model, 3, examples)] as const,
      ["/forward_backward", lossBody(model, 4, [datum([2, 2, 1])])] as const,
      ["/save_weights", { model_id: model, seq_id: 5, path: "half" }] as const,
      ["/optim_step", stepBody(model, 6)] as const,
      ["/forward", lossBody(model, 7, examples)] as const,
    ]
    for (const [path, body] of requests(one)) all.push(await alone.done(path, body))
    await alone.stop()

    const folder = temporaryFolder()
    let client = await startTinker(folder)
    const { model } = await newModel(client)
    assert.strictEqual(model, one)
    for (const [at, [path, body]] of requests(model).entries()) {
      // The client sends its request and loses the server before it has the outcome.
      assert.strictEqual((await client.post(path, body)).status, 200)
      await client.stop()
      client = await startTinker(folder)
      const { body: outcome } = await client.post("/retrieve_future", future(model, at + 1))
      assert.deepStrictEqual(outcome, all[at])
      // The client sends it again, because the acknowledgement was lost, too.
      assert.deepStrictEqual((await client.post(path, body)).body.request_id, `${model}/${at + 1}`)
    }
    await client.stop()
    const names = readdirSync(join(folder, "models", model, "requests"))
    // Only requests whose gradient is part of no update yet would be repeated.
    assert.deepStrictEqual(names, [])
  })

  it("has its outcome, although the process was killed after the update and before the outcome was written", async () => {
    const folder = temporaryFolder()
    const before = await startTinker(folder)
    const { model } = await newModel(before)
    const place = (kind: string, seq: number) => join(folder, "models", model, kind, `00000000000${seq}`)
    await before.post("/optim_step", stepBody(model, 2))
    const request = readFileSync(place("requests", 2))
    await before.done("/forward_backward", lossBody(model, 1, examples))
    const { body: outcome } = await before.post("/retrieve_future", future(model, 2))
    await before.stop()
    // The files as the kill leaves them; the gradient's outcome could not be written either, because the disk was full.
    writeFileSync(place("requests", 1), request)
    writeFileSync(place("requests", 2), request)
    rmSync(place("results", 1))
    rmSync(place("results", 2))
    const after = await startTinker(folder)
    assert.deepStrictEqual((await after.post("/retrieve_future", future(model, 2))).body, outcome)
    const { body: lost } = await after.post("/retrieve_future", future(model, 1))
    assert.match(lost.error, /was performed, but a previous process could not write its outcome/)
    await after.stop()
  })

  it("is opened again from disk, if another model took its place in memory", async () => {
    const crowded = await startTinker(temporaryFolder(), { limits: { loadedModels: 1 } })
    const roomy = await startTinker(temporaryFolder())
    const train = async (client: TinkerClient) => {
      const [{ model }, other] = [await newModel(client), (await newModel(client)).model]
      const outcomes = [await client.done("/forward_backward", lossBody(model, 1, examples))]
      // The other model takes the place of a gradient that is part of no update yet.
      outcomes.push(await client.done("/forward", lossBody(other, 1, examples)))
      // A request that waits for an earlier one does not keep the other model in memory.
      await client.post("/optim_step", stepBody(other, 3))
      outcomes.push(await client.done("/forward_backward", lossBody(model, 2, [datum([2, 2, 1])])))
      outcomes.push(await client.done("/optim_step", stepBody(model, 3)))
      outcomes.push(await client.done("/forward", lossBody(other, 2, examples)))
      outcomes.push((await client.post("/retrieve_future", future(other, 3))).body)
      outcomes.push(await client.done("/forward", lossBody(model, 4, examples)))
      return outcomes
    }
    assert.deepStrictEqual(await train(crowded), await train(roomy))
    await crowded.stop()
    await roomy.stop()
  })

  it("is performed in the order of seq_id and once, in whatever order and how often it comes", async () => {
    const client = await startTinker(temporaryFolder())
    const { model } = await newModel(client)
    const step = stepBody(model, 3)
    const late = [
      await client.post("/optim_step", step),
      await client.post("/forward_backward", lossBody(model, 2, examples)),
      await client.post("/optim_step", step),
      await client.post("/forward_backward", lossBody(model, 1, examples)),
    ]
    assert.deepStrictEqual(
      late.map(({ body }) => body.request_id),
      [3, 2, 3, 1].map((seq) => `${model}/${seq}`),
    )
    const outcome = (await client.post("/retrieve_future", future(model, 3))).body
    assert.strictEqual(outcome.metrics["step:max"], 1)
    assert.deepStrictEqual(await client.done("/optim_step", step), outcome)
    const other = await client.post("/optim_step", stepBody(model, 3, 0.5))
    assert.strictEqual(other.status, 422)
    assert.strictEqual(other.body.param, "seq_id")
    await client.stop()
  })

  it("is not changed by what a full disk cannot hold: updates, checkpoints, requests", async () => {
    const folder = temporaryFolder()
    let isFull = false
    let isFullForAll = false
    let fullFor = "nothing"
    const refuse = (path: string) =>
      Effect.fail(
        new RunStoreError({ path, operation: "write", code: "ENOSPC", message: `cannot write ${path}: no space` }),
      )
    const client = await startTinker(folder, {}, (files) => ({
      ...files,
      write: (path, contents, how) =>
        isFullForAll || path.includes(fullFor) ? refuse(path) : files.write(path, contents, how),
      remove: (path) => {
        if (path.includes("requests/")) fullFor = "nothing"
        return files.remove(path)
      },
      writeDirectory: (path, contents, last) => (isFull ? refuse(path) : files.writeDirectory(path, contents, last)),
    }))
    const { model } = await newModel(client)
    const before = await client.done("/forward_backward", lossBody(model, 1, examples))
    isFull = true
    fullFor = "results/"
    const failed = await client.done("/optim_step", stepBody(model, 2))
    assert.strictEqual(failed.category, "server")
    // The removed request makes room for its outcome, so no restarted server waits for the request.
    assert.include(readdirSync(join(folder, "models", model, "results")), "000000000002")
    const same = await client.done("/forward", lossBody(model, 3, examples))
    assert.deepStrictEqual(same.loss_fn_outputs, before.loss_fn_outputs)
    const save = (seq: number) => client.done("/save_weights", { model_id: model, seq_id: seq, path: "one" })
    const unsaved = await save(4)
    assert.deepStrictEqual([unsaved.category, unsaved.path], ["server", undefined])
    assert.match(unsaved.error, /no space; nothing was changed/)
    isFull = false
    assert.strictEqual((await save(5)).path, `tinker://${model}/weights/one`)
    // A request that cannot be written is not accepted, so its number is not used up.
    isFullForAll = true
    assert.strictEqual((await client.post("/forward_backward", lossBody(model, 6, examples))).status, 500)
    isFullForAll = false
    // The gradient is still there.
    const stepped = await client.done("/optim_step", stepBody(model, 6))
    assert.strictEqual(stepped.metrics["step:max"], 1)
    fullFor = "sessions/"
    const body = { model_id: model, seq_id: 7, path: "two", sampling_session_seq_id: 0 }
    const half = await client.done("/save_weights_for_sampler", body)
    const two = `tinker://${model}/sampler_weights/two`
    assert.match(half.error, new RegExp(`the server saved ${two}, but .*no space; create one with this path`))
    assert.strictEqual((await client.post("/weights_info", { tinker_path: two })).status, 200)
    await client.stop()
  })

  it("has an outcome after a restart, also if its model or another one cannot be opened", async () => {
    const folder = temporaryFolder()
    const before = await startTinker(folder)
    const damaged = (await newModel(before)).model
    const { model } = await newModel(before)
    for (const id of [damaged, model]) await before.post("/optim_step", stepBody(id, 2))
    await before.stop()
    const requests = join(folder, "models", model, "requests")
    writeFileSync(join(requests, "000000000001"), readFileSync(join(requests, "000000000002")))
    const after = await startTinker(folder, {}, (files) => ({
      ...files,
      read: (path) => (path.includes(`${damaged}/requests`) ? Effect.die("a damaged disk") : files.read(path)),
    }))
    const { body: failed } = await after.post("/retrieve_future", future(damaged, 2))
    assert.match(failed.error, /cannot be opened/)
    const { body: outcome } = await after.post("/retrieve_future", future(model, 2))
    assert.match(outcome.error, /there is no gradient/)
    await after.stop()
  })

  it("waits for a request that has not arrived, until the model is unloaded", async () => {
    const client = await startTinker(temporaryFolder())
    const { model } = await newModel(client)
    await client.done("/forward", lossBody(model, 1, examples))
    await client.post("/optim_step", stepBody(model, 3))
    const waiting = client.post("/retrieve_future", future(model, 3))
    await client.done("/unload_model", { model_id: model })
    // A client that lost the answer sends the request again.
    assert.strictEqual((await client.done("/unload_model", { model_id: model })).type, "unload_model")
    assert.match((await waiting).body.error, /was unloaded/)
    assert.strictEqual((await client.post("/optim_step", stepBody(model, 2))).status, 404)
    await client.stop()
  })

  it("is sampled as it was saved last, if a checkpoint of a name is saved again; its files are read once", async () => {
    let reads = 0
    const client = await startTinker(temporaryFolder(), {}, (files) => ({
      ...files,
      readText: (path) => {
        if (path.endsWith("sampler_weights/same/checkpoint.json")) reads++
        return files.readText(path)
      },
    }))
    const { model } = await newModel(client)
    const request = {
      model_path: `tinker://${model}/sampler_weights/same`,
      prompt: { chunks: [{ type: "encoded_text", tokens: [1, 2, 3] }] },
      sampling_params: { max_tokens: 2, temperature: 0 },
      prompt_logprobs: true,
    }
    const logprobs = async () => {
      const outcome = await client.done("/asample", request)
      return [outcome.prompt_logprobs, outcome.sequences[0].logprobs]
    }
    const save = (seq: number) =>
      client.done("/save_weights_for_sampler", { model_id: model, seq_id: seq, path: "same" })
    await save(1)
    const [promptBefore, answerBefore] = await logprobs()
    const readsBefore = reads
    await logprobs()
    assert.strictEqual(reads, readsBefore)
    await client.done("/forward_backward", lossBody(model, 2, examples))
    await client.done("/optim_step", stepBody(model, 3, 0.1))
    await save(4)
    const [promptAfter, answerAfter] = await logprobs()
    assert.notDeepEqual(promptAfter, promptBefore)
    assert.notDeepEqual(answerAfter, answerBefore)
    await client.get(`/training_runs/${model}/checkpoints/sampler_weights/same`, "DELETE")
    assert.strictEqual((await client.post("/asample", request)).status, 404)
    await client.stop()
  })

  it("keeps what a model trains: weights of one that trains other projections are refused", async () => {
    const client = await startTinker(temporaryFolder())
    const all = (await newModel(client)).model
    const { model, session } = await newModel(client, { train_mlp: false })
    const { path } = await client.done("/save_weights", { model_id: all, seq_id: 1, path: "all" })
    const loaded = await client.done("/load_weights", { model_id: model, seq_id: 1, path, optimizer: true })
    assert.match(loaded.error, /settings of this model, found train_attn true and train_mlp true/)
    const nothing = { rank: 2, train_attn: false, train_mlp: false }
    const create = { session_id: session, model_seq_id: 1, base_model: "base", lora_config: nothing }
    assert.strictEqual((await client.post("/create_model", create)).body.param, "lora_config")
    await client.stop()
  })

  it("can be loaded again, with the optimiser or without, until it expires or is deleted", async () => {
    const folder = temporaryFolder()
    const client = await startTinker(folder)
    const { model } = await newModel(client)
    await client.done("/forward_backward", lossBody(model, 1, examples))
    await client.done("/optim_step", stepBody(model, 2))
    const { path } = await client.done("/save_weights", { model_id: model, seq_id: 3, path: "one", ttl_seconds: 1000 })
    assert.strictEqual(path, `tinker://${model}/weights/one`)
    const before = await client.done("/forward", lossBody(model, 4, examples))
    await client.done("/forward_backward", lossBody(model, 5, examples))
    await client.done("/optim_step", stepBody(model, 6))
    await client.done("/load_weights", { model_id: model, seq_id: 7, path, optimizer: true })
    assert.deepStrictEqual(await client.done("/forward", lossBody(model, 8, examples)), before)
    const other = (await newModel(client)).model
    await client.done("/load_weights", { model_id: other, seq_id: 1, path, optimizer: false })
    assert.deepStrictEqual(await client.done("/forward", lossBody(other, 2, examples)), before)

    const info = (await client.post("/weights_info", { tinker_path: path })).body
    assert.deepStrictEqual([info.base_model, info.lora_rank, info.is_lora], ["base", 4, true])
    const list = (await client.get(`/training_runs/${model}/checkpoints`)).body.checkpoints
    assert.deepStrictEqual(
      list.map(({ tinker_path }: { readonly tinker_path: string }) => tinker_path),
      [path],
    )
    assert.isString(list[0].expires_at)
    // Its time is up, and no other checkpoint was saved since, by which its files would have been removed.
    const { path: old } = await client.done("/save_weights", { model_id: model, seq_id: 9, path: "old" })
    const file = join(folder, "models", model, "weights/old/checkpoint.json")
    const saved = JSON.parse(readFileSync(file, "utf8"))
    writeFileSync(file, JSON.stringify({ ...saved, expires_at: "2020-01-01T00:00:00.000Z" }))
    assert.strictEqual((await client.post("/weights_info", { tinker_path: old })).status, 404)
    const late = await client.done("/load_weights", { model_id: other, seq_id: 3, path: old, optimizer: false })
    assert.match(late.error, /there is no checkpoint tinker:.*old/)
    const { path: again } = await client.done("/save_weights", { model_id: model, seq_id: 10, path: "old" })
    assert.strictEqual((await client.post("/weights_info", { tinker_path: again })).status, 200)
    const newest = (await client.get("/checkpoints?limit=1&offset=x")).body
    assert.deepStrictEqual(newest.cursor, { offset: 0, limit: 1, total_count: 2 })
    assert.strictEqual(newest.checkpoints[0].tinker_path, again)
    const run = (await client.get(`/training_runs/${model}`)).body
    assert.deepInclude(run, { training_run_id: model, base_model: "base", lora_rank: 4, last_sampler_checkpoint: null })
    assert.strictEqual(run.last_checkpoint.tinker_path, again)
    assert.strictEqual((await client.get("/training_runs/none")).status, 404)
    // The id of a model is no path to other folders of the machine.
    cpSync(join(folder, "models", model), join(folder, "elsewhere"), { recursive: true })
    const outside = await client.get("/training_runs/..%2Felsewhere")
    assert.strictEqual(outside.status, 404, JSON.stringify(outside.body))
    const [session] = (await client.get("/sessions")).body.sessions
    assert.deepStrictEqual((await client.get(`/sessions/${session}`)).body.training_run_ids, [model])
    const sampling = { session_id: session, sampling_session_seq_id: 7, base_model: "base" }
    const { sampling_session_id: sampler } = (await client.post("/create_sampling_session", sampling)).body
    const shown = { sampler_id: sampler, base_model: "base", model_path: null }
    assert.deepStrictEqual((await client.get(`/samplers/${sampler}`)).body, shown)
    const life = { method: "PUT", headers: { "content-type": "application/json" }, body: '{"ttl_seconds":null}' }
    const livesOn = await fetch(`${client.url}/training_runs/${model}/checkpoints/weights/one/ttl`, life)
    assert.strictEqual(livesOn.status, 204)
    const lasting = (await client.get(`/training_runs/${model}/checkpoints`)).body.checkpoints
    assert.isNull(lasting[0].expires_at)
    const archive = await client.get(`/training_runs/${model}/checkpoints/weights/one/archive`)
    assert.strictEqual(archive.status, 302)
    const tar = Buffer.from(await (await fetch(String(archive.headers.get("location")))).arrayBuffer())
    assert.strictEqual(tar.subarray(257, 262).toString(), "ustar")
    assert.include(tar.toString("latin1"), "adapter_model.safetensors")
    const unclear = await client.get(`/training_runs/${model}/checkpoints/one`, "DELETE")
    assert.deepStrictEqual([unclear.status, unclear.body.param], [400, "checkpoint_id"])
    assert.strictEqual((await client.get(`/training_runs/${model}/checkpoints/weights/one`, "DELETE")).status, 204)
    assert.strictEqual((await client.post("/weights_info", { tinker_path: path })).status, 404)
    assert.strictEqual((await client.get("/training_runs")).body.cursor.total_count, 2)
    await client.done("/unload_model", { model_id: model })
    assert.strictEqual((await client.post("/get_info", { model_id: model })).status, 404)
    await client.stop()
  })
})
