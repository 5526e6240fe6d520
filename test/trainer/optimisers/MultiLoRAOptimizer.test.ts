import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Record, type Scope } from "effect"
import * as fc from "fast-check"
import { Backend } from "../../../src/tensor/backend/Backend.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { zeros } from "../../../src/tensor/graph/initialisers.ts"
import * as Graph from "../../../src/tensor/graph/ops.ts"
import { adam, muon, sgd } from "../../../src/tensor/graph/optimisers.ts"
import { layout, type NamedArray } from "../../../src/tensor/graph/Parameters.ts"
import type { Tensor } from "../../../src/tensor/graph/Tensor.ts"
import * as MultiLoRAOptimizer from "../../../src/trainer/optimisers/MultiLoRAOptimizer.ts"
import type { RunSlot } from "../../../src/trainer/runs/RunSlot.ts"
import { compileWith } from "../../../property-tests/support/agreement.ts"
import { adapterOf, fakeRuns, gradientOf, size, slotOf } from "./fakeRuns.ts"

const types = ["adamw", "sgd", "muon"] as const
const configOf = (type: string, lr = 0.1) => `[optimiser]\ntype = "${type}"\nlr = ${lr}\nweight_decay = 0.1`

type Adapters = ReadonlyMap<number, ReturnType<typeof adapterOf>>

/** A trainer of runs with these adapters, by index. */
const trainerOf = Effect.fnUntraced(function* (adapters: Adapters) {
  const runs = fakeRuns()
  const optimizer = yield* MultiLoRAOptimizer.make({
    runs,
    parametersOf: ({ index }) => adapters.get(index)?.named ?? {},
  })
  return { runs, optimizer }
})

const onWasm = <A, E>(effect: Effect.Effect<A, E, Backend | Scope.Scope>): A =>
  Effect.runSync(Effect.scoped(Effect.provide(effect, Wasm.layer)))

/** The numbers of an adapter and of its optimiser, as bits. */
const bitsOf = Effect.fnUntraced(function* (
  optimizer: MultiLoRAOptimizer.MultiLoRAOptimizer,
  slot: RunSlot,
  adapter: ReturnType<typeof adapterOf>,
) {
  const state = yield* optimizer.stateDictOf(slot)
  const bits = (data: Float32Array) => Array.from(new Uint32Array(data.slice().buffer))
  return {
    parameters: bits(adapter.flat),
    state: Object.fromEntries(Object.entries(state).map(([name, { data }]) => [name, bits(data)])),
  }
})

/** Steps one run `steps` times, with its own gradients. */
const train = Effect.fnUntraced(function* (
  optimizer: MultiLoRAOptimizer.MultiLoRAOptimizer,
  slot: RunSlot,
  steps: ReadonlyArray<number>,
) {
  const outcomes = []
  for (const step of steps) {
    optimizer.accumulate(slot, gradientOf(slot.index, step))
    outcomes.push(...(yield* optimizer.step([slot])))
  }
  return outcomes
})

