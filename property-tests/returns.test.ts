import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { gae } from "../src/rl/returns/gae.ts"
import * as Returns from "../src/rl/returns/Returns.ts"

interface Rollout {
  readonly rewards: Float64Array
  readonly values: Float64Array
  readonly lastValues: Float64Array
  readonly terminated: Uint8Array
  readonly truncated: Uint8Array
  readonly truncatedValues: Float64Array
  readonly gamma: number
  readonly lambda: number
}

const number = fc.double({ min: -5, max: 5, noNaN: true })
const share = fc.double({ min: 0, max: 1, noNaN: true })
const flag = fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constant(1) })
const numbers = (length: number) =>
  fc.array(number, { minLength: length, maxLength: length }).map((array) => Float64Array.from(array))
const flags = (length: number) =>
  fc.array(flag, { minLength: length, maxLength: length }).map((array) => Uint8Array.from(array))

const rolloutOf = (steps: number, envs: number): fc.Arbitrary<Rollout> => {
  const rows = steps * envs
  return fc.record({
    rewards: numbers(rows),
    values: numbers(rows),
    lastValues: numbers(envs),
    terminated: flags(rows),
    truncated: flags(rows),
    truncatedValues: numbers(rows),
    gamma: share,
    lambda: share,
  })
}

const rollout = fc
  .tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 6 }))
  .chain(([steps, envs]) => rolloutOf(steps, envs))

const close = (actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance = 1e-10): void => {
  assert.strictEqual(actual.length, expected.length)
  for (let index = 0; index < actual.length; index++) {
    assert.approximately(actual[index], expected[index], tolerance, `row ${index}`)
  }
}

const map = (a: Float64Array, b: ArrayLike<number>, f: (a: number, b: number) => number): Float64Array =>
  a.map((value, index) => f(value, b[index]))

const plus = (a: Float64Array, b: ArrayLike<number>): Float64Array => map(a, b, (a, b) => a + b)

type Inputs = Omit<Rollout, "truncated" | "truncatedValues"> &
  Partial<Pick<Rollout, "truncated" | "truncatedValues">> & { readonly clip?: boolean }

/** Every kind of return, as a function of a rollout. */
const kinds: Readonly<Record<string, (inputs: Inputs) => Float64Array>> = {
  gae: (inputs) => gae(inputs),
  lambdaReturn: (inputs) => Returns.lambdaReturn(inputs),
  nStep: (inputs) => Returns.nStep(inputs),
  "nStep to a horizon": (inputs) => Returns.nStep({ ...inputs, horizon: 3 }),
  vtrace: (inputs) => {
    // The same ratios for every env.
    const logRatios = inputs.rewards.map((_, row) => ((Math.floor(row / inputs.lastValues.length) * 7) % 5) - 2)
    return Returns.vtrace({ ...inputs, logRatios }).targets
  },
}

/** One env's column, and v' of each of its rows. */
const columnOf = (inputs: Rollout, env: number) => {
  const envs = inputs.lastValues.length
  const rows = Array.from({ length: inputs.rewards.length / envs }, (_, t) => t * envs + env)
  return rows.map((row, t) => ({
    row,
    reward: inputs.rewards[row],
    value: inputs.values[row],
    done: inputs.terminated[row] !== 0 || inputs.truncated[row] !== 0,
    next:
      inputs.terminated[row] !== 0
        ? 0
        : inputs.truncated[row] !== 0
          ? inputs.truncatedValues[row]
          : t + 1 < rows.length
            ? inputs.values[rows[t + 1]]
            : inputs.lastValues[env],
  }))
}

