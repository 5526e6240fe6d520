/** Tests the backend `onnx-web` in Node, where the package has WebAssembly but no GPU, against the reference. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import * as fc from "fast-check"
import { agree } from "../../../property-tests/support/agreement.ts"
import { choices, grow } from "../../../property-tests/support/randomGraph.ts"
import { Backend, BackendError, type BackendUnavailable, type Program } from "../../../src/tensor/backend/Backend.ts"
import * as OnnxWeb from "../../../src/tensor/backend/onnx-web.ts"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../src/tensor/graph/Program.ts"
import * as Train from "../../../src/rl/train/Train.ts"
import * as Web from "../../../src/web.ts"
import { ort } from "./onnxWeb.ts"
import { tries } from "../../house/tries.ts"

type Layers = Layer.Layer<Backend, BackendUnavailable>

const compile = (layer: Layers, spec: ProgramSpec) =>
  Effect.flatMap(Layer.build(layer), (context) => Context.get(context, Backend).compile(spec))

/** Fills the states and feeds of a program with the same numbers each time, runs it, and returns all its numbers. */
const numbersOf = Effect.fnUntraced(function* (program: Program, spec: ProgramSpec) {
  for (const [name, { tensor }] of Object.entries(spec.state)) {
    const size = tensor.shape.reduce((product, length) => product * length, 1)
    yield* program.write(
      name,
      Float32Array.from({ length: size }, (_, at) => Math.sin(at * 7 + name.charCodeAt(0))),
    )
  }
  for (const [name, feed] of Object.entries(program.feeds)) {
    feed.forEach((_, at) => (feed[at] = Math.fround(Math.cos(at * 5 + name.charCodeAt(0)))))
  }
  yield* program.run
  const states = yield* Effect.forEach(Object.keys(spec.state), (name) => program.read(name))
  return [...Object.values(program.results), ...states].map((numbers) => Array.from(numbers, Number))
})

/** One step of gradient descent of a network with two layers. */
const update = (): ProgramSpec => {
  const [x, wanted] = [G.input("x", [16, 8]), G.input("wanted", [16, 4])]
  const [w1, w2] = [G.state("w1", [8, 32]), G.state("w2", [32, 4])]
  const loss = G.mean(G.square(G.sub(G.matmul(G.tanh(G.matmul(x, w1)), w2), wanted)))
  const [slope1, slope2] = gradients(loss, [w1, w2])
  const learnt = (weights: typeof w1, slope: typeof w1) => G.sub(weights, G.mul(slope, 0.01))
  return {
    name: "update",
    inputs: { x, wanted },
    state: { w1: { tensor: w1, next: learnt(w1, slope1) }, w2: { tensor: w2, next: learnt(w2, slope2) } },
    outputs: { loss },
  }
}

describe("onnx-web", () => {
  it.effect("computes a network's loss and its next weights to 1e-5 of the reference", () =>
    Effect.gen(function* () {
      const spec = update()
      const [found, expected] = yield* Effect.forEach([OnnxWeb.layer(ort), Reference.layer], (layer) =>
        Effect.flatMap(compile(layer, spec), (program) => numbersOf(program, spec)),
      )
      assert.strictEqual(found.length, 3)
      for (const [index, numbers] of found.entries()) {
        numbers.forEach((value, at) => assert.closeTo(value, expected[index][at], 1e-5))
      }
    }).pipe(Effect.scoped),
  )

  it("has the results, gradients and states of the reference for any graph", async () => {
    const scope = await Effect.runPromise(Scope.make())
    const inScope = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) => Effect.runPromise(Scope.provide(effect, scope))
    const [web, reference] = await inScope(
      Effect.forEach([OnnxWeb.layer(ort), Reference.layer], (layer) =>
        Effect.map(Layer.build(layer), Context.get(Backend)),
      ),
    )
    await fc.assert(
      fc.asyncProperty(choices, async (picked) => {
        const spec = grow(picked)
        const of = (backend: Backend["Service"]) =>
          inScope(Effect.flatMap(backend.compile(spec), (program) => numbersOf(program, spec)))
        const [found, expected] = [await of(web), await of(reference)]
        for (const [index, numbers] of found.entries()) assert.isUndefined(agree(numbers, expected[index]))
      }),
      { numRuns: tries(40) },
    )
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  it.effect("trains, with the same digest each time", () =>
    Effect.gen(function* () {
      const config = {
        env: "CartPole-v1",
        num_envs: 4,
        total_steps: 256,
        algorithm: { name: "ppo", nsteps: 32, hidden: [8] },
      }
      const training = Train.fromConfig(config).pipe(Effect.provide(OnnxWeb.layer(ort)), Effect.provide(Web.layer))
      const { digest, steps } = yield* training
      assert.strictEqual(steps, 256)
      assert.strictEqual((yield* training).digest, digest)
    }),
  )

  it.effect("says what is missing where there is no GPU, and refuses to run after its scope is closed", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Effect.scoped(compile(OnnxWeb.layer(ort, { provider: "webgpu" }), update())))
      assert.match(
        error.message,
        /^Backend "onnx-web on webgpu" is not available: .*It needs a browser with WebGPU and the import onnxruntime-web\/webgpu/,
      )
      const program = yield* Effect.scoped(compile(OnnxWeb.layer(ort), update()))
      const closed = yield* Effect.flip(program.run)
      assert.instanceOf(closed, BackendError)
      assert.include(closed.message, "the scope in which it was compiled is closed")
    }),
  )
})
