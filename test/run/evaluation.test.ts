import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { encodeReturnFile, ReturnFile } from "../../src/run/evaluation.ts"

describe("return.json", () => {
  it("holds means and population deviations", () => {
    const bytes = encodeReturnFile([
      { step: 0, returns: [1, 3], lengths: [10, 10], terminated: 1 },
      { step: 400, returns: [5], lengths: [20], terminated: 0 },
      { step: 800, returns: [], lengths: [], terminated: 0 },
    ])
    assert.strictEqual(
      new TextDecoder().decode(bytes),
      '[{"step":0,"returns_mean":2,"returns_std":1,"episode_length_mean":10,"episode_length_std":0,"returns":[1,3],' +
        '"episode_length":[10,10],"num_terminated":1,"share_terminated":0.5},' +
        '{"step":400,"returns_mean":5,"returns_std":0,"episode_length_mean":20,"episode_length_std":0,"returns":[5],' +
        '"episode_length":[20],"num_terminated":0,"share_terminated":0}]\n',
    )
  })

  it.effect("is read in its older form too", () =>
    Effect.gen(function* () {
      const [first] = yield* Schema.decodeUnknownEffect(Schema.fromJsonString(ReturnFile))(
        '[{"step":0,"returns_mean":-1353.11,"returns_std":205.156,"episode_length_mean":200,"episode_length_std":0,"returns":[-1832.76]}]',
      )
      assert.strictEqual(first.returns_mean, -1353.11)
      assert.isUndefined(first.episode_length)
    }),
  )
})