describe("returns", () => {
  it("GAE is the sum of the discounted errors up to the end of the episode", () => {
    fc.assert(
      fc.property(rollout, (inputs) => {
        const expected = new Float64Array(inputs.rewards.length)
        for (let env = 0; env < inputs.lastValues.length; env++) {
          const column = columnOf(inputs, env)
          for (const [t, { row }] of column.entries()) {
            for (let k = t; k < column.length; k++) {
              const { reward, value, next, done } = column[k]
              expected[row] += (inputs.gamma * inputs.lambda) ** (k - t) * (reward + inputs.gamma * next - value)
              if (done) break
            }
          }
        }
        close(gae(inputs), expected)
      }),
    )
  })

  it("n-step returns are the discounted rewards up to the horizon, and the value from there", () => {
    fc.assert(
      fc.property(rollout, fc.integer({ min: 1, max: 14 }), (inputs, horizon) => {
        const expected = new Float64Array(inputs.rewards.length)
        for (let env = 0; env < inputs.lastValues.length; env++) {
          const column = columnOf(inputs, env)
          for (const [t, { row }] of column.entries()) {
            const ahead = column.slice(t, t + horizon)
            const end = ahead.findIndex(({ done }) => done)
            const counted = end === -1 ? ahead : ahead.slice(0, end + 1)
            expected[row] = counted.reduceRight(
              (later, { reward }) => reward + inputs.gamma * later,
              counted[counted.length - 1].next,
            )
          }
        }
        close(Returns.nStep({ ...inputs, horizon }), expected)
      }),
    )
  })

  it("the λ-return minus the values is GAE", () => {
    fc.assert(
      fc.property(rollout, (inputs) => {
        close(
          map(Returns.lambdaReturn(inputs), inputs.values, (target, value) => target - value),
          gae(inputs),
        )
        close(Returns.GAE(inputs), Returns.LAMBDA(inputs))
      }),
    )
  })

  it("the λ-return with λ = 1 is the n-step return, to any horizon beyond the rollout", () => {
    fc.assert(
      fc.property(rollout, (inputs) => {
        const whole = Returns.lambdaReturn({ ...inputs, lambda: 1 })
        close(Returns.nStep(inputs), whole)
        close(Returns.nStep({ ...inputs, horizon: 12 }), whole)
      }),
    )
  })

  it("the λ-return with λ = 0 is the one-step target, and so is a horizon of one", () => {
    fc.assert(
      fc.property(rollout, (inputs) => {
        const expected = new Float64Array(inputs.rewards.length)
        for (let env = 0; env < inputs.lastValues.length; env++) {
          for (const { row, reward, next } of columnOf(inputs, env)) expected[row] = reward + inputs.gamma * next
        }
        close(Returns.lambdaReturn({ ...inputs, lambda: 0 }), expected)
        close(Returns.nStep({ ...inputs, horizon: 1 }), expected)
      }),
    )
  })

  it("are linear in rewards and values", () => {
    const pair = fc
      .tuple(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 5 }))
      .chain(([steps, envs]) => fc.tuple(rolloutOf(steps, envs), rolloutOf(steps, envs)))
    for (const compute of Object.values(kinds)) {
      fc.assert(
        fc.property(pair, number, ([one, other], factor) => {
          const mix = (a: Float64Array, b: Float64Array): Float64Array => map(a, b, (a, b) => a + factor * b)
          const same = {
            ...other,
            terminated: one.terminated,
            truncated: one.truncated,
            gamma: one.gamma,
            lambda: one.lambda,
          }
          const mixed = {
            ...one,
            rewards: mix(one.rewards, same.rewards),
            values: mix(one.values, same.values),
            lastValues: mix(one.lastValues, same.lastValues),
            truncatedValues: mix(one.truncatedValues, same.truncatedValues),
          }
          close(compute(mixed), mix(compute(one), compute(same)), 1e-8)
        }),
      )
    }
  })

  it("do not depend on anything after the end of an episode, not even on NaN", () => {
    const withRow = rollout.chain((inputs) => fc.tuple(fc.constant(inputs), fc.nat({ max: inputs.rewards.length - 1 })))
    for (const compute of Object.values(kinds)) {
      fc.assert(
        fc.property(withRow, fc.boolean(), ([inputs, end], terminates) => {
          const { rewards, values, lastValues, truncatedValues } = inputs
          const envs = lastValues.length
          const terminated = inputs.terminated.with(end, Number(terminates))
          const truncated = inputs.truncated.with(end, Number(!terminates))
          const after = (row: number): boolean => row > end && row % envs === end % envs
          const spoilt = (array: Float64Array): Float64Array => array.map((value, row) => (after(row) ? NaN : value))
          const before = compute({ ...inputs, terminated, truncated })
          const behind = compute({
            ...inputs,
            terminated,
            truncated,
            rewards: spoilt(rewards),
            values: spoilt(values),
            truncatedValues: spoilt(truncatedValues).map((value, row) =>
              truncated[row] === 0 || terminated[row] !== 0 ? NaN : value,
            ),
            lastValues: lastValues.with(end % envs, NaN),
          })
          for (let row = 0; row < rewards.length; row++) if (!after(row)) assert.strictEqual(behind[row], before[row])
        }),
      )
    }
  })

  it("shift by a constant with the values, if the rewards compensate for the discount", () => {
    for (const [name, compute] of Object.entries(kinds)) {
      fc.assert(
        fc.property(rollout, number, (inputs, constant) => {
          const moved = {
            ...inputs,
            rewards: inputs.rewards.map(
              (reward, row) => reward + constant * (inputs.terminated[row] !== 0 ? 1 : 1 - inputs.gamma),
            ),
            values: inputs.values.map((value) => value + constant),
            lastValues: inputs.lastValues.map((value) => value + constant),
            truncatedValues: inputs.truncatedValues.map((value) => value + constant),
          }
          const shift = name === "gae" ? 0 : constant
          close(
            compute(moved),
            compute(inputs).map((value) => value + shift),
          )
        }),
      )
    }
  })

  it("are permuted with the envs", () => {
    const shuffled = rollout.chain((inputs) =>
      fc.tuple(
        fc.constant(inputs),
        fc.shuffledSubarray([...inputs.lastValues.keys()], { minLength: inputs.lastValues.length }),
      ),
    )
    for (const compute of Object.values(kinds)) {
      fc.assert(
        fc.property(shuffled, ([inputs, order]) => {
          const envs = order.length
          const from = (row: number): number => row - (row % envs) + order[row % envs]
          const floats = (array: Float64Array): Float64Array => array.map((_, row) => array[from(row)])
          const flags = (array: Uint8Array): Uint8Array => array.map((_, row) => array[from(row)])
          const permuted = compute({
            ...inputs,
            rewards: floats(inputs.rewards),
            values: floats(inputs.values),
            lastValues: floats(inputs.lastValues),
            terminated: flags(inputs.terminated),
            truncated: flags(inputs.truncated),
            truncatedValues: floats(inputs.truncatedValues),
          })
          assert.deepEqual(permuted, floats(compute(inputs)))
        }),
      )
    }
  })

  it("in float32 are within 1e-5 of those in float64", () => {
    const long = fc
      .tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 9 }))
      .chain(([steps, envs]) => rolloutOf(steps, envs))
    fc.assert(
      fc.property(long, (inputs) => {
        const single = (array: Float64Array): Float32Array => Float32Array.from(array)
        const narrow = {
          ...inputs,
          rewards: single(inputs.rewards),
          values: single(inputs.values),
          lastValues: single(inputs.lastValues),
          truncatedValues: single(inputs.truncatedValues),
        }
        const pairs: ReadonlyArray<readonly [Float32Array, Float64Array]> = [
          [gae(narrow), gae(inputs)],
          [Returns.lambdaReturn(narrow), Returns.lambdaReturn(inputs)],
          [Returns.nStep(narrow), Returns.nStep(inputs)],
          [Returns.nStep({ ...narrow, horizon: 4 }), Returns.nStep({ ...inputs, horizon: 4 })],
        ]
        const largest = (array: Float64Array): number =>
          array.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
        for (const [narrowed, exact] of pairs)
          close(narrowed, exact, 1e-5 * Math.max(1, largest(exact), largest(inputs.values)))
      }),
    )
  })

  it("continue from one rollout to the next", () => {
    fc.assert(
      fc.property(rollout, fc.nat({ max: 11 }), (inputs, at) => {
        const envs = inputs.lastValues.length
        const seam = envs * Math.min(at, inputs.rewards.length / envs)
        fc.pre(seam > 0 && seam < inputs.rewards.length)
        const cut = (from: number, to: number, lastValues: Float64Array): Rollout => ({
          ...inputs,
          rewards: inputs.rewards.slice(from, to),
          values: inputs.values.slice(from, to),
          terminated: inputs.terminated.slice(from, to),
          truncated: inputs.truncated.slice(from, to),
          truncatedValues: inputs.truncatedValues.slice(from, to),
          lastValues,
        })
        const whole = Returns.nStep(inputs)
        const second = Returns.nStep(cut(seam, inputs.rewards.length, inputs.lastValues))
        const first = Returns.nStep(cut(0, seam, second.slice(0, envs)))
        close(first, whole.subarray(0, seam))
        close(second, whole.subarray(seam))
      }),
    )
  })

  it("with rlib's tail are those of a rollout that is one row shorter, followed by the last value", () => {
    fc.assert(
      fc.property(rollout, (inputs) => {
        const envs = inputs.lastValues.length
        const last = inputs.rewards.length - envs
        const tail = inputs.lastValues.map((value, env) =>
          inputs.terminated[last + env] !== 0 || inputs.truncated[last + env] !== 0 ? 0 : value,
        )
        const shorter = Returns.nStep({
          ...inputs,
          rewards: inputs.rewards.slice(0, last),
          values: inputs.values.slice(0, last),
          terminated: inputs.terminated.slice(0, last),
          truncated: inputs.truncated.slice(0, last),
          truncatedValues: inputs.truncatedValues.slice(0, last),
          lastValues: tail,
        })
        close(Returns.nStep({ ...inputs, tail: "rlib" }), [...shorter, ...tail])
        close(Returns.lambdaReturn({ ...inputs, lambda: 1, tail: "rlib" }), [...shorter, ...tail])
      }),
    )
  })

  it("count a truncation as a termination if its value is missing", () => {
    for (const compute of Object.values(kinds)) {
      fc.assert(
        fc.property(rollout, ({ rewards, values, lastValues, terminated, truncated, gamma, lambda }) => {
          const inputs = { rewards, values, lastValues, gamma, lambda }
          const ended = terminated.map((flag, row) => flag | truncated[row])
          assert.deepEqual(compute({ ...inputs, terminated, truncated }), compute({ ...inputs, terminated: ended }))
        }),
      )
    }
  })

  it("clip rewards as if the inputs were clipped", () => {
    for (const compute of Object.values(kinds)) {
      fc.assert(
        fc.property(rollout, (inputs) => {
          const rewards = inputs.rewards.map((reward) => Math.min(Math.max(reward, -1), 1))
          assert.deepEqual(compute({ ...inputs, clip: true }), compute({ ...inputs, rewards }))
        }),
      )
    }
  })

  it("also write the targets, advantages plus values", () => {
    fc.assert(
      fc.property(rollout, (inputs) => {
        const targets = new Float64Array(inputs.rewards.length)
        const advantages = gae({ ...inputs, targets })
        assert.deepEqual(targets, plus(advantages, inputs.values))
        assert.deepEqual(targets, Returns.GAE(inputs))
      }),
    )
  })
})

