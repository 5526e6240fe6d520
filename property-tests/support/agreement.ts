import { Context, Effect, Layer, Scope } from "effect"
import { Backend, type BackendUnavailable, type Program } from "../../src/tensor/backend/Backend.ts"
import type { ProgramSpec } from "../../src/tensor/graph/Program.ts"

/** A program that lives until the test is over. */
export const compileWith = (layer: Layer.Layer<Backend, BackendUnavailable>, spec: ProgramSpec): Program =>
  Effect.runSync(
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const backend = yield* Effect.provideService(
        Effect.map(Layer.build(layer), Context.get(Backend)),
        Scope.Scope,
        scope,
      )
      return yield* Effect.provideService(backend.compile(spec), Scope.Scope, scope)
    }),
  )

/** Describes the first element that differs by more than rounding, or returns undefined if none does. */
export const agree = (found: ArrayLike<number>, expected: ArrayLike<number>): string | undefined => {
  const scale = Math.max(1, ...Array.from(expected, Math.abs))
  for (let i = 0; i < expected.length; i++) {
    if (!(Math.abs(found[i] - expected[i]) <= 2e-4 * scale))
      return `element ${i} is ${found[i]}, expected ${expected[i]}`
  }
  return undefined
}

/** Describes the first number that differs by a bit, or returns undefined if none does; NaN equals NaN. */
export const identical = (found: ArrayLike<number>, expected: ArrayLike<number>): string | undefined => {
  for (let i = 0; i < expected.length; i++) {
    if (!Object.is(found[i], expected[i])) return `element ${i} is ${found[i]}, expected ${expected[i]}`
  }
  return undefined
}

/**
 * Compares two programs over two runs of the same feeds, and returns the first place where they disagree, if any.
 * The reference starts its second run from the states that the other program reached: some graphs amplify rounding so
 * much that two correct programs drift apart when each continues from its own states.
 */
export const firstDifference = (
  one: Program,
  reference: Program,
  spec: ProgramSpec,
  differ = agree,
): string | undefined => {
  const programs = [one, reference]
  for (const [name, { tensor }] of Object.entries(spec.state)) {
    const start = Float32Array.from({ length: tensor.shape.reduce((a, b) => a * b, 1) }, (_, i) => {
      const wave = Math.sin(i * 7 + name.charCodeAt(0))
      return tensor.dtype === "i8" ? Math.round(127 * wave) : wave
    })
    for (const program of programs) Effect.runSync(program.write(name, start))
  }
  for (let run = 0; run < 2; run++) {
    for (const name of Object.keys(spec.inputs)) {
      for (const program of programs)
        program.feeds[name].forEach((_, i, feed) => (feed[i] = Math.fround(Math.cos(i * 5 + run + name.charCodeAt(0)))))
    }
    for (const program of programs) program.runSync?.()
    for (const name of Object.keys(spec.outputs)) {
      const wrong = differ(one.results[name], reference.results[name])
      if (wrong !== undefined) return `${name}, run ${run}: ${wrong}`
    }
    for (const name of Object.keys(spec.state)) {
      const found = Effect.runSync(one.read(name))
      const wrong = differ(found, Effect.runSync(reference.read(name)))
      if (wrong !== undefined) return `state ${name}, run ${run}: ${wrong}`
      Effect.runSync(reference.write(name, found))
    }
  }
  return undefined
}
