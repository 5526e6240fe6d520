/**
 * Measures how many tokens a second a language model of ten million weights generates, for one sequence and for 32 at once.
 * No step can be faster than reading all weights once, which alternates with it; and no step of many sequences faster than
 * its products at the speed of one large product.
 */
import { Effect } from "effect"
import { backend, type BackendName } from "effect-rl/node"
import { sizeOf } from "../../src/tensor/graph/Tensor.ts"
import { type Context, defineBench } from "../Bench.ts"
import { chosenBackend, isCpuMeasuredToo } from "../chosenBackend.ts"
import { compiled, multiplyAdds, product, reading, step } from "../decoder.ts"

const specs = { one: step(1), many: step(32), large: product(1024) }
const readSpec = reading()

const readWeights = Object.values(readSpec.state).reduce((sum, { tensor }) => sum + sizeOf(tensor.shape), 0)

const measured = ({ ratio }: Context) =>
  Effect.gen(function* () {
    const { large, many, one } = yield* compiled(specs)
    // WebAssembly adds up the weights while it reads them; ONNX Runtime would write a copy first.
    const { read } = yield* compiled({ read: readSpec }).pipe(Effect.provide(backend("wasm")))
    const [runOne, runMany, runRead, runLarge] = [one, many, read, large].map((program) => () => program.runSync?.())
    const alone = ratio(runOne, runRead, { minimumSeconds: 3 })
    const together = ratio(runMany, runRead, { minimumSeconds: 3 })
    const byProducts = ratio(runMany, runLarge, { minimumSeconds: 3 })
    return {
      value: 1 / alone.a.seconds,
      details: {
        "times the reading of all weights": alone.ratio,
        "32 sequences tokens/s": 32 / together.a.seconds,
        "its times the reading": together.ratio,
        "its share of the limit of products": multiplyAdds(specs.many) / multiplyAdds(specs.large) / byProducts.ratio,
        "reading, GB/s": (4 * readWeights) / alone.b.seconds / 1e9,
      },
    }
  })

const bench = (name: string, device: BackendName, where: string) =>
  defineBench({
    name,
    unit: "tokens/s",
    higherIsBetter: true,
    about: `A decoder of ten million weights generates the next token of one sequence, ${where}; of 32 beside it`,
    run: (context) => measured(context).pipe(Effect.scoped, Effect.provide(backend(device)), Effect.runPromise),
  })

/** Measures the step of some sequences on the backend of `EFFECT_RL_BENCH_BACKEND`; without it, on `wasm` against `cpu`. */
const sized = (sequences: number) =>
  defineBench({
    name: `decoder-step-${sequences}`,
    unit: "tokens/s",
    higherIsBetter: true,
    about: `A decoder of ten million weights generates the next token of ${sequences} sequences, on a chosen backend`,
    run: ({ ratio, time }) =>
      Effect.gen(function* () {
        const backendName = chosenBackend("wasm")
        const specs = { next: step(sequences) }
        const chosen = yield* compiled(specs).pipe(Effect.provide(backend(backendName)))
        const run = () => chosen.next.runSync?.()
        const details = { backend: backendName }
        if (!isCpuMeasuredToo()) return { value: sequences / time(run, { minimumSeconds: 3 }).seconds, details }
        const cpu = yield* compiled(specs).pipe(Effect.provide(backend("cpu")))
        const { a, b, ...times } = ratio(run, () => cpu.next.runSync?.(), { minimumSeconds: 3 })
        const other = { "cpu tokens/s": sequences / b.seconds, "its time / that of cpu": times.ratio }
        return { value: sequences / a.seconds, details: { ...details, ...other } }
      }).pipe(Effect.scoped, Effect.runPromise),
  })

export default [
  bench("decoder-step", "wasm", "as WebAssembly"),
  bench("decoder-step-ort", "cpu", "in ONNX Runtime"),
  ...[1, 16, 64].map(sized),
]
