/** Serves a small model of a folder by `effect serve`'s server, on the wasm backend, until the scope closes. */
import { Effect } from "effect"
import { openDecoder } from "../../../src/decoder/engine/openDecoder.ts"
import * as LmDirectory from "../../../src/decoder/huggingFace/LmDirectory.ts"
import { Engine } from "../../../src/decoder/inference/Engine.ts"
import { serve } from "../../../src/decoder/serve/server-node.ts"
import { onDisk } from "../../../src/run/store/FileTree.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"

export const listenFor = Effect.fnUntraced(function* (folder: string) {
  const directory = yield* Effect.flatMap(onDisk(folder), (files) => LmDirectory.open(files, "."))
  const model = yield* openDecoder(directory, { name: "base", slots: 4, maxLength: 320, pageSize: 8 }).pipe(
    Effect.provide(Wasm.layer),
  )
  const { port } = yield* serve({ chat: model.chat, host: "127.0.0.1", port: 0 }).pipe(
    Effect.provideService(Engine, model.engine),
  )
  return { url: `http://127.0.0.1:${port}` }
})