describe("the optimisers of runs", () => {
  it(
    "eight runs that are trained together end with the bits of eight runs that are trained alone",
    { tags: "slow" },
    () => {
      const indices = [0, 1, 2, 3, 4, 5, 6, 7]
      const slots = indices.map((index) => slotOf(index, configOf(types[index % 3], 0.01 * (index + 1))))
      const alone = slots.map((slot) =>
        onWasm(
          Effect.gen(function* () {
            const adapter = adapterOf(slot.index)
            const { runs, optimizer } = yield* trainerOf(new Map([[slot.index, adapter]]))
            yield* runs.create(slot)
            const after = [yield* bitsOf(optimizer, slot, adapter)]
            for (let step = 0; step < 4; step++) {
              yield* train(optimizer, slot, [step])
              after.push(yield* bitsOf(optimizer, slot, adapter))
            }
            return after
          }),
        ),
      )
      fc.assert(
        fc.property(fc.array(fc.subarray(indices), { maxLength: 8 }), (rounds) => {
          const together = onWasm(
            Effect.gen(function* () {
              const adapters = new Map(indices.map((index) => [index, adapterOf(index)]))
              const { runs, optimizer } = yield* trainerOf(adapters)
              const own = slots.map((slot) => ({ ...slot }))
              for (const slot of own) yield* runs.create(slot)
              const steps = indices.map(() => 0)
              for (const ready of rounds) {
                const unfinished = ready.filter((index) => steps[index] < 4)
                for (const index of unfinished) {
                  // In two micro-batches: half of an exact binary number is exact.
                  const half = gradientOf(index, steps[index]++).map((number) => number / 2)
                  optimizer.accumulate(own[index], half)
                  optimizer.accumulate(own[index], half)
                }
                yield* optimizer.step(unfinished.map((index) => own[index]))
              }
              return yield* Effect.forEach(own, (slot) =>
                Effect.map(bitsOf(optimizer, slot, adapters.get(slot.index) ?? adapterOf(0)), (bits) => ({
                  bits,
                  expected: alone[slot.index][steps[slot.index]],
                })),
              )
            }),
          )
          for (const { bits, expected } of together) assert.deepStrictEqual(bits, expected)
        }),
        { numRuns: 12 },
      )
    },
  )

  for (const type of types)
    it(`${type}: a restored run ends with the bits of one that was not interrupted`, () => {
      const [whole, resumed] = onWasm(
        Effect.gen(function* () {
          const adapters = new Map([
            [0, adapterOf(0)],
            [1, adapterOf(0)],
          ])
          const { runs, optimizer } = yield* trainerOf(adapters)
          const [first, second] = [slotOf(0, configOf(type)), { ...slotOf(1, configOf(type)) }]
          const [adapter, copy] = [adapters.get(0) ?? adapterOf(9), adapters.get(1) ?? adapterOf(9)]
          yield* runs.create(first)
          yield* train(optimizer, first, [0, 1])
          const saved = yield* optimizer.stateDictOf(first)
          copy.flat.set(adapter.flat)
          yield* train(optimizer, first, [2, 3])
          yield* runs.create(second)
          yield* optimizer.loadStateDict(second, saved)
          for (const step of [2, 3]) {
            optimizer.accumulate(second, gradientOf(0, step))
            yield* optimizer.step([second])
          }
          return [yield* bitsOf(optimizer, first, adapter), yield* bitsOf(optimizer, second, copy)]
        }),
      )
      assert.deepStrictEqual(resumed, whole)
    })

  it("name their states by the parameters", () => {
    const namesOf = (type: string) =>
      onWasm(
        Effect.gen(function* () {
          const { runs, optimizer } = yield* trainerOf(new Map([[0, adapterOf(0)]]))
          const slot = slotOf(0, configOf(type))
          yield* runs.create(slot)
          return Object.entries(yield* optimizer.stateDictOf(slot)).map(([name, { shape }]) => [name, shape.join("×")])
        }),
      )
    const parameters = [
      ["q.lora_A.weight", "2×4"],
      ["q.lora_B.weight", "5×2"],
      ["scale", "3"],
    ]
    const each = (state: string, of = parameters) => of.map(([name, shape]) => [`${state}.${name}`, shape])
    assert.deepStrictEqual(namesOf("adamw"), [...each("adamw.first"), ...each("adamw.second"), ["adamw.steps", ""]])
    assert.deepStrictEqual(namesOf("sgd"), each("sgd.velocity"))
    assert.deepStrictEqual(namesOf("muon"), [
      ["muon.momentum", "18"],
      ["muon.adam.first", "3"],
      ["muon.adam.second", "3"],
      ["muon.adam.steps", ""],
    ])
  })

  it("refuse states that do not fit, and stay as they are", () => {
    onWasm(
      Effect.gen(function* () {
        const adapter = adapterOf(0)
        const { runs, optimizer } = yield* trainerOf(new Map([[0, adapter]]))
        const slot = slotOf(0, configOf("adamw"))
        yield* runs.create(slot)
        yield* train(optimizer, slot, [0])
        const before = yield* bitsOf(optimizer, slot, adapter)
        const saved: Readonly<Record<string, NamedArray>> = yield* optimizer.stateDictOf(slot)
        const { "adamw.steps": steps, ...rest } = saved
        const nan = { shape: [], data: Float32Array.of(NaN) }
        const wide = { shape: [2], data: Float32Array.of(1, 2) }
        const cases = [
          [rest, 'run_0: state "adamw.steps": it is missing'],
          [{ ...saved, other: steps }, 'run_0: state "other": the optimiser adamw has no such state'],
          [{ ...saved, "adamw.steps": wide }, 'run_0: state "adamw.steps": expected shape [], found [2]'],
          [{ ...saved, "adamw.steps": nan }, 'run_0: state "adamw.steps": expected finite numbers, found NaN'],
        ] as const
        for (const [state, message] of cases) {
          const error = yield* Effect.flip(optimizer.loadStateDict(slot, state))
          assert.strictEqual(error.message, message)
          assert.deepStrictEqual(yield* bitsOf(optimizer, slot, adapter), before)
        }
      }),
    )
  })

  it("a gradient that is not finite, or missing, costs only its run", () => {
    onWasm(
      Effect.gen(function* () {
        const adapters = new Map([0, 1, 2, 3].map((index) => [index, adapterOf(index)]))
        const { runs, optimizer } = yield* trainerOf(adapters)
        const slots = [0, 1, 2, 3].map((index) => slotOf(index, configOf("adamw")))
        for (const slot of slots) yield* runs.create(slot)
        const bits = () =>
          Effect.forEach(slots, (slot) => bitsOf(optimizer, slot, adapters.get(slot.index) ?? adapterOf(9)))
        const before = yield* bits()
        optimizer.accumulate(slots[0], gradientOf(0, 0).fill(NaN, 3, 4))
        optimizer.accumulate(slots[1], gradientOf(1, 0))
        optimizer.accumulate(slots[3], gradientOf(3, 0).fill(3e38))
        const outcomes = yield* optimizer.step(slots)
        assert.deepStrictEqual(
          outcomes.map((outcome) => (outcome._tag === "Failed" ? outcome.error.message : outcome._tag)),
          [
            "run_0: gradient: expected finite numbers with a norm of at most 1e18, found the norm NaN",
            "Stepped",
            "run_2: gradient: expected one since the last step, found none",
            "run_3: gradient: expected finite numbers with a norm of at most 1e18, found the norm 1.37e+39",
          ],
        )
        const after = yield* bits()
        for (const index of [0, 2, 3]) assert.deepStrictEqual(after[index], before[index])
        assert.notDeepEqual(after[1], before[1])
        // The sums are empty again: the next step is as good as if nothing had been wrong.
        assert.deepStrictEqual(optimizer.gradientOf(slots[0]), new Float32Array(size))
        optimizer.accumulate(slots[0], gradientOf(0, 0))
        const [first] = yield* optimizer.step(slots)
        assert.strictEqual(first._tag, "Stepped")
      }),
    )
  })

  it("a step to numbers that are not finite is not taken", () => {
    onWasm(
      Effect.gen(function* () {
        const adapter = adapterOf(0)
        const start = adapter.flat.slice()
        const { runs, optimizer } = yield* trainerOf(new Map([[0, adapter]]))
        const slot = slotOf(0, `[optimiser]\ntype = "sgd"\nlr = 3e38\nmax_norm = 0`)
        yield* runs.create(slot)
        const [outcome] = yield* train(optimizer, slot, [0])
        assert.strictEqual(
          outcome._tag === "Failed" ? outcome.error.message : outcome._tag,
          "run_0: parameters: expected finite numbers after the step, found others; lower the learning rate",
        )
        assert.deepStrictEqual(adapter.flat, start)
      }),
    )
  })

  it("need a new gradient for each step", () => {
    onWasm(
      Effect.gen(function* () {
        const { runs, optimizer } = yield* trainerOf(new Map([[0, adapterOf(0)]]))
        const slot = slotOf(0)
        yield* runs.create(slot)
        const [first] = yield* train(optimizer, slot, [0])
        const [second] = yield* optimizer.step([slot])
        assert.deepStrictEqual([first._tag, second._tag], ["Stepped", "Failed"])
      }),
    )
  })

  it("forget the gradients of an unfinished step when they are restored", () => {
    onWasm(
      Effect.gen(function* () {
        const { runs, optimizer } = yield* trainerOf(new Map([[0, adapterOf(0)]]))
        const slot = slotOf(0)
        yield* runs.create(slot)
        const saved = yield* optimizer.stateDictOf(slot)
        optimizer.accumulate(slot, gradientOf(0, 0))
        yield* optimizer.loadStateDict(slot, saved)
        assert.deepStrictEqual(optimizer.gradientOf(slot), new Float32Array(size))
        const [outcome] = yield* optimizer.step([slot])
        assert.strictEqual(outcome._tag, "Failed")
      }),
    )
  })

  it("are those of the graph, with the settings of the run's config", () => {
    const own = layout(Record.map(adapterOf(0).named, ({ shape }) => ({ shape, init: zeros })))
    const settings = "betas = [0.5, 0.8]\nepsilon = 0.01\nweight_decay = 0.3\nmax_norm = 0\nlr = 0.1"
    const [common, betas] = [{ weightDecay: 0.3 }, { beta1: 0.5, beta2: 0.8, epsilon: 0.01 }]
    const expected = {
      adamw: (learningRate: Tensor) => adam({ ...common, ...betas, size, learningRate }),
      sgd: (learningRate: Tensor) => sgd({ ...common, momentum: 0.9, size, learningRate }),
      muon: (learningRate: Tensor) => muon({ ...common, layout: own, momentum: 0.95, adam: betas, learningRate }),
    }
    for (const type of types) {
      const found = onWasm(
        Effect.gen(function* () {
          const adapter = adapterOf(0)
          const { runs, optimizer } = yield* trainerOf(new Map([[0, adapter]]))
          const slot = slotOf(0, `[optimiser]\ntype = "${type}"\n${settings}`)
          yield* runs.create(slot)
          yield* train(optimizer, slot, [0, 1, 2])
          return adapter.flat
        }),
      )
      const theta = Graph.state("theta", [size])
      const [gradient, rate] = [Graph.input("gradient", [size]), Graph.input("rate", [])]
      const { next, moments } = expected[type](rate).update(theta, gradient)
      const inputs = { gradient, rate }
      const state = { theta: { tensor: theta, next }, ...moments }
      const program = compileWith(Wasm.layer, { name: type, inputs, state, outputs: {} })
      Effect.runSync(program.write("theta", adapterOf(0).flat))
      for (const step of [0, 1, 2]) {
        program.feeds.gradient.set(gradientOf(0, step))
        program.feeds.rate[0] = 0.1
        program.runSync?.()
      }
      assert.deepStrictEqual(found, Effect.runSync(program.read("theta")), type)
    }
  })

  it("scale the gradients of a run together to the largest norm, and report the norm before", () => {
    const stepBy = (maxNorm: string) =>
      onWasm(
        Effect.gen(function* () {
          const adapter = adapterOf(0)
          const start = adapter.flat.slice()
          const { runs, optimizer } = yield* trainerOf(new Map([[0, adapter]]))
          const limits = `[optimiser]\ntype = "sgd"\nlr = 1\nmomentum = 0\nweight_decay = 0\n${maxNorm}`
          const slot = slotOf(0, limits)
          yield* runs.create(slot)
          const [outcome] = yield* train(optimizer, slot, [0])
          const norm = outcome._tag === "Stepped" ? outcome.gradientNorm : NaN
          return { norm, step: Array.from(start, (value, at) => value - adapter.flat[at]) }
        }),
      )
    const norm = Math.hypot(...gradientOf(0, 0))
    for (const [limit, expected] of [
      ["max_norm = 0.5", 0.5],
      ["max_norm = 1000", norm],
      ["max_norm = 0", norm],
      ["", 1],
    ] as const) {
      const { norm: reported, step } = stepBy(limit)
      assert.closeTo(reported, norm, 1e-6)
      assert.closeTo(Math.hypot(...step), expected, 1e-5)
      step.forEach((value, at) => assert.closeTo(value, (gradientOf(0, 0)[at] * expected) / norm, 1e-5))
    }
  })
})

