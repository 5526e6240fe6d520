import { assert, describe, it } from "vitest"
import * as Env from "../../../src/rl/env/Env.ts"
import type { EnvDefinition } from "../../../src/rl/env/Env.ts"
import { box, dict, discrete, multiDiscrete, type Box, type Discrete } from "../../../src/rl/env/Space.ts"
import { envError } from "./errors.ts"

const corridor = Env.make({
  id: "corridor",
  observationSpace: box(0, 1),
  actionSpace: discrete(2),
  maxSteps: 50,
  reset: () => ({ at: 0 }),
  observe: ({ at }) => [at / 10],
  step: ({ at }, action) => {
    const next = Math.max(0, at + (action === 1 ? 1 : -1))
    return { state: { at: next }, reward: next === 10 ? 1 : 0, terminated: next === 10 }
  },
})

describe("make", () => {
  it("infers the types of states and actions", () => {
    // This test passes if it compiles.
    const typed: Env.Env<{ at: number }, Discrete> = corridor
    const any: Env.Env = typed
    const continuous: Env.Env<number, Box> = Env.make({
      id: "thermostat",
      observationSpace: box(-50, 50),
      actionSpace: box(-1, 1),
      reset: (random) => random.between(-5, 5),
      observe: (degrees) => [degrees],
      step: (degrees, [heat]) => ({ state: degrees + heat, reward: -Math.abs(degrees), terminated: false }),
    })
    assert.strictEqual(any.id, "corridor")
    assert.strictEqual(continuous.actionSpace._tag, "Box")
  })

  it("infers the types of observations with parts, and of several choices", () => {
    // This test passes if it compiles.
    const robot = Env.make({
      id: "robot",
      observationSpace: dict({ camera: box(0, 1, [1, 2, 2]), gear: discrete(3) }),
      actionSpace: multiDiscrete([2, 3]),
      reset: () => ({ gear: 0 }),
      observe: ({ gear }) => ({ camera: [0, 0, 0, 1], gear }),
      step: ({ gear }, [up, by]) => ({ state: { gear: up === 1 ? by : gear }, reward: 0, terminated: false }),
    })
    const { gear, camera } = robot.observe({ gear: 2 })
    const sum: number = gear + camera[3]
    const any: Env.Env = robot
    assert.strictEqual(sum, 3)
    assert.strictEqual(any.observationSpace._tag, "Dict")
    Env.make({
      ...robot,
      // @ts-expect-error a part is missing
      observe: ({ gear }: { gear: number }) => ({ gear }),
    })
  })

  it("keeps all fields", () => {
    assert.strictEqual(corridor.maxSteps, 50)
    assert.deepEqual(corridor.observe({ at: 5 }), [0.5])
  })
})

describe("a wrong definition", () => {
  const wrong = (changes: Readonly<Record<string, unknown>>): string => {
    // JavaScript can pass this, because no compiler checks it.
    const definition: unknown = { ...corridor, ...changes }
    return envError(() => Env.make(definition as EnvDefinition<unknown, Discrete>)).message
  }

  it.each([
    [
      { step: undefined },
      'corridor: "step" must be a function (state, action, random) => { state, reward, terminated }, found nothing',
    ],
    [{ observe: 3 }, 'corridor: "observe" must be a function (state) => observation, found 3'],
    [{ id: "" }, '"id" must be a name, found ""'],
    [{ actionSpace: 2 }, '"actionSpace" must be Space.discrete, box, multiDiscrete or multiBinary (…), found 2'],
    [{ actionSpace: dict({ a: discrete(2) }) }, '"actionSpace" must be Space.discrete, box'],
    [{ observationSpace: 4 }, '"observationSpace" must be a space, such as Space.box(…), found 4'],
    [{ actionMask: [1, 0] }, '"actionMask" must be a function (state) => zeros and ones, found [1,0]'],
    [{ actionSpace: box(0, 1), actionMask: () => [1] }, '"actionMask" needs choices as actions'],
    [{ maxSteps: 0 }, '"maxSteps" must be a whole number from 1, found 0'],
    [{ maxSteps: 1.5 }, '"maxSteps"'],
    [{ rewardThreshold: "high" }, '"rewardThreshold" must be a number, found "high"'],
    [
      { reset: undefined, rest: () => 0 },
      '"reset" must be a function (random) => state, found nothing; rename "rest"?',
    ],
    [{ max_steps: 10 }, 'corridor: unknown field "max_steps"; did you mean "maxSteps"?'],
  ])("%o", (changes, expected) => {
    assert.include(wrong(changes), expected)
  })
})
