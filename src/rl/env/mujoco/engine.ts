/**
 * Loads MuJoCo's own WebAssembly bindings, the package `@mujoco/mujoco`, when the first env needs them: once in each
 * thread. The package is an optional peer, so none of its types is in the types of our own.
 */
import type { MainModule, MjData, MjModel } from "@mujoco/mujoco"
import { Context, Effect, Predicate } from "effect"
import { messageOf, oneLine } from "../../../base/config/text.ts"
import { invalid } from "../../../base/EnvError.ts"
import { forcesOf, scenesOf } from "./scenes.ts"
import type { Mjcf, MujocoArrays, MujocoWorld, Simulation } from "./Simulation.ts"

/** The name of the package. Bundlers must not follow it: few pages and programs have the package. */
const name = "@mujoco/mujoco"

const importMujoco = (): Promise<typeof import("@mujoco/mujoco")> =>
  import(/* webpackIgnore: true */ /* @vite-ignore */ name)

/** Starts MuJoCo's module with options of Emscripten's. */
type ModuleStart = (options: object) => PromiseLike<unknown>

/**
 * Imports what starts MuJoCo's module. By default it is the package; a program that has its files elsewhere, such as the web
 * worker of the page "Play", provides this instead.
 */
export const MujocoPackage = Context.Reference<() => Promise<ModuleStart>>("effect-rl/env/MujocoPackage", {
  defaultValue: () => () => importMujoco().then(({ default: start }) => start),
})

let loaded: Promise<MainModule> | undefined

const missing =
  "MuJoCo's package is not installed; run `npm install @mujoco/mujoco@3.14.0`. Nothing else is needed, no Python."

const isEngine = (value: unknown): value is MainModule =>
  Predicate.hasProperty(value, "MjModel") &&
  Predicate.hasProperty(value, "mj_setState") &&
  Predicate.hasProperty(value, "mj_rnePostConstraint")

const started = async (start: ModuleStart): Promise<MainModule> => {
  // Warnings, such as that a simulation diverged, are found in the results; MuJoCo would also print them.
  const engine = await start({ print: () => {}, printErr: () => {} })
  if (isEngine(engine)) return engine
  throw new Error("it is not the module of MuJoCo 3.14")
}

/** Loads the package on the first call of this thread. The result compiles models. */
export const loadMujoco = Effect.fnUntraced(function* (env: string) {
  const read = yield* MujocoPackage
  const engine = yield* Effect.tryPromise({
    try: () => (loaded ??= read().then(started)),
    catch: (error) => {
      loaded = undefined
      const text = messageOf(error)
      const isMissing = /@mujoco\/mujoco/.test(text) && /find|resolve|specifier/i.test(text)
      return invalid(env, isMissing ? missing : `MuJoCo could not be loaded: ${oneLine(text)}`)
    },
  })
  return (model: Mjcf): Simulation => compile(env, engine, model)
})

/** The package's types ask for a list, but it takes any array. */
interface StateSetter {
  mj_setState(model: MjModel, data: MjData, state: ArrayLike<number>, parts: number): void
}

/** Compiles a model. A wrong one throws an `EnvError` with MuJoCo's message, which names the line. */
const compile = (id: string, engine: MainModule, { xml, files = {} }: Mjcf): Simulation => {
  const vfs = new engine.MjVFS()
  try {
    for (const [name, content] of Object.entries(files)) vfs.addBuffer(name, content)
    const model = engine.MjModel.from_xml_string(xml, vfs)
    return of(id, engine, model, new engine.MjData(model))
  } catch (error) {
    throw invalid(id, `model: ${oneLine(messageOf(error))}`)
  } finally {
    vfs.delete()
  }
}

const of = (id: string, engine: MainModule, model: MjModel, data: MjData): Simulation => {
  const all = engine.mjtState.mjSTATE_INTEGRATION.value
  const size = engine.mj_stateSize(model, all)
  const buffer = new engine.DoubleBuffer(size)
  const world = worldOf(id, engine, model, data)
  // A simulation that diverges would return to its start, and go on as if nothing had happened.
  model.opt.disableflags |= engine.mjtDisableBit.mjDSBL_AUTORESET.value
  const setter: StateSetter = engine
  return {
    world,
    timestep: model.opt.timestep,
    scene: scenesOf(world),
    forces: forcesOf(world),
    restart: () => engine.mj_resetData(model, data),
    forward: () => engine.mj_forward(model, data),
    step: (frames, watch) => {
      for (let frame = 0; frame < frames; frame++) {
        watch?.before()
        engine.mj_step(model, data)
        if (watch === undefined) continue
        // What a person does is part of no state and of no contact force.
        world.data.xfrc_applied.fill(0)
        engine.mj_rnePostConstraint(model, data)
        watch.after()
      }
      if (watch === undefined) engine.mj_rnePostConstraint(model, data)
      return !(isSound(world.data.qpos) && isSound(world.data.qvel))
    },
    save: () => {
      engine.mj_getState(model, data, buffer, all)
      return buffer.GetView().slice()
    },
    load: (state) => setter.mj_setState(model, data, state, all),
  }
}

const worldOf = (id: string, engine: MainModule, model: MjModel, data: MjData): MujocoWorld => {
  const kinds = {
    body: engine.mjtObj.mjOBJ_BODY.value,
    joint: engine.mjtObj.mjOBJ_JOINT.value,
    geom: engine.mjtObj.mjOBJ_GEOM.value,
    site: engine.mjtObj.mjOBJ_SITE.value,
  }
  let arrays = viewsOf(data)
  // Envs look names up in each step, and each look-up in MuJoCo passes a text to it.
  const known = new Map<string, number>()
  return {
    model,
    get data() {
      // When MuJoCo's memory grows, older views of it become empty.
      return arrays.qpos.buffer.byteLength > 0 ? arrays : (arrays = viewsOf(data))
    },
    get time() {
      return data.time
    },
    indexOf: (kind, name) => {
      const key = `${kind} ${name}`
      const index = known.get(key) ?? engine.mj_name2id(model, kinds[kind], name)
      known.set(key, index)
      if (index < 0) throw invalid(id, `the model has no ${kind} "${name}"`)
      return index
    },
  }
}

/** The largest position or velocity. MuJoCo calls larger ones bad as well. */
const largest = 1e10

const isSound = (values: Float64Array): boolean => values.every((value) => Math.abs(value) <= largest)

/** Looks up the views once, since each look at an array of `data` makes a new view of it. */
const viewsOf = (data: MjData): MujocoArrays => ({
  qpos: data.qpos,
  qvel: data.qvel,
  qacc: data.qacc,
  ctrl: data.ctrl,
  act: data.act,
  qacc_warmstart: data.qacc_warmstart,
  qfrc_actuator: data.qfrc_actuator,
  qfrc_constraint: data.qfrc_constraint,
  qfrc_passive: data.qfrc_passive,
  qfrc_applied: data.qfrc_applied,
  xfrc_applied: data.xfrc_applied,
  actuator_force: data.actuator_force,
  xpos: data.xpos,
  xquat: data.xquat,
  xmat: data.xmat,
  xipos: data.xipos,
  geom_xpos: data.geom_xpos,
  geom_xmat: data.geom_xmat,
  site_xpos: data.site_xpos,
  site_xmat: data.site_xmat,
  subtree_com: data.subtree_com,
  cinert: data.cinert,
  cvel: data.cvel,
  cfrc_ext: data.cfrc_ext,
  sensordata: data.sensordata,
})
