/**
 * Measures how many tokens a second a language model of ten million weights trains on, and how close its speed comes to
 * that of one large matrix product, which alternates with it: their quotient is the share of the limit.
 */
import { Effect } from "effect"
import { backend, type BackendName } from "effect-rl/node"
import { type Context, defineBench } from "../Bench.ts"
import { chosenBackend, isCpuMeasuredToo } from "../chosenBackend.ts"
import { compiled, multiplyAdds, product, training, weightCount } from "../decoder.ts"

const [rows, width] = [4, 256]
const [train, large] = [training(rows, width), product(1024)]

const measured = ({ ratio }: Context, name: BackendName) =>
  Effect.gen(function* () {
    const programs = yield* compiled({ train, large })
    const { a, b, ...times } = ratio(
      () => programs.train.runSync?.(),
      () => programs.large.runSync?.(),
      { minimumSeconds: 8 },
    )
    return {
      tokensASecond: (rows * width) / a.seconds,
      share: multiplyAdds(train) / multiplyAdds(large) / times.ratio,
      limit: multiplyAdds(large) / b.seconds / 1e9,
    }
  }).pipe(Effect.scoped, Effect.provide(backend(name)))

export default defineBench({
  name: "decoder-train",
  unit: "tokens/s",
  higherIsBetter: true,
  about: "Training a decoder of ten million weights on 4 windows of 256 tokens, on a chosen backend",
  run: (context) =>
    Effect.gen(function* () {
      const chosen = chosenBackend("wasm")
      const first = yield* measured(context, chosen)
      const details = {
        backend: chosen,
        "million weights": weightCount / 1e6,
        "share of the limit": first.share,
        "limit, billion multiply-adds/s": first.limit,
      }
      if (!isCpuMeasuredToo()) return { value: first.tokensASecond, details }
      const cpu = yield* measured(context, "cpu")
      return {
        value: first.tokensASecond,
        details: {
          ...details,
          "ONNX Runtime tokens/s": cpu.tokensASecond,
          "its share": cpu.share,
          "its limit": cpu.limit,
        },
      }
    }).pipe(Effect.runPromise),
})