describe("hooks", () => {
  it("drop a run's optimiser with its moments and gradients: the next run at the index has none of them", () => {
    onWasm(
      Effect.gen(function* () {
        const adapters = new Map([[0, adapterOf(0)]])
        const { runs, optimizer } = yield* trainerOf(adapters)
        const [old, other] = [slotOf(0, configOf("adamw")), slotOf(0, configOf("adamw"))]
        yield* runs.create(old)
        yield* train(optimizer, old, [0, 1])
        optimizer.accumulate(old, gradientOf(0, 2))
        yield* runs.remove(old)
        assert.deepStrictEqual(optimizer.slots(), [])
        assert.isFalse(optimizer.accumulate(old, gradientOf(0, 2)))
        const gone = yield* Effect.flip(optimizer.stateDictOf(old))
        assert.strictEqual(gone.message, `run 0, generation ${old.generation}: it has no optimiser`)

        yield* runs.create(other)
        // The old run's micro-batch was still being computed.
        assert.isFalse(optimizer.accumulate(old, gradientOf(0, 2)))
        assert.isFalse(optimizer.setLearningRate(old, 1))
        assert.isUndefined(optimizer.gradientOf(old))
        assert.deepStrictEqual(optimizer.gradientOf(other), new Float32Array(size))
        for (const { data } of Object.values(yield* optimizer.stateDictOf(other)))
          assert.deepStrictEqual(data, new Float32Array(data.length))
        // A late deletion of the old run leaves the new one alone.
        yield* runs.remove(old)
        assert.deepStrictEqual(optimizer.slots(), [other])
        assert.deepStrictEqual(yield* optimizer.step([old]), [])
      }),
    )
  })

  it("keep the sum of a run that is not ready yet, whose step has more micro-batches", () => {
    onWasm(
      Effect.gen(function* () {
        const { runs, optimizer } = yield* trainerOf(new Map([[0, adapterOf(0)]]))
        const slot = slotOf(0, configOf("adamw"))
        yield* runs.create(slot)
        optimizer.accumulate(slot, gradientOf(0, 0))
        assert.deepStrictEqual(yield* optimizer.step([]), [])
        assert.deepStrictEqual(optimizer.gradientOf(slot), gradientOf(0, 0))
      }),
    )
  })

  it("call what was registered after each creation, in order; if one fails, the run has no optimiser", () => {
    const calls: Array<string> = []
    onWasm(
      Effect.gen(function* () {
        const { runs, optimizer } = yield* trainerOf(
          new Map([
            [0, adapterOf(0)],
            [1, adapterOf(1)],
          ]),
        )
        optimizer.registerPostCreationCallback((own, slot) =>
          Effect.sync(() => void calls.push(`first ${slot.id} ${own.learningRateOf(slot)}`)),
        )
        optimizer.registerPostCreationCallback((_, slot) =>
          slot.index === 1
            ? Effect.fail({ message: "no room" })
            : Effect.sync(() => void calls.push(`second ${slot.id}`)),
        )
        yield* runs.create(slotOf(0, configOf("sgd", 0.25)))
        const failing = slotOf(1, configOf("sgd", 0.5))
        const error = yield* Effect.flip(runs.create(failing))
        assert.strictEqual(error.message, "no room")
        assert.deepStrictEqual(
          optimizer.slots().map(({ id }) => id),
          ["run_0"],
        )
      }),
    )
    assert.deepStrictEqual(calls, ["first run_0 0.25", "second run_0", "first run_1 0.5"])
  })

  it("release a program when its run leaves, and all others with the scope", () => {
    const released: Array<string> = []
    let compiled = 0
    const counting = Layer.effect(
      Backend,
      Effect.map(Effect.map(Layer.build(Wasm.layer), Context.get(Backend)), (backend) => ({
        ...backend,
        compile: (spec) =>
          Effect.gen(function* () {
            const number = compiled++
            yield* Effect.addFinalizer(() => Effect.sync(() => void released.push(`${spec.name} ${number}`)))
            return yield* backend.compile(spec)
          }),
      })),
    )
    Effect.runSync(
      Effect.scoped(
        Effect.gen(function* () {
          const adapters = new Map([0, 1, 2].map((index) => [index, adapterOf(index)]))
          const { runs, optimizer } = yield* trainerOf(adapters)
          const slots = [0, 1, 2].map((index) => slotOf(index, configOf(types[index])))
          optimizer.registerPostCreationCallback((_, { index }) =>
            index === 2 ? Effect.fail({ message: "no" }) : Effect.void,
          )
          for (const slot of slots) yield* Effect.exit(runs.create(slot))
          assert.deepStrictEqual(released, ["muon.step 2"])
          yield* runs.remove(slots[0])
          assert.deepStrictEqual(released, ["muon.step 2", "adamw.step 0"])
        }),
      ).pipe(Effect.provide(counting)),
    )
    assert.deepStrictEqual(released, ["muon.step 2", "adamw.step 0", "sgd.step 1"])
  })

  it("a gradient of another size is a mistake of the caller", () => {
    const exit = Effect.runSyncExit(
      Effect.scoped(
        Effect.gen(function* () {
          const { runs, optimizer } = yield* trainerOf(new Map([[0, adapterOf(0)]]))
          const slot = slotOf(0)
          yield* runs.create(slot)
          optimizer.accumulate(slot, new Float32Array(1))
        }),
      ).pipe(Effect.provide(Wasm.layer)),
    )
    assert.isTrue(Exit.hasDies(exit))
  })
})