describe("V-trace", () => {
  const onPolicy = (inputs: Rollout) => ({ ...inputs, logRatios: new Float64Array(inputs.rewards.length) })

  it("on policy is the λ-return, and with λ = 1 the n-step return", () => {
    fc.assert(
      fc.property(rollout, (inputs) => {
        close(Returns.vtrace(onPolicy(inputs)).targets, Returns.lambdaReturn(inputs))
        const { lambda: _, ...rest } = onPolicy(inputs)
        close(Returns.vtrace(rest).targets, Returns.nStep(inputs))
        close(plus(Returns.vtrace(rest).advantages, inputs.values), Returns.nStep(inputs))
      }),
    )
  })

  it("with ratios above its bounds equals the on-policy result", () => {
    fc.assert(
      fc.property(rollout, share, (inputs, above) => {
        const logRatios = inputs.rewards.map(() => above * 20)
        const off = Returns.vtrace({ ...inputs, logRatios })
        const on = Returns.vtrace(onPolicy(inputs))
        close(off.targets, on.targets)
        close(off.advantages, on.advantages)
      }),
    )
  })

  it("has advantage 0 for actions that the policy never takes", () => {
    fc.assert(
      fc.property(rollout, (inputs) => {
        const { targets, advantages } = Returns.vtrace({ ...inputs, logRatios: inputs.rewards.map(() => -Infinity) })
        close(targets, inputs.values)
        close(advantages, new Float64Array(inputs.rewards.length))
      }),
    )
  })
})

