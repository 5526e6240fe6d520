import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { runInNewContext } from "node:vm"
import { build as bundled } from "esbuild"
import { assert, describe, it } from "vitest"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import { builtIn } from "../../../src/rl/env/Envs.ts"
import * as KeyDoor from "../../../src/rl/env/grid/KeyDoor.ts"
import { discrete, sampleInto, sizeOf } from "../../../src/rl/env/Space.ts"
import { trajectoriesJson, uiOf } from "../../../src/rl/env/ui/Ui.ts"
import * as Wrapper from "../../../src/rl/env/Wrapper.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { prepared } from "./prepared.ts"

/** The functions of a ui module that RLtools' viewer calls. */
interface Module {
  readonly init: (canvas: unknown, options: object) => unknown
  readonly render: (uiState: unknown, parameters: unknown, state: unknown, action: ReadonlyArray<number>) => void
  readonly episode_init?: (uiState: unknown, parameters: unknown) => void
}

/** A canvas that writes down what is drawn on it. */
const recording = (width = 400, height = 300) => {
  const calls: Array<string> = []
  const values = new Map<PropertyKey, unknown>()
  const gradient = { addColorStop: (...args: ReadonlyArray<unknown>) => void calls.push(`stop ${args.join()}`) }
  const context: object = new Proxy(
    {},
    {
      get: (_, name) => {
        if (values.has(name)) return values.get(name)
        if (name === "measureText") return (text: string) => ({ width: 6 * text.length })
        return (...args: ReadonlyArray<unknown>) => {
          for (const arg of args)
            if (typeof arg === "number" && !Number.isFinite(arg)) assert.fail(`${String(name)}(${args.join()})`)
          calls.push(`${String(name)} ${args.join()}`)
          return String(name).startsWith("create") ? gradient : undefined
        }
      },
      set: (_, name, value) => {
        if (typeof value === "number" && !Number.isFinite(value)) assert.fail(String(name))
        values.set(name, value)
        calls.push(`${String(name)} = ${String(value)}`)
        return true
      },
    },
  )
  const canvas = { width, height, clientWidth: width, clientHeight: height, style: {}, getContext: () => context }
  return {
    canvas,
    drawn: (): string => calls.splice(0).join("\n"),
  }
}

const load = async (esm: string): Promise<Module> => import(`data:text/javascript,${encodeURIComponent(esm)}`)

/** States and actions of some steps, as a file holds them. */
const course = (env: Env.Env, steps: number) => {
  const random = stream(7, env.id)
  let state = env.reset(random)
  const moments: Array<{
    readonly state: unknown
    readonly action: number | Float32Array
    readonly reward: number
    readonly terminated: boolean
  }> = []
  for (let step = 0; step < steps; step++) {
    const numbers = new Float32Array(sizeOf(env.actionSpace))
    sampleInto(env.actionSpace, random, numbers)
    const action = env.actionSpace._tag === "Discrete" ? numbers[0] : numbers
    const transition = env.step(state, action, random)
    moments.push({ state, action, reward: transition.reward, terminated: transition.terminated })
    state = transition.terminated ? env.reset(random) : transition.state
  }
  return moments
}

const read = (env: Env.Env, steps: number) => {
  const [{ parameters, trajectory }] = JSON.parse(trajectoriesJson([{ steps: course(env, steps) }], 0.05))
  return { parameters, trajectory }
}

const wrapped: ReadonlyArray<Env.Env> = [
  Wrapper.rescaleAction(Pendulum.env),
  Wrapper.frameStack(CartPole.env, 2),
  Wrapper.stickyActions(KeyDoor.make({ size: 11, rooms: 5 })),
]

prepared(builtIn)

