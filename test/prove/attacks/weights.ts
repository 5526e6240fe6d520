/** Attacks by files of PyTorch in the folder of a model from somebody else: code in a pickle, views without end, other files. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { decodeModelConfig } from "../../../src/decoder/huggingFace/ModelConfig.ts"
import { open } from "../../../src/base/formats/TensorFiles.ts"
import { onDisk } from "../../../src/run/store/FileTree.ts"
import { dict, global, op, pickle, string, tensor, tuple, zip } from "../../base/formats/torchFile.ts"
import { utf8 } from "../../../src/base/text/utf8.ts"
import { must } from "../Proof.ts"
import type { Attack } from "./Attack.ts"

const door = "models"

/** Writes the files of a model, opens its weights, and returns the message with which they are refused. */
const refused = async (folder: string, files: Readonly<Record<string, Uint8Array | string>>): Promise<string> => {
  for (const [name, contents] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), contents)
  }
  const before = process.memoryUsage().arrayBuffers
  const message = await Effect.runPromise(
    Effect.flatMap(onDisk(folder), (tree) => Effect.flip(open(tree, "model"))).pipe(
      Effect.map((error) => error.message),
      Effect.provide(NodeServices.layer),
    ),
  )
  must(process.memoryUsage().arrayBuffers - before < 2 ** 28, "the file took 256 MiB of memory before it was refused")
  return message
}

export const weightAttacks: ReadonlyArray<Attack> = [
  {
    door,
    name: "a config of a hundred billion experts",
    attempt: async () => {
      const config = {
        model_type: "qwen3_moe",
        vocab_size: 8,
        hidden_size: 16,
        intermediate_size: 8,
        num_hidden_layers: 10_000,
        num_attention_heads: 2,
        num_key_value_heads: 2,
        num_experts: 10_000_000,
        moe_intermediate_size: 1,
      }
      const decoded = decodeModelConfig(utf8.encode(JSON.stringify(config)), "config.json")
      return (await Effect.runPromise(Effect.flip(decoded))).message
    },
  },
  {
    door,
    name: "a pickle that calls os.system",
    attempt: async (folder) => {
      const mark = join(folder, "executed")
      const call = [...global("os", "system"), ...tuple(string(`touch ${mark}`)), op.reduce]
      const message = await refused(folder, { "model/pytorch_model.bin": zip([["a/data.pkl", pickle(call)]]) })
      must(!existsSync(mark), "the command was executed")
      return message
    },
  },
  {
    door,
    name: "a tensor that repeats one number 2^31 times",
    attempt: (folder) => {
      const view = tensor({ elements: 1, shape: [2 ** 16, 2 ** 15], stride: [0, 0] })
      const file = zip([["a/data.pkl", pickle(dict({ weight: view }))], ["a/data/0", [0, 0, 0, 0]]]) // prettier-ignore
      return refused(folder, { "model/pytorch_model.bin": file })
    },
  },
  {
    door,
    name: "an index that names a file of another folder",
    attempt: async (folder) => {
      const index = JSON.stringify({ weight_map: { weight: "../secret.bin" } })
      const view = tensor({ elements: 1, shape: [1], stride: [1] })
      const secret = zip([["a/data.pkl", pickle(dict({ weight: view }))], ["a/data/0", [0, 0, 0, 0]]]) // prettier-ignore
      return refused(folder, { "model/pytorch_model.bin.index.json": index, "secret.bin": secret })
    },
  },
]