describe("reward to go", () => {
  it("is the n-step return if all values are 0", () => {
    fc.assert(
      fc.property(rollout, (inputs) => {
        const nothing = new Float64Array(inputs.rewards.length)
        const none = {
          ...inputs,
          values: nothing,
          truncatedValues: nothing,
          lastValues: inputs.lastValues.map(() => 0),
        }
        const { rewards, terminated, truncated, gamma } = inputs
        const toGo = Returns.discountedRewardToGo({
          rewards,
          terminated,
          truncated,
          gamma,
          numEnvs: inputs.lastValues.length,
        })
        close(toGo, Returns.nStep(none))
      }),
    )
  })
})

describe("advantages relative to a group", () => {
  const reward = fc.double({ min: -10, max: 10, noNaN: true })
  const completions = fc.array(fc.tuple(fc.integer({ min: 0, max: 3 }), reward), { minLength: 1, maxLength: 20 })
  const settings = fc.record({
    baseline: fc.constantFrom("mean", "leave_one_out"),
    deviation: fc.constantFrom("none", "sample", "population", "batch"),
    epsilon: fc.constantFrom<number[]>(0.01, 1),
  })
  type Settings = typeof settings extends fc.Arbitrary<infer A> ? A : never
  const advantagesOf = (rows: ReadonlyArray<readonly [number, number]>, { baseline, deviation, epsilon }: Settings) =>
    Returns.groupAdvantages({
      rewards: Float64Array.from(rows, ([, value]) => value),
      groups: rows.map(([group]) => group),
      baseline,
      deviation,
      epsilon,
    }).advantages

  it("sum to 0 in each group", () => {
    fc.assert(
      fc.property(completions, settings, (rows, options) => {
        const sums = [0, 0, 0, 0]
        advantagesOf(rows, options).forEach((value, row) => void (sums[rows[row][0]] += value))
        close(sums, [0, 0, 0, 0], 1e-8)
      }),
    )
  })

  it("do not change if all rewards of a group are shifted", () => {
    fc.assert(
      fc.property(completions, settings, reward, (rows, options, shift) => {
        const shifted = rows.map(([group, value]) => [group, group === 1 ? value + shift : value] as const)
        // Rounding can make rewards equal that differ by less than their precision.
        fc.pre(
          rows.every(([g, a], i) =>
            rows.every(([h, b], j) => g !== h || (a === b) === (shifted[i][1] === shifted[j][1])),
          ),
        )
        close(advantagesOf(shifted, options), advantagesOf(rows, options), 1e-9)
      }),
    )
  })

  it("scale with the rewards; divided by the deviation, and without ε, they do not change", () => {
    fc.assert(
      fc.property(completions, settings, fc.constantFrom(0.25, 2, 8), (rows, options, factor) => {
        const scaled = rows.map(([group, value]) => [group, value * factor] as const)
        const expected = advantagesOf(rows, options)
        const without = { ...options, epsilon: options.epsilon * (options.deviation === "none" ? 1 : factor) }
        const by = options.deviation === "none" ? factor : 1
        close(
          advantagesOf(scaled, without),
          expected.map((value) => value * by),
          1e-8,
        )
      }),
    )
  })

  it("are permuted with the completions", () => {
    fc.assert(
      fc.property(completions, settings, fc.integer(), (rows, options, seed) => {
        const order = rows.map((_, row) => row).sort((a, b) => ((a * 7919 + seed) % 13) - ((b * 7919 + seed) % 13))
        const permuted = advantagesOf(
          order.map((row) => rows[row]),
          options,
        )
        const expected = advantagesOf(rows, options)
        close(
          permuted,
          order.map((row) => expected[row]),
          1e-9,
        )
      }),
    )
  })

  it("leaving one out is the mean of the group times n / (n − 1)", () => {
    fc.assert(
      fc.property(completions, (rows) => {
        const size = (group: number) => rows.filter(([other]) => other === group).length
        const mean = advantagesOf(rows, { baseline: "mean", deviation: "none", epsilon: 0 })
        const expected = mean.map((value, row) => {
          const n = size(rows[row][0])
          return n === 1 ? 0 : (value * n) / (n - 1)
        })
        close(advantagesOf(rows, { baseline: "leave_one_out", deviation: "none", epsilon: 0 }), expected, 1e-9)
      }),
    )
  })
})