describe("the drawing of an env", () => {
  for (const env of [...builtIn, ...wrapped]) {
    it(
      `${env.id}: draws every state of a trajectory, and different ones differently`,
      { tags: env.id.startsWith("ApplePicker") ? "slow" : [] },
      async () => {
        const ui = uiOf(env)
        if (ui === undefined) return assert.fail("it has one")
        const module = await load(ui.esm)
        const { parameters, trajectory } = read(env, 24)
        for (const size of [
          [400, 300],
          [90, 500],
        ]) {
          const { canvas, drawn } = recording(...size)
          const state = module.init(canvas, { devicePixelRatio: 2, theme: "dark" })
          module.episode_init?.(state, parameters)
          const pictures = new Set<string>()
          const states = new Set<string>()
          for (const { state: moment, action } of trajectory) {
            module.render(state, parameters, moment, action)
            pictures.add(drawn())
            states.add(JSON.stringify([moment, action]))
          }
          assert.isAtLeast(pictures.size, states.size / 2)
          assert.isFalse(pictures.has(""))
        }
        // As a script, the same functions are global.
        const globals: Record<string, unknown> = {}
        runInNewContext(ui.classic, globals)
        assert.isFunction(globals.init)
        assert.isFunction(globals.render)
      },
    )
  }

  for (const [what, options] of Object.entries({
    "minified, with the names of functions": { minify: true, keepNames: true },
    "of an older language": { target: "es2017", supported: { bigint: true, "top-level-await": true } },
  })) {
    it(`is the same in a bundle ${what}`, async () => {
      const folder = mkdtempSync(join(tmpdir(), "effect-ui-bundle-"))
      const outfile = join(folder, "envs.mjs")
      const entryPoints = [fileURLToPath(new URL("../../../src/rl/env/Envs.ts", import.meta.url))]
      await bundled({
        ...options,
        entryPoints,
        outfile,
        bundle: true,
        format: "esm",
        platform: "node",
        logLevel: "error",
      })
      const { builtIn: envs }: { readonly builtIn: typeof builtIn } = await import(pathToFileURL(outfile).href)
      rmSync(folder, { recursive: true })
      assert.deepEqual(
        envs.map(({ id, ui }) => ({ id, ui })),
        builtIn.map(({ id, ui }) => ({ id, ui })),
      )
      const ui = envs.find(({ id }) => id === "CartPole-v1")?.ui
      const module = await load(ui ?? "")
      const { canvas, drawn } = recording()
      module.render(module.init(canvas, {}), {}, [0, 0, 0.1, 0], [1])
      assert.include(drawn(), "fillText")
    })
  }

  it("can be an env's own, and is checked", () => {
    const definition = {
      id: "own",
      observationSpace: CartPole.env.observationSpace,
      actionSpace: discrete(2),
      reset: () => 0,
      observe: () => [0, 0, 0, 0],
      step: (state: number) => ({ state, reward: 0, terminated: false }),
    }
    const ui =
      "export const init = (canvas) => canvas\nexport function render(ui_state, parameters, state, action) {}\n"
    assert.isUndefined(uiOf(Env.make(definition)))
    assert.strictEqual(uiOf(Env.make({ ...definition, ui }))?.esm, ui)
    assert.throws(
      () => Env.make({ ...definition, ui: "export const init = 1" }),
      /"ui" must be the text of an ES module/,
    )
  })
})

describe("trajectories as text", () => {
  it("list episodes with all their numbers", () => {
    const steps = [
      { state: Int32Array.of(1, 2), action: 1, reward: 0.1, terminated: false },
      { state: { deep: [Number.NaN] }, action: [0.25, -1], reward: -1, terminated: true, truncated: false },
    ]
    assert.deepEqual(JSON.parse(trajectoriesJson([{ parameters: { mass: 2 }, steps }, { steps: [] }], 0.02)), [
      {
        parameters: { mass: 2 },
        trajectory: [
          { state: [1, 2], action: [1], dt: 0.02, reward: 0.1, terminated: false },
          { state: { deep: [null] }, action: [0.25, -1], dt: 0.02, reward: -1, terminated: true, truncated: false },
        ],
      },
      { parameters: {}, trajectory: [] },
    ])
  })
})
