import { createRequire } from "node:module"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import { decode, encode } from "../../../src/base/formats/safetensors.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import { keep } from "../../rl/train/inMemory.ts"

/** The reader of the npm package `safetensors`, which is somebody else's. It has no types. */
interface Reader {
  readonly metadata: ReadonlyMap<string, { readonly dtype: string; readonly shape: ReadonlyArray<number> }>
  readonly getTensor: (name: string) => Uint8Array
}
const { SafeTensor }: { readonly SafeTensor: new (bytes: Uint8Array) => Reader } = createRequire(import.meta.url)(
  "safetensors",
)

const floats = (bytes: Uint8Array): Float32Array => new Float32Array(bytes.slice().buffer)

describe("another library's reader", () => {
  it("reads every number that we write", () => {
    const tensors = {
      "layer.weight": { shape: [2, 3], data: Float32Array.of(1, -2, 0.5, Infinity, 1e-40, -0) },
      "layer.bias": { shape: [3], data: Float32Array.of(3, 4, 5) },
      steps: { shape: [], data: Int32Array.of(-7) },
      é: { shape: [1], data: Float32Array.of(9) },
    }
    const reader = new SafeTensor(encode(tensors))
    assert.sameMembers([...reader.metadata.keys()], Object.keys(tensors))
    for (const [name, { shape, data }] of Object.entries(tensors)) {
      assert.deepEqual(reader.metadata.get(name)?.shape, shape)
      const bytes = reader.getTensor(name)
      assert.deepEqual(bytes.slice(), new Uint8Array(data.buffer))
    }
  })

  it.effect("reads the weights of a run, and its optimiser's state", () =>
    Effect.gen(function* () {
      const { files } = yield* keep({ env: CartPole.env, algorithm: Ppo.make({ hidden: [8] }), totalSteps: 1024 })
      const folder = [...files.keys()].find((file) => file.endsWith("/weights.safetensors"))?.replace(/[^/]*$/, "")
      for (const file of ["weights", "optimizer"]) {
        const bytes = files.get(`${folder}${file}.safetensors`) ?? new Uint8Array(0)
        const reader = new SafeTensor(bytes)
        const ours = decode(bytes)
        assert.isAbove(Object.keys(ours).length, 2)
        for (const [name, { shape, data }] of Object.entries(ours)) {
          assert.deepInclude(reader.metadata.get(name), { dtype: "F32", shape: [...shape] })
          assert.deepEqual(floats(reader.getTensor(name)), data)
        }
      }
    }),
  )
})
