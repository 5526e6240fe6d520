/** Attacks on `effect serve --tinker` by one of its clients, on the server and on other clients. */
import { zstdCompressSync } from "node:zlib"
import {
  closeShared,
  datum,
  lossBody,
  newModel,
  startTinker,
  type TinkerClient,
} from "../../trainer/tinker/tinkerServer.ts"
import { must } from "../Proof.ts"
import type { Attack } from "./Attack.ts"

const door = "tinker"
const keys = { alice: "tml-alice", mallory: "tml-mallory" }
const as = (key: string) => ({ "x-api-key": key })

const serving = async (
  folder: string,
  test: (client: TinkerClient) => Promise<string>,
  options: Parameters<typeof startTinker>[1] = {},
): Promise<string> => {
  const client = await startTinker(folder, options)
  try {
    return await test(client)
  } finally {
    await client.stop()
  }
}

/** A body of protobuf with as many empty fields as there is room for, packed by Zstandard. */
const emptyFields = (model: string, field: number): Uint8Array => {
  const bytes = new Uint8Array(32 * 2 ** 20)
  for (let at = 0; at < bytes.length; at += 2) bytes[at] = field * 8 + 2
  return zstdCompressSync(Buffer.concat([Uint8Array.of(10, model.length), Buffer.from(model), bytes]))
}

export const tinkerAttacks: ReadonlyArray<Attack> = [
  {
    door,
    name: "bodies of some kilobytes with millions of empty examples and fields",
    attempt: (folder) =>
      serving(folder, async (client) => {
        const { model } = await newModel(client)
        const headers = { "content-type": "application/x-protobuf", "content-encoding": "zstd" }
        const bodies = [3, 7, 9].map((field) => emptyFields(model, field))
        const before = process.cpuUsage()
        for (const body of bodies) {
          const { status } = await client.send("/forward_backward", body, headers)
          must(status === 400, `it answered ${status}`)
        }
        const { user } = process.cpuUsage(before)
        must(user < 10e6, `they took ${user / 1e6} s of CPU time`)
        return `refused within ${(user / 1e6).toFixed(1)} s of CPU time`
      }),
  },
  {
    door,
    name: "more models than are allowed, all at the same time",
    attempt: (folder) =>
      serving(folder, async (client) => {
        const { body } = await client.post("/create_session", {})
        const create = (model_seq_id: number) =>
          client.post("/create_model", { session_id: body.session_id, model_seq_id, base_model: "base" })
        const all = await Promise.all(Array.from({ length: 60 }, (_, at) => create(at)))
        const made = all.filter(({ status }) => status === 200).length
        must(made === 32, `it made ${made} models`)
        return `${made} of ${all.length} were made`
      }),
  },
  {
    door,
    name: "the models, sessions, samplers, outcomes and checkpoints of another client",
    attempt: (folder) =>
      serving(
        folder,
        async (client) => {
          const { body } = await client.post("/create_session", {}, as(keys.alice))
          const session_id = String(body.session_id)
          const create = { session_id, model_seq_id: 0, base_model: "base", lora_config: { rank: 1 } }
          const made = await client.post("/create_model", create, as(keys.alice))
          const model_id = String(made.body.model_id)
          const save = { model_id, seq_id: 1, path: "mine", sampling_session_seq_id: 1 }
          const saved = await client.post("/save_weights_for_sampler", save, as(keys.alice))
          await client.post("/retrieve_future", { request_id: saved.body.request_id }, as(keys.alice))
          const model_path = `tinker://${model_id}/sampler_weights/mine`
          const sample = { prompt: { chunks: [{ tokens: [1] }] }, sampling_params: {} }
          const tried: ReadonlyArray<readonly [string, object]> = [
            ["/get_info", { model_id }],
            ["/unload_model", { model_id }],
            ["/forward_backward", lossBody(model_id, 2, [datum([0, 1])])],
            ["/create_model", { ...create, model_seq_id: 1 }],
            ["/session_heartbeat", { session_id }],
            ["/create_sampling_session", { session_id, sampling_session_seq_id: 2, base_model: "base" }],
            ["/asample", { ...sample, model_path }],
            ["/asample", { ...sample, sampling_session_id: `${session_id}-sampler-1` }],
            ["/weights_info", { tinker_path: model_path }],
            ["/retrieve_future", { request_id: saved.body.request_id }],
          ]
          for (const [path, request] of tried) {
            const { status } = await client.post(path, request, as(keys.mallory))
            must(status === 404 || status === 410, `${path} answered ${status}`)
          }
          const checkpoint = `/training_runs/${model_id}/checkpoints/sampler_weights/mine`
          for (const [path, method] of [
            [checkpoint, "DELETE"],
            [`${checkpoint}/download`, "GET"],
          ] as const) {
            const { status } = await fetch(`${client.url}${path}`, { method, headers: as(keys.mallory) })
            must(status === 404, `${method} ${path} answered ${status}`)
          }
          return `${tried.length + 2} requests, no answer`
        },
        { keys },
      ),
  },
]

/** Closes the model that the attacks share. */
export const closeTinker = closeShared
